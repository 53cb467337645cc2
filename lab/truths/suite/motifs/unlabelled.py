"""Motifs on bases without labels: which shape is there, one of two, both, two of a kind, or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.truths.suite.motifs.plan import Draw, base_size, make_drawn
from lab.truths.suite.motifs.shapes import (
    BULL,
    CRANE,
    DIAMOND,
    HOUSE,
    TAILED_SQUARE,
    Shape,
    clique,
    cycle,
    grid,
    ladder,
    path,
    random_tree,
    scale_free_tree,
    star,
)
from lab.truths.suite.motifs.sketch import Sketch
from lab.truths.suite.task import Example, SuiteTask

RING = cycle(6)


def draw_base(kind: str, times: int, random: np.random.Generator) -> Shape:
    size = base_size(times, random)
    match kind:
        case "tree":
            return random_tree(size, random)
        case "scale-free":
            return scale_free_tree(size, random)
        case "ladder":
            return ladder(size // 2)
        case _:
            return grid(max(2, round((size / 1.5) ** 0.5)), round((size * 1.5) ** 0.5))


def with_motifs(
    target: str, base: str, motifs: Sequence[Shape], decoys: Sequence[Shape], *, critical: bool = True
) -> Draw:
    """Graphs of one class: all motifs together are what speaks for it, unless they are not critical.

    None, one or two of the decoys are attached besides, whatever the class, so that they say nothing.
    """

    def draw(name: str, times: int, random: np.random.Generator) -> Example:
        sketch = Sketch(draw_base(base, times, random), random)
        nodes = [node for shape in motifs for node in sketch.attach(shape)]
        for _ in range(int(random.integers(3))):
            sketch.attach(decoys[int(random.integers(len(decoys)))])
        return sketch.finish(name, target, alternatives=[nodes] if nodes and critical else [], nothing=not motifs)

    return draw


def _task(name: str, what: str, *draws: Draw, positive: str | None = "yes") -> SuiteTask:
    return SuiteTask(name=name, family="motif", what=what, make=make_drawn(*draws), positive=positive)


def _presence(name: str, what: str, base: str, decoys: Sequence[Shape], *motifs: Sequence[Shape]) -> SuiteTask:
    """Yes where one of these sets of motifs is there, no where none is."""
    draws = [
        draw for own in motifs for draw in (with_motifs("yes", base, own, decoys), with_motifs("no", base, (), decoys))
    ]
    return _task(name, what, *draws)


PIECES = (BULL, TAILED_SQUARE, cycle(5), path(5))
"""houses and cranes that lack an edge: with them around, no less than the whole motif tells the class"""

MOTIF_TASKS = (
    _task(
        "house-against-grid",
        "a house or a 3 x 3 grid, on scale-free trees",
        with_motifs("house", "scale-free", [HOUSE], PIECES),
        with_motifs("grid", "scale-free", [grid(3, 3)], PIECES),
        positive=None,
    ),
    _presence("ring-on-tree", "a ring of six on a tree", "tree", (path(6), cycle(4), cycle(5)), [RING]),
    _presence("house-or-crane", "a house or a crane on a ladder", "ladder", PIECES, [HOUSE], [CRANE]),
    _task(
        "two-houses",
        "two houses on a tree, not one and not none",
        with_motifs("yes", "tree", [HOUSE, HOUSE], PIECES),
        with_motifs("no", "tree", [HOUSE], PIECES, critical=False),
        with_motifs("yes", "tree", [HOUSE, HOUSE], PIECES),
        with_motifs("no", "tree", [], PIECES),
    ),
    _task(
        "house-and-ring",
        "a house and a ring of six on a scale-free tree, not one of them and not none",
        with_motifs("yes", "scale-free", [HOUSE, RING], PIECES),
        with_motifs("no", "scale-free", [HOUSE], PIECES, critical=False),
        with_motifs("yes", "scale-free", [HOUSE, RING], PIECES),
        with_motifs("no", "scale-free", [RING], PIECES, critical=False),
        with_motifs("yes", "scale-free", [HOUSE, RING], PIECES),
        with_motifs("no", "scale-free", [], PIECES),
    ),
    _presence("triangle-on-grid", "a triangle on a grid", "grid", (path(3), cycle(4)), [cycle(3)]),
    _task(
        "clique-against-diamond",
        "four nodes on a ladder, all joined, or all but two",
        with_motifs("clique", "ladder", [clique(4)], (cycle(3), cycle(4))),
        with_motifs("diamond", "ladder", [DIAMOND], (cycle(3), cycle(4))),
        positive=None,
    ),
    _presence("star-on-tree", "a star of seven leaves on a tree", "tree", (path(6), star(4)), [star(7)]),
)
