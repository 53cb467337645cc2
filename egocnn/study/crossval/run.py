"""Graphs + settings -> cross-validated scores: every graph is tested by a model that has never seen it.

Folds and what chooses follow from the :class:`~egocnn.study.crossval.protocol.Protocol`; groups are never torn apart by
folds that are drawn here. Whatever is fitted, colour counts and scales included, is fitted on the training part alone.
A split that the data brings along is set aside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.collection import Collection
from egocnn.errors import ConfigError
from egocnn.nn.device import choose_device
from egocnn.study.cluster import LOCAL, run_jobs
from egocnn.study.crossval.classifier import EGO_CNN, Builder, Classifier, name_of
from egocnn.study.crossval.ego import Count, Say, ego_fold, stacked_folds
from egocnn.study.crossval.folds import Task, digest_of_folds, make_tasks
from egocnn.study.crossval.kept import Kept, fingerprint, state
from egocnn.study.crossval.machine import library_versions, name_machine, one_thread
from egocnn.study.crossval.protocol import Combine, Protocol
from egocnn.study.crossval.record import CrossValidation, Fold
from egocnn.study.crossval.systems import system_fold
from egocnn.study.statistics import summarise
from egocnn.train.recipe import read_if_small, stays_on_disk
from egocnn.train.validation import check_targets

Model: TypeAlias = ModelConfig | Classifier | Builder
"""What can be cross-validated: settings of an Ego-CNN, or somebody else's model."""


def cross_validate(
    graphs: Collection,
    model: Model,
    train: TrainConfig,
    *,
    protocol: Protocol | None = None,
    folds: int = 10,
    restarts: int = 1,
    stack: bool | None = None,
    jobs: int | None = None,
    ray: str | None = None,
    data: str = "",
    out: Path | None = None,
    overwrite: bool = False,
    report: Count | None = None,
    say: Say | None = None,
) -> CrossValidation:
    """Train and test on every fold; ``train.seed`` decides folds, validation parts and restarts.

    ``model``: the settings of an Ego-CNN, or any object with ``fit`` and ``predict``, as
    :class:`~egocnn.study.crossval.classifier.Classifier` has them; it takes nothing else from ``train`` but
    ``validation`` and ``seed``. Without a ``protocol``: the plain one with so many ``folds`` and ``restarts``.

    ``stack``: train folds, runs and restarts of an Ego-CNN as one model; by default where a GPU computes. ``jobs``:
    folds at a time, in processes of their own with one thread each (1 by default), or in one stack (all by default).
    ``ray``: the address of a Ray cluster, or "local": every fold is a task with one CPU there, unstacked, as many at a
    time as there are CPUs or at most ``jobs``. The scores of a fold do not depend on any of these, but for rounding and
    for which activations dropout drops. Graphs that stay in their store are trained on by an Ego-CNN alone, unstacked.

    ``out``: write the record there. Folds are kept beside it as they finish, and the same call goes on from them; those
    of other data or settings are refused unless ``overwrite`` gives them up.

    A model of your own, here one that always says the commonest class:

    >>> import numpy as np
    >>> from egocnn.config import TrainConfig
    >>> from egocnn.data.read import read
    >>> class Majority:
    ...     def fit(self, graphs, target):
    ...         self.commonest = np.bincount(target).argmax()
    ...         return self
    ...
    ...     def predict(self, graphs):
    ...         return np.full(len(graphs), self.commonest)
    >>> graphs = read("compounds:alcohols:sizes=3-12,per_size=6")
    >>> result = cross_validate(graphs, Majority(), TrainConfig(device="cpu"), folds=4)
    >>> result.model, round(result.mean, 1)
    ('Majority', 0.5)
    """
    protocol = protocol or Protocol(folds=folds, restarts=restarts)
    if jobs is not None and jobs < 1:
        raise ConfigError(f"jobs must be at least 1, got {jobs}")
    name = EGO_CNN if isinstance(model, ModelConfig) else name_of(model)
    if stack and not isinstance(model, ModelConfig):
        raise ConfigError(f"only an Ego-CNN trains stacked, not {name}")
    if protocol.combine == "average" and not isinstance(model, ModelConfig):
        raise ConfigError(f"only the restarts of an Ego-CNN can be averaged; {name} says classes, no probabilities")
    if ray is not None:
        train = _on_workers(train, stack=stack)
    on_disk = stays_on_disk(graphs)
    if on_disk and (stack or not isinstance(model, ModelConfig)):
        raise ConfigError(f"graphs that stay in their store train alone, not stacked, and only as an {EGO_CNN}")
    graphs = read_if_small(graphs).with_parts(None)
    outline = graphs.outline
    check_targets(outline)
    device = choose_device(train.device)
    stacked = isinstance(model, ModelConfig) and (device.type == "cuda" if stack is None else stack)
    stacked = stacked and not on_disk
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    tasks = make_tasks(outline, protocol, train)
    settings = _settings(model, train, protocol)
    stated = state(name, protocol.name, protocol.folds, protocol.runs, protocol.restarts, settings)
    split = digest_of_folds(tasks)
    kept = Kept.open(out, fingerprint(graphs, split, stated), stated, overwrite=overwrite)
    if (finished := kept.finished()) is not None:
        return finished

    started = time.perf_counter()
    work = Work(graphs, model, train, protocol.combine, stack, report or _silent, say or _silent)
    _finish_folds(work, tasks, kept, stacked=stacked, jobs=jobs, ray=ray)
    scores = summarise([fold.score for fold in kept.folds])
    sizes = [fold.parameters for fold in kept.folds if fold.parameters is not None]
    peaks = [fold.peak_megabytes for fold in kept.folds if fold.peak_megabytes is not None]
    record = CrossValidation(
        model=name,
        data=data,
        protocol=protocol.name,
        score="accuracy" if outline.is_classification else "r2",
        mean=scores.mean,
        std=scores.std,
        interval=scores.interval,
        folds=tuple(kept.folds),
        seconds=kept.seconds + time.perf_counter() - started,
        preparing_seconds=sum(fold.preparing_seconds for fold in kept.folds),
        training_seconds=sum(fold.training_seconds for fold in kept.folds),
        testing_seconds=sum(fold.testing_seconds for fold in kept.folds),
        parameters=max(sizes, default=None),
        seed=train.seed,
        restarts=protocol.restarts,
        runs=protocol.runs,
        stacked=stacked,
        peak_megabytes=max(peaks, default=None),
        settings=settings,
        split=split,
        fingerprint=kept.fingerprint,
        machine=name_machine(device) if ray in (None, LOCAL) else f"Ray cluster, called from {name_machine(device)}",
        versions=library_versions(),
    )
    kept.finish(record)
    return record


