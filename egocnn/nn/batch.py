"""What the network reads: B graphs with N nodes as tensors, and what each layer computes with them. Every layout of a
batch has the same methods (``patches``, ``ranked``, ``nodes``, ``graphs``, ``pool``, ``first_ranked``, ``inputs_of``),
so the network is written once. Here rows are packed, graph by graph; :mod:`egocnn.nn.stacked` pads those of R networks,
:mod:`egocnn.encode.blocks` takes a huge graph in blocks, :mod:`egocnn.interop.onnx` uses what every runtime has."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from egocnn.nn.engines import Neighbours
from egocnn.nn.engines.reference import gather_egos
from egocnn.nn.readout import counted, first_of_each, pool
from egocnn.nn.rows import PACKED, PresentRows, Rows

if TYPE_CHECKING:
    from egocnn.nn.embed import PatchShape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bags:
    """Patchy-San's table rows for every node, end to end."""

    rows: Tensor
    offsets: Tensor  # (N) where the rows of each node start
    weight: Tensor | None

    @property
    def owner(self) -> Tensor:
        """(S) the node around which each entry was read"""
        ends = torch.diff(self.offsets.long(), append=self.offsets.new_tensor([len(self.rows)], dtype=torch.int64))
        return torch.repeat_interleave(torch.arange(len(ends), device=ends.device), ends)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The node or edge that every entry of Patchy-San's bags describes."""

    owner: Tensor  # (S) the node around which the entry was read
    u: Tensor  # (S)
    v: Tensor  # (S) the other end of an edge; u again where the entry is a node's label
    is_edge: Tensor  # (S)

    def presence(self, presence: Tensor) -> Tensor:
        """Of nodes (N) -> of the entries (S): an edge is as present as both its ends"""
        return torch.where(self.is_edge & (self.u != self.v), presence[self.u] * presence[self.v], presence[self.u])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """What batches of every layout know of B graphs with N nodes in all, and do alike; of R networks with a leading
    axis R, where padding fills up the nodes of each to the same N."""

    node_label: Tensor  # (N) label numbers of the training graphs; -1: unseen, padding, or graphs without labels
    attributes: Tensor  # (N, A), standardised; A may be 0
    place: Tensor  # (N) where each node stands in the ranking of its own graph
    graph_of: Tensor  # (N); B for padding
    node_counts: Tensor  # (B); of R networks (R, B + 1), the padding last
    target: Tensor | None  # (B) class numbers, or values
    inputs: Tensor | None = None  # (N, columns) added to counts of inputs, if labels and attributes do not say it
    presence: Tensor | None = None  # (N) how far each node is there, from 0 to 1; None: all of them are
    kinds: tuple[Tensor, ...] = ()  # (N) the row of each node in every layer; empty: each has its own
    _ranked: dict[int, Neighbours] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.node_counts)

    @property
    def keeps_layers(self) -> bool:
        """Whether there is memory to hold what every layer makes of the nodes."""
        return True

    def at_presence(self, presence: Tensor) -> Self:
        """The same graphs with nodes that are present to a degree (N), which multiplies what is read of them."""
        return replace(self, presence=presence, attributes=self.attributes * presence[..., None])

    def first_ranked(self, h: Tensor, nodes: int) -> Tensor:
        """(N, D) -> (B, nodes D): the nodes of every graph that are ranked first, end to end"""
        return first_of_each(h, self.place, self.graph_of, len(self), nodes)

    def inputs_of(self, columns: int) -> Tensor:
        """(N, columns) what nodes add to the counts of the inputs"""
        inputs = counted(self.node_label, self.attributes, columns) if self.inputs is None else self.inputs
        return inputs if self.presence is None else inputs * self.presence[..., None].to(inputs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch(Layout):
    """B graphs with N nodes in all, as the network reads them."""

    neighbours: Neighbours  # ranked neighbours (N, W): as many as the widest of the layers or Patchy-San reads
    bags: Bags
    between: tuple[Neighbours, ...] = ()  # given kinds: from the rows of each layer to the next; bags: of layer 0

    def to(self, device: torch.device | str) -> Self:
        """A copy on the device."""

        def moved(record: Any) -> dict[str, Any]:
            parts = {name: getattr(record, name) for name in record.__dataclass_fields__}
            return {name: part.to(device) for name, part in parts.items() if isinstance(part, Tensor)}

        neighbours, own = moved(self.neighbours), moved(self)
        ranked = Neighbours(**neighbours) if "gate" in neighbours else Neighbours.of(neighbours["table"])
        return replace(self, neighbours=ranked, bags=replace(self.bags, **moved(self.bags)), **own)

    @property
    def nodes(self) -> Rows:
        """How norms and dropout treat the rows of nodes."""
        return PACKED if self.presence is None else PresentRows(self.presence)

    @property
    def graphs(self) -> Rows:
        """The same for the rows of graphs."""
        return PACKED

    def ranked(self, k: int, layer: int = 1) -> Neighbours:
        """The first k neighbours of every node."""
        if self.between:
            return self.between[layer - 1]
        if k not in self._ranked:
            self._ranked[k] = self.neighbours.first(k)
        return self._ranked[k]

    def as_embedding(self, values: Tensor) -> Tensor:
        """Inputs (N, D) that are read as they are, as the layers take them."""
        return values

    def patches(self, table: Tensor, attributes: Tensor, bias: Tensor, shape: "PatchShape") -> Tensor:
        """Patchy-San's sums around each node: table (rows, D), attributes (P, A, D), bias (D) -> (N, D)"""
        weight = self.bags.weight
        if self.presence is not None:
            there = self.places(shape).presence(self.presence)
            weight = there.to(table.dtype) if weight is None else weight * there
        h = F.embedding_bag(self.bags.rows, table, self.bags.offsets, mode="sum", per_sample_weights=weight)
        if attributes.shape[1]:
            h = h + self.slot_attributes(attributes)
        return h + bias

    def places(self, shape: "PatchShape") -> Places:
        """The nodes and edges that Patchy-San's entries describe."""
        rows, owner, table = self.bags.rows.long(), self.bags.owner, self.neighbours.table
        nodes = torch.cat([torch.arange(len(table), device=rows.device)[:, None], table.long()], dim=1)
        first, second = slots_of(rows, shape.slots, max(shape.node_labels, 1), max(shape.edge_labels, 1))
        return Places(owner, nodes[owner, first], nodes[owner, second], rows < shape.edge_rows)

    def without_absent(self, shape: "PatchShape") -> Self:
        """Without the entries that describe nodes, or edges to them, that the table of neighbours lacks."""
        places, bags = self.places(shape), self.bags
        stays = torch.nonzero((places.u >= 0) & (places.v >= 0)).flatten()
        counts = torch.bincount(places.owner[stays], minlength=len(self.place))
        weight, offsets = None if bags.weight is None else bags.weight[stays], counts.cumsum(0) - counts
        return replace(self, bags=Bags(rows=bags.rows[stays], offsets=offsets.to(bags.offsets), weight=weight))

    def slot_attributes(self, filters: Tensor) -> Tensor:
        """Attributes slot by slot through the filters (P, A, D) -> (N, D), absent slots contributing nothing"""
        near = self.neighbours.table[:, : filters.shape[0] - 1]
        return gather_egos(self.attributes, near, self.neighbours.gate).flatten(1) @ filters.flatten(0, 1)

    def pool(self, h: Tensor, kind: str) -> Tensor:
        """(N, D) -> (B, D for each kind): maximum, mean, sum or log over the nodes of a graph; kinds are joined by +"""
        return pool(h, self.graph_of, self.node_counts, kind, self.presence)


def slots_of(rows: Tensor, slots: int, node_labels: int | Tensor, edge_labels: int | Tensor) -> tuple[Tensor, Tensor]:
    """Rows of Patchy-San's table -> the slots that an edge joins; for the label of a node its slot twice"""
    # made on the device: a step that is recorded may not wait for the host
    first, second = torch.triu_indices(slots, slots, device=rows.device)
    edge_rows = len(first) * edge_labels
    is_edge = rows < edge_rows
    pair, slot = torch.where(is_edge, rows // edge_labels, 0), (rows - edge_rows) // node_labels
    return torch.where(is_edge, first[pair], slot), torch.where(is_edge, second[pair], slot)


class Batchable(Protocol):
    """What training needs of a collection, be it in memory or on disk."""

    @property
    def node_ptr(self) -> Tensor: ...
    @property
    def target(self) -> Tensor | None: ...
    @property
    def megabytes(self) -> float: ...
    def __len__(self) -> int: ...

    def in_memory(self) -> Any:
        """All of it as tensors: an :class:`egocnn.encode.batch.EncodedGraphs`."""

    def to(self, device: torch.device) -> Self: ...
    def batch(self, chosen: Tensor, there: Tensor | None = None, shape: "PatchShape | None" = None) -> Batch: ...
