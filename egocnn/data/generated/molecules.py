"""Molecules as trees of heavy atoms -> Graphs, with hydrogens if wanted, every copy with its own node order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from egocnn.data.arrays import Bools, Ints, pointers
from egocnn.data.generated.trees import build_tree, path_end, subtree_texts
from egocnn.data.graphs import Graphs

ELEMENTS = ("C", "H", "O")
VALENCE = {"C": 4, "O": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Molecule:
    """Carbons and oxygens in a tree of single bonds; hydrogens fill what their valence leaves free."""

    name: str
    kind: str  # Its class by name.
    elements: str  # One letter per heavy atom.
    bonds: tuple[tuple[int, int], ...]
    critical: tuple[int, ...]
    """Heavy atoms that make it one of its class. A terminal one brings its hydrogens and all its bonds."""

    @property
    def smiles(self) -> str:
        tree = build_tree(len(self.elements), self.bonds)
        root = path_end(tree)  # an end, so that the text runs along a longest chain
        return subtree_texts(self.elements, tree, root)[root]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The nodes and edges of one molecule, node ids counted from 0."""

    element: Ints
    edges: Ints
    node_truth: Bools
    edge_truth: Bools


def draw(molecule: Molecule, *, hydrogens: bool) -> Drawn:
    n_atoms = len(molecule.elements)
    element = np.array([ELEMENTS.index(letter) for letter in molecule.elements])
    edges = np.array(molecule.bonds, np.int64).reshape(-1, 2)
    degree = np.bincount(edges.ravel(), minlength=n_atoms)
    critical = np.zeros(n_atoms, bool)
    critical[list(molecule.critical)] = True
    ending = critical & (degree == 1)
    if hydrogens:
        free = np.array([VALENCE[letter] for letter in molecule.elements]) - degree
        holder = np.repeat(np.arange(n_atoms), free)
        edges = np.concatenate([edges, np.stack([holder, n_atoms + np.arange(len(holder))], axis=1)])
        element = np.concatenate([element, np.full(len(holder), ELEMENTS.index("H"))])
        critical, ending = np.concatenate([critical, ending[holder]]), np.concatenate([ending, ending[holder]])
    return Drawn(element, edges, critical, ending[edges].any(axis=1))


def assemble(
    molecules: Sequence[Molecule], *, class_names: tuple[str, ...], part: Ints, hydrogens: bool, copies: int, seed: int
) -> Graphs:
    """Every molecule ``copies`` times as a graph, each time with its nodes in another random order."""
    drawn = [draw(molecule, hydrogens=hydrogens) for molecule in molecules for _ in range(copies)]
    molecule_of = np.repeat(np.arange(len(molecules)), copies)
    counts = np.array([len(one.element) for one in drawn])
    first = pointers(counts)
    element = np.concatenate([one.element for one in drawn])
    edges = np.concatenate([one.edges + start for one, start in zip(drawn, first, strict=False)])

    graph_of = np.repeat(np.arange(len(drawn)), counts)
    order = np.lexsort((np.random.default_rng(seed).random(len(element)), graph_of))  # shuffled within each graph
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    present, label = np.unique(element[order], return_inverse=True)
    return Graphs.from_edges(
        node_counts=counts,
        edges=place[edges],
        names=_copy_names([molecule.name for molecule in molecules], copies),
        edge_label=np.zeros(len(edges), np.int32),
        edge_label_names=("single",),
        edge_truth=np.concatenate([one.edge_truth for one in drawn]),
        node_label=label.astype(np.int32),
        node_label_names=tuple(ELEMENTS[e] for e in present),
        node_truth=np.concatenate([one.node_truth for one in drawn])[order],
        target=np.array([class_names.index(molecule.kind) for molecule in molecules])[molecule_of],
        class_names=class_names,
        group=molecule_of,
        part=part[molecule_of],
        smiles=tuple(smiles for molecule in molecules for smiles in [molecule.smiles] * copies),
    )


def _copy_names(names: Sequence[str], copies: int) -> list[str]:
    return [name if copy == 0 else f"{name}, copy {copy + 1}" for name in names for copy in range(copies)]
