"""Small labelled graphs, whether one lies in another, and which of those seen before one equals. Critical structures ->
samples: such graphs with the nodes that were critical and the class they spoke for."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graph
from egocnn.data.molecules import to_molecule
from egocnn.data.schema import rule
from egocnn.data.sources.smiles import atom_label, bond_label
from egocnn.explain.patterns.record import LOWERS, RAISES
from egocnn.explain.structure import CriticalStructure

MOST_STEPS = 20_000  # Nodes tried before a search gives up: a bound on time, met by dense graphs without labels.


class GaveUp(Exception):  # noqa: N818  (a result, not a fault: it is caught wherever it can come)
    """Neither yes nor no: the search took too many steps."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labels of the nodes, and of every node its neighbours with the labels of the edges; no self-loops."""

    labels: tuple[str, ...]
    neighbours: tuple[dict[int, str], ...]

    @classmethod
    def from_edges(cls, labels: Sequence[str], edges: Iterable[tuple[int, int, str]]) -> "Labelled":
        """From the labels of the nodes and (u, v, label) of the edges."""
        neighbours: tuple[dict[int, str], ...] = tuple({} for _ in labels)
        for u, v, label in edges:
            if u != v:
                neighbours[u][v] = neighbours[v][u] = label
        return cls(tuple(labels), neighbours)

    @cached_property
    def edges(self) -> tuple[tuple[int, int, str], ...]:
        """(u, v, label) of every edge, u < v"""
        return tuple((u, v, label) for u, row in enumerate(self.neighbours) for v, label in row.items() if u < v)

    @cached_property
    def nodes_of(self) -> Mapping[str, list[int]]:
        """The nodes that bear each label."""
        return {name: [n for n, label in enumerate(self.labels) if label == name] for name in set(self.labels)}

    @cached_property
    def counts(self) -> Mapping[object, int]:
        """How often each label, and each edge with the labels of its ends, is there."""
        counted: Counter[object] = Counter(self.labels)
        for u, v, label in self.edges:
            ends = (self.labels[u], label, self.labels[v])
            counted.update({ends, ends[::-1]})
        return counted

    @cached_property
    def steps(self) -> "tuple[SearchStep, ...]":
        """How to look for it in another graph."""
        return plan(self)

    def cut(self, nodes: Sequence[int]) -> "Labelled":
        """What the nodes, in this order, and the edges among them make up."""
        place = {node: i for i, node in enumerate(nodes)}
        rows = ({place[v]: label for v, label in self.neighbours[u].items() if v in place} for u in nodes)
        return Labelled(tuple(self.labels[node] for node in nodes), tuple(rows))

    def components(self, nodes: Iterable[int]) -> list[list[int]]:
        """The connected parts of what the nodes make up."""
        left, parts = set(nodes), []
        for start in sorted(left):
            if start in left:
                left.discard(start)
                part = [start]
                for node in part:  # grows while it is walked
                    part += (near := [v for v in self.neighbours[node] if v in left])
                    left.difference_update(near)
                parts.append(sorted(part))
        return parts


class SearchStep(NamedTuple):
    """One node of a pattern, at its place in the order in which the nodes are looked for."""

    node: int
    label: str
    degree: int
    anchor: int  # an earlier step that it is joined to; -1: none, the first
    bond: str
    joined: tuple[tuple[int, str], ...]  # the other earlier steps that it is joined to


def plan(pattern: Labelled, rarity: Mapping[str, int] | None = None) -> tuple[SearchStep, ...]:
    """How to look for a connected pattern: from the rarest label on to nodes already touched, most ties first."""
    labels, neighbours = pattern.labels, pattern.neighbours
    count = rarity or {label: len(nodes) for label, nodes in pattern.nodes_of.items()}
    order = [min(range(len(labels)), key=lambda n: (count.get(labels[n], 0), -len(neighbours[n])))]
    while len(order) < len(labels):
        ties = {n: sum(m in order for m in row) for n, row in enumerate(neighbours) if n not in order}
        order.append(max(ties, key=lambda n: (ties[n], -count.get(labels[n], 0), len(neighbours[n]))))
    steps = []
    for i, node in enumerate(order):
        joined = [(order.index(m), bond) for m, bond in neighbours[node].items() if m in order[:i]]
        anchor, bond = joined[0] if joined else (-1, "")
        steps.append(SearchStep(node, labels[node], len(neighbours[node]), anchor, bond, tuple(joined[1:])))
    return tuple(steps)


