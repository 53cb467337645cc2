"""Any object with ``fit`` and ``predict``, as scikit-learn has them -> a model that runs the folds of a
cross-validation."""

import copy
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from egocnn.config import TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError, rule
from egocnn.study.crossval.folds import FoldTask
from egocnn.study.crossval.record import Fold, FoldRun


@dataclass(frozen=True, slots=True)
class Refitted:
    """Fits a fresh copy of the model by ``fit(graphs, target)`` in every run of a fold, with its ``seed`` or
    ``random_state`` set; ``predict(graphs)`` gives class numbers and is shown no targets."""

    model: Any

    @property
    def name(self) -> str:
        """Its own, or that of its class."""
        return str(getattr(self.model, "name", type(self.model).__name__))

    def run_fold(self, graphs: Graphs, task: FoldTask, train: TrainConfig) -> Fold:  # noqa: ARG002 (its own settings)
        """One fit a run, tested once."""
        rule(graphs.is_classification, f"{self.name} tells classes apart; these graphs have none")
        runs, training, testing = list[FoldRun](), 0.0, 0.0
        for seed, *_ in task.seeds:
            started, fitted = time.perf_counter(), copy.deepcopy(self.model)
            for setting in {"seed", "random_state"} & set(dir(fitted)):
                setattr(fitted, setting, seed)
            fitted.fit(graphs[task.learned], graphs[task.learned].target)
            trained = time.perf_counter()
            chosen, score = (self._accuracy(fitted, graphs[part]) for part in (task.validation, task.tested))
            runs.append(FoldRun(score=score, validation_score=chosen, restart=1, seeds=(seed,)))
            training, testing = training + trained - started, testing + time.perf_counter() - trained
        return Fold.of(task, runs, None, (0.0, training, testing), None)

    def _accuracy(self, fitted: Any, graphs: Graphs) -> float:
        assert graphs.target is not None
        predicted = np.asarray(fitted.predict(graphs.replace(target=None)))
        if predicted.shape != graphs.target.shape:
            raise DataError(f"{self.name} gives {predicted.shape} predictions for {graphs.target.shape} graphs")
        return float((predicted == graphs.target).mean())
