"""R networks of one shape -> one network whose parameters have a leading axis R, and batches of padded rows for it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from egocnn.errors import ConfigError
from egocnn.nn.batch import Layout, slots_of
from egocnn.nn.embed import PatchySan
from egocnn.nn.engines import Neighbours
from egocnn.nn.engines.operator import factor_type
from egocnn.nn.engines.padded import Dropout, pool
from egocnn.nn.model import EgoCNN, Output
from egocnn.nn.rows import Learning, PaddedRows

ALIGNMENT = 8  # Numbers that the matrix units of a GPU read at once: Patchy-San's table gets rows to a multiple of it.


class StackedPatchShape(NamedTuple):
    """The :class:`egocnn.nn.embed.PatchShape` of every network; the labels of folds may differ."""

    slots: int
    node_labels: Tensor  # (R, 1), at least 1
    edge_labels: Tensor  # (R, 1), at least 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StackedBatch(Layout):
    """B graphs of every replica, padded to M nodes and E bag entries; see :mod:`egocnn.nn.batch` for the methods."""

    target: Tensor  # (R, B)
    table: Tensor  # (R, M, K) ranked neighbours, counted in every replica by itself; -1 where absent
    present: Tensor  # (R, M) false for padding
    node: Tensor  # (R, M) its number in the collection that the batch was cut from; any for padding
    graph: Tensor  # (R, B) the same for graphs; any where no graph was chosen
    exists: Tensor  # (R, B) false where no graph was chosen
    rows: Tensor  # (R, E) rows of Patchy-San's table
    owner: Tensor  # (R, E) the node that sums up the row; M for padding
    weight: Tensor | None  # (R, E)
    learning: Learning | None = None  # how norms and dropout treat the step; None in evaluation

    def __len__(self) -> int:
        return self.exists.shape[1]

    @property
    def nodes(self) -> PaddedRows:
        return PaddedRows(self.present if self.presence is None else self.presence > 0, self.learning)

    @property
    def graphs(self) -> PaddedRows:
        return PaddedRows(self.exists, None if self.learning is None else self.learning.of_graphs(self.exists))

    def ranked(self, k: int, layer: int = 1) -> Neighbours:  # noqa: ARG002
        """The first k neighbours of every node."""
        if k not in self._ranked:
            self._ranked[k] = Neighbours.of(self.table[..., :k])
        return self._ranked[k]

    def as_embedding(self, values: Tensor) -> Tensor:
        return values.to(factor_type(self.attributes))

    def patches(self, table: Tensor, attributes: Tensor, bias: Tensor, shape: StackedPatchShape) -> Tensor:
        """Patchy-San's sums: table (R, rows, D), attributes (R, P, A, D), bias (R, D) -> (R, M, D)"""
        h = torch.baddbmm(bias[:, None], self._entries(table, shape), table)
        if attributes.numel():
            h = torch.baddbmm(h, self._slots(attributes.shape[1]).to(h.dtype), attributes.flatten(1, 2))
        return h

    def _entries(self, table: Tensor, shape: StackedPatchShape) -> Tensor:
        """(R, M, rows) what each node reads of the table. A matrix product with this matrix is the sum of the rows
        named, forward and backward, at the speed of the matrix units and without a sort or an atomic addition. A node
        names no row twice, so nothing is lost in writing the ones."""
        (R, M), rows = self.present.shape, table.shape[1]
        replica = torch.arange(R, device=table.device)[:, None]
        place = torch.where(self.owner < M, (replica * M + self.owner) * rows + self.rows, R * M * rows)
        flat = torch.zeros(R * M * rows + 1, device=place.device, dtype=factor_type(table))
        weight: Any = self._entry_weight(shape)
        flat.scatter_(0, place.flatten(), 1.0 if weight is None else weight.flatten().to(flat.dtype))
        return flat[:-1].view(R, M, rows)

    def _entry_weight(self, shape: StackedPatchShape) -> Tensor | None:
        """(R, E) an entry is as present as the node, or both ends of the edge, that it describes; None: all count 1"""
        if self.presence is None:
            return self.weight
        M = self.present.shape[1]
        owner = self.owner.clamp(max=M - 1)
        # a row that only fills a place may come from the table of another replica
        slots = slots_of(torch.where(self.owner < M, self.rows, 0).long(), *shape)
        near, K = self.table.flatten(1), self.table.shape[2]
        ends = [near.gather(1, owner * K + (slot - 1).clamp(min=0)).long() for slot in slots]  # any for slot 0
        u, v = (torch.where(slot > 0, end, owner) for slot, end in zip(slots, ends, strict=True))
        of_u, of_v = (torch.where(e >= 0, self.presence.gather(1, e.clamp(min=0)), 0) for e in (u, v))
        there = torch.where(u == v, of_u, of_u * of_v)
        return there if self.weight is None else self.weight * there

    def _slots(self, slots: int) -> Tensor:
        """(R, M, P A) the attributes of a node and of its first P - 1 neighbours, 0 where absent"""
        R, M = self.present.shape
        table = self.table[..., : slots - 1].long()
        replica = torch.arange(R, device=table.device)[:, None, None] * M
        neighbours = self.attributes.flatten(0, 1)[replica + table.clamp(min=0)]
        near = torch.where((table >= 0)[..., None], neighbours, 0)
        return torch.cat([self.attributes[:, :, None], near], dim=2).flatten(2)

    def pool(self, h: Tensor, kind: str) -> Tensor:
        """(R, M, D) -> (R, B, D for each kind)"""
        return pool(h, self.node_counts[:, :-1].contiguous(), self.graph_of, kind, self.presence)


