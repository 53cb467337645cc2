"""Folds + settings of an Ego-CNN -> finished folds: one after the other, or all trained as one model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
import torch
from torch import Tensor

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.store import Stored
from egocnn.errors import DivergedError
from egocnn.model import Model
from egocnn.nn.batch import Batchable
from egocnn.study.crossval.folds import Task
from egocnn.study.crossval.machine import peak_megabytes
from egocnn.study.crossval.protocol import Combine
from egocnn.study.crossval.record import Fold, Run, make_fold
from egocnn.train.engines.recorded.learn import prepare_replicas, train_replicas, untrained
from egocnn.train.loop import Data, History, choose_device, fit, predict
from egocnn.train.recipe_stored import fit_stored, shelve

Say = Callable[[str], None]
Count = Callable[[int], None]
"""hears how many epochs are over"""


class Seeded(Protocol):
    """One training, as far as testing it goes."""

    @property
    def predictor(self) -> Model: ...

    @property
    def seed(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _OnDisk:
    """A training whose graphs are not in memory."""

    predictor: Model
    seed: int


def ego_fold(
    graphs: Graphs | Stored,
    task: Task,
    model: ModelConfig,
    train: TrainConfig,
    report: Count,
    combine: Combine = "best",
) -> Fold:
    """One fold, one training after the other."""
    if isinstance(graphs, Stored):
        return _stored_fold(graphs, task, model, train, report, combine)
    started = time.perf_counter()
    (replicas,) = prepare_replicas([task.marked(graphs)], model, train, [_flat(task)])
    ready = time.perf_counter()
    learned, validation = replicas[0].parts  # those of all
    histories = _train_in_turn(replicas, learned, validation, train, report)
    spent = (ready - started, time.perf_counter() - ready)
    tested = replicas[0].predictor.encode(graphs[task.tested])
    return _tested(task, replicas, histories, validation, tested, train, spent, combine)


def _stored_fold(
    stored: Stored, task: Task, model: ModelConfig, train: TrainConfig, report: Count, combine: Combine
) -> Fold:
    """The same of graphs that stay in their store; what is prepared is kept in the folder for temporary files."""
    started = time.perf_counter()
    parts = (task.learned, task.validation, task.tested)
    here = np.sort(np.concatenate(parts))  # given splits need not name all graphs
    settled, _, encoder = fit_stored(stored.choose(task.learned), model)
    replicas = [_OnDisk(untrained(settled, encoder, seed), seed) for seed in _flat(task)]
    with shelve(stored.choose(here), replicas[0].predictor, Path(tempfile.gettempdir())) as shelved:
        learned, validation, tested = (shelved(np.searchsorted(here, part)) for part in parts)
        ready = time.perf_counter()
        histories = _train_in_turn(replicas, learned, validation, train, report)
        spent = (ready - started, time.perf_counter() - ready)
        return _tested(task, replicas, histories, validation, tested, train, spent, combine)


def _train_in_turn(
    replicas: Sequence[Seeded], learned: Data, validation: Data, train: TrainConfig, report: Count
) -> list[History]:
    histories: list[History] = []

    def tell(history: History, config: TrainConfig) -> None:
        report(len(histories) * config.epochs + len(history.epochs))

    for replica in replicas:
        config = replace(train, seed=replica.seed)
        histories.append(fit(replica.predictor.network, learned, validation, config, report=tell))
        if histories[-1].interrupted:
            raise KeyboardInterrupt
    return histories


def stacked_folds(
    graphs: Graphs,
    tasks: Sequence[Task],
    model: ModelConfig,
    train: TrainConfig,
    report: Count,
    say: Say,
    combine: Combine = "best",
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
        tested = replicas[0].predictor.encode(graphs[task.tested])
        own = list(islice(histories, len(replicas)))
        yield _tested(task, replicas, own, replicas[0].parts[1], tested, train, share, combine)


def _flat(task: Task) -> list[int]:
    return [seed for run in task.seeds for seed in run]


def _tested(
    task: Task,
    replicas: Sequence[Seeded],
    histories: Sequence[History],
    validation: Batchable,
    tested: Batchable,
    train: TrainConfig,
    spent: tuple[float, float],
    combine: Combine,
) -> Fold:
    """For every run one look at the test fold: of the restart that did best in validation, or of all together."""
    started = time.perf_counter()
    device = choose_device(train.device)
    tested = tested.to(device)  # all replicas read alike
    runs, first = [], 0
    for seeds in task.seeds:
        here = slice(first, first + len(seeds))
        if combine == "average":
            runs.append(_run_of_all(task, replicas[here], histories[here], validation.to(device), tested, device))
        else:
            runs.append(_run_of_best(task, replicas[here], histories[here], tested, device))
        first += len(seeds)
    timing = (*spent, time.perf_counter() - started)
    parameters = replicas[0].predictor.network.n_parameters
    parameters *= len(task.seeds[0]) if combine == "average" else 1
    return make_fold(task, runs, parameters, timing, peak_megabytes(device))


def _run_of_best(
    task: Task, replicas: Sequence[Seeded], histories: Sequence[History], tested: Batchable, device: torch.device
) -> Run:
    restart = _chosen(task, histories)
    best = histories[restart].best
    assert best is not None
    return Run(
        score=score_of([said_by(replicas[restart], tested, device)], tested),
        validation_score=best.validation_score,
        restart=restart + 1,
        seeds=tuple(replica.seed for replica in replicas),
        best_epoch=best.epoch,
        epochs=len(histories[restart].epochs),
    )


def _run_of_all(
    task: Task,
    replicas: Sequence[Seeded],
    histories: Sequence[History],
    validation: Batchable,
    tested: Batchable,
    device: torch.device,
) -> Run:
    if any(history.best is None for history in histories):
        _diverged(task)
    said = [said_by(replica, tested, device) for replica in replicas]
    return Run(
        score=score_of(said, tested),
        validation_score=score_of([said_by(replica, validation, device) for replica in replicas], validation),
        restart=0,
        seeds=tuple(replica.seed for replica in replicas),
        alone=float(np.mean([score_of([each], tested) for each in said])),
    )


def said_by(replica: Seeded, data: Batchable, device: torch.device) -> Tensor:
    """(G, C) probabilities, or (G, 1) standardised values"""
    outputs = predict(replica.predictor.network.to(device), data).double()
    return torch.softmax(outputs, dim=1) if replica.predictor.class_names else outputs


def score_of(said: Sequence[Tensor], data: Batchable) -> float:
    """Accuracy, or R², of what several say on average"""
    assert data.target is not None
    together = torch.stack(list(said)).mean(dim=0)
    if together.shape[1] > 1:
        return float((together.argmax(dim=1) == data.target).double().mean())
    target = data.target.double()
    spread = float((target - target.mean()).square().sum())
    return 1 - float((together[:, 0] - target).square().sum()) / spread if spread > 0 else 0.0


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
