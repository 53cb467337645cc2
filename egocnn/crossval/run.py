"""Graphs + settings -> cross-validated scores: every graph is tested once, by a model that has never seen it.

The plain protocol: stratified folds drawn by the seed, groups never torn apart. In each fold a tenth of the training
part (``TrainConfig.validation``) chooses the best epoch, and the best of the restarts; the test fold is looked at once,
by the model so chosen. Whatever is fitted, colour counts and scales included, is fitted on the training part alone. A
split that the data brings along is set aside.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace

import numpy as np
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.crossval.folds import Task, fold_numbers
from egocnn.crossval.record import CrossValidation, Fold, summary
from egocnn.errors import ConfigError, DataError
from egocnn.graphs import Graphs
from egocnn.parts import check_targets
from egocnn.predictor import Predictor
from egocnn.runs import machine, test_scores, versions
from egocnn.stacking.learn import prepare_replicas, train_replicas
from egocnn.training import Epoch, History, choose_device, fit

Say = Callable[[str], None]
Count = Callable[[int], None]
"""hears how many epochs are over, of folds × restarts × epochs"""


def cross_validate(
    graphs: Graphs,
    model: ModelConfig,
    train: TrainConfig,
    *,
    folds: int = 10,
    restarts: int = 1,
    stack: bool | None = None,
    jobs: int = 1,
    data: str = "",
    report: Count | None = None,
    say: Say | None = None,
) -> CrossValidation:
    """Train and test on every fold; ``train.seed`` decides folds, validation parts and restarts.

    ``stack``: train all folds and restarts as one model; by default where a GPU computes. Otherwise one training after
    the other, or ``jobs`` folds at a time in processes of their own. The scores of a fold do not depend on either, but
    for rounding and for which activations dropout drops.
    """
    _check_counts(folds=folds, restarts=restarts, jobs=jobs)
    check_targets(graphs)
    device = choose_device(train.device)
    stacked = device.type == "cuda" if stack is None else stack
    started = time.perf_counter()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    graphs = graphs.replace(part=None)
    tasks = [
        Task(number, *pair, restarts) for number, pair in enumerate(fold_numbers(graphs, folds, train.seed), start=1)
    ]
    run = _stacked if stacked else _in_turn
    results, timing = run(graphs, tasks, model, train, jobs, report or (lambda _: None), say or (lambda _: None))
    scores = [fold.score for fold in results]
    mean, std, interval = summary(scores)
    return CrossValidation(
        model="ego-cnn",
        data=data,
        protocol="plain",
        score="accuracy" if graphs.is_classification else "r2",
        mean=mean,
        std=std,
        interval=interval,
        folds=tuple(results),
        seconds=time.perf_counter() - started,
        preparing_seconds=timing[0],
        training_seconds=timing[1],
        testing_seconds=timing[2],
        parameters=max(fold.parameters for fold in results),
        seed=train.seed,
        restarts=restarts,
        stacked=stacked,
        peak_megabytes=_peak_megabytes(device),
        settings={"model": asdict(model), "train": asdict(train)},
        machine=_machine(device),
        versions=versions(),
    )


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        least = 2 if name == "folds" else 1
        if count < least:
            raise ConfigError(f"{name} must be at least {least}, got {count}")


# ── training and testing ──────────────────────────────────────────────────────────────────────────


Timing = tuple[float, float, float]
"""seconds of preparing, training and testing, added up over processes"""


def _chosen(task: Task, histories: Sequence[History]) -> int:
    """The restart that did best on the validation part."""
    chosen, best = -1, None
    for number, history in enumerate(histories):
        if history.best is not None and history.best.beats(best):
            chosen, best = number, history.best
    if best is None:
        raise DataError(
            f"training diverged in fold {task.fold}: no epoch gave a finite loss; try a smaller --learning-rate"
        )
    return chosen


def _tested(task: Task, restart: int, predictor: Predictor, history: History, graphs: Graphs, device: str) -> Fold:
    best: Epoch | None = history.best
    assert best is not None
    scores = test_scores(predictor, graphs[task.tested], device=device)
    return Fold(
        fold=task.fold,
        score=scores["accuracy" if predictor.class_names else "r2"],
        validation_score=best.validation_score,
        restart=restart + 1,
        best_epoch=best.epoch,
        epochs=len(history.epochs),
        test_graphs=len(task.tested),
        parameters=predictor.network.n_parameters,
    )


def _stacked(
    graphs: Graphs,
    tasks: Sequence[Task],
    model: ModelConfig,
    train: TrainConfig,
    jobs: int,  # noqa: ARG001
    report: Count,
    say: Say,
) -> tuple[list[Fold], Timing]:
    started = time.perf_counter()
    several = [task.learned(graphs, train) for task in tasks]
    prepared = prepare_replicas(several, model, train, [task.seeds(train) for task in tasks])
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
    trained = time.perf_counter()
    results = []
    for task, replicas in zip(tasks, prepared, strict=True):
        own = [next(histories) for _ in replicas]
        restart = _chosen(task, own)
        results.append(_tested(task, restart, replicas[restart].predictor, own[restart], graphs, train.device))
    return results, (ready - started, trained - ready, time.perf_counter() - trained)


def _in_turn(
    graphs: Graphs,
    tasks: Sequence[Task],
    model: ModelConfig,
    train: TrainConfig,
    jobs: int,
    report: Count,
    say: Say,
) -> tuple[list[Fold], Timing]:
    from joblib import Parallel, delayed

    each = tasks[0].restarts * train.epochs
    results: list[Fold] = []
    spent: list[Timing] = []
    work: Iterator[tuple[Fold, Timing]]
    if jobs == 1:
        work = (_one_fold(graphs, task, model, train, lambda n: report(len(results) * each + n)) for task in tasks)
    else:
        calls = (delayed(_alone)(graphs, task, model, train) for task in tasks)
        work = iter(Parallel(n_jobs=jobs, return_as="generator")(calls))
    for fold, timing in work:
        results.append(fold)
        spent.append(timing)
        report(len(results) * each)
        say(f"fold {fold.fold}/{len(tasks)}: {fold.score:.4f} (validation {fold.validation_score:.4f})")
    preparing, training, testing = (sum(seconds) for seconds in zip(*spent, strict=True))
    return results, (preparing, training, testing)


def _alone(graphs: Graphs, task: Task, model: ModelConfig, train: TrainConfig) -> tuple[Fold, Timing]:
    torch.set_num_threads(1)  # processes with several threads each crawl
    return _one_fold(graphs, task, model, train, lambda _: None)


def _one_fold(graphs: Graphs, task: Task, model: ModelConfig, train: TrainConfig, report: Count) -> tuple[Fold, Timing]:
    started = time.perf_counter()
    (replicas,) = prepare_replicas([task.learned(graphs, train)], model, train, [task.seeds(train)])
    ready = time.perf_counter()
    histories: list[History] = []

    def tell(history: History, config: TrainConfig) -> None:
        report(len(histories) * config.epochs + len(history.epochs))

    for replica in replicas:
        config = replace(train, seed=replica.seed)
        histories.append(fit(replica.predictor.network, *replica.parts, config, report=tell))
        if histories[-1].interrupted:
            raise KeyboardInterrupt
    trained = time.perf_counter()
    restart = _chosen(task, histories)
    fold = _tested(task, restart, replicas[restart].predictor, histories[restart], graphs, train.device)
    return fold, (ready - started, trained - ready, time.perf_counter() - trained)


# ── the machine ───────────────────────────────────────────────────────────────────────────────────


def _machine(device: torch.device) -> str:
    return f"{torch.cuda.get_device_name(device)}, {machine()}" if device.type == "cuda" else machine()


def _peak_megabytes(device: torch.device) -> float | None:
    if device.type == "cuda":
        return round(torch.cuda.max_memory_allocated(device) / 1e6, 1)
    if os.name != "posix":
        return None
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(largest / (1e6 if sys.platform == "darwin" else 1e3), 1)