def embed(steps: Sequence[SearchStep], graph: Labelled) -> tuple[int, ...] | None:
    """The node of the graph for each node of the pattern, or None; a search that takes too long raises :class:`GaveUp`.
    Every edge of the pattern must be there with its label; the graph may have more edges among the same nodes."""
    labels, neighbours = graph.labels, graph.neighbours
    placed: list[int] = []
    tried = 0

    def extend(i: int) -> bool:
        nonlocal tried
        if i == len(steps):
            return True
        step = steps[i]
        near = neighbours[placed[step.anchor]] if step.anchor >= 0 else dict.fromkeys(graph.nodes_of[step.label], "")
        for node, bond in near.items():
            if labels[node] != step.label or bond != step.bond or node in placed:
                continue
            row = neighbours[node]
            if len(row) < step.degree or any(row.get(placed[j]) != other for j, other in step.joined):
                continue
            tried += 1
            if tried > MOST_STEPS:
                raise GaveUp
            placed.append(node)
            if extend(i + 1):
                return True
            placed.pop()
        return False

    if any(step.label not in graph.nodes_of for step in steps) or not extend(0):
        return None
    place = {step.node: node for step, node in zip(steps, placed, strict=True)}
    return tuple(place[node] for node in range(len(steps)))


def find(pattern: Labelled, graph: Labelled) -> tuple[int, ...] | None:
    """The same for a pattern by itself; a search given up has found nothing."""
    try:
        return embed(pattern.steps, graph)
    except GaveUp:
        return None


class Shapes:
    """The different patterns seen so far, numbered; equal ones share a number, whatever the order of their nodes."""

    def __init__(self) -> None:
        self.shapes: list[Labelled] = []
        self._alike: dict[object, list[int]] = {}
        self._grown: dict[object, tuple[int, tuple[int, ...]]] = {}

    def identify(self, pattern: Labelled) -> tuple[int, tuple[int, ...]]:
        """The number of the pattern, and its nodes in the order of the one that was seen first."""
        alike = self._alike.setdefault(_unfolding(pattern), [])
        for number in alike:
            # as many nodes and edges on both sides: lying in it is being equal
            if (image := find(pattern, self.shapes[number])) is not None:
                return number, tuple(sorted(range(len(image)), key=image.__getitem__))
        alike.append(len(self.shapes))
        self.shapes.append(pattern)
        return len(self.shapes) - 1, tuple(range(len(pattern.labels)))

    def grow(self, number: int, label: str, ties: tuple[tuple[int, str], ...]) -> tuple[int, tuple[int, ...]]:
        """The same for a known pattern with one node more; what grew the same way before is remembered."""
        key = number, label, ties
        if key not in self._grown:
            smaller = self.shapes[number]
            edges = [*smaller.edges, *((i, len(smaller.labels), bond) for i, bond in ties)]
            self._grown[key] = self.identify(Labelled.from_edges((*smaller.labels, label), edges))
        return self._grown[key]


def _unfolding(pattern: Labelled) -> object:
    """Equal for equal patterns: the colours after two rounds of Weisfeiler-Lehman, and the number of edges."""
    colours: list[str] = list(pattern.labels)
    for _ in range(2):
        colours = [
            f"{own!r}({','.join(sorted(f'{bond!r}{colours[v]}' for v, bond in row.items()))})"
            for own, row in zip(colours, pattern.neighbours, strict=True)
        ]
    return len(pattern.edges), tuple(sorted(colours))


@dataclass(frozen=True, eq=False)
class Sample:
    """One explained graph as the search sees it."""

    graph: Graph  # with elements for labels where those are known
    is_molecule: bool
    shape: Labelled  # of a molecule: heavy atoms, told apart by charge, aromaticity and, but for carbon, hydrogens
    nodes: tuple[int, ...]  # the node of the graph that each node of the shape stands for
    group: str  # its true class where that is known, else the predicted one
    critical: tuple[tuple[str, tuple[int, ...]], ...]  # the classes traced here, each with the nodes that made it

    def spread(self, nodes: Sequence[int]) -> tuple[int, ...]:
        """Nodes of the shape -> nodes of the graph, with the hydrogens of a molecule's atoms other than carbon."""
        own = [self.nodes[node] for node in nodes]
        if self.is_molecule and len(self.nodes) < self.graph.n_nodes:
            labels = self.graph.node_label or ()
            hosts = {node for node in own if labels[node].upper() != "C"}
            for u, v in self.graph.edges.tolist():
                for host, other in ((u, v), (v, u)):
                    if host in hosts and labels[other] == "H" and other not in own:
                        own.append(other)
        return tuple(own)


