"""Samples -> the connected fragments that recur in what was critical, and which samples contain each of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from egocnn.data.arrays import Bools, Ints
from egocnn.explain.patterns.labelled import GaveUp, Labelled, Shapes, embed, lies_in, plan
from egocnn.explain.patterns.samples import Sample

LARGEST_GROWN = 7
"""Nodes of the fragments that are grown inside larger ones; beyond, only whole critical components count."""
MOST_NODES = 12  # Nodes of the largest components that count.
MOST_PLACES = 400  # Fragments of one size that are looked at in one graph.
ALIKE = 0.95  # A fragment says nothing new when a larger one is critical in this share of its graphs.

Place = tuple[int, int, tuple[int, ...], str]
"""number of the fragment, sample, its nodes in the order of the fragment, the class they spoke for"""


@dataclass(eq=False)
class Fragment:
    """One shape and where it was critical."""

    shape: Labelled
    where: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """of every class the samples, each with the nodes of one occurrence"""


def mine(samples: Sequence[Sample], *, min_support: int) -> list[Fragment]:
    """Fragments of up to ``MOST_NODES`` nodes, critical in ``min_support`` graphs of a class or more.

    They grow by one node at a time, and only those that recur grow on: no fragment recurs more often than a smaller
    one inside it.
    """
    shapes = Shapes()
    found: dict[int, Fragment] = {}
    places = _seeds(samples, shapes)
    for size in range(1, LARGEST_GROWN + 1):
        here = _recurring(places, shapes, min_support)
        found |= here
        if size < LARGEST_GROWN:
            places = _grow([place for place in places if place[0] in here], samples, shapes)
    found |= _recurring(_whole_components(samples, shapes, LARGEST_GROWN + 1, MOST_NODES), shapes, min_support)
    return list(found.values())


def _recurring(places: Iterable[Place], shapes: Shapes, min_support: int) -> dict[int, Fragment]:
    """The fragments by number that lie at enough of these places."""
    found: dict[int, Fragment] = {}
    for number, sample, nodes, name in places:
        where = found.setdefault(number, Fragment(shapes.shapes[number])).where
        where.setdefault(name, {}).setdefault(sample, nodes)  # of several in one sample the first counts
    return {number: f for number, f in found.items() if max(map(len, f.where.values())) >= min_support}


def _seeds(samples: Sequence[Sample], shapes: Shapes) -> list[Place]:
    """Every critical node by itself."""
    labels = sorted({label for sample in samples for label in sample.shape.labels})
    number = {label: shapes.identify(Labelled.from_edges([label], ()))[0] for label in labels}
    return [
        (number[sample.shape.labels[node]], s, (node,), name)
        for s, sample in enumerate(samples)
        for name, nodes in sample.critical
        for node in nodes
    ]


def _grow(places: Iterable[Place], samples: Sequence[Sample], shapes: Shapes) -> list[Place]:
    """The places with one critical node more, each set of nodes once."""
    critical = [{name: set(nodes) for name, nodes in sample.critical} for sample in samples]
    grown: list[Place] = []
    seen: dict[tuple[int, str], set[frozenset[int]]] = {}
    for number, s, nodes, name in places:
        shape, allowed = samples[s].shape, critical[s][name]
        known = seen.setdefault((s, name), set())
        for new in sorted({v for node in nodes for v in shape.neighbours[node] if v in allowed}.difference(nodes)):
            longer = (*nodes, new)
            if (larger := frozenset(longer)) in known or len(known) >= MOST_PLACES:
                continue
            known.add(larger)
            row = shape.neighbours[new]
            ties = tuple((i, row[node]) for i, node in enumerate(nodes) if node in row)
            child, order = shapes.grow(number, shape.labels[new], ties)
            grown.append((child, s, tuple([longer[i] for i in order]), name))
    return grown


def _whole_components(samples: Sequence[Sample], shapes: Shapes, least: int, most: int) -> Iterable[Place]:
    """Critical components of ``least`` to ``most`` nodes."""
    for s, sample in enumerate(samples):
        for name, critical in sample.critical:
            for part in sample.shape.components(critical):
                if least <= len(part) <= most:
                    number, order = shapes.identify(sample.shape.cut(part))
                    yield number, s, tuple(part[i] for i in order), name


def closed(fragments: Sequence[Fragment], name: str, *, min_support: int) -> list[Fragment]:
    """The fragments of a class that no larger one makes redundant, largest first."""
    of_class = [f for f in fragments if len(f.where.get(name, ())) >= min_support]
    of_class.sort(key=lambda f: (-len(f.shape.labels), -len(f.where[name])))
    kept: list[Fragment] = []
    in_sample: dict[int, list[int]] = {}
    for fragment in of_class:
        where = fragment.where[name].keys()
        samples, needed = list(where), math.ceil(ALIKE * len(where))
        # what shares that many cannot miss all of the first few
        near = {number for sample in samples[: len(samples) - needed + 1] for number in in_sample.get(sample, ())}
        similar = (f for f in map(kept.__getitem__, sorted(near)) if len(where & f.where[name].keys()) >= needed)
        if any(lies_in(fragment.shape, f.shape) for f in similar):
            continue
        for sample in samples:
            in_sample.setdefault(sample, []).append(len(kept))
        kept.append(fragment)
    return kept


def find_presence(samples: Sequence[Sample], fragments: Iterable[Fragment]) -> dict[int, tuple[Bools, Bools]]:
    """By the fragment's ``id``: (samples) whether each contains the fragment, critical or not, and whether the search
    was given up there.

    A graph is searched only where it has enough nodes and edges of every kind, and where the smaller fragments that lie
    in this one lie too.
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
