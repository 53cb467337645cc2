"""Readouts of padded rows: node embeddings (R, M, D) -> one vector per graph (R, B, D or more).

A graph without nodes reads as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.engines.gpu import has_kernels
from egocnn.nn.engines.norm import full
from egocnn.nn.readout import log_of

BLOCK_D = 32
BLOCKS = {"BLOCK_M": 64, "BLOCK_D": BLOCK_D}
"""Nodes and columns that a program on the GPU takes at once."""


def pool(h: Tensor, counts: Tensor, graph_of: Tensor, kind: str) -> Tensor:
    """(R, M, D) -> (R, B, D for each kind); kinds are joined by +

    counts (R, B): nodes of every graph; graph_of (R, M): B or more for padding
    """
    reduce: Callable[..., tuple[Tensor, Tensor]] = (FusedPool if has_kernels(h) else PlainPool).apply
    total, largest = reduce(h, counts, graph_of)
    parts: dict[str, Callable[[], Tensor]] = {
        "max": lambda: largest,
        "sum": lambda: total,
        "mean": lambda: total / counts.clamp(min=1)[..., None],
        "log": lambda: log_of(total),
    }
    return torch.cat([parts[each]() for each in kind.split("+")], dim=2)


def first_of_each(h: Tensor, present: Tensor, graph_of: Tensor, rank: Tensor, graphs: int, nodes: int) -> Tensor:
    """rank (R, M) in the own graph -> (R, B, nodes D): of every graph the nodes ranked first, then zeros"""
    (R, _, D), B = h.shape, graphs
    place = torch.where(present & (rank < nodes), graph_of * nodes + rank, B * nodes)
    flat = h.new_zeros(R, B * nodes + 1, D)  # the last row takes what is left out
    flat = flat.scatter(1, place[..., None].expand_as(h), h)
    return flat[:, :-1].reshape(R, B, nodes * D)


class PlainPool(torch.autograd.Function):
    """Sum and maximum over every graph's nodes, in full precision; nodes that share a maximum share its gradient."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, counts: Tensor, graph_of: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        values = full(h)
        total = torch.segment_reduce(values, "sum", lengths=counts, axis=1, unsafe=True)
        largest = torch.segment_reduce(values, "max", lengths=counts, axis=1, unsafe=True)
        largest = torch.where(counts[..., None] > 0, largest, 0)
        ctx.save_for_backward(h, largest, counts, graph_of)
        return total, largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor, None, None]:
        h, largest, counts, graph_of = ctx.saved_tensors
        of_total, of_largest = gradients
        back = torch.zeros_like(h) if of_total is None else _spread(of_total.to(h.dtype), graph_of)
        if of_largest is not None:
            attains = (h == _spread(largest.to(h.dtype), graph_of)) & (graph_of < counts.shape[1])[..., None]
            sharing = torch.segment_reduce(attains.to(of_largest.dtype), "sum", lengths=counts, axis=1, unsafe=True)
            each = (of_largest / sharing.clamp(min=1)).to(h.dtype)
            back = back + torch.where(attains, _spread(each, graph_of), 0)
        return back, None, None


class FusedPool(torch.autograd.Function):
    """The same by the kernels of :mod:`egocnn.nn.engines.gpu.pool_kernels`."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, counts: Tensor, graph_of: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG004
        from egocnn.nn.engines.gpu.pool_kernels import pool_forward

        h = h.contiguous()
        (R, M, D), B = h.shape, counts.shape[1]
        first = counts.cumsum(1) - counts
        total, largest, sharing = (torch.empty(R, B, D, device=h.device) for _ in range(3))
        pool_forward[(R * B, -(-D // BLOCK_D))](h, first, counts, total, largest, sharing, M, B, D, **BLOCKS)
        ctx.save_for_backward(h, first, counts, largest, sharing)
        return total, largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        from egocnn.nn.engines.gpu.pool_kernels import pool_backward

        h, first, counts, largest, sharing = ctx.saved_tensors
        (R, M, D), B = h.shape, counts.shape[1]
        of_total, of_largest = (gradient.float().contiguous() for gradient in gradients)
        back = torch.zeros_like(h)  # as it stays for padding
        known = (h, first, counts, largest, sharing, of_total, of_largest)
        pool_backward[(R * B, -(-D // BLOCK_D))](*known, back, M, B, D, **BLOCKS)
        return back, None, None


def _spread(of_graphs: Tensor, graph_of: Tensor) -> Tensor:
    """(R, B, D), (R, M) -> every node its graph's row (R, M, D), 0 for padding"""
    padded = torch.cat([of_graphs, of_graphs.new_zeros(len(of_graphs), 1, of_graphs.shape[2])], dim=1)
    first = torch.arange(len(padded), device=padded.device)[:, None] * padded.shape[1]
    return padded.flatten(0, 1)[first + graph_of]
