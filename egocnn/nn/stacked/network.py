"""R networks of one shape -> one network whose every parameter has a leading axis R, and back again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from egocnn.errors import ConfigError
from egocnn.nn.model import EgoCNN
from egocnn.nn.readout import counted, turned
from egocnn.nn.engines import Neighbours, ego_conv
from egocnn.nn.stacked.batch import StackedBatch
from egocnn.nn.stacked.dropout import Dropout
from egocnn.nn.stacked.norm import Mode, Running, norm_graphs, norm_relu, norm_relu_dropout
from egocnn.nn.stacked.readout import read_out
from egocnn.nn.stacked.beyond import gather_rest

ALIGNMENT = 8
"""Numbers that the matrix units of a GPU read at once: Patchy-San's table gets rows to a multiple of it."""

Learning = tuple[Mode, Dropout | None]
"""what training needs beside the batch; evaluation needs nothing"""


class StackedNetwork:
    """The function of :class:`egocnn.nn.EgoCNN` for R replicas at once.

    Tensors that layers share are stacked once. Where the embedding tables have different numbers of rows, as the
    labels of the folds may differ, the shorter ones end in rows that no batch names: their gradient is 0, and so
    they stay.
    """

    def __init__(self, networks: Sequence[EgoCNN], device: torch.device) -> None:
        self.config = networks[0].config
        check(networks)
        self._networks = list(networks)
        self.counted = max(network.counted for network in networks)
        by_name = [dict(network.named_parameters()) for network in networks]
        self.parameters = {
            name: _stack(
                [own[name] for own in by_name], device, ALIGNMENT if name == "embed.table" else 1
            ).requires_grad_()
            for name, first in by_name[0].items()
            if first.numel()
        }
        buffers = [dict(network.named_buffers()) for network in networks]
        self.buffers = {name: _stack([own[name] for own in buffers], device) for name in buffers[0]}
        canonical = {id(parameter): name for name, parameter in by_name[0].items()}
        everywhere = networks[0].named_parameters(remove_duplicate=False)
        self._names = {name: canonical[id(p)] for name, p in everywhere if canonical[id(p)] in self.parameters}

    @property
    def _tensors(self) -> dict[str, Tensor]:
        """By all their names: tied layers name the same."""
        return {name: self.parameters[own] for name, own in self._names.items()}

    @property
    def table_rows(self) -> int:
        """Of Patchy-San's table; 1 where there is none."""
        table = self.parameters.get("embed.table")
        return 1 if table is None else table.shape[1]

    def keep_only(self, numbers: Tensor) -> None:
        """Go on with these replicas alone."""
        self._networks = [self._networks[number] for number in numbers.tolist()]
        self.parameters = {name: p.detach()[numbers].requires_grad_() for name, p in self.parameters.items()}
        self.buffers = {name: buffer[numbers] for name, buffer in self.buffers.items()}

    @property
    def state(self) -> list[Tensor]:
        """All that training changes, in one order."""
        return [*(p.detach() for p in self.parameters.values()), *self.buffers.values()]

    @torch.no_grad()
    def write_back(self, state: Sequence[Tensor]) -> None:
        """Give every network its own slice of a state."""
        names = [*self.parameters, *self.buffers]
        for name, stacked in zip(names, state, strict=True):
            owners = [_tensor_of(network, name) for network in self._networks]
            for own, values in zip(owners, stacked.to(owners[0].device), strict=True):  # one journey for all
                own.copy_(values[tuple(slice(0, size) for size in own.shape)])

    def draw(self, seeds: Tensor, steps: Tensor, *, rows: int) -> Dropout | None:
        """What the step after ``steps`` (R) drops of layers with at most this many rows; None for nothing at all."""
        config = self.config
        if config.dropout == config.pool_dropout == 0:
            return None
        read = self._tensors["hidden.weight"].shape[2]
        widest = max(*config.layer_width, config.hidden, self._tensors["convs.0.weight"].shape[2], read)
        return Dropout.of(seeds, steps, config.dropout, layers=config.depth + 3, rows=rows, columns=widest)

    @property
    def _factors(self) -> torch.dtype:
        """The type of what goes into matrix products."""
        bias = self._tensors["out.bias"]
        lowered = torch.is_autocast_enabled(bias.device.type)
        return torch.get_autocast_dtype(bias.device.type) if lowered else bias.dtype

    # ── forward ───────────────────────────────────────────────────────────────────────────────────

    def logits(self, batch: StackedBatch, learning: Learning | None = None) -> Tensor:
        """(R, B, C), in training with ``learning``, else in evaluation"""
        h = self._embed(batch, learning)
        reached = [h]
        of_ranks: dict[int, Neighbours] = {}
        for number, k in enumerate(self.config.layer_k):
            if k not in of_ranks:
                of_ranks[k] = Neighbours.of(batch.table[..., :k])
            layer = f"convs.{number}"
            y = ego_conv(h, of_ranks[k], self._tensors[f"{layer}.weight"], self._tensors[f"{layer}.bias"])
            if (filters := self._tensors.get(f"{layer}.rest")) is not None and batch.rest is not None:
                y = torch.baddbmm(y, gather_rest(h, batch.rest).to(y.dtype), filters.to(y.dtype))
            h = self._norm(y, f"{layer}.norm", number + 1, batch, learning)
            reached.append(h)
        read = reached if self.config.jump else reached[-1:]
        pooled = [read_out(h, batch, self.config.readout, self.config.sort_nodes) for h in read]
        if self.counted:
            inputs = counted(batch.node_label, batch.attributes, self.counted).to(h.dtype)
            pooled.append(turned(read_out(inputs, batch, self.config.readout, self.config.sort_nodes), self.counted))
        return self._head(torch.cat(pooled, dim=2), batch, learning)

    def _embed(self, batch: StackedBatch, learning: Learning | None) -> Tensor:
        if self.config.embedding == "patchy-san":
            h = torch.baddbmm(self._tensors["embed.bias"][:, None], self._patches(batch), self._tensors["embed.table"])
            if (filters := self._tensors.get("embed.attributes")) is not None:
                h = torch.baddbmm(h, _slots(batch, filters.shape[1]).to(h.dtype), filters.flatten(1, 2))
            return self._norm(h, "embed.norm", 0, batch, learning)
        h = batch.attributes.to(self._factors)
        if self.config.embedding == "adjacency":
            h = (batch.table >= 0 if batch.adjacency is None else batch.adjacency).to(self._factors)
        return _drop(h, 0, learning, self.config.dropout)

    def _patches(self, batch: StackedBatch) -> Tensor:
        """(R, M, rows) what each node reads of the table.

        A matrix product with this matrix is the sum of the rows named, forward and backward, at the speed of the
        matrix units and without a sort or an atomic addition. A node names no row twice, so nothing is lost in
        writing the ones.
        """
        (R, M), rows = batch.present.shape, self._tensors["embed.table"].shape[1]
        replica = torch.arange(R, device=batch.rows.device)[:, None]
        place = torch.where(batch.owner < M, (replica * M + batch.owner) * rows + batch.rows, R * M * rows)
        flat = torch.zeros(R * M * rows + 1, device=place.device, dtype=self._factors)
        if batch.weight is None:
            flat.scatter_(0, place.flatten(), 1.0)
        else:
            flat.scatter_(0, place.flatten(), batch.weight.flatten().to(flat.dtype))
        return flat[:-1].view(R, M, rows)

    def _norm(
        self, y: Tensor, name: str, layer: int, batch: StackedBatch, learning: Learning | None, *, nodes: bool = True
    ) -> Tensor:
        """``nodes``: y has a row for every node, else for every graph"""
        scale, shift, running = self._learned(name)
        if learning is None:
            return norm_relu(y, scale, shift, running, batch.present if nodes else batch.exists)
        mode, dropout = learning
        mode = mode if nodes else _of_graphs(mode, batch)
        draws = None if dropout is None or self.config.dropout == 0 else dropout.layer(layer, *y.shape[1:])
        return norm_relu_dropout(y, scale, shift, running, mode, draws)

    def _learned(self, name: str) -> tuple[Tensor, Tensor, Running]:
        """Scale, shift and running statistics of a norm"""
        buffers = (self.buffers[f"{name}.{b}"] for b in ("running_mean", "running_var", "num_batches_tracked"))
        return self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"], Running(*buffers)

    def _head(self, graph: Tensor, batch: StackedBatch, learning: Learning | None) -> Tensor:
        layer = self.config.depth + 1
        if self.config.pool_norm:
            mode = None if learning is None else _of_graphs(learning[0], batch)
            graph = norm_graphs(graph, *self._learned("pool_norm"), batch.exists, mode)
        hidden = self._linear(_drop(graph, layer + 1, learning, self.config.pool_dropout), "hidden")
        if self.config.head_norm:
            hidden = self._norm(hidden, "norm", layer, batch, learning, nodes=False)
        else:
            hidden = _drop(torch.relu(hidden), layer, learning, self.config.dropout)
        return self._linear(hidden, "out").float()

    def _linear(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"]
        return torch.baddbmm(bias[:, None], x.to(self._factors), weight.transpose(1, 2))


def _of_graphs(mode: Mode, batch: StackedBatch) -> Mode:
    """How a step treats norms that have a row for every graph"""
    graphs = Mode.of(batch.exists, mode.active)
    return replace(graphs, learns=graphs.learns & mode.learns)


def check(networks: Sequence[EgoCNN]) -> None:
    """Raise unless the networks can be stacked."""
    first = networks[0]
    if first.custom_embedding:
        raise ConfigError("a network with an embedding module of its own cannot be trained stacked")
    if any(network.config != first.config for network in networks):
        raise ConfigError("only networks of the same settings can be trained stacked")
    if any(network.out.out_features != first.out.out_features for network in networks):
        raise ConfigError("only networks with the same number of outputs can be trained stacked")


def _tensor_of(network: EgoCNN, name: str) -> Tensor:
    module, _, own = name.rpartition(".")
    tensor = getattr(network.get_submodule(module), own)
    assert isinstance(tensor, Tensor)
    return tensor


def _stack(several: Sequence[Tensor], device: torch.device, multiple: int = 1) -> Tensor:
    """(R, ...) filled up with zeros where sizes differ, and to rows that a matrix product reads at once"""
    shape = [max(sizes) for sizes in zip(*(each.shape for each in several), strict=True)]
    shape[:1] = [-(-size // multiple) * multiple for size in shape[:1]]
    stacked = several[0].new_zeros(len(several), *shape)
    for place, each in zip(stacked, several, strict=True):
        place[tuple(slice(0, size) for size in each.shape)] = each.detach()
    return stacked.to(device)


def _slots(batch: StackedBatch, slots: int) -> Tensor:
    """(R, M, P A) the attributes of a node and of its first P - 1 neighbours, 0 where absent"""
    R, M = batch.present.shape
    table = batch.table[..., : slots - 1].long()
    replica = torch.arange(R, device=table.device)[:, None, None] * M
    neighbours = batch.attributes.flatten(0, 1)[replica + table.clamp(min=0)]
    near = torch.where((table >= 0)[..., None], neighbours, 0)
    return torch.cat([batch.attributes[:, :, None], near], dim=2).flatten(2)


def _drop(h: Tensor, layer: int, learning: Learning | None, share: float) -> Tensor:
    mode, dropout = learning or (None, None)
    if mode is None or dropout is None or share == 0:
        return h
    draws, learns = replace(dropout.layer(layer, *h.shape[1:]), share=share), mode.learns[:, None, None]
    return torch.where(draws.kept | ~learns, h * torch.where(learns, draws.amplify, 1.0).to(h.dtype), 0)
