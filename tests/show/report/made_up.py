"""Structures with importances out of thin air: smooth over the graph, the same for the same seed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.graphs import Graph, Graphs
from egocnn.data.sources.smiles import from_smiles
from egocnn.explain.structure import CriticalStructure, Fidelity, Trace
from egocnn.files import write_text
from egocnn.show.report import Summary, summarise
from egocnn.show.report.folder import encode, page

DRUGS = (
    "CC(=O)Oc1ccccc1C(=O)O",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "[O-][N+](=O)c1ccc(cc1)C#N",
    "CN1CCC[C@H]1c1cccnc1",
    "CC(=O)Nc1ccc(O)cc1",
    "Clc1ccccc1C1=NCC(=O)N(C)c2ccc(Cl)cc12",
    "C[N+](C)(C)CCO",
    "OC(=O)c1ccccc1S",
    "CCO",
)

OTHER = {"toxic": "harmless", "0": "1", "1": "0", "-1": "1"}
"""what a wrong prediction says"""


def drugs(count: int = len(DRUGS), names: Sequence[str] | None = None) -> Graphs:
    smiles = [DRUGS[i % len(DRUGS)] for i in range(count)]
    targets = ["toxic" if i % 3 == 0 else "harmless" for i in range(count)]
    return from_smiles(smiles, targets, names or [f"drug {i}" for i in range(count)])


def written(
    given: Sequence[CriticalStructure],
    folder: Path,
    summary: Summary | None = None,
    parts: dict[str, str] | None = None,
) -> Path:
    """The page of these structures, in a file of the folder."""
    write_text(path := folder / "index.html", page(encode(given, summary or summarise(given), parts)))
    return path


def structure(graph: Graph, *, seed: int = 0, rows: int = 5, **changes: Any) -> CriticalStructure:
    """Evidence starts at one node and spreads a hop with every row of the trace; a little speaks against."""
    generator = np.random.default_rng(seed)
    N, E = graph.n_nodes, len(graph.edges)
    u, v = graph.edges[:, 0], graph.edges[:, 1]
    degree = np.maximum(np.bincount(u, minlength=N) + np.bincount(v, minlength=N), 1)
    node = np.zeros(N)
    node[generator.integers(N)] = 1.0
    node[generator.integers(N)] -= 0.4
    nodes, edges = [node], [np.zeros(E)]
    for _ in range(rows - 1):
        passed = node / degree / 2
        node = node / 2 + np.bincount(u, passed[v], minlength=N) + np.bincount(v, passed[u], minlength=N)
        nodes.append(node)
        edges.append(edges[-1] + passed[u] + passed[v])
    critical = np.flatnonzero(node >= max(float(np.quantile(node, 0.7)), 1e-4))
    inside = np.isin(graph.edges, critical).all(axis=1)
    probability = float(generator.uniform(0.55, 1.0))
    known = graph.target if isinstance(graph.target, str) else "toxic"
    predicted = known if generator.random() < probability else OTHER.get(known, "toxic")
    values: dict[str, Any] = {
        "graph": graph,
        "predicted": predicted,
        "probability": probability,
        "explained": predicted,
        "technique": "made up",
        "base": -0.5,
        "output": -0.5 + float(node.sum()),
        "spread": float(generator.uniform(0.01, 0.2)),
        "node_importance": node,
        "edge_importance": edges[-1],
        "critical_nodes": critical,
        "critical_edges": np.flatnonzero(inside),
        "fidelity": Fidelity(*(float(generator.uniform(low, 1)) for low in (0, 0.45, 0.2, 0.6))),
        "trace": Trace(nodes=np.array(nodes), edges=np.array(edges)),
    }
    return CriticalStructure(**(values | changes))


def structures(graphs: Graphs, *, rows: int = 5) -> list[CriticalStructure]:
    return [structure(graph, seed=seed, rows=rows) for seed, graph in enumerate(graphs)]
