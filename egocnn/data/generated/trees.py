"""Labelled trees: bonds -> neighbours, centres, a canonical text, and the mirror of a symmetric molecule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graph
from egocnn.errors import DataError

Tree: TypeAlias = list[list[int]]  # the neighbours of every node


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


def path_end(tree: Tree) -> int:
    """One end of a longest path: the node farthest from the node that is farthest from the first."""
    return walk(tree, walk(tree, 0)[0][-1])[0][-1]


def centres(tree: Tree) -> list[int]:
    """The one node or the two that remain when leaves are stripped layer by layer."""
    degree = [len(neighbours) for neighbours in tree]
    leaves = [node for node, d in enumerate(degree) if d <= 1]
    remaining = len(tree)
    while remaining > 2:
        remaining -= len(leaves)
        inner = []
        for leaf in leaves:
            for neighbour in tree[leaf]:
                degree[neighbour] -= 1
                if degree[neighbour] == 1:
                    inner.append(neighbour)
        leaves = inner
    return leaves


def subtree_texts(labels: Sequence[str], tree: Tree, root: int) -> list[str]:
    """For every node the SMILES of what hangs on it, seen from the root.

    The branches stand in one fixed order, the longest last and without brackets, so that equal texts mean
    isomorphic subtrees and the other way round (the encoding of Aho, Hopcroft and Ullman, in SMILES letters).
    """
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


def mirror(graph: Graph) -> Ints:
    """The node that each node meets when the two arms of a tree are exchanged; (N), its own inverse.

    The centre and what hangs on it besides the arms, a methyl group say, are their own partners. A graph whose two
    longest branches at the centre are not alike has no mirror: a :class:`DataError`.
    """
    tree = build_tree(graph.n_nodes, ((int(u), int(v)) for u, v in graph.edges))
    centre = _single_centre(graph, tree)
    labels = graph.node_label or ("C",) * graph.n_nodes
    texts = subtree_texts(labels, tree, centre)
    _, parent = walk(tree, centre)

    critical = np.zeros(graph.n_nodes, bool) if graph.node_truth is None else graph.node_truth

    def branches(node: int) -> list[int]:
        outward = [neighbour for neighbour in tree[node] if neighbour != parent[node]]
        # alike but not equally critical: a methyl next to the end of its arm is to meet the other methyl, not the end
        return sorted(outward, key=lambda n: (len(texts[n]), texts[n], critical[n]))

    arms = branches(centre)[-2:]
    if len(arms) < 2 or texts[arms[0]] != texts[arms[1]]:
        raise DataError(f"{graph.name}: its two arms differ, so it has no mirror")
    partner = np.arange(graph.n_nodes)
    pairs = [(arms[0], arms[1])]
    for left, right in pairs:
        partner[left], partner[right] = right, left
        pairs += zip(branches(left), branches(right), strict=True)  # alike, so in the same order
    return partner


def _single_centre(graph: Graph, tree: Tree) -> int:
    # edges are counted first: a walk on a graph with rings would not end
    if graph.n_nodes == 0 or len(graph.edges) != graph.n_nodes - 1 or not _is_connected(tree):
        raise DataError(f"{graph.name}: only a tree, a connected graph without rings, has a mirror")
    found = centres(tree)
    if len(found) != 1:
        raise DataError(f"{graph.name}: its centre is a bond, not a node, so no node can be the middle of a mirror")
    return found[0]


def _is_connected(tree: Tree) -> bool:
    seen = {0}
    reached = [0]
    for node in reached:
        fresh = [neighbour for neighbour in tree[node] if neighbour not in seen]
        seen.update(fresh)
        reached += fresh
    return len(seen) == len(tree)
