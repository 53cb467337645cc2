"""Labelled trees: bonds -> neighbours, centres and a canonical text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

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
