"""What every rival is: a name, where it comes from, and a seed -> an untrained model that cross-validation can fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self

from egocnn.config import TrainConfig
from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Survey
from egocnn.study.crossval.folds import FoldTask
from egocnn.study.crossval.record import Fold
from lab.rivals.fold import rival_fold


class RivalModel(Protocol):
    """Learns the classes of graphs, and chooses by validation graphs.

    Whatever is fitted (vocabularies, embeddings, scales, weights) is fitted on the graphs given to :meth:`fit`; the
    validation graphs only choose between settings or epochs. Test graphs are seen by :meth:`predict` alone.
    """

    parameters: int | None
    """numbers that training changes; None where the question makes no sense: one training is then as good as several"""

    def fit(self, graphs: Graphs, validation: Graphs) -> Self: ...

    def predict(self, graphs: Graphs) -> Ints:
        """(G) class numbers, counted by the names of the training graphs"""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """How a model is built, and what a reader must know about it; cross-validation asks it for its folds."""

    name: str  # as in the paper's tables
    source: str  # who published it, and where
    library: str  # which parts are a library's
    departures: str  # where it differs from what was published
    build: Callable[[int], RivalModel]  # seed -> an untrained model
    build_quick: Callable[[int], RivalModel] | None = None
    """the same, trained for a rough answer in seconds; None where it takes no longer anyway"""

    def quick(self) -> Rival:
        return self if self.build_quick is None else replace(self, build=self.build_quick)

    def run_fold(self, graphs: Graphs, task: FoldTask, train: TrainConfig) -> Fold:
        """As :class:`~egocnn.study.crossval.OtherModel` has it."""
        return rival_fold(self, graphs, task, train)


def with_own_labels(graphs: Graphs) -> Graphs:
    """The graphs with those label names alone that they use: to a model, a label of other graphs is unseen."""
    survey = Survey([graphs])
    return graphs.with_names(nodes=survey.names("node"), edges=survey.names("edge"))
