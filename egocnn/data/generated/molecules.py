"""Molecules as trees of single bonds -> their SMILES, a text equal for isomorphic ones alone, and Graphs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from egocnn.data.arrays import Bools, Ints, pointers
from egocnn.data.graphs import Graphs

Tree: TypeAlias = list[list[int]]  # the neighbours of every node
Bonds: TypeAlias = tuple[tuple[int, int], ...]
VALENCE = {"C": 4, "O": 2}
ELEMENTS = ("C", "H", "O")


@dataclass(frozen=True, slots=True, kw_only=True)
class Molecule:
    """Carbons and oxygens in a tree of single bonds; hydrogens fill what their valence leaves free."""

    name: str
    kind: str  # its class by name
    elements: str  # one letter per heavy atom
    bonds: Bonds
    critical: tuple[int, ...]  # heavy atoms that decide the class; a terminal one with its hydrogens and all its bonds

    @property
    def smiles(self) -> str:
        """The molecule as text, which runs along a longest chain."""
        tree = build_tree(len(self.elements), self.bonds)
        root = longest_chain(tree)[0]
        return subtree_texts(self.elements, tree, root)[root]


def build_tree(n_nodes: int, bonds: Iterable[tuple[int, int]]) -> Tree:
    """Bonds -> the neighbours of every node."""
    tree: Tree = [[] for _ in range(n_nodes)]
    for u, v in bonds:
        tree[u].append(v)
        tree[v].append(u)
    return tree


def walk(tree: Tree, root: int) -> tuple[list[int], list[int]]:
    """Nodes reached from the root, nearest first, and the parent of every node (-1: the root, or not reached)."""
    parent = [-1] * len(tree)
    order = [root]
    for node in order:
        for neighbour in tree[node]:
            if neighbour != parent[node]:
                parent[neighbour] = node
                order.append(neighbour)
    return order, parent


def longest_chain(tree: Tree) -> list[int]:
    """The nodes of one, from end to end: one end is farthest from node 0, and the other farthest from that."""
    end = walk(tree, 0)[0][-1]
    order, parent = walk(tree, end)
    chain = [order[-1]]
    while chain[-1] != end:
        chain.append(parent[chain[-1]])
    return chain


def centres(tree: Tree) -> list[int]:
    """The one node or the two in the middle of every longest chain."""
    chain = longest_chain(tree)
    return chain[(len(chain) - 1) // 2 : len(chain) // 2 + 1]


def subtree_texts(labels: Sequence[str], tree: Tree, root: int) -> list[str]:
    """For every node the SMILES of what hangs on it, seen from the root. Branches stand in one fixed order, the longest
    last and without brackets: equal texts mean isomorphic subtrees and the reverse (Aho, Hopcroft and Ullman)."""
    order, parent = walk(tree, root)
    branches: list[list[str]] = [[] for _ in tree]
    texts = [""] * len(tree)
    for node in reversed(order):
        *side, main = sorted(branches[node], key=lambda text: (len(text), text)) or [""]
        texts[node] = labels[node] + "".join(f"({text})" for text in side) + main
        if node != root:
            branches[parent[node]].append(texts[node])
    return texts


def canonical_text(labels: Sequence[str], tree: Tree) -> str:
    """Equal for two free trees if and only if they are isomorphic, labels included."""
    return min(subtree_texts(labels, tree, centre)[centre] for centre in centres(tree))


def _atoms(molecule: Molecule, *, hydrogens: bool) -> tuple[Ints, Ints, Bools, Bools]:
    """Element of every node, edges, and which of either are critical; node ids count from 0."""
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
    return element, edges, critical, ending[edges].any(axis=1)


def to_graphs(
    molecules: Sequence[Molecule], part: Sequence[int], class_names: tuple[str, str], *, hydrogens: bool, seed: int
) -> Graphs:
    """Every molecule as a graph, its nodes in a random order; ``hydrogens``: they are nodes, too."""
    graphs = [_atoms(molecule, hydrogens=hydrogens) for molecule in molecules]
    elements, bonds, node_truth, edge_truth = zip(*graphs, strict=True)
    counts, element = np.array([len(one) for one in elements]), np.concatenate(elements)
    edges = np.concatenate([one + start for one, start in zip(bonds, pointers(counts), strict=False)])
    graph_of = np.repeat(np.arange(len(graphs)), counts)
    order = np.lexsort((np.random.default_rng(seed).random(len(element)), graph_of))  # shuffled in each graph
    present, label = np.unique(element[order], return_inverse=True)
    return Graphs.from_edges(
        node_counts=counts,
        edges=np.argsort(order)[edges],
        names=[molecule.name for molecule in molecules],
        edge_label=np.zeros(len(edges), np.int32),
        edge_label_names=("single",),
        edge_truth=np.concatenate(edge_truth),
        node_label=label.astype(np.int32),
        node_label_names=tuple(ELEMENTS[e] for e in present),
        node_truth=np.concatenate(node_truth)[order],
        target=np.array([class_names.index(molecule.kind) for molecule in molecules]),
        class_names=class_names,
        group=np.arange(len(molecules)),  # no two are the same molecule
        part=np.array(part),
        smiles=tuple(molecule.smiles for molecule in molecules),
    )