def _on_workers(train: TrainConfig, *, stack: bool | None) -> TrainConfig:
    if stack or train.device == "cuda":
        what = "--stack" if stack else "--device cuda"
        raise ConfigError(f"with --ray every fold trains alone on one CPU of a worker; {what} does not go with it")
    return replace(train, device="cpu")  # also where a worker's machine has a GPU


def _settings(model: Model, train: TrainConfig, protocol: Protocol) -> dict[str, dict[str, Any]]:
    if not isinstance(model, ModelConfig):
        return {"model": {}, "train": {"seed": train.seed, "validation": train.validation}}
    averaged = {"restarts": {"combine": protocol.combine}} if protocol.combine == "average" else {}
    return {"model": asdict(model), "train": asdict(train), **averaged}


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What all folds have in common."""

    graphs: Collection
    model: Model
    train: TrainConfig
    combine: Combine
    stack: bool | None
    report: Count
    say: Say

    def epochs(self, tasks: Sequence[Task]) -> int:
        return sum(task.trainings for task in tasks) * self.train.epochs


def _finish_folds(
    work: Work, tasks: Sequence[Task], kept: Kept, *, stacked: bool, jobs: int | None, ray: str | None
) -> None:
    """Compute what is not kept yet, and keep it."""
    there = {fold.fold for fold in kept.folds}
    missing = [task for task in tasks if task.fold not in there]
    if there:
        work.say(f"{len(there)} of {len(tasks)} folds are there already")
    started = time.perf_counter()
    done = work.epochs(tasks) - work.epochs(missing)
    folds = _stacks(work, missing, jobs, done) if stacked else _in_turn(work, missing, jobs, ray, done)
    try:
        for fold in folds:
            kept.add(fold, time.perf_counter() - started)
            work.say(f"fold {fold.fold}/{len(tasks)}: {fold.score:.4f} (validation {fold.validation_score:.4f})")
    except KeyboardInterrupt:
        if kept.out is None or not kept.folds:
            raise
        raise KeyboardInterrupt(
            f"stopped; {len(kept.folds)} of {len(tasks)} folds are kept in {kept.path}, and the same command goes on"
        ) from None


def _stacks(work: Work, tasks: Sequence[Task], jobs: int | None, done: int) -> Iterator[Fold]:
    assert isinstance(work.model, ModelConfig)
    at_once = jobs or max(len(tasks), 1)
    for first in range(0, len(tasks), at_once):
        before = done + work.epochs(tasks[:first])
        here = tasks[first : first + at_once]
        report = _after(work.report, before)
        yield from stacked_folds(work.graphs.whole(), here, work.model, work.train, report, work.say, work.combine)


def _in_turn(work: Work, tasks: Sequence[Task], jobs: int | None, ray: str | None, done: int) -> Iterator[Fold]:
    if ray is None and jobs in (None, 1):
        for number, task in enumerate(tasks):
            before = done + work.epochs(tasks[:number])
            yield _one_fold(replace(work, report=_after(work.report, before)), task)
            work.report(before + work.epochs([task]))
        return
    shared = (replace(work, report=_silent, say=_silent),)  # what is sent to other processes must be plain
    # in the order in which they finish: what is finished can be kept
    for number, fold in enumerate(run_jobs(_alone, [(task,) for task in tasks], shared=shared, jobs=jobs, ray=ray)):
        work.report(done + work.epochs(tasks[: number + 1]))
        yield fold


def _after(report: Count, before: int) -> Callable[[int], None]:
    return lambda epochs: report(before + epochs)


def _silent(_: object) -> None:
    """Tells nobody."""


def _alone(work: Work, task: Task) -> Fold:
    with one_thread():
        return _one_fold(work, task)


def _one_fold(work: Work, task: Task) -> Fold:
    if not isinstance(work.model, ModelConfig):
        return system_fold(work.graphs.whole(), task, work.model, work.train)
    return ego_fold(work.graphs, task, work.model, work.train, work.report, work.combine, stack=work.stack)
