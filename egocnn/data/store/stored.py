"""Graphs that stay in their store: which of them are meant, and what splits must know of each; read in portions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import GRAPH_COLUMNS
from egocnn.data.store.read import Store


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """G graphs of a store; in memory are a few numbers of each."""

    store: Store
    numbers: Ints  # (G) their numbers in the store, ascending
    node_counts: Ints  # (G)
    outline: Graphs
    """(G) graphs without nodes: targets, groups and parts, all that decides who is learned from and who is tested"""

    @staticmethod
    def of(store: Store) -> Stored:
        """All graphs of the store."""
        return Stored(store, np.arange(len(store)), np.diff(store.node_ptr()), store.outline())

    def __len__(self) -> int:
        return len(self.numbers)

    def choose(self, which: Ints) -> Stored:
        """Those at these places, ascending."""
        return Stored(self.store, self.numbers[which], self.node_counts[which], self.outline[which])

    def with_parts(self, part: Ints | None) -> Stored:
        return replace(self, outline=self.outline.replace(part=part))

    @property
    def bytes_on_disk(self) -> int:
        return self.store.manifest.size

    def whole(self) -> Graphs:
        """Over memory-mapped files, once all of them have been checked."""
        graphs = self.store.graphs()
        graphs = graphs if len(self) == len(graphs) else graphs[self.numbers]
        return replace(graphs, part=self.outline.part)

    def portions(self, first: int = 0, last: int | None = None) -> Iterator[Graphs]:
        """The graphs from place ``first`` to before ``last``, in order, as many at a time as fit."""
        wanted = self.numbers[first:last]
        if len(wanted) == 0:
            return
        start, after = int(wanted[0]), int(wanted[-1]) + 1
        for graphs in self.store.portions(first=start, last=after):
            end = start + len(graphs)
            here = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, end)] - start
            start = end
            if len(here) == len(graphs):
                yield graphs
            elif len(here):
                yield graphs[here]

    @property
    def digest(self) -> str:
        """Changes with any bit of the store, with the choice of graphs, and with the parts they are in."""
        digest = hashlib.sha256(self.store.manifest.to_text().encode())
        columns: list[Any] = [self.numbers, *(getattr(self.outline, name) for name in GRAPH_COLUMNS)]
        for values in columns:
            digest.update(b"none" if values is None else np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()
