"""A fold + any model with ``fit`` and ``predict`` -> the finished fold: fitted, chosen by validation, tested."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
import torch

from egocnn.config import TrainConfig
from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from egocnn.study.crossval.folds import Task
from egocnn.study.crossval.machine import peak_megabytes
from egocnn.study.crossval.record import Fold, Run, make_fold
from egocnn.train.loop import choose_device

EGO_CNN = "ego-cnn"
"""The name of our own model in records and on the command line."""


class System(Protocol):
    """Learns the classes of graphs.

    Whatever is fitted (vocabularies, embeddings, scales, weights) is fitted on the graphs given to :meth:`fit`; the
    validation graphs only choose between settings or epochs. Test graphs are seen by :meth:`predict` alone.
    """

    parameters: int | None
    """numbers that training changes; None where the question makes no sense"""

    def fit(self, graphs: Graphs, validation: Graphs) -> Self: ...

    def predict(self, graphs: Graphs) -> Ints:
        """(G) class numbers, counted by the names of the training graphs"""
        ...


class SystemFactory(Protocol):
    """A model by name that can be built anew for every fold and restart."""

    @property
    def name(self) -> str: ...

    @property
    def build(self) -> Callable[[int], System]:
        """seed -> an untrained system"""
        ...


def system_fold(graphs: Graphs, task: Task, factory: SystemFactory, train: TrainConfig) -> Fold:
    """One fold of a model other than ours, one training after the other.

    A system without parameters, a kernel with its support vectors say, has no weights to start anew: it is fitted once,
    whatever number of restarts and runs is asked for.
    """
    if not graphs.is_classification:
        raise DataError(f"{factory.name} tells classes apart; these graphs have none")
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
        system, run = _best(factory, seeds, learned, validation, device)
        trained = time.perf_counter()
        score = _accuracy(system.predict(tested), truth, factory)
        runs.append(Run(score=score, validation_score=run[0], restart=run[1] + 1, seeds=run[2]))
        training += trained - started
        testing += time.perf_counter() - trained
        parameters = system.parameters
        if parameters is None:
            break
    return make_fold(task, runs, parameters, (0.0, training, testing), peak_megabytes(device))


def _best(
    factory: SystemFactory, seeds: tuple[int, ...], learned: Graphs, validation: Graphs, device: torch.device
) -> tuple[System, tuple[float, int, tuple[int, ...]]]:
    """The first of the restarts that no other surpasses in validation; its score and number, and the seeds used."""
    assert validation.target is not None
    best: System | None = None
    score, chosen, used = -1.0, 0, 0
    for number, seed in enumerate(seeds):
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            system = factory.build(seed).fit(learned, validation)
        used = number + 1
        reached = _accuracy(system.predict(validation.replace(target=None)), validation.target, factory)
        if reached > score:
            best, score, chosen = system, reached, number
        if system.parameters is None:
            break
    assert best is not None
    return best, (score, chosen, seeds[:used])


def _accuracy(predicted: Ints, truth: Ints, factory: SystemFactory) -> float:
    predicted = np.asarray(predicted)
    if predicted.shape != truth.shape:
        raise DataError(f"{factory.name} gives {predicted.shape} predictions for {truth.shape} graphs")
    return float((predicted == truth).mean())
