"""Neighbours ranked beyond K: node embeddings (N, D) -> their mean or sum at every node, through one filter (D, D')."""

from __future__ import annotations

from dataclasses import dataclass

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

    def gather(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, D)"""
        total = x.new_zeros(len(self.share), x.shape[1]).index_add(0, self.owner, x.index_select(0, self.source))
        return total * self.share[:, None]


def add_rest(y: Tensor, x: Tensor, rest: Rest, filters: Tensor) -> Tensor:
    """y (N, D') + the rest of x (N, D) through the filters; most nodes have none, and are left as they are"""
    having = torch.unique_consecutive(rest.owner)
    return y.index_add(0, having, rest.gather(x)[having] @ filters)
