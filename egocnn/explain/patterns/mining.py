"""Samples -> the connected fragments that recur in what was critical, and which samples contain each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from egocnn.data.arrays import Bools, Ints
from egocnn.explain.patterns.labelled import GaveUp, Labelled, Shapes, embed, lies_in, plan
from egocnn.explain.patterns.samples import Sample

LARGEST_GROWN = 7
"""Nodes of the fragments that are grown inside larger ones; beyond, only whole critical components count."""
MOST_PLACES = 400
"""Fragments of one size that are looked at in one graph."""
ALIKE = 0.95
"""A fragment says nothing new when a larger one is critical in this share of its graphs."""

Place = tuple[int, tuple[int, ...], int, str]
"""sample, its nodes in the order of the fragment, the same nodes as bits, the class they spoke for"""


@dataclass(eq=False)
class Fragment:
    """One shape and where it was critical."""

    shape: Labelled
    where: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """of every class the samples, each with the nodes of one occurrence"""

    def add(self, name: str, sample: int, nodes: tuple[int, ...]) -> None:
        """An occurrence; of several in one sample the first counts."""
        self.where.setdefault(name, {}).setdefault(sample, nodes)

    def support(self) -> int:
        """In how many graphs of one class it is critical, at most."""
        return max(map(len, self.where.values()), default=0)


def mine(samples: Sequence[Sample], *, min_support: int, least_nodes: int, most_nodes: int) -> list[Fragment]:
    """Fragments of ``least_nodes`` to ``most_nodes`` nodes, critical in ``min_support`` graphs of a class or more.

    They grow by one node at a time, and only those that recur grow on: no fragment recurs more often than a smaller
    one inside it.
    """
    shapes = Shapes()
    found: dict[int, Fragment] = {}
    grower = _Grower(samples, shapes)
    places, largest = grower.seeds(), min(most_nodes, LARGEST_GROWN)
    for size in range(1, largest + 1):
        here = _recurring(places, shapes, min_support)
        found |= here
        if size < largest:
            places = grower.grow((number, place) for number, place in places if number in here)
    found |= _recurring(_whole_components(samples, shapes, LARGEST_GROWN + 1, most_nodes), shapes, min_support)
    return [f for f in found.values() if len(f.shape.labels) >= least_nodes]


def _recurring(places: Iterable[tuple[int, Place]], shapes: Shapes, min_support: int) -> dict[int, Fragment]:
    """The fragments by number that lie at enough of these places."""
    found: dict[int, Fragment] = {}
    for number, (sample, nodes, _, name) in places:
        found.setdefault(number, Fragment(shapes.shapes[number])).add(name, sample, nodes)
    return {number: f for number, f in found.items() if f.support() >= min_support}


class _Grower:
    """Grows occurrences by one node, and remembers what became of a fragment that grew the same way before."""

    def __init__(self, samples: Sequence[Sample], shapes: Shapes) -> None:
        self.samples, self.shapes = samples, shapes
        self.allowed = [{name: set(nodes) for name, nodes in sample.critical} for sample in samples]
        self.became: dict[object, tuple[int, tuple[int, ...]]] = {}

    def seeds(self) -> list[tuple[int, Place]]:
        places: list[tuple[int, Place]] = []
        for s, sample in enumerate(self.samples):
            for name, nodes in sample.critical:
                for node in nodes:
                    number, _ = self._identify(-1, Labelled((), ()), sample.shape.labels[node], ())
                    places.append((number, (s, (node,), 1 << node, name)))
        return places

    def grow(self, places: Iterable[tuple[int, Place]]) -> list[tuple[int, Place]]:
        grown: list[tuple[int, Place]] = []
        seen: dict[tuple[int, str], set[int]] = {}
        for number, (s, nodes, mask, name) in places:
            shape, allowed = self.samples[s].shape, self.allowed[s][name]
            known = seen.setdefault((s, name), set())
            for new in sorted({v for node in nodes for v in shape.neighbours[node] if v in allowed}.difference(nodes)):
                larger = mask | 1 << new
                if larger in known or len(known) >= MOST_PLACES:
                    continue
                known.add(larger)
                row = shape.neighbours[new]
                ties = tuple((i, row[node]) for i, node in enumerate(nodes) if node in row)
                child, order = self._identify(number, self.shapes.shapes[number], shape.labels[new], ties)
                longer = (*nodes, new)
                grown.append((child, (s, tuple([longer[i] for i in order]), larger, name)))
        return grown

    def _identify(
        self, number: int, parent: Labelled, label: str, ties: tuple[tuple[int, str], ...]
    ) -> tuple[int, tuple[int, ...]]:
        key = number, label, ties
        if key not in self.became:
            size = len(parent.labels)
            edges = [*parent.edges, *((i, size, bond) for i, bond in ties)]
            self.became[key] = self.shapes.identify(Labelled.from_edges((*parent.labels, label), edges))
        return self.became[key]


def _whole_components(samples: Sequence[Sample], shapes: Shapes, least: int, most: int) -> Iterable[tuple[int, Place]]:
    """Critical components of ``least`` to ``most`` nodes."""
    for s, sample in enumerate(samples):
        for name, critical in sample.critical:
            for part in sample.shape.components(critical):
                if least <= len(part) <= most:
                    number, order = shapes.identify(sample.shape.cut(part))
                    yield number, (s, tuple(part[i] for i in order), 0, name)


def closed(fragments: Sequence[Fragment], name: str, *, min_support: int) -> list[Fragment]:
    """The fragments of a class that no larger one makes redundant, largest first."""
    of_class = [f for f in fragments if len(f.where.get(name, ())) >= min_support]
    of_class.sort(key=lambda f: (-len(f.shape.labels), -len(f.where[name])))
    kept: list[Fragment] = []
    in_sample: dict[int, list[int]] = {}
    for fragment in of_class:
        samples = list(fragment.where[name])
        needed = math.ceil(ALIKE * len(samples))
        # what shares that many cannot miss all of the first few
        near = {number for sample in samples[: len(samples) - needed + 1] for number in in_sample.get(sample, ())}
        if _is_covered(fragment, [kept[number] for number in sorted(near)], name, needed):
            continue
        for sample in samples:
            in_sample.setdefault(sample, []).append(len(kept))
        kept.append(fragment)
    return kept


def _is_covered(fragment: Fragment, larger: Sequence[Fragment], name: str, needed: int) -> bool:
    """Whether it lies in one of the larger fragments that is critical in as many of its samples as needed."""
    where = fragment.where[name].keys()
    similar = (f for f in larger if len(where & f.where[name].keys()) >= needed)
    return any(lies_in(fragment.shape, f.shape) for f in similar)


def find_presence(
    samples: Sequence[Sample], fragments: Iterable[Fragment], report: Callable[[int, int], None] | None
) -> dict[int, tuple[Bools, Bools]]:
    """By the fragment's ``id``: (samples) whether each contains the fragment, critical or not, and whether the search
    was given up there.

    A graph is searched only where it has enough nodes and edges of every kind, and where the smaller fragments that lie
    in this one lie too. ``report`` is called with how many fragments have been searched for, of how many.
    """
    ordered = sorted(fragments, key=lambda f: len(f.shape.labels))  # small ones first, for their absence says most
    column = {kind: i for i, kind in enumerate(sorted({kind for f in ordered for kind in f.shape.counts}, key=repr))}
    counts = np.array([[sample.shape.counts.get(kind, 0) for kind in column] for sample in samples], np.int32)
    rarity = {label: int(counts[:, i].sum()) for label, i in column.items() if isinstance(label, str)}
    found: dict[int, tuple[Bools, Bools]] = {}
    for number, fragment in enumerate(ordered):
        present, undecided = (np.zeros(len(samples), bool) for _ in range(2))
        for where in fragment.where.values():
            present[list(where)] = True
        columns = [column[kind] for kind in fragment.shape.counts]
        enough = counts[:, columns] >= np.array(list(fragment.shape.counts.values()))
        possible: Bools = np.logical_and.reduce(enough, axis=1)
        if len(fragment.shape.labels) <= 2:  # a node, or an edge with its ends: counting has decided
            present |= possible
        else:
            steps = plan(fragment.shape, rarity)
            for i in _worth_searching(fragment, possible & ~present, ordered[:number], found).tolist():
                try:
                    present[i] = embed(steps, samples[i].shape) is not None
                except GaveUp:
                    undecided[i] = True
        found[id(fragment)] = present, undecided
        if report is not None:
            report(number + 1, len(ordered))
    return found


def _worth_searching(
    fragment: Fragment, possible: Bools, before: Sequence[Fragment], found: dict[int, tuple[Bools, Bools]]
) -> Ints:
    """Numbers of the samples that contain, as far as known, all smaller fragments that lie in this one."""
    for smaller in before:
        contained = np.logical_or(*found[id(smaller)])
        is_smaller = len(smaller.shape.labels) < len(fragment.shape.labels)
        if is_smaller and (possible & ~contained).any() and lies_in(smaller.shape, fragment.shape):
            possible = possible & contained
    return np.flatnonzero(possible)
