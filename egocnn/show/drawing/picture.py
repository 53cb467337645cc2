"""What a picture shows, checked once: a graph, importances and critical parts -> strengths from 0 to 1 and marks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.errors import ConfigError, DataError

SMALLEST_SIDE = 40
LARGEST_SIDE = 10_000
LEAST = 0.02
"""Strength below which an atom or a bond of a molecule is left white."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The nodes, or the edges, of a picture."""

    importance: Floats
    strength: Floats
    """|importance| over the largest of its kind, 0 to 1"""
    critical: Bools
    is_marked: bool
    """whether critical ones were named at all; if not, colour alone tells"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    graph: Graph
    nodes: Part
    edges: Part
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
        """whether anything that is coloured speaks for, and whether anything speaks against"""
        parts = (self.nodes, self.edges)
        if self.is_tinted:
            shown = [part.importance[part.strength > LEAST] for part in parts]
        else:
            shown = [part.importance[part.critical if part.is_marked else slice(None)] for part in parts]
        return any(bool((s > 0).any()) for s in shown), any(bool((s < 0).any()) for s in shown)


def compose(
    graph: Graph,
    node_importance: Floats,
    edge_importance: Floats,
    critical_nodes: Ints | None,
    critical_edges: Ints | None,
    caption: str,
    size: tuple[int, int],
    words: tuple[str, str],
) -> Picture:
    if not all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in size):
        raise ConfigError(f"size must be {SMALLEST_SIDE} to {LARGEST_SIDE} pixels a side, got {size[0]} x {size[1]}")
    return Picture(
        graph=graph,
        nodes=_part(node_importance, critical_nodes, graph.n_nodes, "node", graph.name),
        edges=_part(edge_importance, critical_edges, len(graph.edges), "edge", graph.name),
        caption=caption,
        size=size,
        words=words,
    )


def _part(importance: Floats, critical: Ints | None, count: int, what: str, name: str) -> Part:
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
    return Part(importance=values, strength=strength, critical=marks, is_marked=critical is not None)
