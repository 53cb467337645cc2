"""Neighbours ranked beyond K: node embeddings (N, D) -> their mean or sum at every node, through one filter (D, D')."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


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
        """The same among nodes that are there to a degree (N): a mean is taken of those that are there."""
        if not mean:
            return self
        count = torch.bincount(self.owner, minlength=len(self.share)).to(presence.dtype)
        there = torch.zeros_like(count).index_add(0, self.owner, presence[self.source])
        return replace(
            self, share=self.share * (count.clamp(min=1) / torch.where(there > 0, there, count.clamp(min=1)))
        )
