"""Training graphs in portions -> what is fitted on them all: label names, colour counts, scales; the same, bit by bit,
however they are cut: counts are whole numbers, and means are added up in blocks that do not follow the portions."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.colours import COUNTED_ROUNDS
from egocnn.encode.degrees import levels, name_of
from egocnn.encode.ranking import Ranking

NUMBERS_AT_ONCE = 1 << 18  # in a block of rows; to change it changes the rounding, and so the last bits of every scale


class Survey:
    """What must be known of all training graphs before any of them can be counted: the labels in use, and degrees."""

    def __init__(self, portions: Iterable[Graphs]) -> None:
        self.nodes = 0
        self.degrees: Ints = np.zeros(0, np.int64)  # how many nodes have each degree, from 0
        self._used: dict[str, Bools] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._levels: set[int] = set()
        for graphs in portions:
            self._add(graphs)

    def _add(self, graphs: Graphs) -> None:
        self.nodes += graphs.n_nodes
        counted = np.bincount(graphs.degree, minlength=len(self.degrees))
        counted[: len(self.degrees)] += self.degrees
        self.degrees = counted
        self._names = {"node": graphs.node_label_names, "edge": graphs.edge_label_names}
        for kind, codes in (("node", graphs.node_label), ("edge", graphs.edge_label)):
            if codes is not None:
                used = self._used.setdefault(kind, np.zeros(len(self._names[kind]), bool))
                used[codes[codes >= 0]] = True
        if graphs.node_label is None:
            node = graphs.entry_node
            proper = np.bincount(node[node != graphs.indices], minlength=graphs.n_nodes)
            self._levels |= set(np.unique(levels(proper)).tolist())

    def names(self, kind: str) -> tuple[str, ...]:
        """Of the node or edge labels, those that are used; all where graphs have names and no labels."""
        used, names = self._used.get(kind), self._names.get(kind, ())
        return names if used is None else tuple(names[code] for code in np.flatnonzero(used))

    @property
    def has_node_labels(self) -> bool:
        """Whether nodes have labels of their own."""
        return "node" in self._used

    @property
    def degree_names(self) -> tuple[str, ...]:
        """Names of the labels that nodes have where they are described by their degrees."""
        return tuple(name_of(level) for level in sorted(self._levels))


class ColourCounts:
    """Counts of portions, put together."""

    def __init__(self) -> None:
        self._several: list[Ranking] = []

    def add(self, ranking: Ranking) -> None:
        """The counts of one more portion."""
        self._several.append(ranking)
        first, *others = (sum(map(len, each.colours)) for each in self._several)
        if sum(others) > first:  # not for every portion: to put many small ones together at once costs the same as one
            self._several = [self.ranking()]

    def ranking(self) -> Ranking:
        """The counts of all portions."""
        if len(self._several) == 1:
            return self._several[0]
        rounds = []
        for number in range(COUNTED_ROUNDS):
            several = np.concatenate([each.colours[number] for each in self._several])
            colours, place = np.unique(several, return_inverse=True)
            counts = np.zeros(len(colours), np.int64)
            np.add.at(counts, place, np.concatenate([each.counts[number] for each in self._several]))
            rounds.append((colours, counts))
        return Ranking(tuple(colours for colours, _ in rounds), tuple(counts for _, counts in rounds))


class Moments:
    """Mean and standard deviation of columns of numbers, row by row."""

    def __init__(self, columns: int) -> None:
        self._block = max(1, NUMBERS_AT_ONCE // max(columns, 1))
        self._held: list[Floats] = []  # rows that make no whole block yet
        self._rows = 0
        self._mean, self._squares = np.zeros((2, columns))  # squares of the distances from the mean, summed up

    def add(self, rows: NDArray[Any]) -> None:
        """Further rows (n, columns)."""
        while len(rows):
            held = sum(map(len, self._held))
            some, rows = np.split(rows, [self._block - held])
            self._held.append(np.array(some, np.float64, order="C"))
            if held + len(some) == self._block:
                self._take()

    def result(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation; nothing may be added afterwards."""
        if self._held:
            self._take()
        return self._mean, np.sqrt(self._squares / max(self._rows, 1))

    def _take(self) -> None:
        block = self._held[0] if len(self._held) == 1 else np.concatenate(self._held)
        self._held = []
        mean = block.mean(axis=0)
        squares = np.square(block - mean).sum(axis=0)
        rows = self._rows + len(block)
        away = mean - self._mean
        # Chan, Golub and LeVeque: two sums of squares, each around its own mean, as one around the mean of both
        self._squares = self._squares + squares + away**2 * (self._rows * len(block) / rows)
        self._mean = self._mean + away * (len(block) / rows)
        self._rows = rows
