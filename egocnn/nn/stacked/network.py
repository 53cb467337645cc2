"""R networks of one shape -> one network whose every parameter has a leading axis R, and back again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from egocnn.errors import ConfigError
from egocnn.nn.embed import PatchySan
from egocnn.nn.engines.dropout import Dropout
from egocnn.nn.model import EgoCNN, Output
from egocnn.nn.rows import Learning
from egocnn.nn.stacked.batch import StackedBatch
from egocnn.nn.stacked.patches import StackedPatchShape

ALIGNMENT = 8  # Numbers that the matrix units of a GPU read at once: Patchy-San's table gets rows to a multiple of it.


class StackedNetwork:
    """An :class:`egocnn.nn.EgoCNN` whose every tensor has a leading axis R, and the R networks that it was made of.

    Tensors that layers share are stacked once. Where the embedding tables have different numbers of rows, as the
    labels of the folds may differ, the shorter ones end in rows that no batch names: their gradient is 0, and so
    they stay.
    """

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
            embed.shape = StackedPatchShape.of(shapes, embed.table.device)

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
        read = self.parameters["hidden.weight"].shape[2]
        widest = max(config.width, config.hidden, self.parameters["convs.0.weight"].shape[2], read)
        return Dropout.of(seeds, steps, config.dropout, layers=config.depth + 3, rows=rows, columns=widest)

    def logits(self, batch: StackedBatch, learning: Learning | None = None, there: Tensor | None = None) -> Tensor:
        """(R, B, C), in training with ``learning``, else in evaluation; ``there`` (R, M): nodes not missing"""
        presence = None if there is None else there.to(batch.attributes.dtype)
        output: Output = self.network(replace(batch, learning=learning), presence)
        return output.output.float()


def check_stackable(networks: Sequence[EgoCNN]) -> None:
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
