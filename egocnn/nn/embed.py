"""First layers: a batch -> node embeddings H0 (N, D)."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.data.arrays import Ints
from egocnn.nn.batch import Batch
from egocnn.nn.rows import Activation


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchShape:
    """How the rows of Patchy-San's table are numbered."""

    slots: int
    node_labels: int  # 0 where nodes have none
    edge_labels: int  # 0 where edges have none: every edge then counts as one and the same
    node_words: int = 0  # of these the last so many say more of nodes that have another label, too
    edge_words: int = 0

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """Slots i <= j of every pair; the graphs are undirected, so (j, i) would say the same again."""
        first, second = np.triu_indices(self.slots)
        return first, second

    @property
    def edge_rows(self) -> int:
        """Rows for the edges between slots; those for the labels of nodes follow."""
        return self.slots * (self.slots + 1) // 2 * max(self.edge_labels, 1)

    @property
    def rows(self) -> int:
        """Rows in all."""
        return self.edge_rows + self.slots * self.node_labels


class PatchySan(nn.Module):
    r"""A linear filter bank over the labelled adjacency tensor of every node's first P - 1 ranked neighbours.

    .. math:: h_n = \sigma\Big(\mathrm{norm}\big(b + \sum_{e \in \mathrm{patch}(n)} W_e
              + \sum_{j=0}^{P-1} a_{\nu(n,j)} V_j\big)\Big)

    where patch(n) are the non-zero entries of the tensor (:mod:`egocnn.encode.patches` says which), a are the nodes'
    attributes and W, V the filters (equation 2 of the paper). Departure: the tensor is symmetric, so of the entries
    (i, j) and (j, i) only one has a filter; the functions it can express are the same.

    Shapes: batch with N nodes -> (N, D)

    Arguments:
        shape: Slots (P) and labels of nodes and edges, as the training graphs have them.
        attributes: Numbers that every node brings along (A).
        width: Filters (D).
        k: Ranked neighbours that a batch brings; attributes are read as far as those.

    Example:
        >>> from egocnn.nn import PatchySan
        >>> from egocnn.encode.patches import PatchShape
        >>> shape = PatchShape(slots=10, node_labels=3, edge_labels=1)
        >>> layer = PatchySan(shape, attributes=0, width=16, k=9)
        >>> layer.table.shape[1]  # 16 numbers for all that can stand in a slot
        16"""

    def __init__(self, shape: PatchShape, *, attributes: int, width: int, k: int) -> None:
        super().__init__()
        self.shape = shape
        self.slots = min(shape.slots, k + 1)  # attributes reach as far as the neighbours that layers read
        self.table = nn.Parameter(torch.empty(shape.rows, width))
        self.attributes = nn.Parameter(torch.empty(self.slots, attributes, width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.norm = nn.BatchNorm1d(width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the filters anew."""
        if self.table.is_meta:  # a shape alone, to fill which torch would import its compiler, for a second
            return
        nn.init.normal_(self.table, std=0.5)  # a node sums up a handful of rows
        shape, (edges, nodes) = self.shape, torch.tensor_split(self.table.detach(), [self.shape.edge_rows])
        by_kind = ((edges, shape.edge_labels, shape.edge_words), (nodes, shape.node_labels, shape.node_words))
        for rows, labels, words in by_kind:
            if words:  # what a further word adds is learned, not unlearned
                rows.view(-1, labels, rows.shape[1])[:, labels - words :] = 0
        nn.init.normal_(self.attributes, std=max(self.attributes.shape[1], 1) ** -0.5)
        nn.init.zeros_(self.bias)

    def forward(self, batch: Batch, after: Activation | None = None) -> Tensor:
        """The first embeddings.

        Arguments:
            batch: B graphs with N nodes in all.
            after: What follows the sums, given the norm; by default the norm and a rectifier.

        Returns:
            (N, D) node embeddings."""
        y = batch.patches(self.table, self.attributes, self.bias, self.shape)
        return F.relu(self.norm(y)) if after is None else after(y, self.norm)


class Attributes(nn.Module):
    """The nodes' own attributes, standardised, as embedding: H0 (N, A)."""

    def forward(self, batch: Batch) -> Tensor:
        """The attributes of the batch.

        Arguments:
            batch: B graphs with N nodes in all.

        Returns:
            (N, A) standardised attributes."""
        return batch.as_embedding(batch.attributes)
