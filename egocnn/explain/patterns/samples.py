"""Critical structures -> samples: labelled graphs with the nodes that were critical and the class they spoke for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graph
from egocnn.data.molecules import to_molecule
from egocnn.data.schema import rule
from egocnn.data.sources.smiles import atom_label, bond_label
from egocnn.explain.patterns.labelled import Labelled
from egocnn.explain.patterns.record import LOWERS, RAISES
from egocnn.explain.structure import CriticalStructure


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
