"""What is in a collection of graphs, and what is wrong with it: Graphs -> a plain record and advice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints, mix
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.encode.colours import initial_colours, refine, stable_colours

MOST_ROUNDS = 256
"""Colours that are not stable after so many rounds, in chains of more than 500 nodes, are taken as they are."""


def describe(graphs: Graphs) -> dict[str, Any]:
    """Counts, as the TU collection counts them (edges undirected, a self-loop once), and a list of ``problems``."""
    return describe_portions([graphs])


def describe_portions(portions: Iterable[Graphs]) -> dict[str, Any]:
    """:func:`describe` of a collection that need not be in memory at once."""
    tally = _Tally()
    for graphs in portions:
        tally.add(graphs)
    return tally.facts()


def problems(graphs: Graphs) -> list[str]:
    """What a user should know before training, in sentences."""
    tally = _Tally()
    tally.add(graphs)
    return tally.problems()


class _Tally:
    """Counts of the portions so far, and what is kept of every graph: its look, its target and its part."""

    def __init__(self) -> None:
        self.last: Graphs | None = None
        """for names and columns, which all portions share"""
        self.graphs = self.nodes = self.edges = self.loops = self.isolated = self.with_isolated = 0
        self.max_nodes = self.max_degree = 0
        self.looks: list[Ints] = []
        self.targets: list[NDArray[Any]] = []
        self.parts: list[Ints] = []

    def add(self, graphs: Graphs) -> None:
        self.last = graphs
        self.graphs += len(graphs)
        self.nodes += graphs.n_nodes
        self.edges += graphs.n_edges
        self.max_nodes = max(self.max_nodes, int(graphs.node_counts.max(initial=0)))
        self.max_degree = max(self.max_degree, int(graphs.degree.max(initial=0)))
        self.loops += int((graphs.entry_node == graphs.indices).sum())
        isolated = graphs.degree == 0
        self.isolated += int(isolated.sum())
        self.with_isolated += len(np.unique(graphs.graph_of[isolated])) if isolated.any() else 0
        self.looks.append(looks(graphs))
        if graphs.target is not None:
            self.targets.append(graphs.target)
        if graphs.part is not None:
            self.parts.append(graphs.part)

    def facts(self) -> dict[str, Any]:
        assert self.last is not None
        last = self.last
        return {
            "graphs": self.graphs,
            "classes": len(last.class_names),
            "avg_nodes": self.nodes / self.graphs,
            "avg_edges": self.edges / self.graphs,
            "max_nodes": self.max_nodes,
            "node_labels": len(last.node_label_names),
            "edge_labels": len(last.edge_label_names),
            "node_attributes": 0 if last.node_attr is None else last.node_attr.shape[1],
            "max_degree": self.max_degree,
            "edge_weights": last.edge_weight is not None,
            "target": _target_kind(last),
            "class_counts": self._class_counts(),
            "parts": self._part_counts(),
            "problems": self.problems(),
        }

    @property
    def target(self) -> NDArray[Any] | None:
        return np.concatenate(self.targets) if self.targets else None

    def problems(self) -> list[str]:
        assert self.last is not None
        found = []
        if self.loops:
            found.append(
                f"{self.loops} self-loops; they are read as adjacency of a node to itself, never as neighbours"
            )
        if self.isolated:
            found.append(
                f"{self.isolated} isolated nodes in {self.with_isolated} graphs; no neighbour tells about them"
            )
        target = self.target
        if target is None:
            found.append("no target: good for prediction only")
        elif self.last.is_classification:
            found += _class_problems(target, len(self.last.class_names))
        elif not np.isfinite(target).all():
            found.append(f"{int((~np.isfinite(target)).sum())} graphs have no target value")
        classes = target if self.last.is_classification else None
        return found + _twin_problems(np.concatenate(self.looks), classes, grouped=self.last.group is not None)

    def _class_counts(self) -> dict[str, int]:
        target = self.target
        if target is None or self.last is None:
            return {}
        return {name: int((target == i).sum()) for i, name in enumerate(self.last.class_names)}

    def _part_counts(self) -> dict[str, int]:
        if not self.parts:
            return {}
        part = np.concatenate(self.parts)
        return {name: int((part == i).sum()) for i, name in enumerate(PARTS)}


def _class_problems(target: NDArray[Any], n_classes: int) -> list[str]:
    found = []
    missing = int((target < 0).sum())
    if missing:
        found.append(f"{missing} graphs have no class")
    counts = np.bincount(target[target >= 0], minlength=n_classes)
    if len(counts) < 2:
        found.append("one class only: there is nothing to tell apart")
    elif counts.min() * 10 < counts.max():
        found.append("classes are far from equal in size; accuracy misleads, consider --class-weights")
    return found


def _twin_problems(look: Ints, classes: NDArray[Any] | None, *, grouped: bool) -> list[str]:
    """Graphs that colours cannot tell apart: duplicates, at least to a model without cycles in its sight."""
    _, kind, count = np.unique(look, return_inverse=True, return_counts=True)
    twins = int((count[kind] > 1).sum())
    if twins == 0:
        return []
    text = f"{twins} graphs have a twin that Weisfeiler-Lehman colours cannot tell from it"
    if not grouped:
        text += "; a random split can put twins on both sides"
    found = [text]
    if classes is not None:
        known = classes >= 0
        kinds = len(np.unique(kind[known]))
        disagreeing = len(np.unique(np.stack([kind[known], classes[known]]), axis=1).T) - kinds
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
