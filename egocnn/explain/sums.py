"""Add up importances: numbers per entry or per crossing -> one per node and one per edge of the graphs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from egocnn.data.graphs import Graphs
from egocnn.explain.inputs import Entries
from egocnn.nn.batch import Batch, Places


@dataclass(frozen=True, slots=True, eq=False)
class EdgeNumbers:
    """The edges of a batch, to be found by their ends."""

    key: Tensor
    """(E) u N + v with u <= v, ascending"""
    n_nodes: int

    @staticmethod
    def of(graphs: Graphs, device: torch.device) -> EdgeNumbers:
        edges = graphs.edges.astype(np.int64)
        return EdgeNumbers(torch.from_numpy(edges[:, 0] * graphs.n_nodes + edges[:, 1]).to(device), graphs.n_nodes)

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        return self.key // max(self.n_nodes, 1), self.key % max(self.n_nodes, 1)

    def both(self, own: Tensor, joined: Tensor) -> tuple[Tensor, Tensor]:
        """Importances of nodes alone (N) and edges alone (E) -> of nodes and edges, each with its share of the other.

        An edge counts for its ends in inverse proportion to their degrees, as it is a larger part of what a leaf is
        than of what a hub is; a node counts for all its edges alike. So both the nodes together and the edges together
        hold everything, but for nodes without edges.
        """
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


def to_graph(entries: Entries, batch: Batch, places: Places, edges: EdgeNumbers) -> tuple[Tensor, Tensor]:
    """Importances of the input's entries -> of nodes (N) and edges (E); see :mod:`egocnn.explain.inputs`"""
    labels = ~places.is_edge[: len(entries.bags)]
    own = entries.attributes.sum(dim=1)
    own = own + entries.whole if len(entries.whole) else own
    own = own.index_add(0, places.u[: len(labels)][labels], entries.bags[labels])
    joined = own.new_zeros(len(edges.key))
    if len(entries.bags):
        joined = edges.add_up(places.u[~labels], places.v[~labels], entries.bags[~labels])
    if entries.adjacency.shape[1]:
        joined = joined + edges.crossings(batch.neighbours.table, entries.adjacency)
    return edges.both(own, joined)
