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

**Layers that are read out** hold evidence of their own: it joins what arrives from the layer above.

**Below the embeddings** every embedding reads a list of numbers: Patchy-San the non-zero entries of its labelled
adjacency tensor and the attributes in its slots, the attribute embedding the attributes. Importances of entries are
added up in the same way for all techniques: a node's labels and attributes count for the node, an entry of the
adjacency for the edge."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from egocnn.data.graphs import Graphs
from egocnn.explain.evidence import ForwardPass, margin
from egocnn.nn import Attributes, EgoCNN, EgoConv, PatchySan
from egocnn.nn.batch import Batch, Places
from egocnn.nn.conv import fold
from egocnn.nn.engines.cpu import Plan, backward, multiplied

LEAST = 1e-9  # Smaller sums hold nothing to hand down.


def backtrack(traced: ForwardPass, own: Sequence[Tensor], gamma: float | None) -> Iterator[tuple[Tensor, Tensor]]:
    """From the deepest layer down to the embeddings ``h[0]``, for each ego-convolution what arrived one layer down:
    (N, D) what each node holds now, the layer's own evidence included, and (n) what crossed from each node to each of
    its ranked neighbours, in the order of ``traced.plan.pairs``.

    ``own``: the evidence (N, D) of every layer, ``h[0]`` first, or of the deepest alone.
    ``gamma``: of the relevance rule; None: the transposed convolution."""
    convs = [conv for conv in traced.network.convs if isinstance(conv, EgoConv)]
    plan, (held, *joining) = traced.plan, reversed(own)
    for h, conv in zip(traced.h[-2::-1], convs[::-1], strict=True):
        held, crossed = _step(h, conv, plan, held, gamma)
        held = held + joining.pop(0) if joining else held
        yield held, crossed


@torch.no_grad()
def _step(h: Tensor, conv: EgoConv, plan: Plan, held: Tensor, gamma: float | None) -> tuple[Tensor, Tensor]:
    products, x = plan.products, torch.ones_like(h) if gamma is None else h  # the paper's does not ask what was sent
    folded = fold(conv.norm, conv.weight[: 1 + len(products.counts)], conv.bias)
    filters, bias = (favour(part, gamma) for part in folded)
    sent = multiplied(x, filters, bias.clamp(min=0), products)
    with torch.enable_grad():  # the slope of a product that is received is what it says of what is shared out
        counts = sent.new_ones(len(products.received)).requires_grad_()
        z = F.embedding_bag(products.received, sent, products.received_from, mode="sum", per_sample_weights=counts)
    share = held if gamma is None else held / divisor(z.detach())
    (said,) = torch.autograd.grad(z, counts, share)
    back, _ = backward(share, x, filters, [plan.table, *products], True, False)
    return x * back, said[plan.pairs[2]]


def favour(weight: Tensor, gamma: float | None) -> Tensor:
    """Positive weights times 1 + gamma, the others as they are."""
    return weight if gamma is None else weight + gamma * weight.clamp(min=0)


