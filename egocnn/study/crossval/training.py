"""Graphs + settings -> cross-validated scores: every graph is tested by a model that has never seen it. Whatever is
fitted, colour counts and scales too, is fitted on the training part alone; a split of the data's own is set aside."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias
from typing import Protocol as Interface

import numpy as np
import torch

from egocnn.config import LOWER_IS_BETTER, ModelConfig, TrainConfig, check_value
from egocnn.data.collection import Collection
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DivergedError, rule
from egocnn.nn.batch import Batchable
from egocnn.nn.device import choose_device
from egocnn.study.cluster import library_versions, name_machine, peak_megabytes, run_jobs
from egocnn.study.crossval import scoring
from egocnn.study.crossval.folds import Combine, FoldTask, Protocol, digest_of_folds, make_tasks
from egocnn.study.crossval.record import SECONDS, CrossValidation, Fold, FoldRun, PartialRecord, fingerprint, state
from egocnn.train import recipe
from egocnn.train.history import History, mean_history
from egocnn.train.loop import EngineName, Reports, fit
from egocnn.train.metrics import OF_BOTH, score_for
from egocnn.train.validation import check_targets, with_known_target

EGO_CNN = "ego-cnn"  # What our own model is called, beside the names of others.


def ignore(*_: object) -> None:
    """A callback that does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Where and how trainings run, and who is called as they go on; no score depends on it but for rounding."""

    jobs: int | None = None
    ray: str | None = None
    stack: bool | None = None  # train folds as one model; None: where a GPU computes
    progress: Callable[[int], None] = ignore
    """called with the number of epochs that are over; by a sweep, with that of its (setting, fold) pairs"""
    log: Callable[[str], None] = ignore

    def train_config(self, train: TrainConfig) -> TrainConfig:
        """The settings with which a worker trains: one of a Ray cluster on its CPU, also where it has a GPU."""
        if self.ray is None:
            return train
        if self.stack or train.device == "cuda":
            what = "--stack" if self.stack else "--device cuda"
            raise ConfigError(f"with --ray every fold trains alone on one CPU of a worker; {what} does not go with it")
        return replace(train, device="cpu")

    def is_stacked(self, graphs: Collection, device: torch.device) -> bool:
        """Whether folds of an Ego-CNN are trained as one model."""
        # several targets are stacked where that is asked for: on a GPU it has not been tried
        by_default = device.type == "cuda" and not graphs.outline.targets
        return not recipe.stays_on_disk(graphs) and (by_default if self.stack is None else self.stack)

    @property
    def silent(self) -> "Execution":
        """The same without anybody to call: what is sent to other processes must be plain."""
        return replace(self, progress=ignore, log=ignore)


class OtherModel(Interface):
    """A model that is not an Ego-CNN, a rival of the lab say: it trains and tests every fold itself."""

    @property
    def name(self) -> str:
        """What the record calls it."""

    def run_fold(self, graphs: Graphs, task: FoldTask, train: TrainConfig) -> Fold:
        """The graphs of one fold, numbers of those to learn, validate and test -> the finished fold."""


AnyModel: TypeAlias = ModelConfig | OtherModel  # the settings of an Ego-CNN, or another model


def name_of(model: AnyModel) -> str:
    """As the record has it."""
    return EGO_CNN if isinstance(model, ModelConfig) else model.name


@dataclass(frozen=True, slots=True, eq=False)
class FoldSettings:
    """What all folds have in common."""

    graphs: Collection
    model: AnyModel
    train: TrainConfig
    combine: Combine = "best"
    execution: Execution = Execution()
    metric: str = ""  # '' for accuracy or R²

    @property
    def network(self) -> ModelConfig:
        """The settings of the Ego-CNN."""
        assert isinstance(self.model, ModelConfig)
        return self.model


Restarts: TypeAlias = Sequence[tuple[recipe.Replica, History]]
Prepared: TypeAlias = tuple[FoldTask, list[recipe.Replica], Callable[[], Batchable]]
"""A fold before its training: the trainings of all its runs and restarts, and what encodes the tested graphs"""


def ego_fold(settings: FoldSettings, task: FoldTask) -> Fold:
    """One fold of a collection in memory or on disk."""
    started = time.perf_counter()
    parts = (task.learned, task.validation, task.tested)
    here = np.sort(np.concatenate(parts))  # given splits need not name all graphs
    plan = recipe.TrainingPlan.of(settings.graphs.choose(task.learned), settings.network)
    with recipe.encode(settings.graphs.choose(here), plan) as encoded:
        learned, validation, tested = (np.searchsorted(here, part) for part in parts)
        both = (encoded(learned), encoded(validation))
        replicas = [recipe.make_replica(plan, both, seed, settings.train.networks) for seed in chain(*task.seeds)]
        members = [member for each in replicas for member in each.members]
        engine = recipe.choose_engine(members, settings.train, stack=settings.execution.stack)
        (fold,) = _train_and_test(settings, [(task, replicas, lambda: encoded(tested))], engine, started)
    return fold


def stacked_folds(settings: FoldSettings, tasks: Sequence[FoldTask]) -> Iterator[Fold]:
    """All of these folds trained together as one model."""
    started = time.perf_counter()
    graphs, log = settings.graphs.whole(), settings.execution.log
    parts, seeds = [task.without_tested(graphs) for task in tasks], [[*chain(*task.seeds)] for task in tasks]
    several = recipe.prepare_replicas(parts, settings.network, settings.train, seeds)
    log(f"{len(tasks)} folds prepared in {time.perf_counter() - started:.1f} s")

    def report(histories: Sequence[History], config: TrainConfig) -> None:
        epoch = max(len(history.epochs) for history in histories)
        best = [each.validation_score for history in histories if (each := history.in_unit().best) is not None]
        running = sum(len(history.epochs) == epoch for history in histories)
        shown = f"{np.mean(best):.4f}" if best else "none yet"
        in_training = f"{running} of {len(histories)} in training"
        log(f"epoch {epoch}/{config.epochs}: {in_training}, mean best validation {shown}")

    folds = [
        (task, replicas, partial(replicas[0].predictor.encode, graphs[task.tested]))
        for task, replicas in zip(tasks, several, strict=True)
    ]
    yield from _train_and_test(settings, folds, "recorded", started, report)


def _train_and_test(
    settings: FoldSettings, folds: Sequence[Prepared], engine: EngineName, begun: float, log: Reports = ignore
) -> Iterator[Fold]:
    """Train all replicas of all folds together, then test one fold after the other, each run by one look at the tested
    graphs; ``begun``: when preparing did."""
    started = time.perf_counter()

    def report(histories: Sequence[History], config: TrainConfig) -> None:
        settings.execution.progress(sum(len(history.epochs) for history in histories))
        log(histories, config)

    members = [member for _, replicas, _ in folds for each in replicas for member in each.members]
    trained = fit(members, settings.train, engine=engine, report=report)
    if any(history.interrupted for history in trained):
        raise KeyboardInterrupt
    spent = ((started - begun) / len(folds), (time.perf_counter() - started) / len(folds))
    of_each, device = iter(trained), choose_device(settings.train.device)
    for task, replicas, encode_tested in folds:
        began = time.perf_counter()
        restarts = iter([(each, mean_history(list(islice(of_each, len(each.seeds))))) for each in replicas])
        parts = (encode_tested().to(device), replicas[0].parts[1].to(device))  # all replicas read alike
        runs = [_run(settings, task, list(islice(restarts, len(seeds))), parts) for seeds in task.seeds]
        size = replicas[0].predictor.n_parameters * (len(task.seeds[0]) if settings.combine == "average" else 1)
        timing = (*spent, time.perf_counter() - began)
        yield Fold.of(task, runs, size, timing, peak_megabytes(device))


def _run(settings: FoldSettings, task: FoldTask, restarts: Restarts, parts: Sequence[Batchable]) -> FoldRun:
    """The score of the restart that did best in validation, or of all together; diverged ones predict nothing."""
    (tested, validation), device = parts, choose_device(settings.train.device)
    metric, is_averaged = settings.metric, settings.combine == "average"
    by_target = partial(scoring.scores_by_target, metric=metric, encoder=restarts[0][0].predictor.encoder)
    seeds = tuple(replica.seeds[0] for replica, _ in restarts)
    sound = [n for n, (_, history) in enumerate(restarts) if all(each.best is not None for each in history.of_each)]
    if len(sound) < (len(restarts) if is_averaged else 1):
        diverged = f"training diverged in fold {task.fold}: no epoch gave a finite loss"
        raise DivergedError(f"{diverged}; try a smaller --learning-rate")

    def run_of(predictions: Sequence[torch.Tensor], **own: Any) -> FoldRun:
        scores = by_target(predictions, tested)
        targets = {name: score for name, score in scores.items() if name}
        return FoldRun(score=fmean(scores.values()), targets=targets, seeds=seeds, **own)

    if is_averaged:
        every = [[own for each, _ in restarts for own in scoring.predictions_of(each, data, device)] for data in parts]
        alone = fmean(fmean(by_target([each], tested).values()) for each in every[0])
        validation_score = fmean(by_target(every[1], validation).values())
        return run_of(every[0], validation_score=validation_score, restart=0, alone=alone)
    chosen, best, sign = 0, None, -1 if metric in LOWER_IS_BETTER else 1
    for number in sound:
        replica, history = restarts[number]
        epoch = history.best
        assert epoch is not None
        # all networks together, by the metric, and in its unit
        if len(history.of_each) > 1 or metric not in ("", history.monitor) or sign < 0:
            own = fmean(by_target(scoring.predictions_of(replica, validation, device), validation).values())
            epoch = replace(epoch, validation_score=sign * own)
        if epoch.beats(best):
            chosen, best = number, epoch
    assert best is not None
    replica, history = restarts[chosen]
    chose: dict[str, Any] = {"restart": chosen + 1, "epochs": len(history.epochs), "best_epoch": best.epoch}
    if len(replica.predictor.networks) > 1:
        each = scoring.predictions_of(replica, tested, device, of_each=True)
        chose |= {"best_epoch": None, "alone": fmean(fmean(by_target([one], tested).values()) for one in each)}
    predictions = scoring.predictions_of(replica, tested, device)
    return run_of(predictions, validation_score=sign * best.validation_score, **chose)


def cross_validate(
    graphs: Collection, model: Any, train: TrainConfig, *, protocol: Protocol | None = None, folds: int = 10,
    restarts: int = 1, stack: bool | None = None, jobs: int | None = None, ray: str | None = None, data: str = "",
    out: Path | None = None, overwrite: bool = False, against: CrossValidation | None = None,
    progress: Callable[[int], None] | None = None, log: Callable[[str], None] | None = None,
) -> CrossValidation:  # fmt: skip
    """Train and test on every fold; ``train.seed`` decides folds, validation parts and restarts.

    ``model``: the settings of an Ego-CNN, any object with ``fit`` and ``predict``, or an :class:`OtherModel`; of these
    nothing is taken from ``train`` but ``validation`` and ``seed``. Without a ``protocol``: the plain one with so many
    ``folds`` and ``restarts``.
    ``stack``: train folds, runs and restarts of an Ego-CNN as one model; by default where a GPU computes.
    ``jobs``: folds at a time, in processes of one thread each (1 by default), or in one stack (all by default).
    ``ray``: the address of a Ray cluster, or "local": every fold is a task with one CPU there, unstacked.
    Scores do not depend on these, but for rounding and dropout. Graphs in their store train only an Ego-CNN, unstacked.
    ``out``: write the record there. Folds are saved beside it as they finish, and the same call goes on from them;
    those of other data or settings are refused unless ``overwrite`` gives them up. ``against``: the record of
    another model to be compared with, refused at once where its folds are others. ``progress`` gets the number of
    epochs that are over, ``log`` a line of text.

    >>> from egocnn.config import ModelConfig, TrainConfig
    >>> from egocnn.data.read import read
    >>> graphs = read("compounds:alcohols:sizes=3-12,per_size=6")
    >>> result = cross_validate(graphs, ModelConfig(width=8), TrainConfig(epochs=1, networks=1, device="cpu"), folds=4)
    >>> result.model, len(result.folds)
    ('ego-cnn', 4)"""
    if not isinstance(model, ModelConfig) and not hasattr(model, "run_fold"):
        model = scoring.Refitted(model)
    protocol = protocol or Protocol(folds=folds, restarts=restarts)
    execution = Execution(jobs=jobs, ray=ray, stack=stack, progress=progress or ignore, log=log or ignore)
    metric = _checked_metric(graphs, model, protocol, execution)
    train = execution.train_config(train)
    graphs = with_known_target(recipe.read_if_small(graphs)).with_parts(None)
    check_targets(graphs.outline)
    device = choose_device(train.device)
    stacked = isinstance(model, ModelConfig) and execution.is_stacked(graphs, device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    tasks = make_tasks(graphs.outline, protocol, train)
    scoring.check_tasks(tasks, graphs.outline, metric, networks=train.networks)
    settings: dict[str, Any] = {"model": {}, "train": {"seed": train.seed, "validation": train.validation}}
    if isinstance(model, ModelConfig):
        settings = {"model": asdict(model), "train": asdict(train)}
        settings |= {"targets": {"targets": list(targets)}} if (targets := graphs.outline.target_names) else {}
        settings |= {"restarts": {"combine": "average"}} if protocol.combine == "average" else {}
        settings |= {} if metric in ("accuracy", "r2") else {"score": {"metric": metric}}
    stated = state(name_of(model), protocol.name, protocol.folds, protocol.runs, protocol.restarts, settings)
    split = digest_of_folds(tasks)
    if against is not None:
        against.check_paired(name_of(model), split, metric)
    partial = PartialRecord.open(out, fingerprint(graphs, split, stated), stated, overwrite=overwrite)
    if (finished := partial.finished()) is not None:
        return finished

    started = time.perf_counter()
    common = FoldSettings(graphs, model, train, protocol.combine, execution, metric)
    _finish_folds(common, tasks, partial, stacked=stacked)
    done = partial.folds
    largest: dict[str, Any] = {
        name: max((value for fold in done if (value := getattr(fold, name)) is not None), default=None)
        for name in ("parameters", "peak_megabytes")
    }
    usual = {True: "accuracy", False: "r2"}
    each = [(name, usual[bool(names)] if metric == OF_BOTH else metric) for name, names in graphs.outline.targets]
    several = {name: scoring.summary_of([fold.targets[name] for fold in done], own) for name, own in each}
    record = CrossValidation(
        model=name_of(model), data=data, protocol=protocol.name, targets=several,
        **scoring.summary_of([fold.score for fold in done], metric), folds=tuple(done),
        seconds=partial.seconds + time.perf_counter() - started,
        **{name: sum(getattr(fold, name) for fold in done) for name in SECONDS}, **largest, seed=train.seed,
        restarts=protocol.restarts, runs=protocol.runs, stacked=stacked, settings=settings, split=split,
        fingerprint=partial.fingerprint, machine=name_machine(device, ray), versions=library_versions(),
    )  # fmt: skip
    partial.finish(record)
    return record


def _checked_metric(graphs: Collection, model: AnyModel, protocol: Protocol, execution: Execution) -> str:
    is_ego = isinstance(model, ModelConfig)
    check_value("jobs", execution.jobs, "int | None")
    rule(is_ego or not execution.stack, f"only an Ego-CNN trains stacked, not {name_of(model)}", ConfigError)
    if protocol.metric not in (None, "accuracy") and not is_ego:
        raise ConfigError(f"{name_of(model)} is scored by accuracy; --metric is for an {EGO_CNN}")
    if protocol.combine == "average" and not is_ego:
        other = f"{name_of(model)} says classes, no probabilities"
        raise ConfigError(f"only the restarts of an Ego-CNN can be averaged; {other}")
    if recipe.stays_on_disk(graphs) and (execution.stack or not is_ego):
        raise ConfigError(f"graphs that stay in their store train alone, not stacked, and only as an {EGO_CNN}")
    return score_for(graphs.outline, protocol.metric)


def _finish_folds(settings: FoldSettings, tasks: Sequence[FoldTask], partial: PartialRecord, *, stacked: bool) -> None:
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
        if partial.path is None or not partial.folds:
            raise
        kept = f"{len(partial.folds)} of {len(tasks)} folds are kept in {partial.path}"
        raise KeyboardInterrupt(f"stopped; {kept}, and the same command goes on") from None


def _folds(settings: FoldSettings, tasks: Sequence[FoldTask], there: int, *, stacked: bool) -> Iterator[Fold]:
    """The folds as they finish: in stacks, one after the other, or several at a time; ``there``: folds before them."""
    execution = settings.execution
    each = sum(map(len, tasks[0].seeds)) * settings.train.networks * settings.train.epochs
    if not stacked and (execution.ray is not None or execution.jobs not in (None, 1)):
        job = partial(_fold, replace(settings, execution=execution.silent))
        found = run_jobs(job, [(task,) for task in tasks], jobs=execution.jobs, ray=execution.ray)
        for number, fold in enumerate(found, start=1):
            execution.progress((there + number) * each)
            yield fold
        return
    at_once = execution.jobs or len(tasks) if stacked else 1
    for first in range(0, len(tasks), at_once):
        some = tasks[first : first + at_once]
        before = (there + first) * each
        count = partial(lambda before, epochs: execution.progress(before + epochs), before)
        here = replace(settings, execution=replace(execution, progress=count))
        yield from stacked_folds(here, some) if stacked else (_fold(here, task) for task in some)
        execution.progress((there + first + len(some)) * each)


def _fold(settings: FoldSettings, task: FoldTask) -> Fold:
    if isinstance(settings.model, ModelConfig):
        return ego_fold(settings, task)
    return settings.model.run_fold(settings.graphs.whole(), task, settings.train)
