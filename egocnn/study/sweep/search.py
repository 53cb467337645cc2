"""Settings + graphs -> every setting scored on every fold, none of them by test graphs; the best one chosen.

Of every fold of the protocol only what is not tested takes part: its validation part gives the score, and a share of
its training part, split off once more, chooses the epoch and the restart. So the test folds are as good as new for the
one setting that is chosen.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from datetime import date
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

from egocnn.config import TrainConfig
from egocnn.data.collection import Collection
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DivergedError, RunError
from egocnn.files import write_json, write_text
from egocnn.nn.device import choose_device
from egocnn.study.cluster import connected, run_jobs
from egocnn.study.crossval import Protocol, cross_validate, read_record
from egocnn.study.crossval.ego_folds import Execution, FoldSettings, ego_fold, ignore, stacked_folds
from egocnn.study.crossval.folds import FoldTask, derived, digest_of_folds, make_tasks, split_off_validation
from egocnn.study.crossval.machine import library_versions, name_machine, one_thread
from egocnn.study.crossval.partial import fingerprint
from egocnn.study.sweep.folder import CHOSEN, SweepFolder, without_device
from egocnn.study.sweep.grid import Axis, GridPoint, changed, flags
from egocnn.study.sweep.table import PairScore, Sweep, ranked
from egocnn.train.recipe import read_if_small, stays_on_disk
from egocnn.train.validation import check_targets

INNER = 2**20  # Any number that no restart has: the inner parts follow from other seeds than the trainings.


def sweep(
    graphs: Collection,
    points: Sequence[GridPoint],
    axes: Sequence[Axis],
    protocol: Protocol,
    folder: Path,
    *,
    execution: Execution | None = None,
    sampled: int | None = None,
    test_chosen: bool = False,
    overwrite: bool = False,
    data: str = "",
    command: str = "",
) -> Sweep:
    """Score all settings, write the tables into the folder, and give the record.

    Finished pairs of setting and fold are saved there at once; the same call, or one with more settings, goes on from
    them. ``test_chosen``: cross-validate the best setting on the test folds.
    """
    execution = execution or Execution()
    points = [replace(each, train=execution.train_config(each.train)) for each in points]
    train = points[0].train
    device = choose_device(train.device)
    if stays_on_disk(graphs) and execution.stack:
        raise ConfigError("graphs that stay in their store train alone, not stacked; leave --stack out")
    graphs = read_if_small(graphs).with_parts(None)
    check_targets(graphs.outline)
    tasks = inner_tasks(graphs.outline, protocol, train)
    counts = {name: getattr(protocol, name) for name in ("folds", "runs", "restarts", "combine")}
    stated = {"protocol": protocol.name, **counts, "seed": train.seed, "validation": train.validation}
    digest = fingerprint(graphs, digest_of_folds(tasks), stated)
    saved = SweepFolder.open(folder, digest, {**stated, "data": data}, overwrite=overwrite)
    with connected(execution.ray):
        settings = FoldSettings(graphs, points[0].model, train, protocol.combine, execution)
        rows = ranked(points, _score_all(settings, points, tasks, saved))
        best, first = rows[0]
        record = Sweep(
            data=data,
            protocol=protocol.name,
            folds=protocol.folds,
            restarts=protocol.restarts,
            score="accuracy" if graphs.outline.is_classification else "r2",
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
            machine=name_machine(device, execution.ray),
            versions=library_versions(),
        )
        _write(record, folder)
        if test_chosen and first.mean is not None:
            test = _test(graphs, best, protocol, folder / CHOSEN, execution, data)
            record = replace(record, test=test)
            _write(record, folder)
    return record


def _write(record: Sweep, folder: Path) -> None:
    write_text(folder / "sweep.csv", record.csv())
    write_json(folder / "sweep.json", record.to_plain())


def inner_tasks(graphs: Graphs, protocol: Protocol, train: TrainConfig) -> list[FoldTask]:
    """The folds without their tested graphs: the validation part is tested instead."""
    found = []
    for task in make_tasks(graphs, protocol, train):
        seed = derived(train.seed, task.fold, INNER)
        learned, validation = split_off_validation(graphs, task.learned, train.validation, seed)
        seeds = task.seeds[:1]  # several runs are for what is reported
        found.append(FoldTask(task.fold, learned, validation, tested=task.validation, seeds=seeds))
    return found


def _score_all(
    settings: FoldSettings, points: Sequence[GridPoint], tasks: Sequence[FoldTask], saved: SweepFolder
) -> list[list[PairScore]]:
    """Per setting its scores; those that are not saved yet are computed, and saved."""
    execution = settings.execution
    found: list[list[PairScore]] = [[] for _ in points]
    missing: list[tuple[int, GridPoint, FoldTask]] = []
    for (number, point), task in product(enumerate(points), tasks):
        score = saved.find(point, task.fold)
        if score is None:
            missing.append((number, point, task))
        else:
            found[number].append(score)
    total = len(points) * len(tasks)
    done = total - len(missing)
    if done:
        execution.log(f"{done} of {total} trainings are there already")
    execution.progress(done)
    if execution.is_stacked(settings.graphs, choose_device(settings.train.device)):
        results = _score_stacked(settings, missing)
    else:
        is_one_of_many = execution.ray is not None or (execution.jobs or 1) > 1
        shared = (replace(settings, execution=execution.silent), is_one_of_many)
        results = run_jobs(score_pair, missing, shared=shared, jobs=execution.jobs, ray=execution.ray)
    try:
        for number, score in results:
            saved.add(points[number], score)
            found[number].append(score)
            done += 1
            execution.progress(done)
            shown = "diverged" if score.score is None else f"{score.score:.4f}"
            where = f"{points[number].words}, fold {score.fold}"
            execution.log(f"{done}/{total}: {where}: {shown} ({score.seconds:.1f} s)")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; {done} of {total} trainings are kept in {saved.folder}, and the same command goes on"
        ) from None
    return found


def score_pair(
    settings: FoldSettings, is_one_of_many: bool, number: int, point: GridPoint, task: FoldTask
) -> tuple[int, PairScore]:
    """One job: the score of a setting on a fold, and the number of the setting."""
    started = time.perf_counter()
    score = parameters = None
    # a learning rate too large is a result, no reason to stop
    with one_thread() if is_one_of_many else nullcontext(), suppress(DivergedError):
        fold = ego_fold(replace(settings, model=point.model, train=point.train), task)
        score, parameters = fold.score, fold.parameters
    seconds = round(time.perf_counter() - started, 3)
    return number, PairScore(fold=task.fold, score=score, parameters=parameters, seconds=seconds)


def _score_stacked(
    settings: FoldSettings, missing: Sequence[tuple[int, GridPoint, FoldTask]]
) -> Iterator[tuple[int, PairScore]]:
    """All folds of a setting trained as one model, one setting after the other."""
    execution = replace(settings.execution, progress=ignore)
    for number, several in groupby(missing, key=itemgetter(0)):
        _, points, tasks = zip(*several, strict=True)
        own = replace(settings, model=points[0].model, train=points[0].train, execution=execution)
        started = time.perf_counter()
        waiting = {task.fold for task in tasks}
        try:
            for fold in stacked_folds(own, tasks):
                waiting.discard(fold.fold)
                seconds = round(fold.preparing_seconds + fold.training_seconds + fold.testing_seconds, 3)
                yield number, PairScore(fold=fold.fold, score=fold.score, parameters=fold.parameters, seconds=seconds)
        except DivergedError:  # one fold without a score leaves the setting without a mean: the others do not matter
            share = round((time.perf_counter() - started) / len(tasks), 3)
            for without in sorted(waiting):
                yield number, PairScore(fold=without, score=None, parameters=None, seconds=share)


def _test(
    graphs: Collection, best: GridPoint, protocol: Protocol, path: Path, execution: Execution, data: str
) -> dict[str, Any]:
    """The one look of the chosen setting at the test folds; a second one, by another setting, is refused."""
    before = read_record(path)
    if before is not None:
        own = {"model": before.settings["model"], "train": {**before.settings["train"], "device": None}}
        now = {"model": asdict(best.model), "train": without_device(best.train)}
        if own != json.loads(json.dumps(now)):  # as a file gives it back
            raise RunError(
                f"{path}: another setting has had its look at the test folds; a second look makes them a part of the "
                "choice. --overwrite forgets the whole sweep, or name another folder"
            )
    execution.log(f"the test folds, with {best.words}")
    found = cross_validate(
        *(graphs, best.model, best.train),
        protocol=protocol,
        jobs=execution.jobs,
        ray=execution.ray,
        stack=execution.stack,
        data=data,
        out=path,
        log=execution.log,
    )
    return {"mean": found.mean, "std": found.std, "interval": list(found.interval), "file": path.name}
