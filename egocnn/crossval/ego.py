"""Folds + settings of an Ego-CNN -> finished folds: one after the other, or all trained as one model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from egocnn.config import ModelConfig, TrainConfig
from egocnn.crossval.folds import Task
from egocnn.crossval.machine import peak_megabytes
from egocnn.crossval.record import Fold, Run, make_fold
from egocnn.errors import DataError
from egocnn.graphs import Graphs
from egocnn.runs import test_scores
from egocnn.stacking.learn import Replica, prepare_replicas, train_replicas
from egocnn.training import History, choose_device, fit

Say = Callable[[str], None]
Count = Callable[[int], None]
"""hears how many epochs are over"""


def ego_fold(graphs: Graphs, task: Task, model: ModelConfig, train: TrainConfig, report: Count) -> Fold:
    """One fold, one training after the other."""
    started = time.perf_counter()
    (replicas,) = prepare_replicas([task.marked(graphs)], model, train, [_flat(task)])
    ready = time.perf_counter()
    histories: list[History] = []

    def tell(history: History, config: TrainConfig) -> None:
        report(len(histories) * config.epochs + len(history.epochs))

    for replica in replicas:
        config = replace(train, seed=replica.seed)
        histories.append(fit(replica.predictor.network, *replica.parts, config, report=tell))
        if histories[-1].interrupted:
            raise KeyboardInterrupt
    return _tested(graphs, task, replicas, histories, train, (ready - started, time.perf_counter() - ready))


def stacked_folds(
    graphs: Graphs, tasks: Sequence[Task], model: ModelConfig, train: TrainConfig, report: Count, say: Say
) -> Iterator[Fold]:
    """All of these folds trained as one model."""
    started = time.perf_counter()
    prepared = prepare_replicas([task.marked(graphs) for task in tasks], model, train, [_flat(task) for task in tasks])
    ready = time.perf_counter()
    say(f"{len(tasks)} folds prepared in {ready - started:.1f} s")

    def tell(histories: Sequence[History], config: TrainConfig) -> None:
        report(sum(len(history.epochs) for history in histories))
        epoch = max(len(history.epochs) for history in histories)
        best = [history.best.validation_score for history in histories if history.best is not None]
        running = sum(len(history.epochs) == epoch for history in histories)
        shown = f"{np.mean(best):.4f}" if best else "none yet"
        say(f"epoch {epoch}/{config.epochs}: {running} of {len(histories)} in training, mean best validation {shown}")

    histories = iter(train_replicas([each for own in prepared for each in own], train, report=tell))
    share = ((ready - started) / len(tasks), (time.perf_counter() - ready) / len(tasks))
    for task, replicas in zip(tasks, prepared, strict=True):
        yield _tested(graphs, task, replicas, list(islice(histories, len(replicas))), train, share)


def _flat(task: Task) -> list[int]:
    return [seed for run in task.seeds for seed in run]


def _tested(
    graphs: Graphs,
    task: Task,
    replicas: Sequence[Replica],
    histories: Sequence[History],
    train: TrainConfig,
    spent: tuple[float, float],
) -> Fold:
    """For every run the restart that did best in validation, and its one look at the test fold."""
    started = time.perf_counter()
    tested = graphs[task.tested]
    runs, first = [], 0
    for seeds in task.seeds:
        own = histories[first : first + len(seeds)]
        restart = _chosen(task, own)
        predictor, best = replicas[first + restart].predictor, own[restart].best
        assert best is not None
        scores = test_scores(predictor, tested, device=train.device)
        runs.append(
            Run(
                score=scores["accuracy" if predictor.class_names else "r2"],
                validation_score=best.validation_score,
                restart=restart + 1,
                seeds=seeds,
                best_epoch=best.epoch,
                epochs=len(own[restart].epochs),
            )
        )
        first += len(seeds)
    timing = (*spent, time.perf_counter() - started)
    parameters = replicas[0].predictor.network.n_parameters
    return make_fold(task, runs, parameters, timing, peak_megabytes(choose_device(train.device)))


def _chosen(task: Task, histories: Sequence[History]) -> int:
    chosen, best = -1, None
    for number, history in enumerate(histories):
        if history.best is not None and history.best.beats(best):
            chosen, best = number, history.best
    if best is None:
        raise DataError(
            f"training diverged in fold {task.fold}: no epoch gave a finite loss; try a smaller --learning-rate"
        )
    return chosen
