"""The report of a run: a trained model and graphs -> index.html, structures.jsonl and figures/ in a folder. The page is
one file with its data, its style and its scripts inside; its data are plain: lists of numbers travel as base64."""

import html
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.data.molecules import is_molecule, shown_labels
from egocnn.errors import rule
from egocnn.explain.patterns.names import groups_of
from egocnn.explain.structure import CriticalStructure, wording, write_structures
from egocnn.files import check_is_no_file, check_writable, finite_json, is_left, replacing_in, write_text
from egocnn.show.assets import SCRIPTS, asset, fill, report_policy
from egocnn.show.drawing.layout import MOST_ATOMS, molecule_of, positions
from egocnn.show.drawing.molecules import TENTHS, line_work
from egocnn.show.report import Parts, Summary, sentences, summarise
from egocnn.train.metrics import in_words

MARK = "structures.jsonl"  # A folder that holds this file is a report, and may be written again.
PAGE = "index.html"
FIGURES = "figures/[0-9][0-9][0-9][0-9]*-*.svg"
LISTED = (
    *("name", "predicted", "probability", "explained", "spread", "true", "part"),
    *("smiles", "canonical", "nodes", "critical", "kept", "lost"),
)
"""what the page lists, searches and sorts by, of all structures at once"""
FINEST = 32767
"""numbers travel as 16-bit steps of the largest among them: four significant digits in 2.7 characters each"""
PORTION = 48  # Structures that the page unpacks at a time: as many as it shows at a time
ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def write_explanations(
    structures: Iterable[CriticalStructure], folder: Path, *, figures: int, on_page: int | None = None, **facts: Any
) -> Summary:
    """Write the whole folder; returns the summary. The files are moved into place once all are written, the page last.

    With ``on_page``, only so many structures, the first, stay in memory and are shown on the page and in figures. All
    are written to ``structures.jsonl``, and the summary is of all. ``facts``: what :func:`summarise` is told."""
    on_the_page: list[CriticalStructure] = []
    bare: list[CriticalStructure] = []
    remaining = iter(structures)
    first = list(islice(remaining, 1))  # an error in the first structure comes before there is a folder

    def passing() -> Iterator[CriticalStructure]:
        for structure in chain(first, remaining):
            if on_page is None or len(on_the_page) < on_page:
                on_the_page.append(structure.drawn())  # once, for page and figures
            bare.append(_without_graph(structure))
            yield structure

    with replacing_in(folder, first=MARK, last=PAGE, patterns=[FIGURES]) as temporary:
        write_structures(passing(), temporary / MARK)
        summary = summarise(bare, molecules=all(is_molecule(s.graph) for s in on_the_page), **facts)
        for number, structure in enumerate(on_the_page[:figures], 1):
            caption = ", ".join(filter(None, (summary.target, structure.caption)))
            structure.draw(temporary / "figures" / f"{number:04d}-{file_name(structure.name)}.svg", caption=caption)
        write_text(temporary / PAGE, page(encode(on_the_page, summary, facts.get("parts"))))
    return summary


def _without_graph(structure: CriticalStructure) -> CriticalStructure:
    """What a summary reads of a structure, and little more."""
    columns = ("node_label", "edge_label", "edge_weight", "node_attr", "node_truth", "edge_truth")
    none: dict[str, Any] = dict.fromkeys(columns)
    bare = replace(structure.graph, edges=np.zeros((0, 2), np.int64), **none)
    empty: dict[str, Any] = dict.fromkeys(("node_importance", "edge_importance"), np.zeros(0))
    return replace(structure, graph=bare, trace=None, critical_edges=np.zeros(0, np.int64), **empty)


def check_folder(folder: Path, mark: str = MARK) -> None:
    """Refuse, before anything is computed, a folder that holds something else: a report has its mark."""
    check_is_no_file(folder)
    names = {file.name for file in folder.iterdir() if not is_left(file.name)} if folder.is_dir() else set()
    rule(not names or mark in names, f"{folder}: is not empty and holds no earlier report; name another folder")
    check_writable(folder)


