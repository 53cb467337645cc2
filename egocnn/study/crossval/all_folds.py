"""Graphs + settings -> cross-validated scores: every graph is tested by a model that has never seen it.

Folds and what chooses follow from the :class:`~egocnn.study.crossval.folds.Protocol`; groups are never torn apart by
folds that are drawn here. Whatever is fitted, colour counts and scales included, is fitted on the training part alone.
A split that the data brings along is set aside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.collection import Collection
from egocnn.errors import ConfigError
from egocnn.nn.device import choose_device
from egocnn.study.cluster import library_versions, name_machine, one_thread, run_jobs
from egocnn.study.crossval.ego_folds import Execution, FoldSettings, ego_fold, ignore, stacked_folds
from egocnn.study.crossval.folds import FoldTask, Protocol, digest_of_folds, make_tasks
from egocnn.study.crossval.other_models import EGO_CNN, AnyModel, classifier_fold, name_of
from egocnn.study.crossval.record import SECONDS, CrossValidation, Fold, PartialRecord, fingerprint, state
from egocnn.study.statistics import summarise
from egocnn.train.recipe import read_if_small, stays_on_disk
from egocnn.train.validation import check_targets


def cross_validate(
    graphs: Collection,
    model: AnyModel,
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

    ``model``: the settings of an Ego-CNN, or any :class:`~egocnn.study.crossval.other_models.Classifier`, which takes
    nothing from ``train`` but ``validation`` and ``seed``. Without a ``protocol``: the plain one with so many ``folds``
    and ``restarts``. ``stack``: train folds, runs and restarts of an Ego-CNN as one model; by default where a GPU
    computes. ``jobs``: folds at a time, in processes of their own with one thread each (1 by default), or in one stack
    (all by default). ``ray``: the address of a Ray cluster, or "local": every fold is a task with one CPU there,
    unstacked. The scores of a fold do not depend on any of these, but for rounding and for which activations dropout
    drops. Graphs that stay in their store are trained on by an Ego-CNN alone, unstacked.

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
    execution = Execution(jobs=jobs, ray=ray, stack=stack, progress=progress or ignore, log=log or ignore)
    is_ego = isinstance(model, ModelConfig)
    if jobs is not None and jobs < 1:
        raise ConfigError(f"jobs must be at least 1, got {jobs}")
    if stack and not is_ego:
        raise ConfigError(f"only an Ego-CNN trains stacked, not {name_of(model)}")
    if protocol.combine == "average" and not is_ego:
        other = f"{name_of(model)} says classes, no probabilities"
        raise ConfigError(f"only the restarts of an Ego-CNN can be averaged; {other}")
    if stays_on_disk(graphs) and (stack or not is_ego):
        raise ConfigError(f"graphs that stay in their store train alone, not stacked, and only as an {EGO_CNN}")
    train = execution.train_config(train)
    graphs = read_if_small(graphs).with_parts(None)
    check_targets(graphs.outline)
    device = choose_device(train.device)
    stacked = is_ego and execution.is_stacked(graphs, device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    tasks = make_tasks(graphs.outline, protocol, train)
    settings = _recorded_settings(model, train, protocol)
    stated = state(name_of(model), protocol.name, protocol.folds, protocol.runs, protocol.restarts, settings)
    split = digest_of_folds(tasks)
    partial = PartialRecord.open(out, fingerprint(graphs, split, stated), stated, overwrite=overwrite)
    if (finished := partial.finished()) is not None:
        return finished

    started = time.perf_counter()
    _finish_folds(FoldSettings(graphs, model, train, protocol.combine, execution), tasks, partial, stacked=stacked)
    done = partial.folds
    largest = {
        name: max((value for fold in done if (value := getattr(fold, name)) is not None), default=None)
        for name in ("parameters", "peak_megabytes")
    }
    record = CrossValidation(
        model=name_of(model),
        data=data,
        protocol=protocol.name,
        score="accuracy" if graphs.outline.is_classification else "r2",
        **asdict(summarise([fold.score for fold in done])),
        folds=tuple(done),
        seconds=partial.seconds + time.perf_counter() - started,
        **{name: sum(getattr(fold, name) for fold in done) for name in SECONDS},
        **largest,
        seed=train.seed,
        restarts=protocol.restarts,
        runs=protocol.runs,
        stacked=stacked,
        settings=settings,
        split=split,
        fingerprint=partial.fingerprint,
        machine=name_machine(device, ray),
        versions=library_versions(),
    )
    partial.finish(record)
    return record


def _recorded_settings(model: AnyModel, train: TrainConfig, protocol: Protocol) -> dict[str, dict[str, Any]]:
    if not isinstance(model, ModelConfig):
        return {"model": {}, "train": {"seed": train.seed, "validation": train.validation}}
    averaged = {"restarts": {"combine": protocol.combine}} if protocol.combine == "average" else {}
    return {"model": asdict(model), "train": asdict(train), **averaged}


def _finish_folds(settings: FoldSettings, tasks: Sequence[FoldTask], partial: PartialRecord, *, stacked: bool) -> None:
    """Compute and save the folds that an earlier call has not."""
    there = {fold.fold for fold in partial.folds}
    missing = [task for task in tasks if task.fold not in there]
    log = settings.execution.log
    if there:
        log(f"{len(there)} of {len(tasks)} folds are there already")
    started = time.perf_counter()
    try:
        for fold in _folds(settings, missing, len(there), stacked=stacked) if missing else ():
            partial.add(fold, time.perf_counter() - started)
            log(f"fold {fold.fold}/{len(tasks)}: {fold.score:.4f} (validation {fold.validation_score:.4f})")
    except KeyboardInterrupt:
        if partial.out is None or not partial.folds:
            raise
        kept = f"{len(partial.folds)} of {len(tasks)} folds are kept in {partial.path}"
        raise KeyboardInterrupt(f"stopped; {kept}, and the same command goes on") from None


def _folds(settings: FoldSettings, tasks: Sequence[FoldTask], there: int, *, stacked: bool) -> Iterator[Fold]:
    """The folds as they finish: in stacks, one after the other, or several at a time; ``there``: folds before them."""
    execution = settings.execution
    each = sum(map(len, tasks[0].seeds)) * settings.train.networks * settings.train.epochs
    if not stacked and (execution.ray is not None or execution.jobs not in (None, 1)):
        sent = (replace(settings, execution=execution.silent),)
        calls = [(task, True) for task in tasks]
        found = run_jobs(_fold, calls, shared=sent, jobs=execution.jobs, ray=execution.ray)
        for number, fold in enumerate(found, start=1):
            execution.progress((there + number) * each)
            yield fold
        return
    at_once = execution.jobs or len(tasks) if stacked else 1
    for first in range(0, len(tasks), at_once):
        some = tasks[first : first + at_once]
        here = replace(settings, execution=execution.counting_from((there + first) * each))
        yield from stacked_folds(here, some) if stacked else (_fold(here, task) for task in some)
        execution.progress((there + first + len(some)) * each)


def _fold(settings: FoldSettings, task: FoldTask, is_one_of_many: bool = False) -> Fold:
    with one_thread() if is_one_of_many else nullcontext():
        if isinstance(settings.model, ModelConfig):
            return ego_fold(settings, task)
        return classifier_fold(settings.graphs.whole(), task, settings.model, settings.train)
