"""A fold + any model with fit and predict -> the finished fold: fitted, chosen by the validation part, tested."""

from __future__ import annotations

import time

import numpy as np
import torch

from egocnn.config import TrainConfig
from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from egocnn.nn.device import choose_device
from egocnn.study.crossval.classifier import Builder, Classifier, fit_rival, name_of, parameters_of, untrained
from egocnn.study.crossval.folds import Task
from egocnn.study.crossval.machine import peak_megabytes
from egocnn.study.crossval.record import Fold, Run, make_fold


def system_fold(graphs: Graphs, task: Task, rival: Classifier | Builder, train: TrainConfig) -> Fold:
    """One fold of a rival, one training after the other.

    A system without parameters, a kernel with its support vectors say, has no weights to start anew: it is fitted once,
    whatever number of restarts and runs is asked for.
    """
    if not graphs.is_classification:
        raise DataError(f"{name_of(rival)} tells classes apart; these graphs have none")
    device = choose_device(train.device)
    learned, validation = graphs[task.learned], graphs[task.validation]
    tested = graphs[task.tested].replace(target=None)  # a system that asked for the truth would find none
    assert graphs.target is not None
    truth = graphs.target[task.tested]
    runs: list[Run] = []
    parameters: int | None = None
    training = testing = 0.0
    for seeds in task.seeds:
        started = time.perf_counter()
        system, run = _best(rival, seeds, learned, validation, device)
        trained = time.perf_counter()
        score = _accuracy(system.predict(tested), truth, rival)
        runs.append(Run(score=score, validation_score=run[0], restart=run[1] + 1, seeds=run[2]))
        training += trained - started
        testing += time.perf_counter() - trained
        parameters = parameters_of(system)
        if parameters is None:
            break
    return make_fold(task, runs, parameters, (0.0, training, testing), peak_megabytes(device))


def _best(
    rival: Classifier | Builder, seeds: tuple[int, ...], learned: Graphs, validation: Graphs, device: torch.device
) -> tuple[Classifier, tuple[float, int, tuple[int, ...]]]:
    """The first of the restarts that no other surpasses in validation; its score and number, and the seeds used."""
    assert validation.target is not None
    best: Classifier | None = None
    score, chosen, used = -1.0, 0, 0
    for number, seed in enumerate(seeds):
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            system = fit_rival(untrained(rival, seed), learned, validation)
        used = number + 1
        reached = _accuracy(system.predict(validation.replace(target=None)), validation.target, rival)
        if reached > score:
            best, score, chosen = system, reached, number
        if parameters_of(system) is None:
            break
    assert best is not None
    return best, (score, chosen, seeds[:used])


def _accuracy(predicted: Ints, truth: Ints, rival: Classifier | Builder) -> float:
    predicted = np.asarray(predicted)
    if predicted.shape != truth.shape:
        raise DataError(f"{name_of(rival)} gives {predicted.shape} predictions for {truth.shape} graphs")
    return float((predicted == truth).mean())
