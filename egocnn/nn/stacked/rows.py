"""Padded rows (R, M, D) between two layers: norms over each network's own rows, dropout that ignores padding."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from egocnn.nn.stacked.dropout import Draws, Dropout
from egocnn.nn.stacked.norm import Mode, Running, norm_graphs, norm_relu, norm_relu_dropout


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """What training needs beside the batch; evaluation needs nothing."""

    mode: Mode
    dropout: Dropout | None

    def of_graphs(self, exists: Tensor) -> Learning:
        """The same where rows are graphs (R, B)."""
        graphs = Mode.of(exists, self.mode.active)
        return Learning(replace(graphs, learns=graphs.learns & self.mode.learns), self.dropout)


@dataclass(frozen=True, slots=True, eq=False)
class PaddedRows:
    """Rows of R networks, of which some are padding; see :class:`egocnn.nn.rows.Rows`."""

    present: Tensor
    """(R, M)"""
    learning: Learning | None

    def norm(self, y: Tensor, norm: nn.Module) -> Tensor:
        if not isinstance(norm, nn.BatchNorm1d):
            return y
        return norm_graphs(y, *_learned(norm), self.present, None if self.learning is None else self.learning.mode)

    def drop(self, h: Tensor, dropout: nn.Dropout, layer: int) -> Tensor:
        draws = self._draws(h, dropout, layer)
        if self.learning is None or draws is None:
            return h
        learns = self.learning.mode.learns[:, None, None]
        return torch.where(draws.kept | ~learns, h * torch.where(learns, draws.amplify, 1.0).to(h.dtype), 0)

    def activate(self, y: Tensor, norm: nn.Module, dropout: nn.Dropout, layer: int) -> Tensor:
        if not isinstance(norm, nn.BatchNorm1d):
            return self.drop(torch.relu(y), dropout, layer)
        if self.learning is None:
            return norm_relu(y, *_learned(norm), self.present)
        return norm_relu_dropout(y, *_learned(norm), self.learning.mode, self._draws(y, dropout, layer))

    def _draws(self, h: Tensor, dropout: nn.Dropout, layer: int) -> Draws | None:
        if self.learning is None or self.learning.dropout is None or dropout.p == 0:
            return None
        return replace(self.learning.dropout.layer(layer, *h.shape[1:]), share=dropout.p)


def _learned(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor, Running]:
    """Scale, shift and running statistics (R, D)"""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    return norm.weight, norm.bias, Running(norm.running_mean, norm.running_var, norm.num_batches_tracked)
