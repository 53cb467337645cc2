"""Critical structures -> the compact plain data that a report carries: short lists of numbers as base64."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.data.molecules import ATOM, WORDS, name_atoms
from egocnn.errors import DataError
from egocnn.explain.structure import CriticalStructure, wording
from egocnn.show.report.summary import Summary, sentences

Positions: TypeAlias = Callable[[Graph], Floats]

FINEST = 32767
"""numbers travel as 16-bit steps of the largest among them: four significant digits in 2.7 characters each"""


def encode(structures: Sequence[CriticalStructure], summary: Summary, positions: Positions) -> dict[str, Any]:
    """Everything that the page shows."""
    structures, labels = [structure.named() for structure in structures], dict[str, int]()
    data = PurePath(summary.data).stem
    graphs = [name_atoms(structure.graph, data) for structure in structures]
    return {
        "summary": asdict(summary) | {"sentences": sentences(summary)},
        "structures": [_structure(s, g, positions, labels) for s, g in zip(structures, graphs, strict=True)],
        "labels": list(labels),
    }


def _structure(
    structure: CriticalStructure, graph: Graph, positions: Positions, labels: dict[str, int]
) -> dict[str, Any]:
    fidelity, trace = structure.fidelity, structure.trace
    places = np.asarray(positions(graph))
    if places.shape != (graph.n_nodes, 2):
        raise DataError(f"graph {graph.name!r}: positions must be ({graph.n_nodes}, 2), not {places.shape}")
    # all rows of the trace but the last, the input: its importances are the structure's own
    rows = () if trace is None else zip(trace.nodes[:-1], trace.edges[:-1], strict=True)
    return {
        "name": graph.name,
        "predicted": _plain(structure.predicted),
        "probability": _plain(structure.probability),
        "true": _plain(graph.target),
        "explained": structure.explained,
        "technique": structure.technique,
        "spread": _plain(structure.spread),
        # base, the sum of what speaks for, the sum of what speaks against, output
        "sums": [_plain(x) for x in (structure.base, structure.speaks_for, structure.speaks_against, structure.output)],
        "addsUp": wording.adds_up(structure),
        "balance": wording.balance(structure),
        "fidelity": None if fidelity is None else {name: _plain(value) for name, value in asdict(fidelity).items()},
        "evidence": wording.evidence(structure) if len(structure.critical_nodes) else structure.nothing,
        "smiles": graph.smiles,
        "molecule": is_molecule(graph),
        "nodes": graph.n_nodes,
        "edges": packed_integers(np.asarray(graph.edges, np.int64).ravel()),
        "positions": packed(places.ravel()),
        "nodeLabels": _labels(graph.node_label, labels),
        "edgeLabels": _labels(graph.edge_label, labels),
        "nodeImportance": packed(structure.node_importance),
        "edgeImportance": packed(structure.edge_importance),
        "criticalNodes": packed_integers(structure.critical_nodes),
        "criticalEdges": packed_integers(structure.critical_edges),
        "truth": None if graph.node_truth is None else packed_integers(np.flatnonzero(graph.node_truth)),
        "trace": None if trace is None else [{"nodes": packed(nodes), "edges": packed(edges)} for nodes, edges in rows],
    }


def packed(values: Floats) -> dict[str, Any]:
    """Real numbers as little-endian 16-bit steps; what is not finite counts as 0.

    Where most are 0, only the others are listed, with where they stand.
    """
    finite = np.nan_to_num(np.asarray(values, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.abs(finite).max(initial=0.0))
    steps = (np.rint(finite / largest * FINEST) if largest > 0 else finite).astype("<i2")
    step = float(f"{largest / FINEST:.7g}")
    at = np.flatnonzero(steps)
    if 2 * len(at) < len(steps):
        return {"step": step, "length": len(steps), "at": packed_integers(at), "data": _base64(steps[at])}
    return {"step": step, "data": _base64(steps)}


def packed_integers(values: Ints) -> str:
    """As little-endian 32-bit numbers, or 16-bit ones where they fit, with a letter in front that says which."""
    small = int(np.max(values, initial=0)) < 1 << 16
    return ("s" if small else "l") + _base64(np.asarray(values).astype("<u2" if small else "<u4"))


def _base64(values: Any) -> str:
    return b64encode(values.tobytes()).decode("ascii")


def _labels(names: Sequence[str] | None, labels: dict[str, int]) -> str | None:
    """Positions in the report's one list of label names, which grows as new ones turn up."""
    if names is None:
        return None
    return packed_integers(np.array([labels.setdefault(name, len(labels)) for name in names], np.int64))


def is_molecule(graph: Graph) -> bool:
    """Whether its labels read as atoms and bonds, so that a chemist's drawing suits it."""
    if graph.node_label is None:
        return False
    bonds = graph.edge_label if graph.smiles is None else ("single",)
    atoms = all(ATOM.fullmatch(label) for label in graph.node_label)
    return atoms and bonds is not None and len(bonds) > 0 and set(WORDS).issuperset(bonds)


def _plain(value: str | float | None) -> str | float | None:
    if value is None or isinstance(value, str):
        return value
    return float(f"{float(value):.4g}") if isfinite(value) else None
