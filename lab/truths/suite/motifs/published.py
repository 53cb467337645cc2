"""BA-2Motifs and SPMotif, made anew by their published recipes.

BA-2Motifs (Luo et al., NeurIPS 2020): 1,000 Barabási-Albert trees of 20 nodes, each with a house or a ring of five.
SPMotif (Wu et al., ICLR 2022, after Ying et al., NeurIPS 2019): a ring of five, a house or a crane on a tree, a ladder
or a wheel. While learning, each motif stands on a base of its own with the probability that names the set, else on
one of the two others; validation graphs are of the same size and test graphs larger, both with all bases alike often.
Edges at random are added, one for twenty, none of them inside the motif; every node bears four random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from lab.truths.suite.motifs.plan import LARGER, Draw, in_turn
from lab.truths.suite.motifs.shapes import CRANE, HOUSE, Shape, balanced_tree, cycle, ladder, scale_free_tree, wheel
from lab.truths.suite.motifs.sketch import Sketch
from lab.truths.suite.task import NAMED, Example, Sizes, SuiteTask, assign_parts

BA_GRAPHS = Sizes(train=800, validation=100, test=100, larger=120)
BASES = ("tree", "ladder", "wheel")
MOTIFS = {"cycle": cycle(5), "house": HOUSE, "crane": CRANE}  # each with the base of the same place as its own
NOISE = 0.05
NUMBERS = 4  # that every node of SPMotif bears


def _ba_graph(target: str, motif: Shape) -> Draw:
    def draw(name: str, times: int, random: np.random.Generator) -> Example:
        sketch = Sketch(scale_free_tree(20 * times, random), random)
        return sketch.finish(name, target, alternatives=[sketch.attach(motif, at=0)])

    return draw


def make_ba_2motifs(_: Sizes, random: np.random.Generator, __: Path) -> list[Example]:
    """The 1,000 graphs of the recipe, whatever the size that is asked for, and larger ones besides."""
    draws = (_ba_graph("house", HOUSE), _ba_graph("cycle", cycle(5)))
    usual = in_turn(draws, BA_GRAPHS.same_size, "graph", 1, random)
    larger = in_turn(draws, BA_GRAPHS.larger, "larger graph", LARGER, random)
    return assign_parts(usual, BA_GRAPHS, random) + [replace(each, part="test", larger=True) for each in larger]


def spmotif_base(kind: str, random: np.random.Generator, *, test: bool) -> Shape:
    """A tree of two or three branches, a ladder or a wheel; those of the test part are larger."""
    if kind == "tree":
        return balanced_tree(int(random.integers(2, 4)), int(random.integers(*((3, 6) if test else (0, 3)))))
    if kind == "ladder":
        return ladder(int(random.integers(*((30, 50) if test else (8, 12)))))
    return wheel(int(random.integers(*((60, 80) if test else (15, 20)))))


def make_spmotif(bias: float) -> Callable[[Sizes, np.random.Generator, Path], list[Example]]:
    """The set whose motifs stand on their own base with this probability."""

    def make(sizes: Sizes, random: np.random.Generator, _: Path) -> list[Example]:
        examples = []
        for part, count in (("train", sizes.train), ("validation", sizes.validation), ("test", sizes.test)):
            for number in range(count):
                place = number % len(BASES)
                odds = np.full(len(BASES), (1 - bias) / 2 if part == "train" else 1 / 3)
                odds[place] = bias if part == "train" else 1 / 3
                base = spmotif_base(str(random.choice(BASES, p=odds)), random, test=part == "test")
                name, motif = list(MOTIFS.items())[place]
                sketch = Sketch(base, random)
                nodes = sketch.attach(motif, at=0)
                sketch.add_noise(NOISE, nodes)
                numbers = tuple(map(tuple, np.round(random.random((sketch.n_nodes, NUMBERS)), 3).tolist()))
                known = sketch.finish(f"{part} {number + 1}", name, alternatives=[nodes])
                examples.append(replace(known, part=part, node_attr=numbers))
        return examples

    return make


PUBLISHED_MOTIFS = (
    SuiteTask(
        name="ba-2motifs",
        family=NAMED,
        what="a house or a ring of five on a Barabási-Albert tree of 20",
        make=make_ba_2motifs,
        positive=None,
    ),
    *(
        SuiteTask(
            name=f"spmotif-{bias}",
            family=NAMED,
            what=f"a ring, a house or a crane, {bias:.0%} of them on a base of their own while learning",
            make=make_spmotif(bias),
            positive=None,
        )
        for bias in (0.5, 0.7, 0.9)
    ),
)
