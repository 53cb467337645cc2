"""Structures whose every measure is known by looking at them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from egocnn.data.graphs import Graph
from egocnn.explain.structure import CriticalStructure, Fidelity
from tests.support.samples import one_graph


def path(n_nodes: int) -> Graph:
    """Nodes one after the other."""
    return one_graph(n_nodes, [(n, n + 1) for n in range(n_nodes - 1)])[0]


def structure(
    contributions: Sequence[float],
    critical: Sequence[int] = (),
    *,
    graph: Graph | None = None,
    base: float = 0.0,
    output: float | None = None,
    explained: str | None = "1",
    evidence: tuple[float | None, float | None] | None = None,
) -> CriticalStructure:
    """On a path, unless told; the output is what adds up, unless told; ``evidence``: kept and lost by presence."""
    nodes = np.array(contributions, np.float64)
    graph = graph or path(len(nodes))
    kept, lost = evidence or (None, None)
    return CriticalStructure(
        graph=graph,
        predicted=explained or 0.0,
        probability=None,
        explained=explained,
        technique="contributions",
        base=base,
        output=base + float(nodes.sum()) if output is None else output,
        node_importance=nodes,
        edge_importance=np.zeros(len(graph.edges)),
        critical_nodes=np.array(critical, np.int64),
        critical_edges=np.zeros(0, np.int64),
        fidelity=None if evidence is None else Fidelity(0.0, 0.0, lost, kept),
    )
