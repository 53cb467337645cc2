"""Fragments and samples -> which of the samples contain each fragment, critical or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Bools
from egocnn.explain.patterns.labelled import GaveUp, embed, lies_in, plan
from egocnn.explain.patterns.mining import Fragment
from egocnn.explain.patterns.samples import Sample

Report = Callable[[int, int], None]
"""how many fragments have been searched for, of how many"""


class Presence:
    """Searches all samples for one fragment after the other, and remembers what it found.

    A graph is searched only where it has enough nodes and edges of every kind, and where the fragments found to
    lie in this one lie too.
    """

    def __init__(self, samples: Sequence[Sample], fragments: Sequence[Fragment], report: Report | None = None) -> None:
        self.samples, self.report = samples, report
        kinds = sorted({kind for f in fragments for kind in f.shape.counts}, key=repr)
        self.column = {kind: i for i, kind in enumerate(kinds)}
        self.counts: NDArray[np.int32] = np.zeros((len(samples), len(kinds)), np.int32)
        for row, sample in zip(self.counts, samples, strict=True):
            for kind, count in sample.shape.counts.items():
                if kind in self.column:
                    row[self.column[kind]] = count
        self.rarity = {
            label: int(self.counts[:, i].sum()) for label, i in self.column.items() if isinstance(label, str)
        }
        self.total = len(fragments)
        self.found: dict[int, tuple[Fragment, Bools, Bools]] = {}

    def of(self, fragment: Fragment) -> tuple[Bools, Bools]:
        """(samples) whether each contains the fragment, and whether the search was given up there"""
        if id(fragment) not in self.found:
            self.found[id(fragment)] = fragment, *self._search(fragment)
            if self.report is not None:
                self.report(len(self.found), self.total)
        return self.found[id(fragment)][1:]

    def _search(self, fragment: Fragment) -> tuple[Bools, Bools]:
        columns = [self.column[kind] for kind in fragment.shape.counts]
        enough = self.counts[:, columns] >= np.array(list(fragment.shape.counts.values()))
        possible: Bools = np.logical_and.reduce(enough, axis=1)
        present = np.zeros(len(self.samples), bool)
        for where in fragment.where.values():
            present[list(where)] = True
        undecided = np.zeros(len(self.samples), bool)
        size = len(fragment.shape.labels)
        if size <= 2:  # a node, or an edge with its ends: counting has told
            return possible | present, undecided
        for smaller, contained, unknown in self.found.values():
            contained = contained | unknown
            is_smaller = len(smaller.shape.labels) < size and (possible & ~present & ~contained).any()
            if is_smaller and lies_in(plan(smaller.shape), fragment.shape):
                possible &= contained
        wanted = plan(fragment.shape, self.rarity)
        for i in np.flatnonzero(possible & ~present).tolist():
            try:
                present[i] = embed(wanted, self.samples[i].shape) is not None
            except GaveUp:
                undecided[i] = True
        return present, undecided
