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

**Layers that are read out** hold evidence of their own: it joins what arrives from the layer above."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from egocnn.explain.evidence import ForwardPass
from egocnn.nn import EgoConv
from egocnn.nn.conv import fold
from egocnn.nn.engines.cpu import Plan

LEAST = 1e-9  # Smaller sums hold nothing to hand down.


@dataclass(frozen=True, slots=True, eq=False)
class LayerBelow:
    """What arrived one layer down."""

    nodes: Tensor  # (N, D) what each node holds now: what arrived, and the layer's own evidence
    crossed: Tensor  # (N, K) what crossed from each node to each of its ranked neighbours; 0 where absent


def backtrack(traced: ForwardPass, own: Sequence[Tensor], gamma: float | None) -> Iterator[LayerBelow]:
    """From the deepest layer down to the embeddings ``h[0]``: one :class:`LayerBelow` per ego-convolution.

    ``own``: the evidence (N, D) of every layer, ``h[0]`` first, or of the deepest alone.
    ``gamma``: of the relevance rule; None: the transposed convolution."""
    convs = [conv for conv in traced.network.convs if isinstance(conv, EgoConv)]
    ranked = traced.batch.ranked(traced.network.config.k)
    plan = ranked.plan or Plan.of(ranked.table)  # which nodes have how many neighbours, and who these are
    held, *joining = reversed(own)
    for h, conv in zip(traced.h[-2::-1], convs[::-1], strict=True):
        below = _step(h, conv, plan, held, gamma)
        if joining:
            below = replace(below, nodes=below.nodes + joining.pop(0))
        yield below
        held = below.nodes


@torch.no_grad()
def _step(h: Tensor, conv: EgoConv, plan: Plan, held: Tensor, gamma: float | None) -> LayerBelow:
    most, (ranks, D, _) = plan.groups[-1][1].shape[1] if plan.groups else 0, conv.weight.shape
    filters, bias = fold(conv.norm, conv.weight[:most], conv.bias)
    if gamma is not None:
        filters, bias = favour(filters, gamma), favour(bias, gamma)
    nodes, crossed = torch.zeros_like(h), h.new_zeros(len(h), ranks - 1)
    holds = held.any(dim=1)
    all_hold = bool(holds.all())
    for group, members in plan.groups:
        some, egos = group, members
        if not all_hold:  # few nodes attain a maximum: the others hand nothing down
            chosen = torch.nonzero(holds[group]).flatten()
            some, egos = group[chosen], members[chosen]
        c = egos.shape[1]
        gathered = h.index_select(0, egos.flatten()).view(len(some), c, D)
        received, weight = gathered.flatten(1), filters[:c].flatten(0, 1)
        share = held[some]
        if gamma is not None:
            share = share / divisor(torch.addmm(bias.clamp(min=0), received, weight))
        back = share @ weight.t()
        handed = (back if gamma is None else received * back).view_as(gathered)
        nodes.index_add_(0, egos.flatten(), handed.flatten(0, 1))
        crossed[some[:, None], torch.arange(c - 1, device=h.device)] = handed[:, 1:].sum(dim=2)
    return LayerBelow(nodes, crossed)


def favour(weight: Tensor, gamma: float) -> Tensor:
    """Positive weights times 1 + gamma, the others as they are."""
    return weight + gamma * weight.clamp(min=0)


def divisor(z: Tensor) -> Tensor:
    """Sums to divide by; a unit that holds something has a positive one, and any other hands nothing down."""
    return torch.where(z > LEAST, z, torch.inf)
