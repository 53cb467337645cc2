"""Settings + graphs -> every setting scored on every fold, none of them by test graphs; the best one chosen.

Of every fold of the protocol only what is not tested takes part: its validation part gives the score, and a share of
its training part, split off once more, chooses the epoch and the restart. So the test folds are as good as new for the
one setting that is chosen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from egocnn.config import TrainConfig
from egocnn.data.collection import Collection
from egocnn.data.graphs import Graphs
from egocnn.data.split import split_in_two
from egocnn.errors import ConfigError, DivergedError, RunError
from egocnn.files import write_json, write_text
from egocnn.nn.device import choose_device
from egocnn.study.cluster import LOCAL, connected, run_jobs
from egocnn.study.crossval import Protocol, cross_validate, read_record
from egocnn.study.crossval.ego import ego_fold, stacked_folds
from egocnn.study.crossval.folds import Task, derived, digest_of_folds, make_tasks
from egocnn.study.crossval.kept import fingerprint
from egocnn.study.crossval.machine import library_versions, name_machine, one_thread
from egocnn.study.crossval.protocol import Combine
from egocnn.study.crossval.record import Fold
from egocnn.study.sweep.kept import CHOSEN, Kept, decisive
from egocnn.study.sweep.record import Scored, Sweep, ranked
from egocnn.study.sweep.space import Axis, Setting, changed, flags
from egocnn.train.recipe import read_if_small, stays_on_disk
from egocnn.train.validation import check_targets

INNER = 2**20
"""Any number that no restart has: the inner parts follow from other seeds than the trainings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """Where and how the trainings run; no score depends on it but for rounding."""

    jobs: int | None = None
    ray: str | None = None
    stack: bool | None = None
    """train all folds of a setting as one model; None: where a GPU computes"""


Report = Callable[[int], None]
"""hears how many (setting, fold) pairs are done"""


def sweep(
    graphs: Collection,
    settings: Sequence[Setting],
    axes: Sequence[Axis],
    protocol: Protocol,
    folder: Path,
    *,
    how: How | None = None,
    sampled: int | None = None,
    test_chosen: bool = False,
    overwrite: bool = False,
    data: str = "",
    command: str = "",
    report: Report | None = None,
    say: Callable[[str], None] | None = None,
) -> Sweep:
    """Score all settings, write the tables into the folder, and give the record.

    Finished pairs of setting and fold are kept there at once; the same call, or one with more settings, goes on from
    them. ``test_chosen``: cross-validate the best setting on the test folds.
    """
    how, say = how or How(), say or (lambda _: None)
    settings = [replace(each, train=_place(each.train, how)) for each in settings]
    train = settings[0].train
    device = choose_device(train.device)
    on_disk = stays_on_disk(graphs)
    graphs = read_if_small(graphs).with_parts(None)
    outline = graphs.outline
    check_targets(outline)
    if on_disk and how.stack:
        raise ConfigError("graphs that stay in their store train alone, not stacked; leave --stack out")
    tasks = inner_tasks(outline, protocol, train)
    kept = _open(folder, graphs, tasks, protocol, train, data, overwrite=overwrite)
    with connected(how.ray):
        scored = _score_all(graphs, settings, tasks, kept, how, protocol.combine, report or (lambda _: None), say)
        rows = ranked(settings, scored)
        best, first = rows[0]
        where = name_machine(device)
        record = Sweep(
            data=data,
            protocol=protocol.name,
            folds=protocol.folds,
            restarts=protocol.restarts,
            score="accuracy" if outline.is_classification else "r2",
            over={axis.name: list(axis.values) for axis in axes},
            sampled=sampled,
            rows=tuple(row for _, row in rows),
            chosen={"model": asdict(best.model), "train": asdict(best.train)},
            flags=flags(changed(best.model, best.train)),
            test=None,
            seed=train.seed,
            seconds=sum(row.seconds for _, row in rows),
            command=command,
            date=date.today().isoformat(),
            machine=where if how.ray in (None, LOCAL) else f"Ray cluster, called from {where}",
            versions=library_versions(),
        )
        _write(record, folder)
        if test_chosen and first.mean is not None:
            record = replace(record, test=_test(graphs, best, protocol, folder / CHOSEN, how, data, say))
            _write(record, folder)
    return record


def _write(record: Sweep, folder: Path) -> None:
    write_text(folder / "sweep.csv", record.csv())
    write_text(folder / "sweep.md", record.markdown())
    write_json(folder / "sweep.json", record.to_plain())


def inner_tasks(graphs: Graphs, protocol: Protocol, train: TrainConfig) -> list[Task]:
    """The folds without their tested graphs: the validation part is tested instead."""
    assert graphs.target is not None
    found = []
    for task in make_tasks(graphs, protocol, train):
        classes = graphs.target[task.learned] if graphs.is_classification else None
        groups = None if graphs.group is None else graphs.group[task.learned]
        seed = derived(train.seed, task.fold, INNER)
        learned, chosen_by = split_in_two(
            len(task.learned), train.validation, classes=classes, groups=groups, seed=seed
        )
        inner = {"learned": task.learned[learned], "validation": task.learned[chosen_by], "tested": task.validation}
        found.append(Task(fold=task.fold, seeds=task.seeds[:1], **inner))  # several runs are for what is reported
    return found


def _place(train: TrainConfig, how: How) -> TrainConfig:
    if how.ray is None:
        return train
    if how.stack or train.device == "cuda":
        what = "--stack" if how.stack else "--device cuda"
        raise ConfigError(f"with --ray every fold trains alone on one CPU of a worker; {what} does not go with it")
    return replace(train, device="cpu")


