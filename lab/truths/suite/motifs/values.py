"""Values of generated graphs: motifs or joined labels, counted with weights of both signs."""

from __future__ import annotations

import numpy as np

from lab.truths.suite.motifs.plan import base_size, make_drawn
from lab.truths.suite.motifs.shapes import HOUSE, clique, cycle, random_tree
from lab.truths.suite.motifs.sketch import DIGITS, Sketch
from lab.truths.suite.task import Example, SuiteTask

WEIGHTS = ((HOUSE, 2.0), (cycle(6), -1.5), (clique(4), 1.0), (cycle(4), -1.0))
MOST = 2  # copies of each motif at the usual size; so many times more on larger graphs
BONDS = {frozenset("AB"): 1.0, frozenset("CD"): -1.0, frozenset("AD"): 0.5, frozenset("B"): -0.5}
"""what two letters add where an edge joins them"""


def draw_motifs(name: str, times: int, random: np.random.Generator) -> Example:
    """Every motif up to twice on a tree; the nodes of a motif share its weight evenly."""
    sketch = Sketch(random_tree(base_size(times, random), random), random)
    values = [0.0] * sketch.n_base
    counts = random.integers(0, MOST * times + 1, len(WEIGHTS))
    if not counts.any():
        counts[int(random.integers(len(WEIGHTS)))] = 1
    for (shape, weight), count in zip(WEIGHTS, counts.tolist(), strict=True):
        for _ in range(count):
            values += [round(weight / shape.n_nodes, DIGITS)] * len(sketch.attach(shape))
    return sketch.finish(name, round(sum(values), DIGITS), values=values)


def draw_bonds(name: str, times: int, random: np.random.Generator) -> Example:
    """A tree of letters; the two ends of an edge share what it adds."""
    sketch = Sketch(random_tree(base_size(times, random), random), random)
    labels = random.choice(["A", "B", "C", "D", "E"], sketch.n_nodes).tolist()
    values = [0.0] * sketch.n_nodes
    for u, v in sketch.edges:
        for end in (u, v):
            values[end] += BONDS.get(frozenset((labels[u], labels[v])), 0.0) / 2
    return sketch.finish(name, round(sum(values), DIGITS), values=values, node_label=labels)


MOTIF_VALUE_TASKS = (
    SuiteTask(
        name="motif-values",
        family="values",
        what="houses 2, rings of six -1.5, cliques of four 1, squares -1, on trees without labels",
        make=make_drawn(draw_motifs),
        positive=None,
    ),
    SuiteTask(
        name="bond-values",
        family="values",
        what="edges A-B 1, C-D -1, A-D 0.5, B-B -0.5, on trees of letters",
        make=make_drawn(draw_bonds),
        positive=None,
    ),
)
