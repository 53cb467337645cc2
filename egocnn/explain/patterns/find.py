"""Critical structures of a data set -> the patterns that recur in them, class by class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from egocnn.data.arrays import Bools
from egocnn.data.graphs import Graph
from egocnn.errors import DataError
from egocnn.explain.patterns.labelled import lies_in
from egocnn.explain.patterns.mining import ALIKE, Fragment, closed, find_presence, mine
from egocnn.explain.patterns.names import name_fragment, to_smarts, to_smiles
from egocnn.explain.patterns.record import Occurrence, Pattern, PatternCounts
from egocnn.explain.patterns.samples import Sample, read_samples
from egocnn.explain.structure import CriticalStructure

MOST_TESTED = 200  # Fragments per class that are searched for in all graphs.
MOST_EXAMPLES = 5
MORE_TELLING = 1.1
"""Of two patterns, one inside or always beside the other, the lower in rank stays if its lift is so much higher."""

Counted = tuple[Fragment, PatternCounts]  # a candidate with what was counted for one class


def find_patterns(
    structures: Sequence[CriticalStructure],
    *,
    min_support: int = 5,
    most: int = 20,
    data: str | None = None,
) -> list[Pattern]:
    """The fragments that recur in what was critical, at most ``most`` per class, the most telling first.

    Candidates are the connected fragments of critical structures whose explained class is the predicted one, of
    up to twelve nodes, critical in at least ``min_support`` graphs of a class. Up to seven nodes all of them count,
    beyond that whole critical components. One that a larger fragment covers in 95% of
    its graphs is dropped. Molecules are read as chemists do: hydrogens belong to their atom, aromatic bonds are one
    kind, a nitro group is the same however it was written. ``data`` names the set where its labels are numbers that
    stand for elements (Mutagenicity, MUTAG, PTC_MR).

    A candidate is then looked for in all graphs. ``p_value`` is the one-sided hypergeometric (Fisher) chance of as
    many graphs of the class among those that contain it, or more, multiplied by the number of candidates of all
    classes (Bonferroni). Where a search takes too long, in dense graphs without labels, the graph counts against the
    pattern: as without it in the class, as with it elsewhere; ``undecided`` says how many. The chance speaks about
    the graphs given, and assumes that they are independent of each other.

    Order: first what is commoner in the class with p < 0.01, by (graphs in which it is critical) x log2(lift); then
    the rest, by the graphs in which it is critical. A pattern that contains a better one, lies in it, or is critical
    only where that is critical too (in 95% of its graphs), stays only if its lift is a tenth higher: a nitro group on
    a ring is no news beside the nitro group, unless it tells more.

    Where values were predicted, the classes are "raises the value" and "lowers the value": fragments by the sign of
    their importance, graphs by whether their value lies above the median.
    """
    if min_support < 1 or most < 1:
        raise DataError(f"patterns need min_support and most of at least 1, not {min_support} and {most}")
    samples = read_samples(structures, data)
    fragments = mine(samples, min_support=min_support)
    names = sorted({name for sample in samples for name, _ in sample.critical})
    per_class = {name: closed(fragments, name, min_support=min_support) for name in names}
    tests = sum(map(len, per_class.values()))
    chosen = {name: _most_telling(per_class[name], name, samples) for name in names}
    presence = find_presence(samples, {id(f): f for some in chosen.values() for f in some}.values())
    patterns = []
    for name in names:
        counted = [_count(f, name, *presence[id(f)], samples, tests) for f in chosen[name]]
        patterns += [_pattern(f, counts, samples) for f, counts in _distinct(sorted(counted, key=_rank), most)]
    return _distinguished(patterns)


def _most_telling(fragments: Sequence[Fragment], name: str, samples: Sequence[Sample]) -> list[Fragment]:
    """Those to be searched for: critical often, and for this class rather than for another."""
    traced = [explained for sample in samples for explained, _ in sample.critical]
    expected = traced.count(name) / max(len(traced), 1)

    def telling(fragment: Fragment) -> tuple[float, int]:
        here, anywhere = len(fragment.where[name]), sum(map(len, fragment.where.values()))
        return here * math.log2(here / anywhere / expected), here

    return sorted(fragments, key=telling, reverse=True)[:MOST_TESTED]


def _count(
    fragment: Fragment, name: str, present: Bools, undecided: Bools, samples: Sequence[Sample], tests: int
) -> Counted:
    from scipy.stats import hypergeom

    of_class = np.array([sample.group == name for sample in samples])
    # counted against the pattern: a search given up must not make it look more telling
    present = present | (undecided & ~of_class)
    members, holders, both = (int(some.sum()) for some in (of_class, present, present & of_class))
    # P(``both`` or more members among the holders), were they drawn blindly: Fisher's exact test, one-sided
    chance = float(hypergeom.sf(both - 1, len(samples), members, holders))
    return fragment, PatternCounts(
        class_name=name,
        critical=len(fragment.where[name]),
        of_predicted=sum(any(explained == name for explained, _ in sample.critical) for sample in samples),
        in_class=both,
        of_class=members,
        in_others=holders - both,
        of_others=len(samples) - members,
        p_value=min(1.0, chance * tests),
        tests=tests,
        undecided=int(undecided.sum()),
    )


def _rank(candidate: Counted) -> tuple[bool, float, float]:
    fragment, counts = candidate
    worth = counts.critical * (math.log2(counts.lift) if counts.is_significant else 1.0)
    return not counts.is_significant, -worth, -len(fragment.shape.labels)


def _distinct(candidates: Sequence[Counted], most: int) -> list[Counted]:
    """The first ``most``, without those that add little to one before them."""
    chosen: list[Counted] = []
    for one in candidates:
        if len(chosen) < most and not any(_adds_little(one, better) for better in chosen):
            chosen.append(one)
    return chosen


def _adds_little(one: Counted, better: Counted) -> bool:
    """It tells no more, and one lies in the other or the better one is critical nearly wherever this one is."""
    if one[1].lift >= MORE_TELLING * better[1].lift:
        return False
    here, there = (fragment.where[counts.class_name].keys() for fragment, counts in (one, better))
    small, large = sorted((one[0].shape, better[0].shape), key=lambda shape: len(shape.labels))
    return len(here & there) >= ALIKE * len(here) or lies_in(small, large)


def _pattern(fragment: Fragment, counts: PatternCounts, samples: Sequence[Sample]) -> Pattern:
    where = fragment.where[counts.class_name]
    median = float(np.median([samples[s].graph.n_nodes for s in where]))

    def untypical(s: int) -> tuple[bool, float, int]:
        """Graphs of the class come first, and of these the ones of ordinary size."""
        return samples[s].group != counts.class_name, abs(samples[s].graph.n_nodes - median), s

    places = [(samples[s], where[s]) for s in sorted(where, key=untypical)]
    examples = [Occurrence(sample.graph, sample.spread(nodes)) for sample, nodes in places[:MOST_EXAMPLES]]
    name, is_molecule = name_fragment(fragment.shape, places), samples[0].is_molecule
    return Pattern(
        name=name,
        graph=_cut(examples[0], fragment, is_molecule, name),
        smiles=to_smiles(fragment.shape) if is_molecule else None,
        smarts=to_smarts(fragment.shape) if is_molecule else None,
        examples=tuple(examples),
        **asdict(counts),
    )


def _cut(example: Occurrence, fragment: Fragment, is_molecule: bool, name: str) -> Graph:
    """The fragment as a graph of its own, with the labels the search saw."""
    whole, place = example.graph, {node: i for i, node in enumerate(example.nodes)}
    ends = [(u, v) for u, v in whole.edges.tolist() if u in place and v in place and u != v]
    edges = sorted(sorted((place[u], place[v])) for u, v in ends)
    bonds = {(u, v): bond for u, v, bond in fragment.shape.edges}
    labels = None
    if whole.node_label is not None:
        own = fragment.shape.labels
        hydrogens = tuple(whole.node_label[node] for node in example.nodes[len(own) :])
        if is_molecule and hydrogens:  # they are nodes, and no part of the label
            own = tuple(label if label.startswith("H") else label.split("H")[0] for label in own)
        labels = own + hydrogens
    return Graph(
        name=name,
        n_nodes=len(example.nodes),
        edges=np.array(edges, np.int64).reshape(-1, 2),
        node_label=labels,
        edge_label=None if whole.edge_label is None else tuple(bonds.get((u, v), "single") for u, v in edges),
        **dict.fromkeys(("edge_weight", "node_attr", "target", "smiles", "node_truth", "edge_truth")),
    )


def _distinguished(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Patterns of a class that would go by the same name get their SMILES, or a number, added."""
    names = [(pattern.class_name, pattern.name) for pattern in patterns]
    return [
        pattern
        if names.count(key) == 1
        else replace(pattern, name=f"{pattern.name} ({pattern.smiles or f'no. {names[: i + 1].count(key)}'})")
        for i, (key, pattern) in enumerate(zip(names, patterns, strict=True))
    ]
