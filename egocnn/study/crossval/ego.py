"""Folds + settings of an Ego-CNN -> finished folds: one after the other, or all trained together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.collection import Collection
from egocnn.data.graphs import Graphs
from egocnn.errors import DivergedError
from egocnn.nn.batch import Batchable
from egocnn.nn.device import choose_device
from egocnn.nn.predict import predict
from egocnn.study.crossval.folds import Task
from egocnn.study.crossval.machine import peak_megabytes
from egocnn.study.crossval.protocol import Combine
from egocnn.study.crossval.record import Fold, Run, make_fold
from egocnn.train.history import History
from egocnn.train.loop import EngineName, Reports, fit
from egocnn.train.metrics import accuracy, r2
from egocnn.train.recipe import Plan, Replica, choose_engine, encode, prepare_replicas
from egocnn.train.validation import check_targets

Say = Callable[[str], None]
Count = Callable[[int], None]
"""Told how many epochs are over."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedGraphs:
    """A fold before its training."""

    task: Task
    replicas: list[Replica]
    """the trainings of all its runs and restarts"""
    tested: Callable[[], Batchable]
    """encodes the graphs that are tested"""


def ego_fold(
    collection: Collection,
    task: Task,
    model: ModelConfig,
    train: TrainConfig,
    report: Count,
    combine: Combine = "best",
    *,
    stack: bool | None = None,
) -> Fold:
    """One fold of a collection in memory or on disk; ``stack``: as for :func:`egocnn.train.recipe.learn`"""
    started = time.perf_counter()
    parts = (task.learned, task.validation, task.tested)
    check_targets(collection.outline[task.learned])
    here = np.sort(np.concatenate(parts))  # given splits need not name all graphs
    plan = Plan.of(collection.choose(task.learned), model)
    with encode(collection.choose(here), plan) as encoded:
        learned, validation, tested = (np.searchsorted(here, part) for part in parts)
        both = (encoded(learned), encoded(validation))
        replicas = [Replica(plan.build(seed), both, seed) for seed in _seeds(task)]
        prepared = EncodedGraphs(task, replicas, lambda: encoded(tested))
        spent = time.perf_counter() - started
        engine = choose_engine([each.member for each in replicas], train, stack=stack)
        (fold,) = _finished([prepared], train, engine, combine, spent, lambda histories, _: report(_epochs(histories)))
    return fold


def stacked_folds(
    graphs: Graphs,
    tasks: Sequence[Task],
    model: ModelConfig,
    train: TrainConfig,
    report: Count,
    say: Say,
    combine: Combine = "best",
) -> Iterator[Fold]:
    """All of these folds trained together."""
    started = time.perf_counter()
    several = prepare_replicas([task.marked(graphs) for task in tasks], model, train, [_seeds(task) for task in tasks])
    spent = time.perf_counter() - started
    say(f"{len(tasks)} folds prepared in {spent:.1f} s")

    def tell(histories: Sequence[History], config: TrainConfig) -> None:
        report(_epochs(histories))
        epoch = max(len(history.epochs) for history in histories)
        best = [history.best.validation_score for history in histories if history.best is not None]
        running = sum(len(history.epochs) == epoch for history in histories)
        shown = f"{np.mean(best):.4f}" if best else "none yet"
        say(f"epoch {epoch}/{config.epochs}: {running} of {len(histories)} in training, mean best validation {shown}")

    def prepared(task: Task, replicas: list[Replica]) -> EncodedGraphs:
        return EncodedGraphs(task, replicas, lambda: replicas[0].predictor.encode(graphs[task.tested]))

    folds = [prepared(*each) for each in zip(tasks, several, strict=True)]
    yield from _finished(folds, train, "recorded", combine, spent, tell)


def _seeds(task: Task) -> list[int]:
    return [seed for run in task.seeds for seed in run]


def _epochs(histories: Sequence[History]) -> int:
    return sum(len(history.epochs) for history in histories)


