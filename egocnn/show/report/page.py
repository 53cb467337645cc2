"""Critical structures + a summary -> index.html: one file with its data, its style and its scripts inside.

The data are compact and plain: lists of numbers travel as base64.
"""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from math import isfinite
from pathlib import Path, PurePath
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.data.molecules import ATOM, WORDS, by_first_words, name_atoms, shown_labels
from egocnn.errors import DataError
from egocnn.explain.patterns.names import Match, groups_of
from egocnn.explain.structure import CriticalStructure, wording
from egocnn.files import finite_json, write_text
from egocnn.show.assets import asset, fill
from egocnn.show.drawing.layout import molecule_of
from egocnn.show.drawing.layout import positions as layout
from egocnn.show.drawing.molecules import TENTHS, line_work
from egocnn.show.report.summary import Summary, sentences
from egocnn.train.metrics import in_words

Positions: TypeAlias = Callable[[Graph], Floats]
FINEST = 32767
"""numbers travel as 16-bit steps of the largest among them: four significant digits in 2.7 characters each"""
SCRIPTS = (
    *("cytoscape.min.js", "data.js", "smarts.js", "scene.js", "picture.js", "chart.js", "gallery.js"),
    *("canvas.js", "viewer.js", "page.js"),
)
"""in the order in which they run"""
PORTION = 48
"""structures that the page unpacks at a time: as many as it shows at a time"""

ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def write_report(
    structures: Sequence[CriticalStructure],
    folder: Path,
    *,
    summary: Summary,
    positions: Positions = layout,
    parts: Mapping[str, str] | None = None,
) -> Path:
    """Write ``index.html`` into the folder; returns its path.

    ``positions`` places the nodes of a graph, (N, 2), y upwards, edges about as long as 1. ``parts``: by the names of
    graphs, whether the model was trained on them: train, validation or test.
    """
    path = Path(folder) / "index.html"
    write_text(path, page(encode(structures, summary, positions, parts), summary.title))
    return path


def page(data: dict[str, Any], title: str) -> str:
    """The whole page as one text; it fetches nothing. Only the first portion of the structures stands before the scripts,
    so that its pictures are there before the browser has read the rest."""
    head, all_of_them = {name: data[name] for name in data if name != "structures"}, data.get("structures", [])
    first, *rest = [
        f'<script type="application/json" id="portion-{start // PORTION}">'
        f"{embedded(all_of_them[start : start + PORTION])}</script>"
        for start in range(0, max(len(all_of_them), 1), PORTION)
    ]
    parts = {
        "POLICY": policy(),
        "TITLE": html.escape(title),
        "DATA": embedded(head),
        **{"FIRST": first, "REST": "\n".join(rest)},
        "SCRIPTS": "\n".join(f"<script>{asset('report', name)}</script>" for name in SCRIPTS),
    }
    return fill("report", parts)


def embedded(data: Any) -> str:
    """JSON that cannot end the element around it, whatever the names in it are."""
    text = finite_json(data, ensure_ascii=False, separators=(",", ":"))
    return text.translate(ESCAPES).encode("utf-8", "backslashreplace").decode("utf-8")