def _open(
    folder: Path,
    graphs: Collection,
    tasks: Sequence[Task],
    protocol: Protocol,
    train: TrainConfig,
    data: str,
    *,
    overwrite: bool,
) -> Kept:
    stated = {
        "protocol": protocol.name,
        "folds": protocol.folds,
        "runs": protocol.runs,
        "restarts": protocol.restarts,
        "combine": protocol.combine,
        "seed": train.seed,
        "validation": train.validation,
    }
    digest = fingerprint(graphs, digest_of_folds(tasks), stated)
    return Kept.open(folder, digest, {**stated, "data": data}, overwrite=overwrite)


# ── pairs of setting and fold ─────────────────────────────────────────────────────────────────────


def _score_all(
    graphs: Collection,
    settings: Sequence[Setting],
    tasks: Sequence[Task],
    kept: Kept,
    how: How,
    combine: Combine,
    report: Report,
    say: Callable[[str], None],
) -> list[list[Scored]]:
    """Per setting its scores; computed where they are not kept yet, and kept."""
    found: list[list[Scored]] = [[] for _ in settings]
    missing: list[tuple[int, Task]] = []
    for number, setting in enumerate(settings):
        for task in tasks:
            scored = kept.find(setting, task.fold)
            if scored is None:
                missing.append((number, task))
            else:
                found[number].append(scored)
    total = len(settings) * len(tasks)
    done = total - len(missing)
    if done:
        say(f"{done} of {total} trainings are there already")
    report(done)
    is_stacked = choose_device(settings[0].train.device).type == "cuda" if how.stack is None else how.stack
    if is_stacked and not stays_on_disk(graphs):
        results = _stacked(graphs.whole(), settings, missing, combine, say)
    else:
        calls = [(number, settings[number], task) for number, task in missing]
        shared = (graphs, combine, how.stack, how.ray is not None or (how.jobs or 1) > 1)
        results = run_jobs(score, calls, shared=shared, jobs=how.jobs, ray=how.ray)
    try:
        for number, scored in results:
            kept.add(settings[number], scored)
            found[number].append(scored)
            done += 1
            report(done)
            said = "diverged" if scored.score is None else f"{scored.score:.4f}"
            say(f"{done}/{total}: {settings[number].words}, fold {scored.fold}: {said} ({scored.seconds:.1f} s)")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; {done} of {total} trainings are kept in {kept.folder}, and the same command goes on"
        ) from None
    return found


def score(
    graphs: Collection,
    combine: Combine,
    stack: bool | None,
    is_one_of_many: bool,
    number: int,
    setting: Setting,
    task: Task,
) -> tuple[int, Scored]:
    """One job: the number says which setting it belongs to."""
    with one_thread() if is_one_of_many else nullcontext():
        return number, _trained(graphs, combine, stack, setting, task)


def _trained(graphs: Collection, combine: Combine, stack: bool | None, setting: Setting, task: Task) -> Scored:
    started = time.perf_counter()
    try:
        fold = ego_fold(graphs, task, setting.model, setting.train, lambda _: None, combine, stack=stack)
    except DivergedError:  # a learning rate too large is an answer, no reason to stop
        return _without_score(task, time.perf_counter() - started)
    return _scored(fold, time.perf_counter() - started)


def _scored(fold: Fold, seconds: float) -> Scored:
    return Scored(fold=fold.fold, score=fold.score, parameters=fold.parameters, seconds=round(seconds, 3))


def _without_score(task: Task, seconds: float) -> Scored:
    return Scored(fold=task.fold, score=None, parameters=None, seconds=round(seconds, 3))


def _stacked(
    graphs: Graphs,
    settings: Sequence[Setting],
    missing: Sequence[tuple[int, Task]],
    combine: Combine,
    say: Callable[[str], None],
) -> Iterator[tuple[int, Scored]]:
    """All folds of a setting trained as one model, one setting after the other."""
    for number, setting in enumerate(settings):
        tasks = [task for own, task in missing if own == number]
        if not tasks:
            continue
        started = time.perf_counter()
        told: set[int] = set()
        try:
            for fold in stacked_folds(graphs, tasks, setting.model, setting.train, lambda _: None, say, combine):
                told.add(fold.fold)
                yield number, _scored(fold, fold.preparing_seconds + fold.training_seconds + fold.testing_seconds)
        except DivergedError:  # one fold without a score leaves the setting without a mean: the others do not matter
            share = (time.perf_counter() - started) / len(tasks)
            for task in tasks:
                if task.fold not in told:
                    yield number, _without_score(task, share)


# ── the test folds ────────────────────────────────────────────────────────────────────────────────


def _test(
    graphs: Collection,
    best: Setting,
    protocol: Protocol,
    path: Path,
    how: How,
    data: str,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """The one look of the chosen setting; a second one, by another setting, is refused."""
    before = read_record(path)
    if before is not None:
        own = {"model": before.settings["model"], "train": {**before.settings["train"], "device": None}}
        now = {"model": _listed(asdict(best.model)), "train": _listed(decisive(best.train))}
        if own != now:
            raise RunError(
                f"{path}: another setting has had its look at the test folds; a second look makes them a part of the "
                "choice. --overwrite forgets the whole sweep, or name another folder"
            )
    say(f"the test folds, with {best.words}")
    found = cross_validate(
        graphs,
        best.model,
        best.train,
        protocol=protocol,
        jobs=how.jobs,
        ray=how.ray,
        stack=how.stack,
        data=data,
        out=path,
        say=say,
    )
    return {"mean": found.mean, "std": found.std, "interval": list(found.interval), "file": path.name}


def _listed(settings: dict[str, Any]) -> dict[str, Any]:
    """As a file gives them back."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
