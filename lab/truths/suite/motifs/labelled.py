"""Motifs among labelled nodes or edges: labels that say nothing, and labels that are part of the rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from lab.truths.suite.motifs.plan import Draw, base_size, make_drawn
from lab.truths.suite.motifs.shapes import BULL, HOUSE, Shape, cycle, path, random_tree
from lab.truths.suite.motifs.sketch import Sketch
from lab.truths.suite.task import Example, SuiteTask

NOISE = ("A", "B", "C", "D")
MIXED = ("AAB", "ABB", "AAC", "ACC", "BBC", "BCC", "ABD", "BCD", "ACD")
"""triangles that are not A, B and C, though most hold two of them"""

Labels = Callable[[np.random.Generator], Sequence[str]]


def on_noise(
    target: str,
    motif: Shape,
    labels: Labels | None,
    *,
    decoys: Sequence[Shape] = (),
    critical: bool = True,
    nothing: bool = False,
) -> Draw:
    """A motif with these labels, or any, on a tree whose nodes bear A, B, C or D at random; often a decoy besides."""

    def draw(name: str, times: int, random: np.random.Generator) -> Example:
        sketch = Sketch(random_tree(base_size(times, random), random), random)
        nodes = sketch.attach(motif)
        if decoys and random.random() < 0.7:
            sketch.attach(decoys[int(random.integers(len(decoys)))])
        noise = random.choice(NOISE, sketch.n_nodes).tolist()
        if labels is not None:
            noise[nodes[0] : nodes[-1] + 1] = labels(random)
        alternatives = [nodes] if critical else []
        return sketch.finish(name, target, alternatives=alternatives, node_label=noise, nothing=nothing)

    return draw


def shuffled(*choices: str) -> Labels:
    """One of the texts, its letters in any order."""

    def labels(random: np.random.Generator) -> Sequence[str]:
        letters = list(choices[int(random.integers(len(choices)))])
        return [letters[i] for i in random.permutation(len(letters))]

    return labels


def chain(target: str, *pieces: str) -> Draw:
    """These letters on a tree of A to D, each text a path of its own."""

    def draw(name: str, times: int, random: np.random.Generator) -> Example:
        sketch = Sketch(random_tree(base_size(times, random), random), random)
        labels = random.choice(NOISE, sketch.n_base).tolist()
        nodes: list[int] = []
        for piece in pieces:
            nodes += sketch.attach(path(len(piece)))
            labels += piece
        return sketch.finish(name, target, alternatives=[nodes] if target == "yes" else [], node_label=labels)

    return draw


def bonded_ring(target: str) -> Draw:
    """A ring of six with three double edges: every second one, or three in another order."""

    def draw(name: str, times: int, random: np.random.Generator) -> Example:
        sketch = Sketch(random_tree(base_size(times, random), random), random)
        kinds = random.choice(["single", "double"], len(sketch.edges), p=[0.7, 0.3]).tolist()
        nodes = sketch.attach(cycle(6))
        ring = ["double", "single"] * 3
        while target == "no" and all(one != other for one, other in pairwise(ring)):
            ring = [ring[i] for i in random.permutation(6)]
        alternatives = [nodes] if target == "yes" else []
        return sketch.finish(name, target, alternatives=alternatives, edge_label=[*kinds, *ring, "single"])

    return draw


def _task(name: str, what: str, *draws: Draw, positive: str | None = "yes") -> SuiteTask:
    return SuiteTask(name=name, family="labels", what=what, make=make_drawn(*draws), positive=positive)


LABEL_TASKS = (
    _task(
        "house-among-labels",
        "a house or a ring of five, on trees, all nodes with labels that say nothing",
        on_noise("house", HOUSE, None, decoys=(BULL, cycle(4))),
        on_noise("ring", cycle(5), None, decoys=(BULL, cycle(4))),
        positive=None,
    ),
    _task(
        "triangle-of-three",
        "a triangle of A, B and C, or one of other letters",
        on_noise("yes", cycle(3), shuffled("ABC")),
        on_noise("no", cycle(3), shuffled(*MIXED), critical=False),
    ),
    _task(
        "letter-or-shape",
        "a triangle of A or a square of B, or a triangle or square with other letters, or a path",
        on_noise("yes", cycle(3), shuffled("AAA")),
        on_noise("no", cycle(3), shuffled("AAB", "AAC", "ABB", "BBB"), critical=False),
        on_noise("yes", cycle(4), shuffled("BBBB")),
        on_noise("no", cycle(4), shuffled("BBBA", "BBBC", "BBAA", "AAAA"), critical=False),
        on_noise("yes", cycle(4), shuffled("BBBB")),
        on_noise("no", path(4), None, critical=False, nothing=True),
    ),
    _task(
        "chain-of-three",
        "X, Y and Z one after the other, or in another order, or one of them elsewhere",
        chain("yes", "XYZ"),
        chain("no", "XY", "Z"),
        chain("yes", "XYZ"),
        chain("no", "X", "YZ"),
        chain("yes", "XYZ"),
        chain("no", "XZY"),
        chain("yes", "XYZ"),
        chain("no", "YXZ"),
    ),
    _task(
        "alternating-ring",
        "a ring of six whose edges are double and single in turn, or in another order",
        bonded_ring("yes"),
        bonded_ring("no"),
    ),
)