def read_samples(structures: Sequence[CriticalStructure]) -> list[Sample]:
    """One sample per graph; structures traced for a class that was not predicted add their graph alone."""
    rule(structures, "no critical structures are given; patterns need some")
    structures = [structure.named() for structure in structures]
    kinds = {structure.explained is None for structure in structures}
    rule(len(kinds) == 1, "some of these structures explain classes and some explain values; patterns need one kind")
    median = float(np.median([_value(structure) for structure in structures])) if kinds == {True} else 0.0
    one_of = {_key(structure.graph): structure for structure in reversed(structures)}
    one_of |= {_key(s.graph): s for s in structures if s.explained == s.predicted}
    chosen = list(one_of.values())[::-1]
    graphs = [structure.graph for structure in chosen]
    molecules: list[Any] = list(map(to_molecule, graphs))
    if any(molecule is None for molecule in molecules):  # labels of two kinds would never agree
        molecules = [None] * len(graphs)
    return [_sample(*each, median) for each in zip(chosen, graphs, molecules, strict=True)]


def _key(graph: Graph) -> object:
    """Equal for a graph that was explained twice."""
    return graph.name, graph.n_nodes, graph.edges.tobytes(), graph.node_label, graph.edge_label


def _value(structure: CriticalStructure) -> float:
    target = structure.graph.target
    return float(target if isinstance(target, float) else structure.predicted)


def _sample(structure: CriticalStructure, graph: Graph, molecule: Any | None, median: float) -> Sample:
    if molecule is None:
        labels = graph.node_label or ("",) * graph.n_nodes
        bonds = graph.edge_label or ("",) * len(graph.edges)
        edges = [(u, v, bond) for (u, v), bond in zip(graph.edges.tolist(), bonds, strict=True)]
        nodes = place = list(range(graph.n_nodes))
        shape = Labelled.from_edges(labels, edges)
    else:
        shape, nodes, place = _heavy(molecule)
    group, critical = _critical(structure, median)
    found = ((name, sorted({place[n] for n in _completed(molecule, chosen)})) for name, chosen in critical)
    on_shape = tuple((name, tuple(chosen)) for name, chosen in found)
    return Sample(graph, molecule is not None, shape, tuple(nodes), group, on_shape)


def _completed(molecule: Any | None, chosen: Ints) -> set[int]:
    """Nodes with the oxygens that belong to them: NO2, NO, SO2 and PO are each one thing to a chemist. An oxygen that
    hangs on a critical N, S or P alone comes along, as the hydrogens of an atom do."""
    nodes = set(chosen.tolist())
    if molecule is None:
        return nodes
    centres = [atom for node in nodes if (atom := molecule.GetAtomWithIdx(node)).GetSymbol() in ("N", "S", "P")]
    oxygens = [near for atom in centres for near in atom.GetNeighbors() if near.GetSymbol() == "O"]
    return nodes | {near.GetIdx() for near in oxygens if near.GetDegree() == 1}


def _critical(structure: CriticalStructure, median: float) -> tuple[str, list[tuple[str, Ints]]]:
    nodes = structure.critical_nodes
    if structure.explained is None:
        importance = structure.node_importance[nodes]
        group = RAISES if _value(structure) > median else LOWERS
        sides = [(RAISES, nodes[importance > 0]), (LOWERS, nodes[importance < 0])]
        return group, [(name, chosen) for name, chosen in sides if len(chosen)]
    target = structure.graph.target
    group = str(structure.predicted if target is None else target)
    return group, [(str(structure.explained), nodes)] if structure.explained == structure.predicted else []


def _heavy(molecule: Any) -> tuple[Labelled, list[int], list[int]]:
    """The shape of a molecule without hydrogens, its atoms, and where each atom went: a hydrogen to its host."""
    atoms = list(molecule.GetAtoms())
    heavy = [atom for atom in atoms if atom.GetAtomicNum() > 1 or not _host(atom)]
    number = {atom.GetIdx(): i for i, atom in enumerate(heavy)}
    place = [number[i] if (i := atom.GetIdx()) in number else number[_host(atom)[0]] for atom in atoms]
    edges = [
        (number[u], number[v], bond_label(bond))
        for bond in molecule.GetBonds()
        if (u := bond.GetBeginAtomIdx()) in number and (v := bond.GetEndAtomIdx()) in number
    ]
    return Labelled.from_edges([_label(atom) for atom in heavy], edges), list(number), place


def _host(atom: Any) -> list[int]:
    return [near.GetIdx() for near in atom.GetNeighbors() if near.GetAtomicNum() > 1]


def _label(atom: Any) -> str:
    """The reader's label with the hydrogens of an atom other than carbon: C, c, OH, NH2, N+, nH."""
    label = atom_label(atom)
    hydrogens = atom.GetTotalNumHs(includeNeighbors=True) if atom.GetAtomicNum() not in (1, 6) else 0
    return label if hydrogens == 0 else f"{label}H{hydrogens if hydrogens > 1 else ''}"
