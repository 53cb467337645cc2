r"""Backtracking: evidence at the deepest layer -> evidence at the embeddings, along real edges, layer by layer.

A unit of an ego-convolution adds up what each ranked neighbour sends through a filter matrix of its own, so what it
holds can be handed back to exactly those nodes. Two rules do so.

**Relevance** (our default). Unit j of node n holds :math:`R_{n,j}` and hands it down in proportion to what it received:

.. math:: R_{m,i} = h_{m,i} \sum_{(n,k):\,\nu(n,k)=m} \sum_j W^\gamma_{k,i,j} \frac{R_{n,j}}{z_{n,j}}, \qquad
          z_{n,j} = [b_j^\gamma]_+ + \sum_k \sum_i h_{\nu(n,k),i} W^\gamma_{k,i,j}, \qquad
          W^\gamma = W + \gamma [W]_+

with the batch norm folded into W and b. :math:`\gamma` favours what spoke for the unit over what spoke against it: at 0
contributions that cancel each other are blown up without bound, at infinity only positive ones count. What is
handed down adds up to what was held, less the share of a positive bias, which no node sent:

.. math:: \sum_i \sum_m R_{m,i} = \sum_j \sum_n R_{n,j} \Big(1 - \frac{[b_j^\gamma]_+}{z_{n,j}}\Big)

**Transposed convolution** (the paper's). Embeddings, scaled by importance, go back through the transposed filters:

.. math:: \hat H^{(l-1)}_m = \sum_{(n,k):\,\nu(n,k)=m} W_k \hat H^{(l)}_n
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from egocnn.critical.layers import Filters, Layers
from egocnn.ops.ragged import Plan

LEAST = 1e-9
"""Smaller sums hold nothing to hand down."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One layer down."""

    nodes: Tensor
    """(N, D) what arrived at each node"""
    crossed: Tensor
    """(N, K) what crossed from each node to each of its ranked neighbours; 0 where absent"""


Rule: TypeAlias = Callable[[Tensor, Filters, Tensor, Tensor], Tensor]
"""gathered embeddings (n, c + 1, D), filters, what is held (n, D'), ranks' filters -> handed to each (n, c + 1, D)"""


def backtrack(layers: Layers, top: Tensor, rule: Rule) -> Iterator[Step]:
    """From the deepest layer (N, D) down to the embeddings ``h[0]``: one step per ego-convolution."""
    held = top
    for h, filters, plan in zip(layers.h[-2::-1], layers.filters[::-1], layers.plans[::-1], strict=True):
        step = _step(h, filters, plan, held, rule)
        yield step
        held = step.nodes


def _step(h: Tensor, filters: Filters, plan: Plan, held: Tensor, rule: Rule) -> Step:
    nodes = torch.zeros_like(h)
    crossed = h.new_zeros(len(h), filters.weight.shape[0] - 1)
    holds = held.any(dim=1)
    for group, members in zip(plan.nodes, plan.members, strict=True):
        chosen = torch.nonzero(holds[group]).flatten()  # few nodes attain a maximum: the others hand nothing down
        some, egos = group[chosen], members[chosen]
        c = egos.shape[1]
        gathered = h.index_select(0, egos.flatten()).view(len(some), c, h.shape[1])
        handed = rule(gathered, filters, held[some], filters.weight[:c].flatten(0, 1)).view_as(gathered)
        nodes.index_add_(0, egos.flatten(), handed.flatten(0, 1))
        crossed[some[:, None], torch.arange(c - 1, device=h.device)] = handed[:, 1:].sum(dim=2)
    return Step(nodes, crossed)


def relevance(gamma: float) -> Rule:
    def rule(gathered: Tensor, filters: Filters, held: Tensor, weight: Tensor) -> Tensor:
        received = gathered.flatten(1)
        favoured = favour(weight, gamma)
        share = held / divisor(received @ favoured + favour(filters.bias, gamma).clamp(min=0))
        return received * (share @ favoured.t())

    return rule


def transposed(gathered: Tensor, filters: Filters, held: Tensor, weight: Tensor) -> Tensor:  # noqa: ARG001  a Rule
    return held @ weight.t()


def favour(weight: Tensor, gamma: float) -> Tensor:
    return weight + gamma * weight.clamp(min=0)


def divisor(z: Tensor) -> Tensor:
    """Sums to divide by; a unit that holds something has a positive one, and any other hands nothing down."""
    return torch.where(z > LEAST, z, torch.inf)
