"""Small graphs by name: motifs and bases -> a number of nodes and edges among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.truths.suite.task import Pair

MOST_BRANCHES = 4  # neighbours of a node in a random tree


@dataclass(frozen=True, slots=True)
class Shape:
    n_nodes: int
    edges: tuple[Pair, ...]


def cycle(n_nodes: int) -> Shape:
    return Shape(n_nodes, tuple((i, (i + 1) % n_nodes) for i in range(n_nodes)))


def path(n_nodes: int) -> Shape:
    return Shape(n_nodes, tuple((i, i + 1) for i in range(n_nodes - 1)))


def star(leaves: int) -> Shape:
    return Shape(leaves + 1, tuple((0, i) for i in range(1, leaves + 1)))


def clique(n_nodes: int) -> Shape:
    return Shape(n_nodes, tuple((i, j) for i in range(n_nodes) for j in range(i + 1, n_nodes)))


def grid(rows: int, columns: int) -> Shape:
    across = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    down = [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]
    return Shape(rows * columns, tuple(across + down))


def ladder(rungs: int) -> Shape:
    return grid(2, rungs)


def wheel(n_nodes: int) -> Shape:
    """A hub, node 0, and a rim of all others."""
    rim = n_nodes - 1
    return Shape(n_nodes, tuple([(0, i) for i in range(1, n_nodes)] + [(1 + i, 1 + (i + 1) % rim) for i in range(rim)]))


def balanced_tree(branches: int, height: int) -> Shape:
    """Every node but the leaves has so many children."""
    n_nodes = sum(branches**level for level in range(height + 1))
    return Shape(n_nodes, tuple(((child - 1) // branches, child) for child in range(1, n_nodes)))


def random_tree(n_nodes: int, random: np.random.Generator) -> Shape:
    """Every new node joins an earlier one that is drawn from those with fewer than four neighbours."""
    degree = np.zeros(n_nodes, int)
    edges = []
    for node in range(1, n_nodes):
        other = int(random.choice(np.flatnonzero(degree[:node] < MOST_BRANCHES)))
        degree[[node, other]] += 1
        edges.append((other, node))
    return Shape(n_nodes, tuple(edges))


def scale_free_tree(n_nodes: int, random: np.random.Generator) -> Shape:
    """Barabási and Albert's graph with one edge for every new node, which prefers those that have many."""
    edges: list[Pair] = [(0, 1)]
    ends = [0, 1]
    for node in range(2, n_nodes):
        other = int(random.choice(ends))
        edges.append((other, node))
        ends += [other, node]
    return Shape(n_nodes, tuple(edges))


HOUSE = Shape(5, ((1, 2), (2, 3), (3, 4), (4, 1), (0, 1), (0, 4)))  # a square with a roof, node 0
CRANE = Shape(5, ((1, 2), (2, 3), (3, 4), (4, 1), (0, 1), (0, 3)))
"""a square and a node that is joined to two opposite corners"""
DIAMOND = Shape(4, ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2)))  # a clique of four without one of its edges
BULL = Shape(5, ((0, 1), (1, 2), (2, 0), (1, 3), (2, 4)))  # a triangle with two horns: a house without its floor
TAILED_SQUARE = Shape(6, ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (2, 5)))
"""a square with tails at two opposite corners: a crane whose arm is cut"""
