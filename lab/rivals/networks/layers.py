"""Pieces that the networks share: node vectors -> sums over neighbours, vectors of graphs, logits."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.errors import MissingExtraError
from lab.rivals.gine import Inputs


class Network(nn.Module):
    """Tells classes apart: ``forward`` takes what a source cuts out, :class:`Inputs` say, and gives logits (B, C)."""

    def loss(self, batch: Any, target: Tensor) -> Tensor:
        """What training makes small; a network with further wishes adds them here."""
        return F.cross_entropy(self(batch), target)

    def check_size(self, most_nodes: int, batch_size: int, device: torch.device) -> None:
        """Raise where graphs so large cannot be computed with."""


class Norm(nn.BatchNorm1d):
    """Batch normalisation that a batch of a single row, which has no spread, passes through unlearned."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and len(x) > 1:
            return super().forward(x)
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)


def pyg() -> Any:
    """The layers of PyTorch Geometric, imported when a network is built."""
    try:
        import torch_geometric.nn
    except ImportError:
        raise MissingExtraError("torch-geometric", "pyg") from None
    return torch_geometric.nn


def sum_neighbours(h: Tensor, inputs: Inputs) -> Tensor:
    """(N, D) -> (N, D)"""
    to, source = inputs.edge_index
    return torch.zeros_like(h).index_add(0, to, h[source])


def degrees(inputs: Inputs) -> Tensor:
    """(N, 1) neighbours of every node, at least 1 so that one may divide by it"""
    return torch.bincount(inputs.edge_index[0], minlength=len(inputs.x)).clamp(min=1)[:, None]


def pool(h: Tensor, inputs: Inputs, kind: Literal["sum", "mean"]) -> Tensor:
    """(N, D) -> (B, D); a graph without nodes is all zeros"""
    pooled = h.new_zeros(inputs.n_graphs, h.shape[1]).index_add(0, inputs.graph_of, h)
    if kind == "sum":
        return pooled
    return pooled / torch.bincount(inputs.graph_of, minlength=inputs.n_graphs).clamp(min=1)[:, None]


def dense_head(width: int, hidden: int, classes: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, classes))
