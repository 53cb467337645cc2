"""All tasks over all seeds, each in a process with one thread: a folder of tasks -> a record, as JSON and Markdown.

Every finished job is a file in the work folder: a run that was stopped goes on where it was, and runs on several
machines make one record.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import Any

from egocnn.config import TrainConfig
from egocnn.data.sources.text import one_line
from egocnn.errors import ConfigError
from egocnn.files import write_json, write_text
from egocnn.train.run import machine, versions
from lab.truths.suite.index import TaskInfo, read_index
from lab.truths.suite.scoring.job import measure_ours
from lab.truths.suite.scoring.peer import measure_peer
from lab.truths.suite.scoring.summary import summarise
from lab.truths.suite.scoring.table import markdown

WORK = Path("runs/truths_work")
SHOWN = ("accuracy", "r2", "node_auc", "pooled_edge_auc", "pearson", "kendall")
"""scores that are told as soon as a job is done"""
HALF_NAMES = ("choosing", "reporting", "named", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """What to run."""

    tasks: Path  # the folder that ``truths make`` wrote
    half: str = "all"  # choosing, reporting, named or all
    names: tuple[str, ...] | None = None  # some tasks of the half; None: all of them
    seeds: int = 1
    networks: int = TrainConfig().networks  # that predict and explain together
    peer: bool = False  # whether a GINE and its explainers are measured, too
    jobs: int = 1
    work: Path = WORK  # finished jobs
    minutes: float = math.inf  # after which no further job is started


@dataclass(frozen=True, slots=True)
class Job:
    model: str  # ours or peer
    task: str
    seed: int
    networks: int

    def path(self, work: Path) -> Path:
        return work / f"{self.model}-{self.task}-{self.networks}-{self.seed}.json"


def score(options: ScoreOptions, out: Path, *, command: str, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Measure what is not measured yet, and write the record to ``out`` and, as a table, beside it."""
    from joblib import Parallel, delayed, parallel_config

    started = time.perf_counter()
    infos = _chosen(options)
    jobs = _jobs(options, infos)
    missing = [job for job in jobs if not job.path(options.work).exists()]
    in_time = takewhile(lambda _: time.perf_counter() - started < 60 * options.minutes, missing)
    calls = (delayed(_measure)(options.tasks, options.work, job) for job in in_time)
    with parallel_config(backend="loky", inner_max_num_threads=1):
        done = Parallel(n_jobs=options.jobs, pre_dispatch=options.jobs, return_as="generator_unordered")(calls)
        for number, line in enumerate(done, 1):
            say(f"{number} of {len(missing)}: {line}")
    there = [job for job in jobs if job.path(options.work).exists()]
    if not there:
        raise ConfigError("not one job has come to an end; give them more minutes, or see why they failed")
    rows = [_row(infos[job.task], json.loads(job.path(options.work).read_text(encoding="utf-8"))) for job in there]
    record = {
        "title": "Known truths: predicting and pointing",
        "half": options.half,
        "networks": options.networks,
        "summary": summarise(rows),
        "rows": rows,
        "missing": [asdict(job) for job in jobs if job not in there],
        "command": command,
        "minutes": round((time.perf_counter() - started) / 60, 2),
        "jobs": options.jobs,
        "date": max(row["date"] for row in rows),
        "machine": ", and ".join(sorted({row["machine"] for row in rows})),
        "versions": _versions(rows),
    }
    write_json(out, record)
    write_text(out.with_suffix(".md"), markdown(record))
    return record


def _chosen(options: ScoreOptions) -> dict[str, TaskInfo]:
    if options.half not in HALF_NAMES:
        raise ConfigError(f"half must be one of {', '.join(HALF_NAMES)}, got {options.half!r}")
    every = read_index(options.tasks)
    infos = {name: info for name, info in every.items() if options.half in ("all", info.half)}
    for name in options.names or ():
        if name not in infos:
            raise ConfigError(f"no task is called {name!r}; there are {', '.join(infos)}")
    return infos if options.names is None else {name: infos[name] for name in options.names}


def _jobs(options: ScoreOptions, infos: Mapping[str, TaskInfo]) -> list[Job]:
    """Large graphs first: the longest jobs must not be the last to start."""
    slow = sorted(infos.values(), key=lambda info: (info.half != "named", "larger" not in info.sizes))
    jobs = [Job("ours", info.name, seed, options.networks) for info in slow for seed in range(options.seeds)]
    if options.peer:
        jobs += [Job("peer", info.name, seed, options.networks) for info in slow for seed in range(options.seeds)]
    return jobs


def _measure(tasks: Path, work: Path, job: Job) -> str:
    """Run in a process of its own, and say what came of it: one job that fails must not stop the others."""
    try:
        return _measured(tasks, work, job)
    except Exception as error:
        return f"{job.model} {job.task}, seed {job.seed}: failed, {type(error).__name__}: {one_line(str(error))}"


def _measured(tasks: Path, work: Path, job: Job) -> str:
    """What a job leaves is a file, written whole or not at all."""
    if job.model == "ours":
        measured = measure_ours(tasks, job.task, job.seed, job.networks)
        shown = {name: measured["test"].get(name) for name in SHOWN}
    else:
        measured = measure_peer(tasks, job.task, job.seed, job.networks)
        shown = {name: measured.get(name) for name in SHOWN}
        for name, scores in measured["techniques"].items():
            shown[name] = scores.get("node_auc", scores.get("pearson"))
    about = {"model": job.model, "task": job.task, "seed": job.seed, "networks": job.networks}
    write_json(job.path(work), {**about, **measured, **_circumstances()})
    text = ", ".join(f"{name} {number:.3f}" for name, number in shown.items() if number is not None)
    return f"{job.model} {job.task}, seed {job.seed}, {measured['seconds']:.0f} s: {text}"


def _circumstances() -> dict[str, Any]:
    return {"date": date.today().isoformat(), "machine": machine(), "versions": versions()}


def _versions(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Those that the jobs ran with: several, where they ran on several machines."""
    each = [row.get("versions", {}) for row in rows]
    return {name: ", and ".join(sorted({own[name] for own in each if name in own})) for name in versions()}


def _row(info: TaskInfo, measured: Mapping[str, Any]) -> dict[str, Any]:
    return {"task": info.name, "half": info.half, "family": info.family, "what": info.what, **measured}
