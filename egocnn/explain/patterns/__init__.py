"""Critical structures of a data set -> the patterns that recur in them, class by class."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from egocnn.data.arrays import Bools, Ints
from egocnn.data.graphs import Graph
from egocnn.errors import rule
from egocnn.explain.patterns.labelled import GaveUp, Labelled, Sample, Shapes, embed, find, plan, read_samples
from egocnn.explain.patterns.names import name_fragment, to_smarts, to_smiles
from egocnn.explain.patterns.record import Occurrence, Pattern, PatternCounts
from egocnn.explain.structure import CriticalStructure

__all__ = ["Occurrence", "Pattern", "find_patterns"]

MOST_TESTED = 200  # Fragments per class that are searched for in all graphs.
MOST_EXAMPLES = 5
MORE_TELLING = 1.1  # Of two patterns inside or always beside each other, the lower stays if its lift is so much higher.
LARGEST_GROWN = 7  # Nodes of fragments grown inside larger ones; beyond, only whole critical components count.
MOST_NODES = 12  # Nodes of the largest components that count.
MOST_PLACES = 400  # Fragments of one size that are looked at in one graph.
ALIKE = 0.95  # A fragment says nothing new when a larger one is critical in this share of its graphs.
Place = tuple[int, int, tuple[int, ...], str]  # fragment, sample, nodes in the fragment's order, class they spoke for


@dataclass(eq=False)
class Fragment:
    """One shape and where it was critical."""

    shape: Labelled
    where: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)  # class -> sample -> one occurrence
    present: Bools = field(default_factory=lambda: np.zeros(0, bool))  # (samples) whether each contains it
    undecided: Bools = field(default_factory=lambda: np.zeros(0, bool))  # (samples) whether the search gave up


Counted = tuple[Fragment, PatternCounts]  # a candidate with what was counted for one class


def find_patterns(structures: Sequence[CriticalStructure], *, min_support: int = 5, most: int = 20) -> list[Pattern]:
    """The fragments that recur in what was critical, at most ``most`` per class, the most telling first.

    Candidates are the connected fragments of critical structures whose explained class is the predicted one, of up to
    twelve nodes (beyond seven only whole critical components), critical in at least ``min_support`` graphs of a class.
    One that a larger fragment covers in 95% of its graphs is dropped. Molecules are read as chemists do: hydrogens
    belong to their atom, aromatic bonds are one kind, a nitro group is the same however it was written. Where values
    were predicted, the classes are "raises the value" and "lowers the value": fragments by the sign of their
    importance, graphs by whether their value lies above the median.

    A candidate is then looked for in all graphs. ``p_value`` is the one-sided hypergeometric (Fisher) chance of as many
    graphs of the class, or more, among those that contain it, times the number of candidates of all classes
    (Bonferroni); it assumes that graphs are independent. Where a search takes too long, in dense graphs without labels,
    the graph counts against the pattern: as without it in the class, as with it elsewhere (``undecided`` of them).

    Order: first what is commoner in the class with p < 0.01, by (graphs in which it is critical) x log2(lift); then the
    rest, by the graphs in which it is critical. A pattern that contains a better one, lies in it, or is critical only
    where that is too (in 95% of its graphs), stays only if its lift is a tenth higher."""
    rule(min(min_support, most) >= 1, f"patterns need min_support and most of at least 1, not {min_support} and {most}")
    samples = read_samples(structures)
    fragments = mine(samples, min_support=min_support)
    names = sorted({name for sample in samples for name, _ in sample.critical})
    per_class = {name: closed(fragments, name, min_support=min_support) for name in names}
    tests = sum(map(len, per_class.values()))
    chosen = {name: _most_telling(per_class[name], name, samples) for name in names}
    find_presence(samples, dict.fromkeys(f for some in chosen.values() for f in some))
    patterns = []

    def rank(candidate: Counted) -> tuple[bool, float, float]:
        fragment, counts = candidate
        worth = counts.critical * (math.log2(counts.lift) if counts.is_significant else 1.0)
        return not counts.is_significant, -worth, -len(fragment.shape.labels)

    for name in names:
        distinct: list[Counted] = []  # the first ones, without those that add little to one before them
        for one in sorted((_count(f, name, samples, tests) for f in chosen[name]), key=rank):
            if len(distinct) < most and not any(_adds_little(one, better) for better in distinct):
                distinct.append(one)
        patterns += [_pattern(f, counts, samples) for f, counts in distinct]
    return _distinguished(patterns)


def _most_telling(fragments: Sequence[Fragment], name: str, samples: Sequence[Sample]) -> list[Fragment]:
    """Those to be searched for: critical often, and for this class rather than for another."""
    traced = [explained for sample in samples for explained, _ in sample.critical]

    def telling(fragment: Fragment) -> tuple[float, int]:
        here, anywhere = len(fragment.where[name]), sum(map(len, fragment.where.values()))
        return here * math.log2(here / anywhere * len(traced) / traced.count(name)), here

    return sorted(fragments, key=telling, reverse=True)[:MOST_TESTED]


def _count(fragment: Fragment, name: str, samples: Sequence[Sample], tests: int) -> Counted:
    from scipy.stats import hypergeom

    of_class = np.array([sample.group == name for sample in samples])
    # counted against the pattern: a search given up must not make it look more telling
    present = fragment.present | (fragment.undecided & ~of_class)
    members, holders, both = (int(some.sum()) for some in (of_class, present, present & of_class))
    # P(``both`` or more members among the holders), were they drawn blindly: Fisher's exact test, one-sided
    chance = float(hypergeom.sf(both - 1, len(samples), members, holders))
    return fragment, PatternCounts(
        class_name=name, critical=len(fragment.where[name]),
        of_predicted=sum(any(explained == name for explained, _ in sample.critical) for sample in samples),
        in_class=both, of_class=members, in_others=holders - both, of_others=len(samples) - members,
        p_value=min(1.0, chance * tests), tests=tests, undecided=int(fragment.undecided.sum()),
    )  # fmt: skip


def _adds_little(one: Counted, better: Counted) -> bool:
    """It tells no more, and one lies in the other or the better one is critical nearly wherever this one is."""
    if one[1].lift >= MORE_TELLING * better[1].lift:
        return False
    here, there = (fragment.where[counts.class_name].keys() for fragment, counts in (one, better))
    small, large = sorted((one[0].shape, better[0].shape), key=lambda shape: len(shape.labels))
    return len(here & there) >= ALIKE * len(here) or find(small, large) is not None


def _pattern(fragment: Fragment, counts: PatternCounts, samples: Sequence[Sample]) -> Pattern:
    where = fragment.where[counts.class_name]
    median = float(np.median([samples[s].graph.n_nodes for s in where]))
    # graphs of the class come first, and of these the ones of ordinary size
    far = {s: (samples[s].group != counts.class_name, abs(samples[s].graph.n_nodes - median), s) for s in where}
    places = [(samples[s], where[s]) for s in sorted(where, key=far.__getitem__)]
    examples = [Occurrence(sample.graph, sample.spread(nodes)) for sample, nodes in places[:MOST_EXAMPLES]]
    shape, is_molecule = fragment.shape, samples[0].is_molecule
    smiles, smarts = (to_smiles(shape), to_smarts(shape)) if is_molecule else (None, None)
    graph = _cut(examples[0], shape, is_molecule, name := name_fragment(shape, places))
    return Pattern(name=name, graph=graph, smiles=smiles, smarts=smarts, examples=tuple(examples), **asdict(counts))


def _cut(example: Occurrence, shape: Labelled, is_molecule: bool, name: str) -> Graph:
    whole, place = example.graph, {node: i for i, node in enumerate(example.nodes)}
    ends = [(u, v) for u, v in whole.edges.tolist() if u in place and v in place and u != v]
    edges = sorted(sorted((place[u], place[v])) for u, v in ends)
    pairs, bonds = np.array(edges, np.int64).reshape(-1, 2), {(u, v): bond for u, v, bond in shape.edges}
    kinds = None if whole.edge_label is None else tuple(bonds.get((u, v), "single") for u, v in edges)
    labels = None
    if whole.node_label is not None:
        own = shape.labels
        hydrogens = tuple(whole.node_label[node] for node in example.nodes[len(own) :])
        if is_molecule and hydrogens:  # they are nodes, and no part of the label
            own = tuple(label if label.startswith("H") else label.split("H")[0] for label in own)
        labels = own + hydrogens
    none: dict[str, Any] = dict.fromkeys(("edge_weight", "node_attr", "target", "smiles", "node_truth", "edge_truth"))
    return Graph(name=name, n_nodes=len(place), edges=pairs, node_label=labels, edge_label=kinds, **none)


def _distinguished(patterns: list[Pattern]) -> list[Pattern]:
    """Patterns of a class that would go by the same name get their SMILES, or a number, added."""
    names = [(pattern.class_name, pattern.name) for pattern in patterns]
    for i, (key, pattern) in enumerate(zip(names, patterns, strict=True)):
        if names.count(key) > 1:
            more = pattern.smiles or f"no. {names[: i + 1].count(key)}"
            patterns[i] = replace(pattern, name=f"{pattern.name} ({more})")
    return patterns


def mine(samples: Sequence[Sample], *, min_support: int) -> list[Fragment]:
    """Fragments of up to ``MOST_NODES`` nodes, critical in ``min_support`` graphs of a class or more. They grow by one
    node at a time, and only those that recur grow on: no fragment recurs more often than a smaller one inside it."""
    shapes = Shapes()
    found: dict[int, Fragment] = {}
    places = _seeds(samples, shapes)
    for size in range(1, LARGEST_GROWN + 1):
        here = _recurring(places, shapes, min_support)
        found |= here
        if size < LARGEST_GROWN:
            places = _grow([place for place in places if place[0] in here], samples, shapes)
    found |= _recurring(_whole_components(samples, shapes), shapes, min_support)
    return list(found.values())


def _recurring(places: Iterable[Place], shapes: Shapes, min_support: int) -> dict[int, Fragment]:
    found: dict[int, Fragment] = {}
    for number, sample, nodes, name in places:
        where = found.setdefault(number, Fragment(shapes.shapes[number])).where
        where.setdefault(name, {}).setdefault(sample, nodes)  # of several in one sample the first counts
    return {number: f for number, f in found.items() if max(map(len, f.where.values())) >= min_support}


def _seeds(samples: Sequence[Sample], shapes: Shapes) -> list[Place]:
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


def _whole_components(samples: Sequence[Sample], shapes: Shapes) -> Iterable[Place]:
    for s, sample in enumerate(samples):
        for name, critical in sample.critical:
            for part in sample.shape.components(critical):
                if LARGEST_GROWN < len(part) <= MOST_NODES:
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
        if any(find(fragment.shape, f.shape) is not None for f in similar):
            continue
        for sample in samples:
            in_sample.setdefault(sample, []).append(len(kept))
        kept.append(fragment)
    return kept


def find_presence(samples: Sequence[Sample], fragments: Iterable[Fragment]) -> None:
    """Find out which samples contain each fragment, critical or not. A graph is searched only where it has enough nodes
    and edges of every kind, and the smaller fragments in this one."""
    ordered = sorted(fragments, key=lambda f: len(f.shape.labels))  # small ones first, for their absence says most
    column = {kind: i for i, kind in enumerate(sorted({kind for f in ordered for kind in f.shape.counts}, key=repr))}
    counts = np.array([[sample.shape.counts.get(kind, 0) for kind in column] for sample in samples], np.int32)
    rarity = {label: int(counts[:, i].sum()) for label, i in column.items() if isinstance(label, str)}
    for number, fragment in enumerate(ordered):
        present, undecided = fragment.present, fragment.undecided = np.zeros((2, len(samples)), bool)
        for where in fragment.where.values():
            present[list(where)] = True
        columns = [column[kind] for kind in fragment.shape.counts]
        enough = counts[:, columns] >= np.array(list(fragment.shape.counts.values()))
        possible: Bools = np.logical_and.reduce(enough, axis=1)
        if len(fragment.shape.labels) <= 2:  # a node, or an edge with its ends: counting has decided
            present |= possible
        else:
            steps = plan(fragment.shape, rarity)
            for i in _worth_searching(fragment, possible & ~present, ordered[:number]).tolist():
                try:
                    present[i] = embed(steps, samples[i].shape) is not None
                except GaveUp:
                    undecided[i] = True


def _worth_searching(fragment: Fragment, possible: Bools, before: Sequence[Fragment]) -> Ints:
    """Numbers of the samples that contain, as far as known, all smaller fragments that lie in this one."""
    for smaller in before:
        contained = smaller.present | smaller.undecided
        is_smaller = len(smaller.shape.labels) < len(fragment.shape.labels)
        if is_smaller and (possible & ~contained).any() and find(smaller.shape, fragment.shape) is not None:
            possible = possible & contained
    return np.flatnonzero(possible)
