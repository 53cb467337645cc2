"""The network's input, entry by entry: which node or edge of the graph each entry speaks of.

Every embedding reads a list of numbers: Patchy-San the non-zero entries of its labelled adjacency tensor and the
attributes in its slots, the adjacency embedding a weight per ranked neighbour, the attribute embedding the attributes.
Importance found for the entries is added up once for all techniques (:mod:`egocnn.explain.sums`): a node's labels
and attributes count for the node, an entry of the adjacency for the edge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from egocnn.explain.backtrack import divisor, favour
from egocnn.explain.layers import fold_embedding
from egocnn.nn import AdjacencyVector, Attributes, EgoCNN, PatchySan
from egocnn.nn.batch import Batch, Places

PRODUCTS_AT_ONCE = 1 << 24
"""Numbers held in memory together: nodes times rows of the table."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """A number for every part of the input: values, gradients, or importances."""

    bags: Tensor
    """(S) Patchy-San's non-zero entries, end to end; empty for other embeddings"""
    attributes: Tensor
    """(N, A)"""
    adjacency: Tensor
    """(N, K) for the adjacency embedding; (N, 0) for others"""
    whole: Tensor
    """(N) a factor of what is read of a node at once: of its embedding by a module of the user's own, through which
    nothing can be followed further down, and of its label where labels are counted; 0 where neither is"""

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.bags, self.attributes, self.adjacency, self.whole

    def times(self, other: Entries) -> Entries:
        return Entries(*(a * b for a, b in zip(self.parts, other.parts, strict=True)))

    def plus(self, other: Entries) -> Entries:
        return Entries(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def scaled(self, factor: float) -> Entries:
        return Entries(*(factor * part for part in self.parts))

    def asking_for_gradients(self) -> Entries:
        return Entries(*(part.detach().requires_grad_(part.numel() > 0) for part in self.parts))


def values(network: EgoCNN, batch: Batch) -> Entries:
    """The input itself."""
    embed, attributes = network.embed, batch.attributes
    bags = attributes.new_ones(len(batch.bags.rows)) if batch.bags.weight is None else batch.bags.weight
    bags = bags if isinstance(embed, PatchySan) else bags[:0]
    adjacency = batch.adjacency[:, : embed.k if isinstance(embed, AdjacencyVector) else 0]
    whole = attributes.new_full((len(batch.place),), float(is_opaque(network) or network.counted > 0))
    return Entries(bags, attributes[:, :0] if is_opaque(network) else attributes, adjacency, whole)


def is_opaque(network: EgoCNN) -> bool:
    """Whether the embedding is a module of the user's own, of which nothing is known but what it returns."""
    return not isinstance(network.embed, PatchySan | AdjacencyVector | Attributes)


def put(batch: Batch, entries: Entries) -> Batch:
    """The batch with other numbers in its entries: what gradients are taken of."""
    if len(entries.bags):
        batch = replace(batch, bags=replace(batch.bags, weight=entries.bags))
    if entries.adjacency.shape[1]:
        batch = replace(batch, adjacency=entries.adjacency)
    return replace(batch, attributes=entries.attributes) if entries.attributes.shape[1] else batch


def hand_down(network: EgoCNN, batch: Batch, places: Places, held: Tensor, gamma: float) -> Entries:
    """The relevance rule through the embedding: what h[0] (N, D) holds -> importances of the entries"""
    nothing = values(network, batch).scaled(0)
    embed = network.embed
    if isinstance(embed, AdjacencyVector):
        return replace(nothing, adjacency=held)
    if isinstance(embed, Attributes):
        return replace(nothing, attributes=held)
    if not isinstance(embed, PatchySan):
        return replace(nothing, whole=held.sum(dim=1))
    table, filters, bias = (favour(part, gamma) for part in fold_embedding(embed))
    rows, weight = batch.bags.rows, batch.bags.weight
    z = F.embedding_bag(rows, table, batch.bags.offsets, mode="sum", per_sample_weights=weight) + bias.clamp(min=0)
    reads_attributes = embed.attributes.shape[1] > 0
    if reads_attributes:
        z = z + batch.slot_attributes(filters)
    share = held / divisor(z)
    bags = _dot(table, rows.long(), share, places.owner)
    bags = bags if weight is None else bags * weight
    if not reads_attributes:
        return replace(nothing, bags=bags)
    return replace(nothing, bags=bags, attributes=_transpose(batch, filters, share) * batch.attributes)


def transpose_down(network: EgoCNN, batch: Batch, places: Places, held: Tensor) -> Entries:
    """The transposed convolution through the embedding: the filters alone, as in the paper"""
    embed = network.embed
    nothing = values(network, batch).scaled(0)
    if isinstance(embed, AdjacencyVector):
        return replace(nothing, adjacency=torch.where(batch.neighbours.table[:, : embed.k] >= 0, held, 0))
    if not isinstance(embed, PatchySan):
        return replace(nothing, whole=held.sum(dim=1))
    table, filters, _ = fold_embedding(embed)
    bags = _dot(table, batch.bags.rows.long(), held, places.owner)
    if not embed.attributes.shape[1]:
        return replace(nothing, bags=bags)
    return replace(nothing, bags=bags, attributes=_transpose(batch, filters, held))


def _transpose(batch: Batch, filters: Tensor, held: Tensor) -> Tensor:
    """The filters of the attributes, transposed: (N, D) -> (N, A)"""
    with torch.enable_grad():
        attributes = batch.attributes.detach().requires_grad_()
        read = replace(batch, attributes=attributes).slot_attributes(filters)
        (found,) = torch.autograd.grad((read * held).sum(), attributes)
    return found


def _dot(table: Tensor, rows: Tensor, held: Tensor, owner: Tensor) -> Tensor:
    """(S) table[rows] . held[owner]

    A collection uses few of the table's rows, each many times: to multiply all nodes with all rows that occur, and
    pick, moves less memory than to gather every pair.
    """
    used, which = torch.unique(rows, return_inverse=True)
    filters, found = table[used].t(), held.new_empty(len(rows))
    at_once = max(1, PRODUCTS_AT_ONCE // max(len(used), 1))
    first = torch.searchsorted(owner, torch.arange(0, len(held) + at_once, at_once, device=owner.device))
    for number, (start, stop) in enumerate(zip(first.tolist(), first.tolist()[1:], strict=False)):
        product = held[number * at_once : (number + 1) * at_once] @ filters
        found[start:stop] = product[owner[start:stop] - number * at_once, which[start:stop]]
    return found
