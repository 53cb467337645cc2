"""Folds + settings of an Ego-CNN -> finished folds: one after the other, or all trained together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.collection import Collection
from egocnn.errors import DivergedError
from egocnn.nn.batch import Batchable
from egocnn.nn.device import choose_device
from egocnn.nn.predict import predict
from egocnn.study.crossval.folds import FoldTask
from egocnn.study.crossval.machine import peak_megabytes
from egocnn.study.crossval.other_models import Builder, Classifier
from egocnn.study.crossval.protocol import Combine
from egocnn.study.crossval.record import Fold, FoldRun, make_fold
from egocnn.train.history import History
from egocnn.train.loop import EngineName, Reports, fit
from egocnn.train.metrics import accuracy, r2
from egocnn.train.recipe import Replica, TrainingPlan, choose_engine, encode, prepare_replicas
from egocnn.train.validation import check_targets


def ignore(_: object) -> None:
    """A callback that does nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class FoldSettings:
    """What all folds have in common: graphs, model, training, and who is called as it goes on."""

    graphs: Collection
    model: ModelConfig | Classifier | Builder
    train: TrainConfig
    combine: Combine = "best"
    stack: bool | None = None
    """as for :func:`egocnn.train.recipe.learn`"""
    progress: Callable[[int], None] = ignore
    """called with the number of epochs that are over"""
    log: Callable[[str], None] = ignore

    @property
    def network(self) -> ModelConfig:
        """The settings of the Ego-CNN."""
        assert isinstance(self.model, ModelConfig)
        return self.model


@dataclass(frozen=True, slots=True, eq=False)
class _PreparedFold:
    """A fold before its training."""

    task: FoldTask
    replicas: list[Replica]
    """the trainings of all its runs and restarts"""
    encode_tested: Callable[[], Batchable]


def ego_fold(settings: FoldSettings, task: FoldTask) -> Fold:
    """One fold of a collection in memory or on disk."""
    started = time.perf_counter()
    collection = settings.graphs
    parts = (task.learned, task.validation, task.tested)
    check_targets(collection.outline[task.learned])
    here = np.sort(np.concatenate(parts))  # given splits need not name all graphs
    plan = TrainingPlan.of(collection.choose(task.learned), settings.network)
    with encode(collection.choose(here), plan) as encoded:
        learned, validation, tested = (np.searchsorted(here, part) for part in parts)
        both = (encoded(learned), encoded(validation))
        replicas = [Replica(plan.build(seed), both, seed) for seed in _seeds(task)]
        prepared = _PreparedFold(task, replicas, lambda: encoded(tested))
        spent = time.perf_counter() - started
        engine = choose_engine([each.member for each in replicas], settings.train, stack=settings.stack)
        (fold,) = _train_and_test(
            settings, [prepared], engine, spent, lambda histories, _: settings.progress(_count_epochs(histories))
        )
    return fold


def stacked_folds(settings: FoldSettings, tasks: Sequence[FoldTask]) -> Iterator[Fold]:
    """All of these folds trained together as one model."""
    started = time.perf_counter()
    graphs = settings.graphs.whole()
    parts, seeds = [task.without_tested(graphs) for task in tasks], [_seeds(task) for task in tasks]
    several = prepare_replicas(parts, settings.network, settings.train, seeds)
    spent = time.perf_counter() - started
    settings.log(f"{len(tasks)} folds prepared in {spent:.1f} s")

    def report(histories: Sequence[History], config: TrainConfig) -> None:
        settings.progress(_count_epochs(histories))
        epoch = max(len(history.epochs) for history in histories)
        best = [history.best.validation_score for history in histories if history.best is not None]
        running = sum(len(history.epochs) == epoch for history in histories)
        shown = f"{np.mean(best):.4f}" if best else "none yet"
        in_training = f"{running} of {len(histories)} in training"
        settings.log(f"epoch {epoch}/{config.epochs}: {in_training}, mean best validation {shown}")

    def prepared(task: FoldTask, replicas: list[Replica]) -> _PreparedFold:
        return _PreparedFold(task, replicas, lambda: replicas[0].predictor.encode(graphs[task.tested]))

    folds = [prepared(*each) for each in zip(tasks, several, strict=True)]
    yield from _train_and_test(settings, folds, "recorded", spent, report)


def _seeds(task: FoldTask) -> list[int]:
    return [seed for run in task.seeds for seed in run]


def _count_epochs(histories: Sequence[History]) -> int:
    return sum(len(history.epochs) for history in histories)


def _train_and_test(
    settings: FoldSettings, folds: Sequence[_PreparedFold], engine: EngineName, preparing: float, report: Reports
) -> Iterator[Fold]:
    """Train all replicas of all folds together, then test one fold after the other."""
    started = time.perf_counter()
    members = [each.member for fold in folds for each in fold.replicas]
    trained = fit(members, settings.train, engine=engine, report=report)
    if any(history.interrupted for history in trained):
        raise KeyboardInterrupt
    spent = (preparing / len(folds), (time.perf_counter() - started) / len(folds))
    histories = iter(trained)
    for fold in folds:
        yield _test(settings, fold, list(islice(histories, len(fold.replicas))), spent)


def _test(
    settings: FoldSettings, fold: _PreparedFold, histories: Sequence[History], spent: tuple[float, float]
) -> Fold:
    """For every run one look at the tested graphs."""
    started = time.perf_counter()
    device = choose_device(settings.train.device)
    replicas, task = fold.replicas, fold.task
    tested = fold.encode_tested().to(device)  # all replicas read alike
    is_averaged = settings.combine == "average"
    validation = replicas[0].parts[1].to(device) if is_averaged else None
    trained = iter(zip(replicas, histories, strict=True))
    runs = [_run(task, list(islice(trained, len(seeds))), tested, validation, device) for seeds in task.seeds]
    timing = (*spent, time.perf_counter() - started)
    parameters = replicas[0].predictor.network.n_parameters * (len(task.seeds[0]) if is_averaged else 1)
    return make_fold(task, runs, parameters, timing, peak_megabytes(device))


def _run(
    task: FoldTask,
    restarts: Sequence[tuple[Replica, History]],
    tested: Batchable,
    validation: Batchable | None,
    device: torch.device,
) -> FoldRun:
    """The score of the restart that did best in validation; where validation graphs are given, of all together."""
    seeds = tuple(replica.seed for replica, _ in restarts)
    bests = [(number, history.best) for number, (_, history) in enumerate(restarts) if history.best is not None]
    if not bests or (validation is not None and len(bests) < len(restarts)):
        raise DivergedError(
            f"training diverged in fold {task.fold}: no epoch gave a finite loss; try a smaller --learning-rate"
        )
    if validation is not None:
        predictions = [predictions_of(replica, tested, device) for replica, _ in restarts]
        of_validation = [predictions_of(replica, validation, device) for replica, _ in restarts]
        return FoldRun(
            score=score_of(predictions, tested),
            validation_score=score_of(of_validation, validation),
            restart=0,
            seeds=seeds,
            alone=float(np.mean([score_of([each], tested) for each in predictions])),
        )
    chosen, best = bests[0]
    for number, each in bests[1:]:
        if each.beats(best):
            chosen, best = number, each
    replica, history = restarts[chosen]
    return FoldRun(
        score=score_of([predictions_of(replica, tested, device)], tested),
        validation_score=best.validation_score,
        restart=chosen + 1,
        seeds=seeds,
        best_epoch=best.epoch,
        epochs=len(history.epochs),
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
