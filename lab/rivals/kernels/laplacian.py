r"""The multiscale Laplacian kernel: two graphs -> how alike their features spread over them, at every scale.

Features of nodes spread over a graph with Laplacian L as :math:`S = U^T (L + \eta I)^{-1} U + \gamma I`, U (n, P). Two
graphs are as alike as the normal distributions with these covariances overlap, 1 if they are the same:

.. math:: k(G, H) = \Big|\tfrac12 S_G^{-1} + \tfrac12 S_H^{-1}\Big|^{-1/2} \Big/ \big(|S_G|\,|S_H|\big)^{1/4}

At level 0 the features of a node are its label, at level l they are such that products of them are the kernel of
the nodes' surroundings up to l edges away, compared by the features of level l - 1. Features of P numbers come from a
sample of training nodes (Nyström): the P leading eigenvectors of the sample's kernel matrix.

The time grows with the cube of the surroundings' sizes. It is estimated first, and what would take too long refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.sparse import csr_matrix, identity

from egocnn.data.arrays import Floats, Ints, equal_rows, pointers
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.rivals.kernels.words import labelled

LEVELS = (1, 2, 3)
SMOOTHING = (0.01, 0.1, 1.0)  # both eta and gamma; to choose from

WIDTH = 10  # features of a node, at most

SAMPLE = 50  # nodes that the features are learned from

SMALLEST_EIGENVALUE = 1e-6  # Directions with less hold nothing but rounding errors.

PAIRS_AT_ONCE = 1 << 12  # determinants computed together: few enough for the processor's cache

MOST_WORK = 3e12  # multiplications to describe all graphs under all settings: some ten minutes on one core


@dataclass(frozen=True, slots=True)
class Scale:
    """How far the features of a node look, and how much is added to make matrices regular."""

    level: int
    smoothing: float


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The matrices S of n graphs, in the two forms that the kernel needs."""

    inverse: Floats  # (n, P, P)
    log_determinant: Floats  # (n)

    def __getitem__(self, some: Ints | slice) -> Spread:
        return Spread(self.inverse[some], self.log_determinant[some])


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """How the features of a level are made from those of the level below."""

    sample: Spread  # of the surroundings of the sampled nodes
    projection: Floats  # (sample, P)


class LaplacianKernel:
    """Settings are scales; a description is how the features spread over each graph."""

    def __init__(
        self, *, seed: int, levels: Sequence[int] = LEVELS, smoothing: Sequence[float] = SMOOTHING, sample: int = SAMPLE
    ) -> None:
        self.seed, self.sample = seed, sample
        self.settings = [Scale(level, smooth) for smooth, level in product(smoothing, sorted(levels))]
        self.deepest, self.passes = max(levels), len(smoothing)

    def fit(self, graphs: Graphs) -> Iterator[Spread]:
        graphs = labelled(graphs)
        check_work(graphs, self.deepest, self.sample, passes=self.passes)
        surroundings = Surroundings(graphs)
        self.levels: dict[float, list[Level]] = {}
        for setting in self.settings:
            smoothing = setting.smoothing
            if smoothing not in self.levels:
                random = np.random.default_rng(self.seed)  # for each the same samples
                self.table = self._learn_table(graphs, random)
                self.levels[smoothing], features = [], self._look_up(graphs)
            for level in range(len(self.levels[smoothing]) + 1, setting.level + 1):
                around = surroundings.spread(features, level, smoothing)
                sample = around[self._draw(graphs, random)]
                self.levels[smoothing].append(Level(sample, project(overlap(sample, sample))))
                features = climb(around, self.levels[smoothing][-1])
            yield surroundings.spread_over_graphs(features, smoothing)

    def describe(self, graphs: Graphs, setting: Scale) -> Spread:
        graphs = labelled(graphs)
        check_work(graphs, setting.level, self.sample, passes=1)
        surroundings, features = Surroundings(graphs), self._look_up(graphs)
        for below, level in enumerate(self.levels[setting.smoothing][: setting.level]):
            features = climb(surroundings.spread(features, below + 1, setting.smoothing), level)
        return surroundings.spread_over_graphs(features, setting.smoothing)

    def compare(self, one: Spread, other: Spread) -> Floats:
        return overlap(one, other)

    def _draw(self, graphs: Graphs, random: np.random.Generator) -> Ints:
        return random.permutation(graphs.n_nodes)[: self.sample]

    def _learn_table(self, graphs: Graphs, random: np.random.Generator) -> Floats:
        """(labels + 1, P) the features of each label, and zeros for a label that is not known"""
        assert graphs.node_label is not None
        one_hot = np.eye(len(graphs.node_label_names) + 1)
        one_hot[-1] = 0
        sampled = one_hot[graphs.node_label[self._draw(graphs, random)]]
        return one_hot @ sampled.T @ project(sampled @ sampled.T)

    def _look_up(self, graphs: Graphs) -> Floats:
        label = graphs.node_label
        assert label is not None
        known = (label >= 0) & (label < len(self.table) - 1)  # degrees may be greater than any in training
        features: Floats = self.table[np.where(known, label, -1)]
        return features