@cache
def policy() -> str:
    """The page's content security policy: only its own scripts run, and nothing is fetched."""
    hashes = (b64encode(sha256(asset("report", name).encode()).digest()).decode() for name in SCRIPTS)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "  # cytoscape sets styles of its own
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def encode(
    structures: Sequence[CriticalStructure],
    summary: Summary,
    positions: Positions,
    parts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Everything that the page shows: what it lists, filters and sorts in columns, what it draws by structure."""
    structures, labels = [structure.named() for structure in structures], dict[str, int]()
    data = PurePath(summary.data).stem
    graphs = [shown_labels(name_atoms(structure.graph, data)) for structure in structures]
    molecules = list(map(molecule_of, graphs))
    groups = [[] if molecule is None else groups_of(molecule) for molecule in molecules]
    told = list(zip(structures, graphs, molecules, strict=True))
    facts = [_fact(*each, (parts or {}).get(graph.name)) for each, graph in zip(told, graphs, strict=True)]
    return {
        "summary": asdict(summary)
        | {"sentences": sentences(summary), "scores": {in_words(n): v for n, v in summary.scores.items()}},
        "facts": {name: [fact[name] for fact in facts] for name in (facts[0] if facts else ())},
        "groups": _of_groups(structures, groups),
        "structures": [
            _structure(structure, graph, np.asarray(positions(graph)), labels)
            | ({} if molecule is None else _drawn(graph, molecule, np.asarray(positions(graph)), own, labels))
            for (structure, graph, molecule), own in zip(told, groups, strict=True)
        ],
        "labels": list(labels),
    }


def _fact(structure: CriticalStructure, graph: Graph, molecule: Any | None, part: str | None) -> dict[str, Any]:
    """What the page lists and searches; SMILES also as RDKit writes them, where that differs."""
    canonical = None
    if molecule is not None:
        from rdkit import Chem

        canonical = Chem.MolToSmiles(molecule)
    fidelity = structure.fidelity if len(structure.critical_nodes) else None
    names = ("predicted", "probability", "spread", "explained")
    return {name: _plain(getattr(structure, name)) for name in names} | {
        **{"name": graph.name, "true": _plain(graph.target), "smiles": graph.smiles, "part": part},
        "canonical": None if canonical == graph.smiles else canonical,
        **{"nodes": graph.n_nodes, "critical": len(structure.critical_nodes)},
        # an empty structure holds no evidence, and none goes with it
        "kept": None if fidelity is None else _plain(fidelity.evidence_kept),
        "lost": None if fidelity is None else _plain(fidelity.evidence_lost),
    }


def _of_groups(structures: Sequence[CriticalStructure], groups: Sequence[Sequence[Match]]) -> list[dict[str, Any]]:
    """Of every group the molecules that hold it; by what is explained, how many do, how often, and its mean sum."""
    table: dict[str, dict[Any, list[tuple[int, float]]]] = {}
    for number, (structure, own) in enumerate(zip(structures, groups, strict=True)):
        for name, atoms in own:
            places = table.setdefault(name, {}).setdefault(structure.explained, [])
            places.append((number, float(structure.node_importance[list(atoms)].sum())))
    return [
        {
            "name": name,
            "in": packed_integers(np.unique([number for places in means.values() for number, _ in places])),
            "means": [
                [explained, len(dict(places)), len(places), _plain(fmean(x for _, x in places))]
                for explained, places in means.items()
            ],
        }
        for name, means in sorted(table.items())
    ]


def _structure(structure: CriticalStructure, graph: Graph, places: Floats, labels: dict[str, int]) -> dict[str, Any]:
    fidelity, trace = structure.fidelity, structure.trace
    if places.shape != (graph.n_nodes, 2):
        raise DataError(f"graph {graph.name!r}: positions must be ({graph.n_nodes}, 2), not {places.shape}")
    # all rows of the trace but the last, the input: its importances are the structure's own
    rows = () if trace is None else zip(trace.nodes[:-1], trace.edges[:-1], strict=True)
    return {
        "technique": structure.technique,
        # base, the sum of what speaks for, the sum of what speaks against, output
        "sums": [_plain(x) for x in (structure.base, structure.speaks_for, structure.speaks_against, structure.output)],
        "addsUp": wording.adds_up(structure),
        "balance": wording.balance(structure),
        "fidelity": None if fidelity is None else {name: _plain(value) for name, value in asdict(fidelity).items()},
        "evidence": wording.evidence(structure) if len(structure.critical_nodes) else structure.nothing,
        "molecule": is_molecule(graph),
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


def _drawn(
    graph: Graph, molecule: Any, places: Floats, groups: Sequence[Match], labels: dict[str, int]
) -> dict[str, Any]:
    """RDKit's drawing of a molecule, what SMARTS ask of its atoms and bonds, and its groups."""
    pairs = [(int(u), int(v)) for u, v in graph.edges]
    # element, aromatic or not, hydrogens, charge
    atoms = [
        a.GetAtomicNum()
        | a.GetIsAromatic() << 7
        | min(a.GetTotalNumHs(), 7) << 8
        | max(a.GetFormalCharge() + 8, 0) << 11
        for a in molecule.GetAtoms()
    ]
    orders = [molecule.GetBondBetweenAtoms(*pair).GetBondTypeAsDouble() for pair in pairs]
    found: dict[str, Any] = {
        "atoms": packed_integers(np.array(atoms, np.int64)),
        "orders": packed_integers(np.array(orders) * 2),  # an aromatic bond counts 1.5
        "groups": [(labels.setdefault(name, len(labels)), own) for name, own in groups],
    }
    if np.isfinite(places).all() and len(places):
        at, strokes, letters, text = line_work(molecule, graph.edges, places)
        found |= {"positions": packed((at / TENTHS * [1, -1]).ravel()), "strokes": packed_integers(strokes)}
        found |= {"letters": text, "lettersAt": packed_integers(letters)}
    return found


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
        return {
            "step": step,
            "length": len(steps),
            "at": packed_integers(at),
            "data": b64encode(steps[at].tobytes()).decode(),
        }
    return {"step": step, "data": b64encode(steps.tobytes()).decode()}


def packed_integers(values: Ints) -> str:
    """As little-endian 32-bit numbers, or 16-bit ones where they fit, with a letter in front that says which."""
    small = int(np.max(values, initial=0)) < 1 << 16
    return ("s" if small else "l") + b64encode(np.asarray(values).astype("<u2" if small else "<u4").tobytes()).decode()


def _labels(names: Sequence[str] | None, labels: dict[str, int]) -> str | None:
    """Positions in the report's one list of label names, which grows as new ones turn up."""
    if names is None:
        return None
    return packed_integers(np.array([labels.setdefault(name, len(labels)) for name in names], np.int64))


def is_molecule(graph: Graph) -> bool:
    """Whether its labels read as atoms and bonds, so that a chemist's drawing suits it."""
    graph = by_first_words(graph)
    if graph.node_label is None:
        return False
    bonds = graph.edge_label if graph.smiles is None else ("single",)
    return all(map(ATOM.fullmatch, graph.node_label)) and bool(bonds) and set(WORDS).issuperset(bonds or ())


def _plain(value: str | float | None) -> str | float | None:
    if value is None or isinstance(value, str):
        return value
    return float(f"{float(value):.4g}") if isfinite(value) else None
