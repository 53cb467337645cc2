"""What is in a collection of graphs, and what is wrong with it: Graphs -> a plain record and advice."""

from __future__ import annotations

from typing import Any

import numpy as np

from egocnn.arrays import Ints, mix
from egocnn.colours import initial_colours, refine, stable_colours
from egocnn.graphs import Graphs
from egocnn.schema import PARTS

MOST_ROUNDS = 256
"""Colours that are not stable after so many rounds, in chains of more than 500 nodes, are taken as they are."""


def describe(graphs: Graphs) -> dict[str, Any]:
    """Counts, as the TU collection counts them (edges undirected, a self-loop once), and a list of ``problems``."""
    counts = graphs.node_counts
    return {
        "graphs": len(graphs),
        "classes": len(graphs.class_names),
        "avg_nodes": graphs.n_nodes / len(graphs),
        "avg_edges": graphs.n_edges / len(graphs),
        "max_nodes": int(counts.max()),
        "node_labels": len(graphs.node_label_names),
        "edge_labels": len(graphs.edge_label_names),
        "node_attributes": 0 if graphs.node_attr is None else graphs.node_attr.shape[1],
        "max_degree": int(graphs.degree.max(initial=0)),
        "edge_weights": graphs.edge_weight is not None,
        "target": _target_kind(graphs),
        "class_counts": _class_counts(graphs),
        "parts": _part_counts(graphs),
        "problems": problems(graphs),
    }


def problems(graphs: Graphs) -> list[str]:
    """What a user should know before training, in sentences."""
    found = []
    loops = int((graphs.entry_node == graphs.indices).sum())
    if loops:
        found.append(f"{loops} self-loops; they are read as adjacency of a node to itself, never as neighbours")
    isolated = graphs.degree == 0
    if isolated.any():
        owners = len(np.unique(graphs.graph_of[isolated]))
        found.append(f"{int(isolated.sum())} isolated nodes in {owners} graphs; no neighbour tells about them")
    if graphs.target is None:
        found.append("no target: good for prediction only")
    elif graphs.is_classification:
        found += _class_problems(graphs)
    elif not np.isfinite(graphs.target).all():
        found.append(f"{int((~np.isfinite(graphs.target)).sum())} graphs have no target value")
    found += _twin_problems(graphs)
    return found


def _class_problems(graphs: Graphs) -> list[str]:
    assert graphs.target is not None
    found = []
    missing = int((graphs.target < 0).sum())
    if missing:
        found.append(f"{missing} graphs have no class")
    counts = np.bincount(graphs.target[graphs.target >= 0], minlength=len(graphs.class_names))
    if len(counts) < 2:
        found.append("one class only: there is nothing to tell apart")
    elif counts.min() * 10 < counts.max():
        found.append("classes are far from equal in size; accuracy misleads, consider --class-weights")
    return found


def _twin_problems(graphs: Graphs) -> list[str]:
    """Graphs that colours cannot tell apart: duplicates, at least to a model without cycles in its sight."""
    look = looks(graphs)
    _, kind, count = np.unique(look, return_inverse=True, return_counts=True)
    twins = int((count[kind] > 1).sum())
    if twins == 0:
        return []
    text = f"{twins} graphs have a twin that Weisfeiler-Lehman colours cannot tell from it"
    if graphs.group is None:
        text += "; a random split can put twins on both sides"
    found = [text]
    if graphs.target is not None and graphs.is_classification:
        known = graphs.target >= 0
        kinds = len(np.unique(kind[known]))
        disagreeing = len(np.unique(np.stack([kind[known], graphs.target[known]]), axis=1).T) - kinds
        if disagreeing > 0:
            found.append(f"{disagreeing} such look-alikes have different classes: hardly any model gets all right")
    return found


def looks(graphs: Graphs) -> Ints:
    """(G) a number per graph, the same for graphs whose stable colours agree, attributes and weights counted"""
    stable = stable_colours(graphs, initial_colours(graphs), most=MOST_ROUNDS)
    # one round more: a graph may be stable within itself before all that sets it apart from others has been seen
    colour = refine(graphs, stable, weighted=True)
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix(colour))])
    look: Ints = (running[graphs.node_ptr[1:]] - running[graphs.node_ptr[:-1]]).view(np.int64)
    return look


def _target_kind(graphs: Graphs) -> str | None:
    if graphs.target is None:
        return None
    return "class" if graphs.is_classification else "value"


def _class_counts(graphs: Graphs) -> dict[str, int]:
    if graphs.target is None or not graphs.is_classification:
        return {}
    return {name: int((graphs.target == i).sum()) for i, name in enumerate(graphs.class_names)}


def _part_counts(graphs: Graphs) -> dict[str, int]:
    return {} if graphs.part is None else {name: int((graphs.part == i).sum()) for i, name in enumerate(PARTS)}
