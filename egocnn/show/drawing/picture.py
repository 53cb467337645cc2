"""A graph, importances and critical parts -> what a picture shows, checked: strengths from 0 to 1 and marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.errors import ConfigError, DataError

SMALLEST_SIDE = 40
LARGEST_SIDE = 10_000
LEAST = 0.02
"""Strength below which an atom or a bond of a molecule is left white."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureItems:
    """The nodes, or the edges, of a picture."""

    importance: Floats
    strength: Floats
    """|importance| over the largest of its kind, 0 to 1"""
    critical: Bools
    is_marked: bool
    """whether critical ones were given at all; if not, all are coloured"""

    def coloured(self, is_tinted: bool) -> Floats:
        """The importances that are drawn in colour."""
        if is_tinted:
            return self.importance[self.strength > LEAST]
        return self.importance[self.critical] if self.is_marked else self.importance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A graph with everything that its drawing depends on."""

    graph: Graph
    nodes: PictureItems
    edges: PictureItems
    caption: str
    size: tuple[int, int]
    """width, height in pixels"""
    words: tuple[str, str]
    """what a positive and a negative importance mean"""
    is_tinted: bool = False
    """whether everything of some strength is coloured, as in molecules, and not the critical parts alone"""

    @property
    def unit(self) -> float:
        """Pixels that look the same share of the picture whatever its size; 1 at 480 x 360"""
        return min(self.size[0] / 480, self.size[1] / 360)

    @property
    def signs(self) -> tuple[bool, bool]:
        """whether anything that is coloured has a positive importance, and whether anything has a negative one"""
        shown = np.concatenate([items.coloured(self.is_tinted) for items in (self.nodes, self.edges)])
        return bool((shown > 0).any()), bool((shown < 0).any())


def compose(
    graph: Graph,
    node_importance: Floats,
    edge_importance: Floats,
    critical_nodes: Ints | None,
    critical_edges: Ints | None,
    **settings: Any,
) -> Picture:
    """A checked picture; ``settings`` are the caption, the size, the words and whether all is tinted."""
    size = settings["size"]
    if not all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in size):
        raise ConfigError(f"size must be {SMALLEST_SIDE} to {LARGEST_SIDE} pixels a side, got {size[0]} x {size[1]}")
    return Picture(
        graph=graph,
        nodes=_items(node_importance, critical_nodes, graph.n_nodes, "node", graph.name),
        edges=_items(edge_importance, critical_edges, len(graph.edges), "edge", graph.name),
        **settings,
    )


def _items(importance: Floats, critical: Ints | None, count: int, what: str, name: str) -> PictureItems:
    values = np.asarray(importance, np.float64)
    if values.shape != (count,):
        raise DataError(f"graph {name}: {values.size} importances for {count} {what}s")
    unfit = np.flatnonzero(~np.isfinite(values))
    if len(unfit):
        raise DataError(f"graph {name}: the importance of {what} {unfit[0]} is {values[unfit[0]]}, not a finite number")
    chosen = np.asarray([] if critical is None else critical, np.int64)
    outside = chosen[(chosen < 0) | (chosen >= count)]
    if len(outside):
        raise DataError(f"graph {name}: critical {what} {outside[0]} of {count} {what}s")
    marks = np.zeros(count, bool)
    marks[chosen] = True
    largest = float(np.abs(values).max(initial=0.0))
    strength = np.abs(values) / largest if largest > 0 else np.zeros(count)
    return PictureItems(importance=values, strength=strength, critical=marks, is_marked=critical is not None)
