"""Exact occlusion: take every node, then every edge, out of its graph and ask the whole model again.

The importance of a node is what the margin of the explained class loses without it. Nothing is approximated:
neighbours are ranked anew in every cut graph. One prediction for each node and edge makes it slow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.data.subgraphs import without_each_edge, without_each_node
from egocnn.explain.evidence import margins
from egocnn.model import Model

NODES_AT_ONCE = 1 << 17
"""Nodes of the cut copies held in memory together."""


def occlude(predictor: Model, graphs: Graphs, classes: Ints, *, device: str) -> tuple[Floats, Floats]:
    """Importances of nodes (N) and edges (E) for one class of every graph (G)"""
    whole = _margins(predictor, graphs, classes, device)
    edges = graphs.edges
    nodes_of, edges_of = graphs.graph_of, graphs.graph_of[edges[:, 0]]

    def losses(owner: Ints, cut: Callable[[Ints], Graphs]) -> Floats:
        found = (
            whole[owner[some]] - _margins(predictor, cut(some), classes[owner[some]], device)
            for some in _portions(graphs, owner)
        )
        return np.concatenate([np.zeros(0), *found])

    return (
        losses(nodes_of, lambda some: without_each_node(graphs, some)),
        losses(edges_of, lambda some: without_each_edge(graphs, edges[some])),
    )


def _portions(graphs: Graphs, owner: Ints) -> list[Ints]:
    """All numbers 0 .. len(owner) - 1 in runs whose graphs, one copy each, have not too many nodes together."""
    size = np.cumsum(graphs.node_counts[owner])
    cuts = np.flatnonzero(np.diff(size // NODES_AT_ONCE)) + 1
    return [part for part in np.split(np.arange(len(owner)), cuts) if len(part)]


def _margins(predictor: Model, graphs: Graphs, classes: Ints, device: str) -> Floats:
    outputs = torch.from_numpy(predictor.outputs(graphs, device=device)).double()
    found: Floats = margins(outputs, torch.from_numpy(classes)).numpy()
    return found
