"""A fold + a rival -> the finished fold: fitted, chosen by validation, tested once a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import torch

from egocnn.config import TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from egocnn.nn.device import choose_device
from egocnn.study.cluster import peak_megabytes
from egocnn.study.crossval.folds import FoldTask
from egocnn.study.crossval.record import Fold, FoldRun

if TYPE_CHECKING:
    from lab.rivals.rival import Rival, RivalModel


def rival_fold(rival: Rival, graphs: Graphs, task: FoldTask, train: TrainConfig) -> Fold:
    """One training after the other. A model without parameters, a kernel with its support vectors say, has no weights
    to start anew: it is fitted once."""
    if not graphs.is_classification:
        raise DataError(f"{rival.name} tells classes apart; these graphs have none")
    device = choose_device(train.device)
    learned, validation, tested = (graphs[part] for part in (task.learned, task.validation, task.tested))
    runs: list[FoldRun] = []
    parameters, training, testing = None, 0.0, 0.0
    for seeds in task.seeds:
        started = time.perf_counter()
        restarts: list[tuple[float, RivalModel]] = []
        for seed in seeds:
            with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
                torch.manual_seed(seed)
                fitted = rival.build(seed)
                fitted.fit(learned, validation=validation)
            restarts.append((_accuracy(fitted, validation, rival.name), fitted))
            if fitted.parameters is None:
                break
        best = max(range(len(restarts)), key=lambda number: restarts[number][0])  # of equals the first
        trained = time.perf_counter()
        score, own = _accuracy(restarts[best][1], tested, rival.name), seeds[: len(restarts)]
        runs.append(FoldRun(score=score, validation_score=restarts[best][0], restart=best + 1, seeds=own))
        training, testing = training + trained - started, testing + time.perf_counter() - trained
        if (parameters := restarts[best][1].parameters) is None:
            break
    return Fold.of(task, runs, parameters, (0.0, training, testing), peak_megabytes(device))


def _accuracy(model: RivalModel, graphs: Graphs, name: str) -> float:
    """Of its predictions for graphs whose targets it does not see."""
    assert graphs.target is not None
    predicted = np.asarray(model.predict(graphs.replace(target=None)))
    if predicted.shape != graphs.target.shape:
        raise DataError(f"{name} gives {predicted.shape} predictions for {graphs.target.shape} graphs")
    return float((predicted == graphs.target).mean())