def divisor(z: Tensor) -> Tensor:
    """Sums to divide by; a unit that holds something has a positive one, and any other hands nothing down."""
    return torch.where(z > LEAST, z, torch.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """A number for every part of the input: values, gradients, or importances."""

    bags: Tensor  # (S) Patchy-San's non-zero entries, end to end; empty for other embeddings
    attributes: Tensor  # (N, A)
    whole: Tensor
    """(N) a factor of what is read of a node at once: of its embedding by a module of the user's own, through which
    nothing can be followed further down, and of its label where labels are counted; 0 where neither is"""

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """The three tensors in order."""
        return self.bags, self.attributes, self.whole

    def map(self, function: Callable[..., Tensor], *others: "Entries") -> "Entries":
        """The function of each part and of the same part of the others."""
        return Entries(*map(function, self.parts, *(other.parts for other in others)))

    def scaled(self, factor: float) -> "Entries":
        """Every number times the factor."""
        return self.map(lambda part: factor * part)


def values(network: EgoCNN, batch: Batch) -> Entries:
    """The input itself."""
    embed, attributes = network.embed, batch.attributes
    bags = attributes.new_ones(len(batch.bags.rows)) if batch.bags.weight is None else batch.bags.weight
    bags = bags if isinstance(embed, PatchySan) else bags[:0]
    whole = attributes.new_full((len(batch.place),), float(is_opaque(network) or network.counted > 0))
    return Entries(bags, attributes[:, :0] if is_opaque(network) else attributes, whole)


def is_opaque(network: EgoCNN) -> bool:
    """Whether the embedding is a module of the user's own, of which nothing is known but what it returns."""
    return not isinstance(network.embed, PatchySan | Attributes)


def gradient(traced: ForwardPass, entries: Entries) -> Entries:
    """Of the margins, with respect to these entries of the input"""
    network, batch = traced.network, traced.batch
    entries = entries.map(lambda part: part.detach().requires_grad_())
    if len(entries.bags):
        batch = replace(batch, bags=replace(batch.bags, weight=entries.bags))
    if entries.attributes.shape[1]:
        batch = replace(batch, attributes=entries.attributes)
    with torch.enable_grad():
        factor = entries.whole if is_opaque(network) else None
        total = margin(network, batch, traced.classes, factor, entries.whole if network.counted else None).sum()
    if not total.requires_grad:  # the network reads none of them: nodes without labels and edges, or no nodes
        return entries.map(torch.zeros_like)
    return Entries(*torch.autograd.grad(total, entries.parts, allow_unused=True, materialize_grads=True))


@torch.no_grad()
def through_embedding(network: EgoCNN, batch: Batch, held: Tensor, gamma: float | None) -> Entries:
    """What ``h[0]`` (N, D) holds -> importances of the entries, by the rule that took it there.

    ``gamma``: of the relevance rule; None: the transposed convolution, the filters alone as in the paper."""
    embed, given = network.embed, values(network, batch)
    nothing = given.scaled(0)
    if isinstance(embed, Attributes):
        return replace(nothing, attributes=held)
    if not isinstance(embed, PatchySan):
        return replace(nothing, whole=held.sum(dim=1))
    folded = *fold(embed.norm, embed.table, embed.bias), fold(embed.norm, embed.attributes, embed.bias)[0]
    table, bias, filters = (favour(part.detach(), gamma) for part in folded)
    with torch.enable_grad():  # the slope of an entry is what its filters say of what is held
        weight, attributes = entries = [part.detach().requires_grad_() for part in (given.bags, given.attributes)]
        rows, offsets = batch.bags.rows, batch.bags.offsets
        read = F.embedding_bag(rows, table, offsets, mode="sum", per_sample_weights=weight)
        read = read + bias.clamp(min=0)
        if embed.attributes.shape[1]:
            read = read + replace(batch, attributes=attributes).slot_attributes(filters)
    if gamma is not None:
        held = held / divisor(read.detach())
    of_bags, of_attributes = torch.autograd.grad(read, entries, held, allow_unused=True, materialize_grads=True)
    found = Entries(of_bags, of_attributes, nothing.whole)
    return found if gamma is None else found.map(torch.mul, given)


@dataclass(frozen=True, slots=True, eq=False)
class EdgeNumbers:
    """The edges of a batch, to be found by their ends."""

    key: Tensor  # (E) u N + v with u <= v, ascending
    n_nodes: int

    @staticmethod
    def of(graphs: Graphs, device: torch.device) -> "EdgeNumbers":
        """Those of the graphs, in the order of ``graphs.edges``."""
        edges = graphs.edges.astype(np.int64)
        return EdgeNumbers(torch.from_numpy(edges[:, 0] * graphs.n_nodes + edges[:, 1]).to(device), graphs.n_nodes)

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """(E) the lower and (E) the higher end of every edge"""
        return self.key // max(self.n_nodes, 1), self.key % max(self.n_nodes, 1)

    def share(self, own: Tensor, joined: Tensor) -> tuple[Tensor, Tensor]:
        """Importances of nodes alone (N) and edges alone (E) -> of nodes and edges, each with its share of the other.

        An edge counts for its ends in inverse proportion to their degrees, as it is a larger part of what a leaf is
        than of what a hub is; a node counts for all its edges alike. So both the nodes together and the edges together
        hold everything, but for nodes without edges."""
        u, v = self.ends
        degree = torch.bincount(u, minlength=self.n_nodes) + torch.bincount(v, minlength=self.n_nodes)
        first = joined * (degree[v] / (degree[u] + degree[v]))
        nodes = own.index_add(0, u, first).index_add(0, v, joined - first)
        apiece = own / degree.clamp(min=1)
        return nodes, joined + apiece[u] + apiece[v]

    def find(self, u: Tensor, v: Tensor) -> Tensor:
        """(n) which edge joins u (n) and v (n); E where none does"""
        wanted, none = torch.minimum(u, v) * self.n_nodes + torch.maximum(u, v), len(self.key)
        at = torch.searchsorted(self.key, wanted)
        return torch.where(F.pad(self.key, (0, 1), value=-1)[at] == wanted, at, none)

    def add_up(self, numbers: Tensor, amounts: Tensor) -> Tensor:
        """(E) the amounts (n) by these numbers of edges, as found"""
        return amounts.new_zeros(len(self.key) + 1).index_add_(0, numbers, amounts)[:-1]


def to_graph(entries: Entries, places: Places, edges: EdgeNumbers) -> tuple[Tensor, Tensor]:
    """Importances of the input's entries -> of nodes (N) and edges (E)"""
    labels = ~places.is_edge[: len(entries.bags)]
    own = entries.attributes.sum(dim=1) + entries.whole
    own = own.index_add(0, places.u[: len(labels)][labels], entries.bags[labels])
    joined = own.new_zeros(len(edges.key))
    if len(entries.bags):
        joined = edges.add_up(edges.find(places.u[~labels], places.v[~labels]), entries.bags[~labels])
    return edges.share(own, joined)
