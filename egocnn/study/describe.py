"""What is in a collection of graphs or in a table, and what is wrong with it: a plain record and advice."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.data.sources.builder import MISSING, NAME_FIELDS, PART_WORDS, look_like_classes, number_of
from egocnn.data.sources.smiles import OTHER_NAMES, parse_smiles
from egocnn.data.sources.text import MOLECULE
from egocnn.encode.colours import looks
from egocnn.errors import DataError, MissingExtraError

MOST_ROWS = 100_000  # Of a table, the rows from which its columns are told.
TRIED = 20  # Values of a column that are parsed to tell whether they are SMILES.
MOST_LISTED = 50  # More classes than these are texts.


def describe(portions: Iterable[Graphs]) -> dict[str, Any]:
    """Counts, as the TU collection counts (edges undirected, a self-loop once), and a list of ``problems``."""
    count: Counter[str] = Counter()
    max_nodes = max_degree = 0
    of_graphs: dict[str, list[NDArray[Any]]] = {"look": [], "target": [], "part": []}
    for graphs in portions:
        isolated = graphs.degree == 0
        count.update(graphs=len(graphs), nodes=graphs.n_nodes, edges=graphs.n_edges, isolated=int(isolated.sum()))
        count.update(loops=int((graphs.entry_node == graphs.indices).sum()))
        count.update(with_isolated=len(np.unique(graphs.graph_of[isolated])))
        max_nodes = max(max_nodes, int(graphs.node_counts.max(initial=0)))
        max_degree = max(max_degree, int(graphs.degree.max(initial=0)))
        for name, values in (("look", looks(graphs)), ("target", graphs.target), ("part", graphs.part)):
            if values is not None:
                of_graphs[name].append(values)
    look, target, part = (np.concatenate(arrays) if arrays else None for arrays in of_graphs.values())
    assert look is not None
    kind = "class" if graphs.is_classification else "value"
    return {
        "graphs": count["graphs"],
        "classes": len(graphs.class_names),
        "avg_nodes": count["nodes"] / count["graphs"],
        "avg_edges": count["edges"] / count["graphs"],
        "max_nodes": max_nodes,
        "node_labels": len(graphs.node_label_names),
        "edge_labels": len(graphs.edge_label_names),
        "node_attributes": 0 if graphs.node_attr is None else graphs.node_attr.shape[1],
        "max_degree": max_degree,
        "edge_weights": graphs.edge_weight is not None,
        "target": None if graphs.target is None else kind,
        "class_counts": _count_values(target, graphs.class_names),
        "parts": _count_values(part, PARTS),
        "used": list(graphs.used),
        "left_out": list(graphs.left_out),
        "problems": list(_problems(count, look, target, graphs)),
    }


def _count_values(numbers: NDArray[Any] | None, names: Sequence[str]) -> dict[str, int]:
    return {} if numbers is None else {name: int((numbers == i).sum()) for i, name in enumerate(names)}


def _problems(count: Counter[str], look: Ints, target: NDArray[Any] | None, graphs: Graphs) -> Iterator[str]:
    """``look`` and ``target``: of all portions; ``graphs``: one of them, for what they share"""
    if count["loops"]:
        yield f"{count['loops']} self-loops; they are read as adjacency of a node to itself, never as neighbours"
    if count["isolated"]:
        yield f"{count['isolated']} isolated nodes in {count['with_isolated']} graphs; no neighbour tells about them"
    if target is None:
        yield "no target: good for prediction only"
    elif missing := int((target < 0 if graphs.is_classification else ~np.isfinite(target)).sum()):
        yield f"{missing} graphs have no {'class' if graphs.is_classification else 'target value'}"
    if target is not None and graphs.is_classification:
        counts = np.bincount(target[target >= 0], minlength=len(graphs.class_names))
        if len(counts) < 2:
            yield "one class only: there is nothing to tell apart"
        elif counts.min() * 10 < counts.max():
            yield "classes are far from equal in size; accuracy misleads, consider --class-weights"
    # graphs that colours cannot tell apart: duplicates, at least to a model without cycles in its sight
    _, kind, number = np.unique(look, return_inverse=True, return_counts=True)
    if twins := int((number[kind] > 1).sum()):
        risk = "; a random split can put twins on both sides" if graphs.group is None else ""
        yield f"{twins} graphs have a twin that Weisfeiler-Lehman colours cannot tell from it{risk}"
    if twins and target is not None and graphs.is_classification:
        known = np.stack([kind, target])[:, target >= 0]
        disagreeing = np.unique(known, axis=1).shape[1] - len(np.unique(known[0]))
        if disagreeing > 0:
            yield f"{disagreeing} such look-alikes have different classes: hardly any model gets all right"


def describe_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What every column of a table could be: its ``kind``, how many values are ``missing``, and what goes with it."""
    first = [{name: value for name, value in row.items() if name != MOLECULE} for row in islice(rows, MOST_ROWS)]
    names = dict.fromkeys(name for row in first for name in row)
    several = {name: [str("" if row.get(name) is None else row[name]).strip() for row in first] for name in names}
    return {name: _column(name, texts) for name, texts in several.items()}


def _column(name: str, texts: Sequence[str]) -> dict[str, Any]:
    known = [text for text in texts if text.lower() not in MISSING]
    counts, is_word = Counter(known), bool(known) and look_like_classes(known)
    numbers = [number for text in counts if (number := number_of(text)) is not None]
    if {PART_WORDS.get(word, word) for word in map(str.lower, counts)} <= set(PARTS):
        found: dict[str, Any] = {"kind": "split" if known else "empty", "counts": dict(counts)}
    elif _are_smiles(name, list(counts)[:TRIED]):
        found = {"kind": "SMILES"}
    elif is_word and len(counts) <= min(MOST_LISTED, len(known) - 1):
        found = {"kind": "classes", "counts": dict(counts.most_common())}
    elif is_word or not numbers or (len(counts) == len(known) and name.lower().endswith(NAME_FIELDS)):
        found = {"kind": "names" if len(counts) == len(known) else "texts", "different": len(counts)}
    else:
        found = {"kind": "values", "least": float(min(numbers)), "most": float(max(numbers))}
    return {**found, "missing": len(texts) - len(known)}


def _are_smiles(name: str, texts: Sequence[str]) -> bool:
    """By the name of the column, or because RDKit parses them and most are too long for words."""
    is_likely = name.lower() in OTHER_NAMES or 2 * sum(len(text) > 4 for text in texts) > len(texts)
    try:
        return "smiles" in name.lower() or (is_likely and all(map(parse_smiles, texts)))
    except (DataError, MissingExtraError):
        return False
