"""A table by name -> every system cross-validated on every data set, beside the printed figures; JSON, CSV, Markdown.

Every cell is one cross-validation, kept in a file of its own as its folds finish: an interrupted table goes on where it
stopped. What cannot run on a set says why in its cell instead of vanishing from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.config import Device
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.errors import ConfigError, EgoCNNError
from egocnn.files import write_json, write_text
from egocnn.study.crossval import CrossValidation, Protocol, choose_protocol, cross_validate
from egocnn.study.crossval.folds import Combine, ProtocolName
from egocnn.study.statistics import corrected_t_test, summarise
from lab.record import circumstances
from lab.rivals.names import find_rival
from lab.tables.limit import time_limit, why_not
from lab.tables.presets import shortened
from lab.tables.scores import OURS, TABLES, Contestant, ScoreTable
from lab.tables.words import Cell, markdown, shown, table_csv

COMPARED = OURS[1].name  # The row that others are compared with.

QUICK_GRAPHS = 200  # Graphs of each set that a rough answer looks at.

WITHOUT_SPLITS = ("MUTAG", "PTC_MR")  # Sets that Errica et al. did not split.

LARGE = ("NCI1", "REDDIT-BINARY", "COLLAB")  # Sets with one run a fold instead of three: they take too long otherwise.

LARGEST = "REDDIT-BINARY"  # Of it 3 restarts speak together instead of 5: 430 nodes a graph.

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """What is the same for every cell."""

    protocol: ProtocolName = "fair"  # fair: for sets without published splits, the paper's
    minutes: float | None = None  # that a cell may take; one that would take longer says so
    kept_only: bool = False  # show the cells that are there, and run none
    quick: bool = False
    seed: int = 0
    device: Device = "auto"
    jobs: int | None = None
    ray: str | None = None  # the address of a Ray cluster for the folds
    data: Sequence[str] | None = None  # of the table's sets, only these
    models: Sequence[str] | None = None  # of the table's rows, only these

    @property
    def words(self) -> str:
        """As on the command line, what decides the scores."""
        return f" {'--quick' if self.quick else f'--protocol {self.protocol}'} --seed {self.seed}"


def write_table(name: str, how: TableOptions, *, folder: Path, kept: Path, say: Say) -> dict[str, Any]:
    """Run the cells that are not there yet, then write NAME.json, NAME.csv and NAME.md into the folder."""
    table = TABLES[name]
    _chosen([contestant.name for contestant in table.contestants], how.models, "row")
    rows: list[Cell] = []
    for data in _chosen(table.data, how.data, "data set"):
        graphs = _read(data, how)
        for contestant in table.contestants:
            if how.models is None or contestant.name in how.models:
                rows.append(_cell(table, contestant, data, graphs, how, kept=kept, say=say))
                say(f"{data}, {contestant.name}: {shown(rows[-1])}")
    record: dict[str, Any] = {
        "title": table.title,
        "rows": [_compared(row, rows) for row in rows],
        "compared_with": COMPARED,
        "protocol": "quick" if how.quick else how.protocol,
        "command": f"egocnn reproduce {name}{how.words}",
        **circumstances(),
    }
    write_json(folder / f"{name}.json", record)
    write_text(folder / f"{name}.csv", table_csv(record["rows"]))
    write_text(folder / f"{name}.md", markdown(record))
    return record


def _read(data: str, how: TableOptions) -> Graphs:
    graphs = read(data)
    if not how.quick or len(graphs) <= QUICK_GRAPHS:
        return graphs
    return graphs[np.sort(np.random.default_rng(how.seed).choice(len(graphs), QUICK_GRAPHS, replace=False))]


def _cell(
    table: ScoreTable, contestant: Contestant, data: str, graphs: Graphs, how: TableOptions, *, kept: Path, say: Say
) -> Cell:
    row = contestant.printed_as or ""
    cell: Cell = {"model": contestant.name, "data": data, "published": table.figures.get(row, {}).get(data)}
    if row in table.parameters:
        cell["published_parameters"] = table.parameters[row]
    if row in table.seconds:
        cell["published_seconds"] = table.seconds[row].get(data)
    train = shortened(contestant.train) if how.quick else contestant.train
    train = replace(train, seed=how.seed, device=how.device)
    try:
        protocol = _protocol(contestant, data, how)
        rival = None if contestant.rival is None else find_rival(contestant.rival)
        model = contestant.model if rival is None else rival.quick() if how.quick else rival
        folds = "quick" if how.quick else f"{protocol.name}-{protocol.runs}"
        out = kept / f"{data}-{_file_name(contestant.kept_as or contestant.name)}-{folds}.json"
        if how.kept_only and not out.exists():
            return cell | {"mean": None, "reason": why_not(out)}
        with time_limit(how.minutes, out):
            result = cross_validate(
                graphs, model, train, protocol=protocol, jobs=how.jobs, ray=how.ray, data=data, out=out, log=say
            )
    except (EgoCNNError, MemoryError) as error:
        return cell | {"mean": None, "reason": " ".join(str(error).split()) or "out of memory"}
    return cell | _scores(result, alone=contestant.alone)


def _protocol(contestant: Contestant, data: str, how: TableOptions) -> Protocol:
    combine: Combine = "best" if contestant.together is None else "average"
    if how.quick:
        return Protocol(name="plain", folds=3, restarts=min(contestant.together or 1, 2), combine=combine)
    is_fair, is_large = how.protocol == "fair" and data not in WITHOUT_SPLITS, data in LARGE
    together = contestant.together if data != LARGEST or contestant.together is None else min(contestant.together, 3)
    return choose_protocol(
        "fair" if is_fair else "paper",
        data=data,
        restarts=together,
        runs=1 if is_fair and is_large and not contestant.is_kernel else None,
        combine=combine,
    )


def _scores(result: CrossValidation, *, alone: bool) -> Cell:
    folds = [fold.score for fold in result.folds]
    if alone:  # every restart by itself instead of all together
        folds = [float(np.mean([run.alone for run in fold.runs if run.alone is not None])) for fold in result.folds]
    scores = summarise(folds)
    return {
        "mean": round(100 * scores.mean, 2),
        "std": round(100 * scores.std, 2),
        "interval": [round(100 * bound, 2) for bound in scores.interval],
        "folds": [round(100 * score, 2) for score in folds],
        "protocol": result.protocol,
        "runs": result.runs,
        "restarts": result.restarts,
        "parameters": result.parameters // result.restarts if alone and result.parameters else result.parameters,
        "seconds": round(result.seconds, 1),
        "peak_megabytes": result.peak_megabytes,
        "seed": result.seed,
        "machine": result.machine,
    }


def _compared(row: Cell, rows: Sequence[Cell]) -> Cell:
    """A rival's cell, with what our own settings have more on the same folds: one training against one."""
    ours = [each for each in rows if each["model"] == COMPARED and each["data"] == row["data"]]
    if row["model"].startswith(COMPARED) or row["mean"] is None or not ours or ours[0]["mean"] is None:
        return row
    found = corrected_t_test(ours[0]["folds"], row["folds"], test_over_train=1 / (len(row["folds"]) - 1))
    return row | {"ours_minus": {"difference": round(found.difference, 2), "p": float(f"{found.p:.2g}")}}


def _chosen(there: Sequence[str], wanted: Sequence[str] | None, kind: str) -> list[str]:
    for name in wanted or ():
        if name not in there:
            raise ConfigError(f"the table has no {kind} {name!r}; it has {', '.join(there)}")
    return [name for name in there if wanted is None or name in wanted]


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