class Surroundings:
    """The nodes within some edges of each, and the Laplacians of the graphs that they form."""

    def __init__(self, graphs: Graphs) -> None:
        self.graphs = graphs
        self.first = pointers(graphs.node_counts**2)[:-1]
        self.near = csr_matrix((np.ones(graphs.n_entries, bool), graphs.indices, graphs.indptr), (graphs.n_nodes,) * 2)
        self.near = (self.near + identity(graphs.n_nodes, bool, "csr")).astype(bool)
        self.within = {1: self.near}
        node, neighbour = graphs.entry_node, graphs.indices
        proper = node != neighbour  # a self-loop leaves the Laplacian as it is
        self.adjacent = np.zeros(int((graphs.node_counts**2).sum()), bool)
        self.adjacent[self._entries(node[proper], neighbour[proper])] = True

    def _entries(self, node: Ints, other: Ints) -> Ints:
        """Where the adjacency matrix of a graph, all of them end to end, has these two of its nodes."""
        graph = self.graphs.graph_of[node]
        start, size = self.graphs.node_ptr[graph], self.graphs.node_counts[graph]
        place: Ints = self.first[graph] + (node - start) * size + other - start
        return place

    def spread(self, features: Floats, radius: int, smoothing: float) -> Spread:
        """Over the surroundings of every node."""
        if radius not in self.within:
            self.within[radius] = (self.within[radius - 1] @ self.near).astype(bool)
        within = self.within[radius]
        return self._spread(within.indptr, within.indices, features, smoothing)

    def spread_over_graphs(self, features: Floats, smoothing: float) -> Spread:
        return self._spread(self.graphs.node_ptr, np.arange(self.graphs.n_nodes), features, smoothing)

    def _spread(self, pointer: Ints, members: Ints, features: Floats, smoothing: float) -> Spread:
        """Row i of the n rows holds the nodes of graph i."""
        width = features.shape[1]
        regular = smoothing * np.eye(width)
        spread = np.tile(regular, (len(pointer) - 1, 1, 1))
        for rows, entries in equal_rows(pointer):
            nodes = members[entries].astype(np.int64)  # (n, m)
            laplacian = -self.adjacent[self._entries(nodes[:, :, None], nodes[:, None, :])].astype(np.float64)
            diagonal = np.arange(nodes.shape[1])
            laplacian[:, diagonal, diagonal] = smoothing - laplacian.sum(axis=2)
            u = features[nodes]  # (n, m, P)
            spread[rows] += u.transpose(0, 2, 1) @ np.linalg.solve(laplacian, u)
        return Spread(np.linalg.inv(spread), np.linalg.slogdet(spread)[1])


def overlap(one: Spread, other: Spread) -> Floats:
    """(n, m) kernel values of n graphs and m others"""
    n, m = len(one.log_determinant), len(other.log_determinant)
    left, right = one.inverse / 2, other.inverse / 2
    values = np.empty((n, m))
    at_once = max(1, PAIRS_AT_ONCE // max(m, 1))
    for first in range(0, n, at_once):
        some = slice(first, first + at_once)
        factor = np.linalg.cholesky(left[some, None] + right)
        mutual = 2 * np.log(np.diagonal(factor, axis1=2, axis2=3)).sum(axis=2)
        own = one.log_determinant[some, None] + other.log_determinant
        values[some] = np.exp(-mutual / 2 - own / 4)
    return values


def project(kernel: Floats) -> Floats:
    """Kernel matrix of a sample (s, s) -> (s, P) by which kernel values with the sample become features."""
    value, vector = np.linalg.eigh(kernel)
    leading = np.arange(len(value))[::-1][:WIDTH]
    leading = leading[value[leading] > SMALLEST_EIGENVALUE]
    projection: Floats = vector[:, leading] / np.sqrt(value[leading])
    return projection


def climb(around: Spread, level: Level) -> Floats:
    """How features spread around every node -> the features (N, P) of the next level."""
    return overlap(around, level.sample) @ level.projection


def check_work(graphs: Graphs, levels: int, sample: int, *, passes: int) -> None:
    """Refuse graphs that would take too long; the sizes of surroundings are bounded, not counted."""
    counts = graphs.node_counts.astype(np.float64)
    whole = np.repeat(counts, graphs.node_counts)
    size, work = np.ones(graphs.n_nodes), float((counts**3).sum())
    for _ in range(levels):
        running = np.concatenate([np.zeros(1), np.cumsum(size[graphs.indices])])
        size = np.minimum(size + running[graphs.indptr[1:]] - running[graphs.indptr[:-1]], whole)
        work += float((size**3).sum()) + graphs.n_nodes * sample * WIDTH**3
    if passes * work > MOST_WORK:
        largest = int(size.max(initial=0))
        raise DataError(
            f"the multiscale Laplacian kernel would take up to {passes * work:.0e} multiplications on {len(graphs)} "
            f"graphs with up to {largest} nodes within {levels} edges of a node; {MOST_WORK:.0e} are allowed"
        )
