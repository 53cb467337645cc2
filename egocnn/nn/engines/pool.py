"""Readouts of padded rows: node embeddings (R, M, D) -> one vector per graph (R, B, D or more), 0 without nodes."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.engines.gpu import has_kernels
from egocnn.nn.engines.norm import full
from egocnn.nn.readout import largest, log_of, sums

BLOCK_D = 32
BLOCKS = {"BLOCK_M": 64, "BLOCK_D": BLOCK_D}  # Nodes and columns that a program on the GPU takes at once.


def pool(h: Tensor, counts: Tensor, graph_of: Tensor, kind: str, presence: Tensor | None = None) -> Tensor:
    """(R, M, D) -> (R, B, D for each kind, joined by +), as :func:`egocnn.nn.readout.pool`. counts (R, B): nodes of
    every graph; graph_of (R, M): B for padding; presence (R, M): how far nodes are there, h being multiplied by it."""
    reduce: Callable[..., tuple[Tensor, Tensor]] = FusedPool.apply if has_kernels(h) else plain_pool
    total, most = reduce(h, counts, graph_of, None if presence is None else presence > 0)
    parts: dict[str, Callable[[], Tensor]] = {
        "max": lambda: most,
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


def plain_pool(h: Tensor, counts: Tensor, graph_of: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor]:
    """Sum and maximum over every graph's nodes, in full precision; nodes that share a maximum share its gradient.
    ``there`` (R, M): which nodes are not missing; the others are 0, attain no maximum and have no gradient."""
    (R, M, D), B = h.shape, counts.shape[1]
    lengths = torch.cat([counts, M - counts.sum(1, keepdim=True)], dim=1)  # padding as one more graph
    before = torch.arange(R, device=h.device)[:, None] * (B + 1)
    values, seen = full(h), graph_of
    if there is not None:
        values, seen = torch.where(there[..., None], values, 0), torch.where(there, graph_of, B)
    values = values.flatten(0, 1)
    total = sums(values, (before + graph_of).flatten(), lengths.flatten())
    most = largest(values, (before + seen).flatten(), R * (B + 1))
    return total.view(R, B + 1, D)[:, :-1], most.view(R, B + 1, D)[:, :-1]


class FusedPool(torch.autograd.Function):
    """The same by the kernels of :mod:`egocnn.nn.engines.gpu.row_kernels`."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, counts: Tensor, _: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor]:
        from egocnn.nn.engines.gpu.row_kernels import pool_forward

        h = h.contiguous()
        (R, M, D), B = h.shape, counts.shape[1]
        first = counts.cumsum(1) - counts
        total, most, sharing = (torch.empty(R, B, D, device=h.device) for _ in range(3))
        known = (h, first, counts, h if there is None else there)
        settings = {"PARTS": there is not None, **BLOCKS}
        pool_forward[(R * B, -(-D // BLOCK_D))](*known, total, most, sharing, M, B, D, **settings)
        ctx.save_for_backward(h, first, counts, there, most, sharing)
        return total, most

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        from egocnn.nn.engines.gpu.row_kernels import pool_backward

        h, first, counts, there, most, sharing = ctx.saved_tensors
        (R, M, D), B = h.shape, counts.shape[1]
        of_total, of_largest = (gradient.float().contiguous() for gradient in gradients)
        back = torch.zeros_like(h)  # as it stays for padding
        known = (h, first, counts, h if there is None else there, most, sharing, of_total, of_largest)
        settings = {"PARTS": there is not None, **BLOCKS}
        pool_backward[(R * B, -(-D // BLOCK_D))](*known, back, M, B, D, **settings)
        return back, None, None, None
