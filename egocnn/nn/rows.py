"""What happens to the rows of a batch between two layers: batch norm, rectifier, dropout; and dense layers. Rows are
nodes or graphs: (N, D) all real, or (R, M, D) of R networks with padding, which norms leave out and dropout ignores."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.nn.engines.operator import factor_type
from egocnn.nn.engines.padded import Draws, Dropout, Mode, Running, norm_graphs, norm_relu_dropout

Activation: TypeAlias = Callable[[Tensor, nn.Module], Tensor]  # what follows the sums of a layer, given its norm


class SeededDropout(nn.Dropout):
    """torch's dropout, but from a generator of its own where it has one: see :func:`drawing_from`."""

    generator: torch.Generator | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Bit for bit what torch computes on a CPU, had its own generator the state of this one."""
        if self.generator is None or not self.training or self.p == 0 or input.numel() == 0:
            return super().forward(input)
        kept = torch.empty_like(input).bernoulli_(1 - self.p, generator=self.generator)
        return input * kept.div_(1 - self.p)


@contextmanager
def drawing_from(generator: torch.Generator | None, network: nn.Module) -> Iterator[None]:
    """Let the dropout of a network draw from this generator, and not from the one that all threads share."""
    several = [module for module in network.modules() if isinstance(module, SeededDropout)]
    for each in several:
        each.generator = generator
    try:
        yield
    finally:
        for each in several:
            each.generator = None


class Rows:
    """Packed rows, all real. ``layer`` numbers the places where activations are dropped: 0 is the embedding."""

    def norm(self, y: Tensor, norm: nn.Module) -> Tensor:
        """The batch norm alone."""
        normed: Tensor = norm(y)
        return normed

    def drop(self, h: Tensor, dropout: nn.Dropout, layer: int) -> Tensor:  # noqa: ARG002 — torch's dropout counts itself
        """Dropout alone."""
        dropped: Tensor = dropout(h)
        return dropped

    def activate(self, y: Tensor, norm: nn.Module, dropout: nn.Dropout, layer: int) -> Tensor:
        """Batch norm, rectifier and dropout, in one pass where the engine has one."""
        return self.drop(F.relu(self.norm(y, norm)), dropout, layer)


PACKED = Rows()


class PresentRows(Rows):
    """Packed rows of which some are missing: what norms learn comes from the others alone."""

    def __init__(self, presence: Tensor) -> None:
        self._presence = presence

    def norm(self, y: Tensor, norm: nn.Module) -> Tensor:
        if not norm.training or not isinstance(norm, nn.BatchNorm1d):
            return super().norm(y, norm)
        there = torch.nonzero(self._presence > 0).flatten()
        normed: Tensor = norm(y.index_select(0, there))
        return normed.new_zeros(y.shape).index_copy(0, there, normed)


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """What training needs beside a padded batch; evaluation needs nothing."""

    mode: Mode
    dropout: Dropout | None

    def of_graphs(self, exists: Tensor) -> "Learning":
        """The same where rows are graphs (R, B)."""
        graphs = Mode.of(exists, self.mode.active)
        return Learning(replace(graphs, learns=graphs.learns & self.mode.learns), self.dropout)


@dataclass(frozen=True, slots=True, eq=False)
class PaddedRows(Rows):
    """Rows of R networks, of which some are padding."""

    present: Tensor  # (R, M)
    learning: Learning | None

    def norm(self, y: Tensor, norm: nn.Module) -> Tensor:
        if not isinstance(norm, nn.BatchNorm1d):
            return y
        mode = None if self.learning is None else self.learning.mode
        return norm_graphs(y, *_learned(norm), self.present, mode)

    def drop(self, h: Tensor, dropout: nn.Dropout, layer: int) -> Tensor:
        draws = self._draws(h, dropout, layer)
        if self.learning is None or draws is None:
            return h
        learns = self.learning.mode.learns[:, None, None]
        return torch.where(draws.kept | ~learns, h * torch.where(learns, draws.amplify, 1.0).to(h.dtype), 0)

    def activate(self, y: Tensor, norm: nn.Module, dropout: nn.Dropout, layer: int) -> Tensor:
        if self.learning is None or not isinstance(norm, nn.BatchNorm1d):
            return self.drop(F.relu(self.norm(y, norm)), dropout, layer)
        return norm_relu_dropout(y, *_learned(norm), self.learning.mode, self._draws(y, dropout, layer))

    def _draws(self, h: Tensor, dropout: nn.Dropout, layer: int) -> Draws | None:
        if self.learning is None or self.learning.dropout is None or dropout.p == 0:
            return None
        return self.learning.dropout.layer(layer, h.shape[1], h.shape[2], dropout.p)


def _learned(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor, Running]:
    """Scale, shift and running statistics (R, D)"""
    names = ("running_mean", "running_var", "num_batches_tracked")
    return norm.weight, norm.bias, Running(*map(norm.get_buffer, names))


class Dense(nn.Linear):
    """``nn.Linear`` whose weight (D', D) and bias (D') may have a leading axis R, of networks computed together."""

    def forward(self, input: Tensor) -> Tensor:
        if self.weight.dim() == 2:
            return super().forward(input)
        return torch.baddbmm(self.bias[:, None], input.to(factor_type(self.bias)), self.weight.transpose(1, 2))
