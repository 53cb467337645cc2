"""Readouts of stacked batches: node embeddings (R, M, D) -> one vector per graph (R, B, D or more).

All embeddings are rectified, so none is below 0 and a graph without nodes reads as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from egocnn.config import Readout
from egocnn.stacking.batch import StackedBatch
from egocnn.stacking.norm import full


def read_out(h: Tensor, batch: StackedBatch, kind: Readout, sort_nodes: int) -> Tensor:
    if kind == "sort":
        return _sorted(h, batch, sort_nodes)
    counts = batch.node_counts[:, :-1].contiguous()
    largest: Callable[..., Tensor] = _Largest.apply
    total: Callable[..., Tensor] = _Total.apply
    if kind == "max":
        return largest(h, counts, batch.graph_of)
    summed = total(h, counts, batch.graph_of)
    if kind == "sum":
        return summed
    mean = summed / counts.clamp(min=1)[..., None]
    return mean if kind == "mean" else torch.cat([mean, largest(h, counts, batch.graph_of)], dim=2)


def _sorted(h: Tensor, batch: StackedBatch, nodes: int) -> Tensor:
    (R, _, D), B = h.shape, batch.exists.shape[1]
    place = torch.where(batch.present & (batch.rank < nodes), batch.graph_of * nodes + batch.rank, B * nodes)
    flat = h.new_zeros(R, B * nodes + 1, D)  # the last row takes what is left out
    flat = flat.scatter(1, place[..., None].expand_as(h), h)
    return flat[:, :-1].reshape(R, B, nodes * D)


class _Largest(torch.autograd.Function):
    """The maximum over every graph's nodes; nodes that share it share its gradient."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, counts: Tensor, graph_of: Tensor) -> Tensor:
        largest = torch.segment_reduce(h, "max", lengths=counts, axis=1, initial=0, unsafe=True)
        ctx.save_for_backward(h, largest, counts, graph_of)
        return largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        h, largest, counts, graph_of = ctx.saved_tensors
        attains = (h == _spread(largest, graph_of)) & (graph_of < counts.shape[1])[..., None]
        sharing = torch.segment_reduce(attains.to(full(gradients[0]).dtype), "sum", lengths=counts, axis=1, unsafe=True)
        each = (gradients[0] / sharing.clamp(min=1)).to(h.dtype)
        return torch.where(attains, _spread(each, graph_of), 0), None, None


class _Total(torch.autograd.Function):
    """The sum over every graph's nodes, in full precision."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, counts: Tensor, graph_of: Tensor) -> Tensor:
        ctx.save_for_backward(graph_of)
        ctx.dtype = h.dtype
        return torch.segment_reduce(full(h), "sum", lengths=counts, axis=1, unsafe=True)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (graph_of,) = ctx.saved_tensors
        return _spread(gradients[0].to(ctx.dtype), graph_of), None, None


def _spread(of_graphs: Tensor, graph_of: Tensor) -> Tensor:
    """(R, B, D), (R, M) -> every node its graph's row (R, M, D), 0 for padding"""
    padded = torch.cat([of_graphs, of_graphs.new_zeros(len(of_graphs), 1, of_graphs.shape[2])], dim=1)
    first = torch.arange(len(padded), device=padded.device)[:, None] * padded.shape[1]
    return padded.flatten(0, 1)[first + graph_of]