class StackedNetwork:
    """An :class:`egocnn.nn.EgoCNN` whose every tensor has a leading axis R, and the R networks that it was made of.
    Where the embedding tables have different numbers of rows, as the labels of the folds may differ, the shorter ones
    end in rows that no batch names: their gradient is 0, and so they stay."""

    def __init__(self, networks: Sequence[EgoCNN], device: torch.device) -> None:
        self.config = networks[0].config
        check_stackable(networks)
        self._networks = list(networks)
        self.network = copy.deepcopy(networks[0]).to(device)
        self.network.counted = max(network.counted for network in networks)
        by_name = [dict(network.named_parameters()) for network in networks]
        self.parameters: dict[str, nn.Parameter] = {}
        for name in (name for name, first in by_name[0].items() if first.numel()):
            multiple = ALIGNMENT if name == "embed.table" else 1
            self.parameters[name] = nn.Parameter(_stack([own[name] for own in by_name], device, multiple))
        buffers = [dict(network.named_buffers()) for network in networks]
        self.buffers = {name: _stack([own[name] for own in buffers], device) for name in buffers[0]}
        canonical = {id(parameter): name for name, parameter in by_name[0].items()}
        everywhere = networks[0].named_parameters(remove_duplicate=False)
        self._names = {name: canonical[id(p)] for name, p in everywhere if canonical[id(p)] in self.parameters}
        self._install()

    def _install(self) -> None:
        """Let the network compute with the stacked tensors, under all their names: tied layers name the same."""
        tensors: dict[str, Tensor] = {name: self.parameters[own] for name, own in self._names.items()}
        for name, tensor in (tensors | self.buffers).items():
            module, _, own = name.rpartition(".")
            setattr(self.network.get_submodule(module), own, tensor)
        if isinstance(self.network.embed, PatchySan):
            embed: Any = self.network.embed  # which has the shape of a single network by its type
            shapes = [network.embed.shape for network in self._networks if isinstance(network.embed, PatchySan)]
            labels = torch.tensor([[each.node_labels, each.edge_labels] for each in shapes]).clamp(min=1)
            embed.shape = StackedPatchShape(shapes[0].slots, *labels.to(embed.table.device)[..., None].unbind(1))

    @property
    def table_rows(self) -> int:
        """Of Patchy-San's table; 1 where there is none."""
        table = self.parameters.get("embed.table")
        return 1 if table is None else table.shape[1]

    def keep_only(self, numbers: Tensor) -> None:
        """Go on with these replicas alone."""
        self._networks = [self._networks[number] for number in numbers.tolist()]
        self.parameters = {name: nn.Parameter(p.detach()[numbers]) for name, p in self.parameters.items()}
        self.buffers = {name: buffer[numbers] for name, buffer in self.buffers.items()}
        self._install()

    @property
    def state(self) -> list[Tensor]:
        """All that training changes, in one order."""
        return [*(p.detach() for p in self.parameters.values()), *self.buffers.values()]

    @torch.no_grad()
    def write_back(self, state: Sequence[Tensor]) -> None:
        """Give every network its own slice of a state."""
        known = [{**dict(each.named_parameters()), **dict(each.named_buffers())} for each in self._networks]
        for name, stacked in zip((*self.parameters, *self.buffers), state, strict=True):
            owners = [own[name] for own in known]
            for own, values in zip(owners, stacked.to(owners[0].device), strict=True):  # one journey for all
                own.copy_(values[tuple(slice(0, size) for size in own.shape)])

    def draw(self, seeds: Tensor, steps: Tensor, *, rows: int) -> Dropout | None:
        """What the step after ``steps`` (R) drops of layers with at most this many rows; None for nothing at all."""
        config = self.config
        if config.dropout == config.pool_dropout == 0:
            return None
        read = self.parameters["hidden.weight"].shape[2]
        widest = max(config.width, config.hidden, self.parameters["convs.0.weight"].shape[2], read)
        return Dropout.of(seeds, steps, layers=config.depth + 3, rows=rows, columns=widest)

    def logits(self, batch: StackedBatch, learning: Learning | None = None, there: Tensor | None = None) -> Tensor:
        """(R, B, C), in training with ``learning``, else in evaluation; ``there`` (R, M): nodes not missing"""
        presence = None if there is None else there.to(batch.attributes.dtype)
        output: Output = self.network(replace(batch, learning=learning), presence)
        return output.output.float()


def check_stackable(networks: Sequence[EgoCNN]) -> None:
    """Raise unless the networks can be stacked."""
    first, outputs = networks[0], {(each.out.out_features, each.widths) for each in networks}
    for is_wrong, rule in (
        (first.custom_embedding, "a network with an embedding module of its own cannot"),
        (any(each.config != first.config for each in networks), "only networks of the same settings can"),
        (len(outputs) > 1, "only networks with the same number of outputs can"),
    ):
        if is_wrong:
            raise ConfigError(f"{rule} be trained stacked")


def _stack(several: Sequence[Tensor], device: torch.device, multiple: int = 1) -> Tensor:
    """(R, ...) filled up with zeros where sizes differ, and to rows that a matrix product reads at once"""
    shape = [max(sizes) for sizes in zip(*(each.shape for each in several), strict=True)]
    shape[:1] = [-(-size // multiple) * multiple for size in shape[:1]]
    stacked = several[0].new_zeros(len(several), *shape)
    for place, each in zip(stacked, several, strict=True):
        place[tuple(slice(0, size) for size in each.shape)] = each.detach()
    return stacked.to(device)
