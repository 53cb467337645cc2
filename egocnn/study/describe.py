"""What is in a collection of graphs, and what is wrong with it: Graphs -> a plain record and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints, mix
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.encode.colours import MOST_ROUNDS, initial_colours, refine, stable_colours


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
    elif not graphs.is_classification:
        if missing := int((~np.isfinite(target)).sum()):
            yield f"{missing} graphs have no target value"
    else:
        if missing := int((target < 0).sum()):
            yield f"{missing} graphs have no class"
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


def looks(graphs: Graphs) -> Ints:
    """(G) a number per graph, the same for graphs whose stable colours agree, attributes and weights counted"""
    stable = stable_colours(graphs, initial_colours(graphs), most=MOST_ROUNDS)
    # one round more: a graph may be stable within itself before all that sets it apart from others has been seen
    colour = refine(graphs, stable, weighted=True)
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix(colour))])
    look: Ints = (running[graphs.node_ptr[1:]] - running[graphs.node_ptr[:-1]]).view(np.int64)
    return look
