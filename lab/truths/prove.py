"""All tasks over all seeds: jobs that remember what they have measured -> explain.json, explain.csv and explain.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from egocnn.errors import ConfigError
from egocnn.files import write_json, write_text
from egocnn.train.run import machine, versions
from lab.truths.measure import measure_ours, measure_peer
from lab.truths.table import csv_rows, markdown, to_rows
from lab.truths.tasks import TASKS

TITLE = "Every technique against known critical structures, beside a GINE and its explainers"
SIDES: dict[str, Callable[..., dict[str, Any]]] = {"egocnn": measure_ours, "GINE": measure_peer}


def prove(
    *,
    folder: Path,
    seeds: int = 5,
    jobs: int = 1,
    tasks: Sequence[str] | None = None,
    work: Path | None = None,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Measure, and write ``explain.json``, ``.csv`` and ``.md`` into the folder.

    Every finished job is kept in ``work`` (default: ``runs/explain``): a run that was stopped goes on, and parts
    measured on several machines make one table.
    """
    from joblib import Parallel, delayed

    chosen = list(tasks or TASKS)
    for name in chosen:
        if name not in TASKS:
            raise ConfigError(f"no task is called {name!r}; there are {', '.join(TASKS)}")
    work = work or Path("runs/explain")
    todo = [(side, name, seed) for name in chosen for seed in range(seeds) for side in SIDES]
    missing = [job for job in todo if not _path(work, *job).exists()]
    calls = (delayed(_job)(work, *job) for job in missing)
    for job, text in zip(missing, Parallel(n_jobs=jobs, return_as="generator")(calls), strict=True):
        say(f"{' '.join(map(str, job))}: {text}")
    results = [json.loads(_path(work, *job).read_text(encoding="utf-8")) for job in todo]
    table: dict[str, Any] = {
        "title": TITLE,
        "rows": to_rows(results),
        "command": f"egocnn reproduce explain --seeds {seeds}",
        "date": max(result["date"] for result in results),
        "machine": ", and ".join(sorted({result["machine"] for result in results})),
        "versions": versions(),
    }
    write_json(folder / "explain.json", table)
    write_text(folder / "explain.csv", csv_rows(table["rows"]))
    write_text(folder / "explain.md", markdown(table))
    return table


def _path(work: Path, side: str, name: str, seed: int) -> Path:
    return work / f"{side}-{name}-{seed}.json"


def _job(work: Path, side: str, name: str, seed: int) -> str:
    measured = SIDES[side](TASKS[name], seed)
    write_json(
        _path(work, side, name, seed),
        {
            "model": side,
            "data": name,
            "seed": seed,
            "date": date.today().isoformat(),
            "machine": machine(),
            **measured,
        },
    )
    best = {
        name: round(row.get("node_auc", row.get("edge_auc", 0.0)), 4) for name, row in measured["techniques"].items()
    }
    return f"accuracy {measured['accuracy']:.4f}, {best}"
