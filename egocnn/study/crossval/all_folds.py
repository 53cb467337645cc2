"""Graphs + settings -> cross-validated scores: every graph is tested by a model that has never seen it.

Folds and what chooses follow from the :class:`~egocnn.study.crossval.protocol.Protocol`; groups are never torn apart by
folds that are drawn here. Whatever is fitted, colour counts and scales included, is fitted on the training part alone.
A split that the data brings along is set aside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.collection import Collection
from egocnn.errors import ConfigError
from egocnn.nn.device import choose_device
from egocnn.study.cluster import run_jobs
from egocnn.study.crossval.ego_folds import FoldSettings, ego_fold, ignore, stacked_folds
from egocnn.study.crossval.folds import FoldTask, digest_of_folds, make_tasks
from egocnn.study.crossval.machine import library_versions, name_machine, one_thread
from egocnn.study.crossval.other_models import Builder, Classifier, classifier_fold, name_of
from egocnn.study.crossval.partial import PartialRecord, fingerprint, state
from egocnn.study.crossval.protocol import Protocol
from egocnn.study.crossval.record import CrossValidation, Fold
from egocnn.study.statistics import summarise
from egocnn.train.recipe import read_if_small, stays_on_disk
from egocnn.train.validation import check_targets

EGO_CNN = "ego-cnn"
"""What our own model is called, beside the names of others."""


def cross_validate(
    graphs: Collection,
    model: ModelConfig | Classifier | Builder,
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
    progress: Callable[[int], None] | None = None,
    log: Callable[[str], None] | None = None,
) -> CrossValidation:
    """Train and test on every fold; ``train.seed`` decides folds, validation parts and restarts.

    ``model``: the settings of an Ego-CNN, or any object with ``fit`` and ``predict``, as
    :class:`~egocnn.study.crossval.other_models.Classifier` has them; it takes nothing else from ``train`` but
    ``validation`` and ``seed``. Without a ``protocol``: the plain one with so many ``folds`` and ``restarts``.

    ``stack``: train folds, runs and restarts of an Ego-CNN as one model; by default where a GPU computes. ``jobs``:
    folds at a time, in processes of their own with one thread each (1 by default), or in one stack (all by default).
    ``ray``: the address of a Ray cluster, or "local": every fold is a task with one CPU there, unstacked, as many at a
    time as there are CPUs or at most ``jobs``. The scores of a fold do not depend on any of these, but for rounding and
    for which activations dropout drops. Graphs that stay in their store are trained on by an Ego-CNN alone, unstacked.

    ``out``: write the record there. Folds are saved beside it as they finish, and the same call goes on from them;
    those of other data or settings are refused unless ``overwrite`` gives them up. ``progress`` is called with the
    number of epochs that are over, ``log`` with a line of text now and then.

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
    on_disk = stays_on_disk(graphs)
    name = _check_request(model, protocol, stack=stack, jobs=jobs, on_disk=on_disk)
    train = train_config_for_ray(train, stack=stack) if ray is not None else train
    graphs = read_if_small(graphs).with_parts(None)
    check_targets(graphs.outline)
    device = choose_device(train.device)
    stacked = isinstance(model, ModelConfig) and not on_disk and (device.type == "cuda" if stack is None else stack)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    tasks = make_tasks(graphs.outline, protocol, train)
    settings = _recorded_settings(model, train, protocol)
    stated = state(name, protocol.name, protocol.folds, protocol.runs, protocol.restarts, settings)
    split = digest_of_folds(tasks)
    partial = PartialRecord.open(out, fingerprint(graphs, split, stated), stated, overwrite=overwrite)
    if (finished := partial.finished()) is not None:
        return finished

    started = time.perf_counter()
    shared = FoldSettings(graphs, model, train, protocol.combine, stack, progress or ignore, log or ignore)
    _finish_folds(shared, tasks, partial, stacked=stacked, jobs=jobs, ray=ray)
    scores = summarise([fold.score for fold in partial.folds])
    record = CrossValidation(
        model=name,
        data=data,
        protocol=protocol.name,
        score="accuracy" if graphs.outline.is_classification else "r2",
        mean=scores.mean,
        std=scores.std,
        interval=scores.interval,
        folds=tuple(partial.folds),
        seconds=partial.seconds + time.perf_counter() - started,
        preparing_seconds=sum(fold.preparing_seconds for fold in partial.folds),
        training_seconds=sum(fold.training_seconds for fold in partial.folds),
        testing_seconds=sum(fold.testing_seconds for fold in partial.folds),
        parameters=max((fold.parameters for fold in partial.folds if fold.parameters is not None), default=None),
        seed=train.seed,
        restarts=protocol.restarts,
        runs=protocol.runs,
        stacked=stacked,
        peak_megabytes=max((f.peak_megabytes for f in partial.folds if f.peak_megabytes is not None), default=None),
        settings=settings,
        split=split,
        fingerprint=partial.fingerprint,
        machine=name_machine(device, ray),
        versions=library_versions(),
    )
    partial.finish(record)
    return record