def file_name(name: str) -> str:
    """Letters, digits and dots of a name, joined by dashes, so that no name leaves the folder."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip(".-")[:60] or "graph"


def page(data: dict[str, Any]) -> str:
    """The whole page of what :func:`encode` gives, as one text; it fetches nothing. Before its scripts stands the first
    portion of the structures alone, so that their pictures are there while the browser reads the rest."""
    head, each = {name: data[name] for name in data if name != "structures"}, data.get("structures", [])
    portions = [embedded(each[start : start + PORTION]) for start in range(0, max(len(each), 1), PORTION)]
    element = '<script type="application/json" id="portion-{}">{}</script>'.format
    first, *rest = map(element, range(len(portions)), portions)
    parts = {
        "POLICY": report_policy(),
        "TITLE": html.escape(data["summary"]["title"]),
        "DATA": embedded(head),
        **{"FIRST": first, "REST": "\n".join(rest)},
        "SCRIPTS": "\n".join(f"<script>{asset('report', name)}</script>" for name in SCRIPTS),
    }
    return fill("report", parts)


def embedded(data: Any) -> str:
    """JSON that cannot end the element around it, whatever the names in it are."""
    text = finite_json(data, ensure_ascii=False, separators=(",", ":"))
    return text.translate(ESCAPES).encode("utf-8", "backslashreplace").decode("utf-8")


def encode(structures: Sequence[CriticalStructure], summary: Summary, parts: Parts = None) -> dict[str, Any]:
    """Everything that the page shows: in columns what it lists, by structure what it draws. ``parts``: by name, in
    which part of the training data graphs were: train, validation or test."""
    structures, labels = [structure.drawn().named() for structure in structures], dict[str, int]()
    graphs = [shown_labels(structure.graph) for structure in structures]
    groups: dict[str, list[tuple[int, float]]] = {}  # the number of the molecule and the sum of contributions
    found = []
    for number, (structure, graph) in enumerate(zip(structures, graphs, strict=True)):
        places = positions(graph)
        found.append(_structure(structure, graph, places, labels) | {"part": (parts or {}).get(graph.name)})
        if (molecule := molecule_of(graph)) is not None:
            found[-1] |= _drawn(graph, molecule, places) | {"groups": (own := groups_of(molecule))}
            for name, atoms in own:
                groups.setdefault(name, []).append((number, sum(structure.node_importance[list(atoms)].tolist())))
    return {
        "summary": asdict(summary)
        | {"sentences": sentences(summary), "scores": {in_words(n): v for n, v in summary.scores.items()}},
        "facts": {name: [one.pop(name) for one in found] for name in LISTED},
        "groups": [
            {"name": name, "in": packed_integers(np.array(holding)), "sums": packed(np.array(sums))}
            for name, (holding, sums) in ((name, zip(*own, strict=True)) for name, own in sorted(groups.items()))
        ],
        "structures": found,
        "labels": list(labels),
    }


def _structure(structure: CriticalStructure, graph: Graph, places: Floats, labels: dict[str, int]) -> dict[str, Any]:
    fidelity, trace = structure.fidelity, structure.trace
    told = {name: _plain(getattr(structure, name)) for name in ("predicted", "probability", "explained", "spread")}
    # an empty structure holds no evidence, and none goes with it
    shares = fidelity if len(structure.critical_nodes) else None
    # all rows of the trace but the last, the input: its importances are the structure's own
    rows = () if trace is None else zip(trace.nodes[:-1], trace.edges[:-1], strict=True)
    return told | {
        **{"name": graph.name, "true": _plain(graph.target), "smiles": graph.smiles, "canonical": None},
        **{"critical": len(structure.critical_nodes), "kept": shares and _plain(shares.evidence_kept)},
        "lost": shares and _plain(shares.evidence_lost),
        **{"technique": structure.technique, "molecule": is_molecule(graph), "nodes": graph.n_nodes},
        # base, the sum of what speaks for, the sum of what speaks against, output
        "sums": [_plain(x) for x in (structure.base, structure.speaks_for, structure.speaks_against, structure.output)],
        **{"addsUp": wording.adds_up(structure), "balance": wording.balance(structure)},
        "fidelity": None if fidelity is None else {name: _plain(value) for name, value in asdict(fidelity).items()},
        "evidence": wording.evidence(structure) if len(structure.critical_nodes) else structure.nothing,
        "drawn": structure.drawn_part,
        "edges": packed_integers(np.asarray(graph.edges, np.int64).ravel()),
        "positions": packed(places.ravel()),
        "nodeLabels": _labels(graph.node_label, labels),
        "nodeNames": _labels(graph.node_names, labels),
        "edgeLabels": _labels(graph.edge_label, labels),
        "nodeImportance": packed(structure.node_importance),
        "edgeImportance": packed(structure.edge_importance),
        "criticalNodes": packed_integers(structure.critical_nodes),
        "criticalEdges": packed_integers(structure.critical_edges),
        "truth": None if graph.node_truth is None else packed_integers(np.flatnonzero(graph.node_truth)),
        "trace": None if trace is None else [{"nodes": packed(nodes), "edges": packed(edges)} for nodes, edges in rows],
    }


def _drawn(graph: Graph, molecule: Any, places: Floats) -> dict[str, Any]:
    """RDKit's drawing of a molecule and its SMILES, and what SMARTS ask of its atoms and bonds."""
    from rdkit import Chem

    atoms = molecule.GetAtoms()
    told = [(a.GetAtomicNum(), a.GetIsAromatic(), a.GetTotalNumHs(), a.GetFormalCharge() + 8) for a in atoms]
    orders = [molecule.GetBondBetweenAtoms(*pair).GetBondTypeAsDouble() for pair in graph.edges.tolist()]
    found: dict[str, Any] = {
        **{"molecule": True, "canonical": Chem.MolToSmiles(molecule)},
        "atoms": packed_integers(np.array(told, np.int64).reshape(-1, 4) @ np.array([1, 128, 256, 2048])),
        "orders": packed_integers((np.array(orders) * 2).astype(np.int64)),  # an aromatic bond counts 1.5
    }
    if 0 < len(places) <= MOST_ATOMS:  # of more, no letter could be read
        at, strokes, letters, text = line_work(molecule, graph.edges, places)
        found |= {"positions": packed((at / TENTHS * [1, -1]).ravel()), "strokes": packed_integers(strokes)}
        found |= {"letters": text, "lettersAt": packed_integers(letters)}
    return found


def packed(values: Floats) -> dict[str, Any]:
    """Real numbers as little-endian 16-bit steps; what is not finite counts as 0.

    Where most are 0, only the others are listed, with where they stand."""
    finite = np.nan_to_num(np.asarray(values, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.abs(finite).max(initial=0.0))
    steps = (np.rint(finite / largest * FINEST) if largest > 0 else finite).astype("<i2")
    step = float(f"{largest / FINEST:.7g}")
    at = np.flatnonzero(steps)
    if 2 * len(at) < len(steps):
        listed = {"length": len(steps), "at": packed_integers(at)}
        return {"step": step, **listed, "data": b64encode(steps[at].tobytes()).decode()}
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


def _plain(value: str | float | None) -> str | float | None:
    if value is None or isinstance(value, str):
        return value
    return float(f"{float(value):.4g}") if isfinite(value) else None
