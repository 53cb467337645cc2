"""Neighbours ranked beyond K: node embeddings (N, D) -> their mean or sum at every node, through one filter (D, D')."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.engines.gpu import has_kernels
from egocnn.nn.engines.norm import full

BLOCK_S, BLOCK_D = 32, 128
"""Neighbours and columns that a program on the GPU takes at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """Who has which neighbours beyond K."""

    owner: Tensor
    """(n) ascending"""
    source: Tensor
    """(n) a neighbour of the owner"""
    share: Tensor
    """(N) factor of the sum: 1, or 1 over the number of neighbours for their mean"""
    gate: Tensor | None = None
    """(n) what is let through from each; None: everything"""

    def gather(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, D)"""
        read = x.index_select(0, self.source)
        read = read if self.gate is None else read * self.gate[:, None].to(x.dtype)
        total = x.new_zeros(self.share.shape[0], x.shape[1]).index_add(0, self.owner, read)
        return total * self.share[:, None]

    def add(self, y: Tensor, x: Tensor, filters: Tensor) -> Tensor:
        """y (N, D') + what is gathered of x (N, D) through the filters; most nodes have none, and stay as they are"""
        having = torch.unique_consecutive(self.owner)
        return y.index_add(0, having, self.gather(x)[having] @ filters)

    def at_presence(self, presence: Tensor, *, mean: bool) -> Rest:
        """The same among nodes that are present to a degree (N): a mean is taken over the presence in all."""
        if not mean:
            return self
        count = torch.bincount(self.owner, minlength=len(self.share)).to(presence.dtype)
        there = torch.zeros_like(count).index_add(0, self.owner, presence[self.source])
        return replace(
            self, share=self.share * (count.clamp(min=1) / torch.where(there > 0, there, count.clamp(min=1)))
        )


# ── of R networks, padded ─────────────────────────────────────────────────────────────────────────


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
    """Neighbours beyond K of padded nodes, by the node that has them and by the neighbour."""

    ahead: Pairs
    back: Pairs
    share: Tensor
    """(R, M) factor of the neighbours' sum"""

    def gather(self, x: Tensor) -> Tensor:
        """(R, M, D) -> (R, M, D)"""
        summed: Callable[..., Tensor] = _Sums.apply
        return summed(x, self.ahead, self.back) * self.share[..., None].to(x.dtype)

    def at_presence(self, presence: Tensor, *, mean: bool) -> StackedRest:
        """The same among nodes that are present to a degree (R, M): a mean is taken over the presence in all."""
        if not mean:
            return self
        there = _sum(presence[..., None], self.ahead)[..., 0]
        count = self.ahead.counts.clamp(min=1).to(there.dtype)
        return replace(self, share=self.share * (count / torch.where(there > 0, there, count)))

    def add(self, y: Tensor, x: Tensor, filters: Tensor) -> Tensor:
        """y (R, M, D') + what is gathered of x (R, M, D) through the filters (R, D, D')"""
        return torch.baddbmm(y, self.gather(x).to(y.dtype), filters.to(y.dtype))


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
    return sum_fused(h, pairs) if has_kernels(h) else sum_plain(h, pairs)


def sum_fused(h: Tensor, pairs: Pairs) -> Tensor:
    """The sum over every node's neighbours, by a kernel: (R, M, D) -> (R, M, D)"""
    from egocnn.nn.engines.gpu.pool_kernels import add_neighbours

    h, (R, M, D) = h.contiguous(), h.shape
    out, (source, first, counts) = torch.empty_like(h), (pairs.source, pairs.first, pairs.counts)
    add_neighbours[(R * M, -(-D // BLOCK_D))](
        h, source, first, counts, out, M, source.shape[1], D, BLOCK_S=BLOCK_S, BLOCK_D=BLOCK_D
    )
    return out


def sum_plain(h: Tensor, pairs: Pairs) -> Tensor:
    """The same in operations of torch."""
    R, M, _ = h.shape
    first = torch.arange(R, device=h.device)[:, None] * M
    gathered = h.flatten(0, 1)[first + pairs.source]
    return torch.segment_reduce(full(gathered), "sum", lengths=pairs.counts, axis=1, unsafe=True).to(h.dtype)
