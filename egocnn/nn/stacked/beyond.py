"""Neighbours beyond K of stacked batches: node embeddings (R, M, D) -> their mean or sum at every node (R, M, D)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.stacked.norm import full

BLOCK_S, BLOCK_D = 32, 128
"""Neighbours and columns that a program on the GPU takes at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Neighbours of nodes, end to end, those of every replica filled up to the same number."""

    source: Tensor
    """(R, n); 0 for padding, which no count reaches"""
    first: Tensor
    """(R, M) where the neighbours of each node start"""
    counts: Tensor
    """(R, M)"""


@dataclass(frozen=True, slots=True, eq=False)
class StackedRest:
    """Neighbours beyond K, by the node that has them and by the neighbour."""

    ahead: Pairs
    back: Pairs
    share: Tensor
    """(R, M) factor of the neighbours' sum"""

    def add(self, y: Tensor, x: Tensor, filters: Tensor) -> Tensor:
        """y (R, M, D') + what is gathered of x (R, M, D) through the filters (R, D, D')"""
        return torch.baddbmm(y, gather_rest(x, self).to(y.dtype), filters.to(y.dtype))


def gather_rest(h: Tensor, rest: StackedRest) -> Tensor:
    summed: Callable[..., Tensor] = _Sums.apply
    return summed(h, rest.ahead, rest.back) * rest.share[..., None].to(h.dtype)


class _Sums(torch.autograd.Function):
    """Sums over neighbours, and of gradients over those whose neighbour a node is: the same sum the other way round.

    Every sum runs over consecutive places, so that no addition is atomic and all runs give the same bits.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, ahead: Pairs, back: Pairs) -> Tensor:
        ctx.back = back
        return _sum(h, ahead)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return _sum(gradients[0], ctx.back), None, None


def _sum(h: Tensor, pairs: Pairs) -> Tensor:
    is_fused = h.is_cuda and h.dtype != torch.float64 and find_spec("triton") is not None
    return sum_fused(h, pairs) if is_fused else sum_plain(h, pairs)


def sum_fused(h: Tensor, pairs: Pairs) -> Tensor:
    from egocnn.nn.stacked.pool_kernels import add_neighbours

    h, (R, M, D) = h.contiguous(), h.shape
    out = torch.empty_like(h)
    add_neighbours[(R * M, -(-D // BLOCK_D))](
        h,
        pairs.source,
        pairs.first,
        pairs.counts,
        out,
        M,
        pairs.source.shape[1],
        D,
        BLOCK_S=BLOCK_S,
        BLOCK_D=BLOCK_D,
    )
    return out


def sum_plain(h: Tensor, pairs: Pairs) -> Tensor:
    R, M, _ = h.shape
    first = torch.arange(R, device=h.device)[:, None] * M
    gathered = h.flatten(0, 1)[first + pairs.source]
    return torch.segment_reduce(full(gathered), "sum", lengths=pairs.counts, axis=1, unsafe=True).to(h.dtype)
