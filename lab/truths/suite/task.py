"""What a task of the suite is: a name and a seed -> examples, each a graph with all that is known of why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias
from zlib import crc32

import numpy as np

from egocnn.data.schema import PARTS

Pair: TypeAlias = tuple[int, int]
Family: TypeAlias = Literal["and", "or", "not", "count", "ring", "group", "motif", "labels", "values", "named"]
SEED = 15  # of every generator, unless another is asked for
NAMED: Family = "named"  # the family of tasks that others have published figures for: they are only ever reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One graph, what is to be predicted of it, and what is known of why."""

    name: str
    n_nodes: int
    edges: tuple[Pair, ...]
    target: str | float
    node_label: tuple[str, ...] | None = None
    edge_label: tuple[str, ...] | None = None
    node_attr: tuple[tuple[float, ...], ...] | None = None
    smiles: str | None = None
    part: str = "train"
    alternatives: tuple[tuple[int, ...], ...] = ()
    """nodes of every structure that would explain the target; several: finding one of them is enough"""
    critical_edges: tuple[Pair, ...] | None = None  # the edges of the structure; None: not known
    values: tuple[float, ...] | None = None  # what each node adds to the target
    nothing: bool = False  # whether nothing in the graph speaks for its class or against it
    larger: bool = False  # a test graph about three times as large as those trained on


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many graphs a task has, where the data allow it."""

    train: int
    validation: int
    test: int
    larger: int

    @property
    def same_size(self) -> int:
        """Graphs of the size that is trained on."""
        return self.train + self.validation + self.test


FAST = Sizes(train=800, validation=120, test=240, larger=120)
FULL = Sizes(train=3000, validation=400, test=800, larger=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTask:
    """One task; what it makes follows from the seed and the sizes alone."""

    name: str
    family: Family
    what: str  # the rule in words
    make: Callable[[Sizes, np.random.Generator, Path], list[Example]] = field(repr=False)
    """sizes, random numbers and the folder of the data -> examples"""
    positive: str | None = "yes"
    """the class that the structures speak for; None: each graph's own class, or a value is predicted"""

    def examples(self, sizes: Sizes, folder: Path, seed: int = SEED) -> list[Example]:
        # the name counts too: tasks must not draw the same molecules in the same order
        random = np.random.default_rng([seed, crc32(self.name.encode())])
        return self.make(sizes, random, folder)


def assign_parts(examples: Sequence[Example], sizes: Sizes, random: np.random.Generator) -> list[Example]:
    """Shuffle, and give every class its share of the three parts; too few examples shrink all parts alike."""
    by_class: dict[str | float, list[Example]] = {}
    for example in examples:
        key = example.target if isinstance(example.target, str) else 0.0
        by_class.setdefault(key, []).append(example)
    shares = np.cumsum([sizes.train, sizes.validation, sizes.test]) / sizes.same_size
    found: list[Example] = []
    for own in by_class.values():
        cuts = np.rint(shares * len(own)).astype(int)
        order = random.permutation(len(own))
        places = np.searchsorted(cuts, np.arange(len(own)), side="right")
        found += [replace(own[i], part=PARTS[int(place)]) for i, place in zip(order, places, strict=True)]
    return [found[i] for i in random.permutation(len(found))]
