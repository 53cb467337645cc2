"""One huge graph -> a batch that the network reads in blocks of nodes. At any time there are the graph, its table of
ranked neighbours (N, K), two layers' embeddings (N, D), and what is computed for one block. The network is the one that
reads every batch; what differs lies below its layers, where sums over nodes are added up in another order."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.config import ModelConfig
from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.encode.patches import NODES_AT_ONCE, patch_portions
from egocnn.encode.ranking import Order
from egocnn.nn.batch import Bags, Batch
from egocnn.nn.embed import PatchShape
from egocnn.nn.engines import Neighbours
from egocnn.nn.engines.reference import blocks
from egocnn.nn.readout import counted, log_of
from egocnn.nn.rows import Rows

HUGE = 50_000  # Nodes from which on a graph is taken in blocks.


def batch_in_blocks(encoder: Encoder, config: ModelConfig, graphs: Graphs, device: torch.device) -> "BlockedBatch":
    """A collection of one graph, ranked and standardised by what was fitted on the training graphs"""
    words, graphs = encoder.words(graphs), encoder.renamed(graphs)
    order = encoder.ranking.order(graphs)
    table = encoder.ranking.neighbours(graphs, max(config.k, config.slots - 1), order=order)
    near = Neighbours(torch.from_numpy(np.ascontiguousarray(table[:, : config.k])), block=NODES_AT_ONCE)
    count = torch.tensor([graphs.n_nodes], device=device)
    portions = patch_portions(graphs, table, encoder.shape(config), words)
    batch = BlockedBatch(
        encoder=encoder, source=graphs, table=table, order=order,
        portions=list(portions) if config.embedding == "patchy-san" else [],
        **_fields_of_batch(device, {"neighbours": near, "node_counts": count})
    )  # fmt: skip
    if config.embedding == "attributes":
        return replace(batch, attributes=batch.attributes_of(slice(0, graphs.n_nodes)))
    return batch


def _fields_of_batch(device: torch.device, read: Mapping[str, object]) -> dict[str, Any]:
    """What is read, and nothing in all other fields of a batch."""
    nothing, none = torch.zeros(0, dtype=torch.int64, device=device), torch.zeros(0, 0, device=device)
    without: dict[str, Any] = dict.fromkeys(("node_label", "place", "graph_of", "node_counts"), nothing)
    without |= {"attributes": none, "bags": Bags(rows=nothing, offsets=nothing, weight=None)}
    return {**without, "target": None, **read}


def _local(near: Ints, here: slice) -> tuple[Ints, Ints]:
    """Neighbours (n, W) of a block -> the nodes concerned, the block's own first, and the neighbours' places in them"""
    is_own = (near >= here.start) & (near < here.stop)
    outside = np.unique(near[(near >= 0) & ~is_own])
    local = np.concatenate([np.arange(here.start, here.stop), outside])
    numbers = np.where(is_own, near - here.start, len(near) + np.searchsorted(outside, near))
    return local, np.where(near >= 0, numbers, -1)


class _BlockedRows(Rows):
    """Evaluation in place, block by block: there is no room for another layer, and nothing is dropped."""

    def activate(self, y: Tensor, norm: nn.Module, dropout: nn.Dropout, layer: int) -> Tensor:  # noqa: ARG002
        for here in blocks(len(y), NODES_AT_ONCE):
            y[here] = F.relu(norm(y[here]))
        return y


@dataclass(frozen=True, slots=True, eq=False)
class _Inputs:
    """(N, columns) what nodes add to the counts of the inputs, worked out for those that are asked for."""

    batch: "BlockedBatch"
    columns: int

    def to(self, kind: torch.dtype) -> "_Inputs":  # noqa: ARG002 — worked out in the type of the network
        return self

    def __getitem__(self, nodes: slice | Ints) -> Tensor:
        return counted(self.batch.label_of(nodes), self.batch.attributes_of(nodes), self.columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockedBatch(Batch):
    """A graph whose layers are computed, and read out, some nodes after the other."""

    encoder: Encoder
    source: Graphs
    table: Ints  # (N, W)
    order: Order
    portions: list[tuple[Ints, Ints, Floats]]  # the patches of every block, found once for all networks
    kept: list[Any] | None = None  # where wanted, what the readout pools, layer by layer, in half precision

    @property
    def keeps_layers(self) -> bool:
        return False

    @property
    def nodes(self) -> Rows:
        return _BlockedRows()

    def attributes_of(self, nodes: slice | Ints) -> Tensor:
        """(n, A), standardised"""
        attr = np.zeros((len(self.table), 0), np.float32) if self.source.node_attr is None else self.source.node_attr
        here = self.encoder.standardised(replace(self.source, node_attr=attr[nodes]))
        return torch.from_numpy(here).to(self.attributes.device)

    def label_of(self, nodes: slice | Ints) -> Tensor:
        """(n)"""
        label = self.source.node_label
        known = np.broadcast_to(np.int32(-1), len(self.table)) if label is None else label
        return torch.from_numpy(np.array(known[nodes])).to(self.attributes.device)

    def patches(self, table: Tensor, attributes: Tensor, bias: Tensor, shape: PatchShape) -> Tensor:
        """Some nodes after the other, with all that is read around them; nodes of other blocks come last."""
        found = table.new_empty(len(self.table), table.shape[1])
        device = self.attributes.device
        for here, (counts, rows, weight) in zip(blocks(len(self.table), NODES_AT_ONCE), self.portions, strict=True):
            local, numbers = _local(self.table[here], here)
            offsets = torch.from_numpy((np.cumsum(counts) - counts).astype(rows.dtype)).to(device)
            weights = None if self.source.edge_weight is None else torch.from_numpy(weight).to(device)
            bags = Bags(rows=torch.from_numpy(rows).to(device), offsets=offsets, weight=weights)
            near = Neighbours(torch.from_numpy(numbers).to(device))
            read = {"neighbours": near, "bags": bags, "attributes": self.attributes_of(local)}
            block = Batch(**_fields_of_batch(device, read))
            found[here] = block.patches(table, attributes, bias, shape)[: here.stop - here.start]
        return found

    def inputs_of(self, columns: int) -> Any:
        return _Inputs(self, columns)

    def pool(self, h: Tensor, kind: str) -> Tensor:
        if self.kept is not None:
            self.kept.append(h.half() if isinstance(h, Tensor) else h)
        first = h[slice(0, 0)]
        total, largest = first.sum(dim=0, dtype=torch.float64), first.new_full(first.shape[1:], -torch.inf)
        for here in blocks(len(self.table), NODES_AT_ONCE):
            rows = h[here]
            total += rows.sum(dim=0, dtype=torch.float64)
            largest = torch.maximum(largest, rows.amax(dim=0))
        mean = (total / len(self.table)).to(first)
        found = {"max": largest, "sum": total.to(first), "mean": mean, "log": log_of(total.to(first))}
        return torch.cat([found[each] for each in kind.split("+")])[None]

    def first_ranked(self, h: Tensor, nodes: int) -> Tensor:
        first = h[self.order.nodes[:nodes].astype(np.int64)]
        return F.pad(first, (0, 0, 0, nodes - len(first))).reshape(1, -1)
