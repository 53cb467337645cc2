"""Samples -> the connected fragments that recur in what was critical, the redundant ones left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from egocnn.explain.patterns.labelled import Labelled, Shapes, lies_in, plan
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
    grown = _Grower(samples, shapes)
    places = grown.seeds()
    for size in range(1, min(most_nodes, LARGEST_GROWN) + 1):
        here: dict[int, Fragment] = {}
        for number, (sample, nodes, _, name) in places:
            here.setdefault(number, Fragment(shapes.shapes[number])).add(name, sample, nodes)
        here = {number: f for number, f in here.items() if f.support() >= min_support}
        found |= here
        if size < min(most_nodes, LARGEST_GROWN):
            places = grown.grow((number, place) for number, place in places if number in here)
    whole = _whole(samples, shapes, LARGEST_GROWN + 1, most_nodes)
    found |= {number: f for number, f in whole.items() if f.support() >= min_support}
    return [f for f in found.values() if len(f.shape.labels) >= least_nodes]


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


def _whole(samples: Sequence[Sample], shapes: Shapes, least: int, most: int) -> dict[int, Fragment]:
    """Critical components taken whole, those of ``least`` to ``most`` nodes."""
    found: dict[int, Fragment] = {}
    for s, sample in enumerate(samples):
        for name, critical in sample.critical:
            for part in sample.shape.components(critical):
                if least <= len(part) <= most:
                    number, order = shapes.identify(sample.shape.cut(part))
                    fragment = found.setdefault(number, Fragment(shapes.shapes[number]))
                    fragment.add(name, s, tuple(part[i] for i in order))
    return found


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
    where = fragment.where[name].keys()
    similar = [f for f in larger if len(f.where[name]) >= needed and len(where & f.where[name].keys()) >= needed]
    wanted = plan(fragment.shape) if similar else None
    return any(wanted is not None and lies_in(wanted, f.shape) for f in similar)
