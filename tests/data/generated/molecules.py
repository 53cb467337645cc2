"""Questions to generated molecules, for their tests."""

import re
from collections import Counter
from typing import Any

import numpy as np

from egocnn.data.generated import build_tree, canonical_text
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.schema import PARTS
from tests.support.samples import sure

VALENCE = {"C": 4, "O": 2, "H": 1}


def atoms(graph: Graph) -> tuple[str, ...]:
    return sure(graph.node_label)


def truth(graph: Graph) -> tuple[set[int], set[tuple[int, int]]]:
    edges = {(int(u), int(v)) for u, v in graph.edges[sure(graph.edge_truth)]}
    return set(np.flatnonzero(sure(graph.node_truth)).tolist()), edges


def neighbours(graph: Graph) -> list[list[int]]:
    return build_tree(graph.n_nodes, ((int(u), int(v)) for u, v in graph.edges))


def incident(graph: Graph, nodes: set[int]) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in graph.edges if int(u) in nodes or int(v) in nodes}


def is_tree(graph: Graph) -> bool:
    reached, fresh, around = {0}, {0}, neighbours(graph)
    while fresh:
        fresh = {n for node in fresh for n in around[node]} - reached
        reached |= fresh
    return len(graph.edges) == graph.n_nodes - 1 and len(reached) == graph.n_nodes


def canonical(graph: Graph) -> str:
    return canonical_text(atoms(graph), neighbours(graph))


def without(graph: Graph, nodes: set[int]) -> Graph:
    keep = [n for n in range(graph.n_nodes) if n not in nodes]
    place = {n: i for i, n in enumerate(keep)}
    edges = [[place[u], place[v]] for u, v in graph.edges.tolist() if u in place and v in place]
    return Graphs.from_edges(
        node_counts=[len(keep)],
        edges=np.array(edges),
        node_label=np.array(["CHO".index(atoms(graph)[n]) for n in keep]),
        node_label_names=("C", "H", "O"),
    )[0]


def size_of(graph: Graph) -> int:
    """Carbons of an alcohol or alkane, of an isomer's arm, of a methylalkane's chain, as the name says."""
    found = re.match(r"isomer a(\d+)|C(\d*)H", graph.name)
    assert found
    carbons = int(found[1] or found[2] or 1)
    return carbons - 1 if "methyl" in graph.name else carbons


def parts_by(graphs: Graphs, key: Any) -> dict[Any, set[str]]:
    found: dict[Any, set[str]] = {}
    for which, (graph, part) in enumerate(zip(graphs, sure(graphs.part), strict=True)):
        found.setdefault(key(which, graph), set()).add(PARTS[part])
    return found


def rdkit_smiles(graph: Graph) -> str:
    from rdkit import Chem

    molecule = Chem.RWMol()
    for letter in atoms(graph):
        molecule.AddAtom(Chem.Atom(letter))
    for u, v in graph.edges:
        molecule.AddBond(int(u), int(v), Chem.BondType.SINGLE)
    Chem.SanitizeMol(molecule)
    return str(Chem.MolToSmiles(Chem.RemoveHs(molecule)))


def check_chemistry(graph: Graph, *, hydrogens: bool) -> None:
    """A tree of atoms with the right valence and formula."""
    assert is_tree(graph)
    assert set(graph.edge_label or ()) <= {"single"}
    degree = [len(around) for around in neighbours(graph)]
    count = Counter(atoms(graph))
    free = [VALENCE[letter] - d for d, letter in zip(degree, atoms(graph), strict=True)]
    assert set(free) == {0} if hydrogens else min(free) >= 0
    assert count["H"] == (2 * count["C"] + 2 if hydrogens else 0)
    assert count["O"] == (1 if graph.target == "alcohol" else 0)


def check_distinct(graphs: Graphs) -> None:
    """No two of the molecules are isomorphic, or called alike."""
    assert len({canonical(graph) for graph in graphs}) == len(set(graphs.names)) == len(graphs)
