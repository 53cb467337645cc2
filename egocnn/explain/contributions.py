"""What the embeddings hold -> one number per entry of the network's input -> one per node and one per edge.

Every embedding reads a list of numbers: Patchy-San the non-zero entries of its labelled adjacency tensor and the
attributes in its slots, the attribute embedding the attributes.
Importances of entries are added up in the same way for all techniques: a node's labels and attributes count for the
node, an entry of the adjacency for the edge."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from egocnn.data.graphs import Graphs
from egocnn.explain.backtrack import divisor, favour
from egocnn.explain.evidence import ForwardPass, margin
from egocnn.nn import Attributes, EgoCNN, PatchySan
from egocnn.nn.batch import Batch, Places
from egocnn.nn.conv import fold


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
    table, bias = fold(embed.norm, embed.table, embed.bias)
    filters, _ = fold(embed.norm, embed.attributes, embed.bias)
    if gamma is not None:
        table, filters, bias = (favour(part, gamma) for part in (table, filters, bias))
    with torch.enable_grad():  # the slope of an entry is what its filters say of what is held
        weight, attributes = entries = [part.detach().requires_grad_() for part in (given.bags, given.attributes)]
        rows, offsets = batch.bags.rows, batch.bags.offsets
        read = F.embedding_bag(rows, table.detach(), offsets, mode="sum", per_sample_weights=weight)
        read = read + bias.detach().clamp(min=0)
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

    def add_up(self, u: Tensor, v: Tensor, amount: Tensor) -> Tensor:
        """(E) the amounts (n) by the edge that joins u (n) and v (n); those of unjoined pairs are left out"""
        total = amount.new_zeros(len(self.key))
        if len(self.key) == 0:
            return total
        wanted = torch.minimum(u, v) * self.n_nodes + torch.maximum(u, v)
        at = torch.searchsorted(self.key, wanted).clamp(max=len(self.key) - 1)
        return total.index_add_(0, at, torch.where(self.key[at] == wanted, amount, 0))

    def crossings(self, table: Tensor, crossed: Tensor) -> Tensor:
        """(E) what crossed (N, K) from every node to its ranked neighbours in the table, either way"""
        node, rank = torch.nonzero(table[:, : crossed.shape[1]] >= 0, as_tuple=True)
        return self.add_up(node, table[node, rank].long(), crossed[node, rank])


def to_graph(entries: Entries, places: Places, edges: EdgeNumbers) -> tuple[Tensor, Tensor]:
    """Importances of the input's entries -> of nodes (N) and edges (E)"""
    labels = ~places.is_edge[: len(entries.bags)]
    own = entries.attributes.sum(dim=1) + entries.whole
    own = own.index_add(0, places.u[: len(labels)][labels], entries.bags[labels])
    joined = own.new_zeros(len(edges.key))
    if len(entries.bags):
        joined = edges.add_up(places.u[~labels], places.v[~labels], entries.bags[~labels])
    return edges.share(own, joined)
