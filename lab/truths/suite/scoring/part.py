"""The graphs of a task that are explained: test graphs of the usual size, or the larger ones, with their truths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from lab.truths.known import Truth


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedPart:
    """Graphs with their truths, in the same order."""

    graphs: Graphs
    truths: tuple[Truth, ...]

    @staticmethod
    def of(graphs: Graphs, truths: Sequence[Truth], part: str, *, larger: bool = False) -> ExplainedPart:
        """The graphs of one part, either those of the usual size or the larger ones."""
        assert graphs.part is not None
        is_part = graphs.part == PARTS.index(part)
        numbers = [g for g in np.flatnonzero(is_part).tolist() if truths[g].larger == larger]
        return ExplainedPart(graphs[numbers], tuple(truths[g] for g in numbers))

    def __len__(self) -> int:
        return len(self.truths)

    def only(self, numbers: Sequence[int]) -> ExplainedPart:
        return ExplainedPart(self.graphs[list(numbers)], tuple(self.truths[g] for g in numbers))

    @property
    def classes(self) -> list[str] | None:
        """(G) the true class of every graph, which is the one that is explained; None where values are predicted"""
        if not self.graphs.is_classification:
            return None
        assert self.graphs.target is not None
        return [self.graphs.class_names[int(number)] for number in self.graphs.target]

    @property
    def with_structure(self) -> list[int]:
        """the graphs whose critical nodes are known"""
        return [g for g, truth in enumerate(self.truths) if truth.alternatives]

    @property
    def without_structure(self) -> list[int]:
        """the graphs in which nothing should stand out"""
        return [g for g, truth in enumerate(self.truths) if truth.nothing]
