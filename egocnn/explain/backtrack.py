r"""Backtracking: evidence of the layers that are read out -> evidence at the embeddings, along real edges.

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

**Neighbours beyond K.** Where the network reads them, node n receives those in :math:`\rho(n)` together, through one
filter matrix :math:`W_\rho` and times :math:`s_n`, which is 1 for their sum and 1 over their number for their mean.
Each is handed its own part of what goes back, so the sums above gain a term, and relevance still adds up:

.. math:: z_{n,j} &\mathrel{+}= s_n \sum_{m \in \rho(n)} \sum_i h_{m,i} W^\gamma_{\rho,i,j} \\
          R_{m,i} &\mathrel{+}= h_{m,i} \sum_{n:\,\rho(n) \ni m} \sum_j s_n W^\gamma_{\rho,i,j} R_{n,j} / z_{n,j} \\
          \hat H^{(l-1)}_m &\mathrel{+}= \sum_{n:\,\rho(n) \ni m} s_n W_\rho \hat H^{(l)}_n

**Layers that are read out** hold evidence of their own: it joins what arrives from the layer above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from egocnn.explain.layers import Filters, Layers
from egocnn.nn.engines.beyond import Rest
from egocnn.nn.engines.cpu import Plan

LEAST = 1e-9
"""Smaller sums hold nothing to hand down."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One layer down."""

    nodes: Tensor
    """(N, D) what each node holds now: what arrived, and the layer's own evidence"""
    crossed: Tensor
    """(N, K) what crossed from each node to each of its ranked neighbours; 0 where absent"""
    beyond: Tensor
    """(n) what crossed from each owner to each neighbour beyond K, in the order of the batch's ``rest``"""


Back: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""what was received (n, F), its filters (F, D') and bias (D'), what is held (n, D') -> what goes back (n, F)"""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """How nodes hand down what they hold."""

    back: Back
    in_proportion: bool
    """whether what goes back to a neighbour is multiplied by what the neighbour had sent"""


def backtrack(layers: Layers, own: Sequence[Tensor], rule: Rule) -> Iterator[Step]:
    """From the deepest layer down to the embeddings ``h[0]``: one step per ego-convolution.

    ``own``: the evidence (N, D) of every layer, ``h[0]`` first, or of the deepest alone.
    """
    held, *joining = reversed(own)
    for h, filters, plan in zip(layers.h[-2::-1], layers.filters[::-1], layers.plans[::-1], strict=True):
        step = _step(h, filters, plan, layers.batch.rest, held, rule)
        if joining:
            step = replace(step, nodes=step.nodes + joining.pop(0))
        yield step
        held = step.nodes


def _step(h: Tensor, filters: Filters, plan: Plan, rest: Rest | None, held: Tensor, rule: Rule) -> Step:
    ranks, D = filters.weight.shape[:2]
    nodes, crossed = torch.zeros_like(h), h.new_zeros(len(h), ranks - 1)
    to_rest = h.new_zeros(0 if rest is None else len(h), D)
    holds = held.any(dim=1)
    for group, members in plan.groups:
        chosen = torch.nonzero(holds[group]).flatten()  # few nodes attain a maximum: the others hand nothing down
        some, egos = group[chosen], members[chosen]
        c = egos.shape[1]
        gathered = h.index_select(0, egos.flatten()).view(len(some), c, D)
        received, weight = gathered.flatten(1), filters.weight[:c].flatten(0, 1)
        if rest is not None and filters.rest is not None and c == ranks:  # none is beyond K where a place is free
            received = torch.cat([received, rest.gather(h)[some]], dim=1)
            weight = torch.cat([weight, filters.rest])
        back = rule.back(received, weight, filters.bias, held[some])
        handed = (received * back if rule.in_proportion else back)[:, : c * D].view_as(gathered)
        nodes.index_add_(0, egos.flatten(), handed.flatten(0, 1))
        crossed[some[:, None], torch.arange(c - 1, device=h.device)] = handed[:, 1:].sum(dim=2)
        if len(weight) > c * D:
            to_rest[some] = back[:, c * D :]
    if rest is None:
        return Step(nodes, crossed, h.new_zeros(0))
    handed = (to_rest * rest.share[:, None])[rest.owner]
    handed = handed * h[rest.source] if rule.in_proportion else handed
    return Step(nodes.index_add_(0, rest.source, handed), crossed, handed.sum(dim=1))


def relevance(gamma: float) -> Rule:
    def back(received: Tensor, weight: Tensor, bias: Tensor, held: Tensor) -> Tensor:
        favoured = favour(weight, gamma)
        share = held / divisor(received @ favoured + favour(bias, gamma).clamp(min=0))
        return share @ favoured.t()

    return Rule(back, in_proportion=True)


def _transpose(received: Tensor, weight: Tensor, bias: Tensor, held: Tensor) -> Tensor:  # noqa: ARG001  a Back
    return held @ weight.t()


transposed = Rule(_transpose, in_proportion=False)


def favour(weight: Tensor, gamma: float) -> Tensor:
    return weight + gamma * weight.clamp(min=0)


def divisor(z: Tensor) -> Tensor:
    """Sums to divide by; a unit that holds something has a positive one, and any other hands nothing down."""
    return torch.where(z > LEAST, z, torch.inf)
