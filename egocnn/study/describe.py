"""What is in a collection of graphs, and what is wrong with it: a plain record and advice."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.data.sources.text import listed
from egocnn.encode.colours import looks


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
    several = {n: (target[:, t], names) for t, (n, names) in enumerate(graphs.targets) if target is not None}
    kind = "several" if several else "class" if graphs.class_names else "value"
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
        "targets": {name: _describe_target(*own) for name, own in several.items()},
        "class_counts": _count_values(target, graphs.class_names),
        "parts": _count_values(part, PARTS),
        "used": list(graphs.used),
        "left_out": list(graphs.left_out),
        "problems": list(_problems(count, look, several if several else {"": (target, graphs.class_names)}, graphs)),
    }


def _count_values(numbers: NDArray[Any] | None, names: Sequence[str]) -> dict[str, int]:
    return {} if numbers is None else {name: int((numbers == i).sum()) for i, name in enumerate(names)}


def _describe_target(target: NDArray[Any], class_names: Sequence[str]) -> dict[str, Any]:
    """One of several, as :func:`egocnn.data.sources.columns.describe_columns` tells it"""
    own: dict[str, Any] = {"kind": "classes", "counts": _count_values(target, class_names)}
    if not class_names:
        own = {"kind": "values", "least": float(np.nanmin(target)), "most": float(np.nanmax(target))}
    return {**own, "missing": int(np.isnan(target).sum())}


def _problems(
    count: Counter[str], look: Ints, targets: Mapping[str, tuple[NDArray[Any] | None, Sequence[str]]], graphs: Graphs
) -> Iterator[str]:
    """``look`` and ``targets``: of all portions; ``graphs``: one of them, for what they share"""
    if count["loops"]:
        yield f"{count['loops']} self-loops; they are read as adjacency of a node to itself, never as neighbours"
    if count["isolated"]:
        what = "isolated nodes" if graphs.smiles is None else "atoms without a bond"
        where = f"{count['with_isolated']} {graphs.unit}"
        yield f"{count['isolated']} {what} in {where}; no neighbour tells about them"
    # graphs that colours cannot tell apart: duplicates, at least to a model without cycles in its sight
    _, kind, number = np.unique(look, return_inverse=True, return_counts=True)
    if twins := int((number[kind] > 1).sum()):
        risk = "; a random split can put twins on both sides" if graphs.group is None else ""
        yield f"{twins} {graphs.unit} have a twin that Weisfeiler-Lehman colours cannot tell from it{risk}"
    told: dict[str, list[str]] = {}  # what several targets have in common is one line
    for name, (target, class_names) in targets.items():
        for text in _target_problems(target, class_names, kind):
            told.setdefault(text, []).append(name)
    yield from (f"{listed(names)}: {text}" if names[0] else text for text, names in told.items())


def _target_problems(target: NDArray[Any] | None, class_names: Sequence[str], kind: Ints) -> Iterator[str]:
    """``kind``: (G) equal numbers where graphs look alike"""
    if target is None:
        yield "no target: good for prediction only"
        return
    is_known = target >= 0 if class_names else np.isfinite(target)
    if missing := int((~is_known).sum()):
        yield f"{missing} graphs have no {'class' if class_names else 'target value'}"
    if not class_names:
        return
    known = np.stack([kind[is_known], target[is_known].astype(np.int64)])
    counts = np.bincount(known[1], minlength=len(class_names))
    if len(counts) < 2:
        yield "one class only: there is nothing to tell apart"
    elif counts.min() * 10 < counts.max():
        yield "classes are far from equal in size; accuracy misleads, consider --class-weights"
    disagreeing = np.unique(known, axis=1).shape[1] - len(np.unique(known[0]))
    if disagreeing > 0:
        yield f"{disagreeing} such look-alikes have different classes: hardly any model gets all right"
