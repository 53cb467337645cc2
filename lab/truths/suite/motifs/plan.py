"""A way to draw one graph of a class -> all examples of a task: every class alike often, some of them larger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from lab.truths.suite.task import Example, Sizes, assign_parts

LARGER = 3  # how many times larger the bases are that no network was trained on

Draw: TypeAlias = Callable[[str, int, np.random.Generator], Example]
"""name, how many times larger than usual, random numbers -> one graph"""


def base_size(times: int, random: np.random.Generator) -> int:
    """Nodes of a base: 14 to 25, or so many times more."""
    return times * int(random.integers(14, 26))


def make_drawn(*draws: Draw) -> Callable[[Sizes, np.random.Generator, Path], list[Example]]:
    """Graphs drawn in turn by each of the ways, and a test part of larger ones."""

    def make(sizes: Sizes, random: np.random.Generator, _: Path) -> list[Example]:
        usual = in_turn(draws, sizes.same_size, "graph", 1, random)
        larger = in_turn(draws, sizes.larger, "larger graph", LARGER, random)
        return assign_parts(usual, sizes, random) + [replace(each, part="test", larger=True) for each in larger]

    return make


def in_turn(draws: Sequence[Draw], count: int, name: str, times: int, random: np.random.Generator) -> list[Example]:
    """So many graphs, drawn by the first way, the second, and so on, again and again."""
    return [draws[i % len(draws)](f"{name} {i + 1}", times, random) for i in range(count)]
