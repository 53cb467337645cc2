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
BLOCKS = {"BLOCK_M": 64, "BLOCK_D": BLOCK_D}  # Nodes and columns that a program on the GPU takes at once.


def pool(h: Tensor, counts: Tensor, graph_of: Tensor, kind: str, presence: Tensor | None = None) -> Tensor:
    """(R, M, D) -> (R, B, D for each kind); kinds are joined by +

    counts (R, B): nodes of every graph; graph_of (R, M): B for padding; presence (R, M): how far the nodes are there,
    by which h has been multiplied already, see :func:`egocnn.nn.readout.pool`
    """
    reduce: Callable[..., tuple[Tensor, Tensor]] = (FusedPool if has_kernels(h) else PlainPool).apply
    total, largest = reduce(h, counts, graph_of, None if presence is None else presence > 0)
    parts: dict[str, Callable[[], Tensor]] = {
        "max": lambda: largest,
        "sum": lambda: total,
        "mean": lambda: total / _nodes(counts, graph_of, presence)[..., None],
        "log": lambda: log_of(total),
    }
    return torch.cat([parts[each]() for each in kind.split("+")], dim=2)


def _nodes(counts: Tensor, graph_of: Tensor, presence: Tensor | None) -> Tensor:
    """(R, B) how many nodes a mean is taken over, 1 where there are none"""
    if presence is None:
        return counts.clamp(min=1)
    R, B = counts.shape
    # atomic additions come in any order; of zeros and ones, as training has them, the sum is exact in all of them
    there = presence.new_zeros(R, B + 1).scatter_add(1, graph_of, presence)[:, :-1]
    return torch.where(there > 0, there, 1)


def first_of_each(h: Tensor, present: Tensor, graph_of: Tensor, rank: Tensor, graphs: int, nodes: int) -> Tensor:
    """rank (R, M) in the own graph -> (R, B, nodes D): of every graph the nodes ranked first, then zeros"""
    (R, _, D), B = h.shape, graphs
    place = torch.where(present & (rank < nodes), graph_of * nodes + rank, B * nodes)
    flat = h.new_zeros(R, B * nodes + 1, D)  # the last row takes what is left out
    flat = flat.scatter(1, place[..., None].expand_as(h), h)
    return flat[:, :-1].reshape(R, B, nodes * D)


class PlainPool(torch.autograd.Function):
    """Sum and maximum over every graph's nodes, in full precision; nodes that share a maximum share its gradient.

    ``there`` (R, M): which nodes are not missing; the others are 0, attain no maximum and have no gradient.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, counts: Tensor, graph_of: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        values = full(h)
        total = torch.segment_reduce(values, "sum", lengths=counts, axis=1, unsafe=True)
        seen = values if there is None else values.masked_fill(~there[..., None], -torch.inf)
        largest = torch.segment_reduce(seen, "max", lengths=counts, axis=1, unsafe=True)
        largest = torch.where(counts[..., None] > 0, largest, 0)
        largest = largest if there is None else torch.where(largest == -torch.inf, 0, largest)
        ctx.save_for_backward(h, largest, counts, graph_of, there)
        return total, largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor, None, None, None]:
        h, largest, counts, graph_of, there = ctx.saved_tensors
        of_total, of_largest = gradients
        back = torch.zeros_like(h) if of_total is None else _spread(of_total.to(h.dtype), graph_of)
        back = back if there is None else torch.where(there[..., None], back, 0)
        if of_largest is not None:
            seen = graph_of < counts.shape[1] if there is None else there
            attains = (h == _spread(largest.to(h.dtype), graph_of)) & seen[..., None]
            sharing = torch.segment_reduce(attains.to(of_largest.dtype), "sum", lengths=counts, axis=1, unsafe=True)
            each = (of_largest / sharing.clamp(min=1)).to(h.dtype)
            back = back + torch.where(attains, _spread(each, graph_of), 0)
        return back, None, None, None


class FusedPool(torch.autograd.Function):
    """The same by the kernels of :mod:`egocnn.nn.engines.gpu.row_kernels`."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        counts: Tensor,
        graph_of: Tensor,  # noqa: ARG004
        there: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        from egocnn.nn.engines.gpu.row_kernels import pool_forward

        h = h.contiguous()
        (R, M, D), B = h.shape, counts.shape[1]
        first = counts.cumsum(1) - counts
        total, largest, sharing = (torch.empty(R, B, D, device=h.device) for _ in range(3))
        known = (h, first, counts, h if there is None else there)
        settings = {"PARTS": there is not None, **BLOCKS}
        pool_forward[(R * B, -(-D // BLOCK_D))](*known, total, largest, sharing, M, B, D, **settings)
        ctx.save_for_backward(h, first, counts, there, largest, sharing)
        return total, largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        from egocnn.nn.engines.gpu.row_kernels import pool_backward

        h, first, counts, there, largest, sharing = ctx.saved_tensors
        (R, M, D), B = h.shape, counts.shape[1]
        of_total, of_largest = (gradient.float().contiguous() for gradient in gradients)
        back = torch.zeros_like(h)  # as it stays for padding
        known = (h, first, counts, h if there is None else there, largest, sharing, of_total, of_largest)
        settings = {"PARTS": there is not None, **BLOCKS}
        pool_backward[(R * B, -(-D // BLOCK_D))](*known, back, M, B, D, **settings)
        return back, None, None, None


def _spread(of_graphs: Tensor, graph_of: Tensor) -> Tensor:
    """(R, B, D), (R, M) -> every node its graph's row (R, M, D), 0 for padding"""
    padded = torch.cat([of_graphs, of_graphs.new_zeros(len(of_graphs), 1, of_graphs.shape[2])], dim=1)
    first = torch.arange(len(padded), device=padded.device)[:, None] * padded.shape[1]
    return padded.flatten(0, 1)[first + graph_of]
