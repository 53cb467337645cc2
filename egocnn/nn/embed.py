"""First layers: a batch -> node embeddings H0 (N, D)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.encode.batch import Batch
from egocnn.encode.patches import PatchShape


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
        16
    """

    def __init__(self, shape: PatchShape, *, attributes: int, width: int, k: int) -> None:
        super().__init__()
        self.slots = min(shape.slots, k + 1)  # a batch brings k neighbours, so attributes reach as far as those
        self.table = nn.Parameter(torch.empty(shape.rows, width))
        self.attributes = nn.Parameter(torch.empty(self.slots, attributes, width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.norm = nn.BatchNorm1d(width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the filters anew."""
        nn.init.normal_(self.table, std=0.5)  # a node sums up a handful of rows
        nn.init.normal_(self.attributes, std=max(self.attributes.shape[1], 1) ** -0.5)
        nn.init.zeros_(self.bias)

    def forward(self, batch: Batch) -> Tensor:
        """The first embeddings.

        Arguments:
            batch: B graphs with N nodes in all.

        Returns:
            (N, D) node embeddings.
        """
        bags = batch.bags
        h = F.embedding_bag(bags.rows, self.table, bags.offsets, mode="sum", per_sample_weights=bags.weight)
        if self.attributes.shape[1]:
            h = h + self.read_attributes(batch, self.attributes)
        return F.relu(self.norm(h + self.bias))

    def read_attributes(self, batch: Batch, filters: Tensor) -> Tensor:
        """Read the attributes slot by slot, absent slots contributing nothing.

        Arguments:
            batch: Graphs whose nodes have attributes (N, A).
            filters: (P, A, D) one matrix per slot.

        Returns:
            (N, D) numbers.
        """
        padded = torch.cat([batch.attributes, batch.attributes.new_zeros(1, batch.attributes.shape[1])])
        table = batch.neighbours.table[:, : self.slots - 1]
        nodes = torch.cat([torch.arange(len(table), device=table.device)[:, None], table.long()], dim=1)
        return padded[nodes].flatten(1) @ filters.flatten(0, 1)


class AdjacencyVector(nn.Module):
    """The paper's pure-structure input: H0[n] is the adjacency vector between n and its K ranked neighbours.

    Shapes: batch with N nodes -> (N, K)
    """

    def forward(self, batch: Batch) -> Tensor:
        """The weights of the edges to the ranked neighbours.

        Arguments:
            batch: B graphs with N nodes in all.

        Returns:
            (N, K) weights, 1 where edges have none, 0 where there is no edge.
        """
        return batch.adjacency


class Attributes(nn.Module):
    """The nodes' own attributes, standardised, as embedding: H0 (N, A)."""

    def forward(self, batch: Batch) -> Tensor:
        """The attributes of the batch.

        Arguments:
            batch: B graphs with N nodes in all.

        Returns:
            (N, A) standardised attributes.
        """
        return batch.attributes
