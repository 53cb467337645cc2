"""What any technique says of one graph: a number per node and per edge, and how one kind stands in for the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graph


class HasImportance(Protocol):
    """What can be scored: a critical structure, or the plain :class:`Importance` of another technique."""

    @property
    def node_importance(self) -> Floats: ...
    @property
    def edge_importance(self) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class Importance:
    node_importance: Floats  # (N)
    edge_importance: Floats  # (E) in the order of ``graph.edges``


def edges_from_nodes(graph: Graph, nodes: Floats) -> Floats:
    """For techniques that know nodes alone: an edge is as important as its ends on average; (N) -> (E)."""
    both: Floats = nodes[graph.edges].mean(axis=1)
    return both


def nodes_from_edges(graph: Graph, edges: Floats) -> Floats:
    """For techniques that know edges alone: a node is as important as its edges on average; (E) -> (N).

    A node without edges gets 0.
    """
    total, count = np.zeros(graph.n_nodes), np.zeros(graph.n_nodes)
    for ends in (graph.edges[:, 0], graph.edges[:, 1]):
        np.add.at(total, ends, edges)
        np.add.at(count, ends, 1)
    return total / np.maximum(count, 1)