def _finished(
    folds: Sequence[EncodedGraphs],
    train: TrainConfig,
    engine: EngineName,
    combine: Combine,
    preparing: float,
    report: Reports,
) -> Iterator[Fold]:
    """Train all replicas of all folds together, then test one fold after the other."""
    started = time.perf_counter()
    found = fit([each.member for fold in folds for each in fold.replicas], train, engine=engine, report=report)
    if any(history.interrupted for history in found):
        raise KeyboardInterrupt
    spent = (preparing / len(folds), (time.perf_counter() - started) / len(folds))
    histories = iter(found)
    for fold in folds:
        yield _tested(fold, list(islice(histories, len(fold.replicas))), train, spent, combine)


def _tested(
    fold: EncodedGraphs, histories: Sequence[History], train: TrainConfig, spent: tuple[float, float], combine: Combine
) -> Fold:
    """For every run one look at the test fold: of the restart that did best in validation, or of all together."""
    started = time.perf_counter()
    device = choose_device(train.device)
    task, replicas = fold.task, fold.replicas
    tested = fold.tested().to(device)  # all replicas read alike
    validation = replicas[0].parts[1].to(device) if combine == "average" else None
    runs, first = [], 0
    for seeds in task.seeds:
        here = slice(first, first + len(seeds))
        if validation is not None:
            runs.append(_run_of_all(task, replicas[here], histories[here], validation, tested, device))
        else:
            runs.append(_run_of_best(task, replicas[here], histories[here], tested, device))
        first += len(seeds)
    timing = (*spent, time.perf_counter() - started)
    parameters = replicas[0].predictor.network.n_parameters
    parameters *= len(task.seeds[0]) if combine == "average" else 1
    return make_fold(task, runs, parameters, timing, peak_megabytes(device))


def _run_of_best(
    task: Task, replicas: Sequence[Replica], histories: Sequence[History], tested: Batchable, device: torch.device
) -> Run:
    restart = _chosen(task, histories)
    best = histories[restart].best
    assert best is not None
    return Run(
        score=score_of([predictions_of(replicas[restart], tested, device)], tested),
        validation_score=best.validation_score,
        restart=restart + 1,
        seeds=tuple(replica.seed for replica in replicas),
        best_epoch=best.epoch,
        epochs=len(histories[restart].epochs),
    )


def _run_of_all(
    task: Task,
    replicas: Sequence[Replica],
    histories: Sequence[History],
    validation: Batchable,
    tested: Batchable,
    device: torch.device,
) -> Run:
    if any(history.best is None for history in histories):
        _diverged(task)
    predictions = [predictions_of(replica, tested, device) for replica in replicas]
    return Run(
        score=score_of(predictions, tested),
        validation_score=score_of([predictions_of(each, validation, device) for each in replicas], validation),
        restart=0,
        seeds=tuple(replica.seed for replica in replicas),
        alone=float(np.mean([score_of([each], tested) for each in predictions])),
    )


def predictions_of(replica: Replica, data: Batchable, device: torch.device) -> Tensor:
    """(G, C) probabilities, or (G, 1) standardised values"""
    outputs = predict(replica.predictor.network.to(device), data).double()
    return torch.softmax(outputs, dim=1) if replica.predictor.class_names else outputs


def score_of(predictions: Sequence[Tensor], data: Batchable) -> float:
    """Accuracy, or R², of the mean of several predictions"""
    assert data.target is not None
    together = torch.stack(list(predictions)).mean(dim=0)
    if together.shape[1] > 1:
        return accuracy(together, data.target)
    return r2(together[:, 0], data.target.double())


def _chosen(task: Task, histories: Sequence[History]) -> int:
    chosen, best = -1, None
    for number, history in enumerate(histories):
        if history.best is not None and history.best.beats(best):
            chosen, best = number, history.best
    if best is None:
        _diverged(task)
    return chosen


def _diverged(task: Task) -> NoReturn:
    raise DivergedError(
        f"training diverged in fold {task.fold}: no epoch gave a finite loss; try a smaller --learning-rate"
    )