def _check_request(
    model: ModelConfig | Classifier | Builder,
    protocol: Protocol,
    *,
    stack: bool | None,
    jobs: int | None,
    on_disk: bool,
) -> str:
    """Refuse what does not go together; the name of the model."""
    if jobs is not None and jobs < 1:
        raise ConfigError(f"jobs must be at least 1, got {jobs}")
    is_ego = isinstance(model, ModelConfig)
    name = EGO_CNN if isinstance(model, ModelConfig) else name_of(model)
    if stack and not is_ego:
        raise ConfigError(f"only an Ego-CNN trains stacked, not {name}")
    if protocol.combine == "average" and not is_ego:
        raise ConfigError(f"only the restarts of an Ego-CNN can be averaged; {name} says classes, no probabilities")
    if on_disk and (stack or not is_ego):
        raise ConfigError(f"graphs that stay in their store train alone, not stacked, and only as an {EGO_CNN}")
    return name


def train_config_for_ray(train: TrainConfig, *, stack: bool | None) -> TrainConfig:
    """The settings with which a worker of a Ray cluster trains: on its CPU, also where its machine has a GPU."""
    if stack or train.device == "cuda":
        what = "--stack" if stack else "--device cuda"
        raise ConfigError(f"with --ray every fold trains alone on one CPU of a worker; {what} does not go with it")
    return replace(train, device="cpu")


def _recorded_settings(
    model: ModelConfig | Classifier | Builder, train: TrainConfig, protocol: Protocol
) -> dict[str, dict[str, Any]]:
    if not isinstance(model, ModelConfig):
        return {"model": {}, "train": {"seed": train.seed, "validation": train.validation}}
    averaged = {"restarts": {"combine": protocol.combine}} if protocol.combine == "average" else {}
    return {"model": asdict(model), "train": asdict(train), **averaged}


def _finish_folds(
    shared: FoldSettings,
    tasks: Sequence[FoldTask],
    partial: PartialRecord,
    *,
    stacked: bool,
    jobs: int | None,
    ray: str | None,
) -> None:
    """Compute and save the folds that an earlier call has not."""
    there = {fold.fold for fold in partial.folds}
    missing = [task for task in tasks if task.fold not in there]
    if there:
        shared.log(f"{len(there)} of {len(tasks)} folds are there already")
    started = time.perf_counter()
    done = _epochs(shared, tasks) - _epochs(shared, missing)
    folds = _in_stacks(shared, missing, jobs, done) if stacked else _one_by_one(shared, missing, jobs, ray, done)
    try:
        for fold in folds:
            partial.add(fold, time.perf_counter() - started)
            shared.log(f"fold {fold.fold}/{len(tasks)}: {fold.score:.4f} (validation {fold.validation_score:.4f})")
    except KeyboardInterrupt:
        if partial.out is None or not partial.folds:
            raise
        number = f"{len(partial.folds)} of {len(tasks)}"
        raise KeyboardInterrupt(
            f"stopped; {number} folds are kept in {partial.path}, and the same command goes on"
        ) from None


def _epochs(shared: FoldSettings, tasks: Sequence[FoldTask]) -> int:
    """Of all trainings of these folds, at most."""
    return sum(task.trainings for task in tasks) * shared.train.epochs


def _in_stacks(shared: FoldSettings, tasks: Sequence[FoldTask], jobs: int | None, done: int) -> Iterator[Fold]:
    at_once = jobs or max(len(tasks), 1)
    for first in range(0, len(tasks), at_once):
        before = done + _epochs(shared, tasks[:first])
        yield from stacked_folds(_counting_from(shared, before), tasks[first : first + at_once])


def _one_by_one(
    shared: FoldSettings, tasks: Sequence[FoldTask], jobs: int | None, ray: str | None, done: int
) -> Iterator[Fold]:
    if ray is None and jobs in (None, 1):
        for number, task in enumerate(tasks):
            yield _fold(_counting_from(shared, done + _epochs(shared, tasks[:number])), task)
            shared.progress(done + _epochs(shared, tasks[: number + 1]))
        return
    sent = (replace(shared, progress=ignore, log=ignore),)  # what is sent to other processes must be plain
    # in the order in which they finish: what is finished can be saved
    for number, fold in enumerate(
        run_jobs(_one_thread_fold, [(task,) for task in tasks], shared=sent, jobs=jobs, ray=ray)
    ):
        shared.progress(done + _epochs(shared, tasks[: number + 1]))
        yield fold


def _counting_from(shared: FoldSettings, before: int) -> FoldSettings:
    """The same, with epochs counted on from those before."""
    return replace(shared, progress=lambda epochs: shared.progress(before + epochs))


def _one_thread_fold(shared: FoldSettings, task: FoldTask) -> Fold:
    with one_thread():
        return _fold(shared, task)


def _fold(shared: FoldSettings, task: FoldTask) -> Fold:
    if isinstance(shared.model, ModelConfig):
        return ego_fold(shared, task)
    return classifier_fold(shared.graphs.whole(), task, shared.model, shared.train)
