"""A table by name -> every system cross-validated on every data set, beside the printed figures; JSON, CSV, Markdown.

Every cell is one cross-validation, kept in a file of its own as its folds finish: an interrupted table goes on where it
stopped. What cannot run on a set says why in its cell instead of vanishing from the table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.config import Device
from egocnn.crossval import CrossValidation, Protocol, choose_protocol, cross_validate, find_rival
from egocnn.crossval.protocol import ProtocolName
from egocnn.errors import ConfigError, EgoCNNError
from egocnn.files import write_json, write_text
from egocnn.graphs import Graphs
from egocnn.reading import read
from egocnn.runs import machine, versions
from egocnn.tables.presets import shortened
from egocnn.tables.scores import TABLES, Contestant, ScoreTable

QUICK_GRAPHS = 200
"""Graphs of each set that a rough answer looks at."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What is the same for every cell."""

    protocol: ProtocolName = "paper"
    quick: bool = False
    seed: int = 0
    device: Device = "auto"
    jobs: int | None = None
    data: Sequence[str] | None = None
    """of the table's sets, only these"""
    models: Sequence[str] | None = None
    """of the table's rows, only these"""

    @property
    def words(self) -> str:
        """As on the command line, what decides the scores."""
        return f" {'--quick' if self.quick else f'--protocol {self.protocol}'} --seed {self.seed}"


def write_table(name: str, how: How, *, folder: Path, kept: Path, say: Say) -> dict[str, Any]:
    """Run the cells that are not there yet, then write NAME.json, NAME.csv and NAME.md into the folder."""
    table = TABLES[name]
    rows = []
    for data in _chosen(table.data, how.data, "data set"):
        graphs = _read(data, how)
        for contestant in table.contestants:
            if how.models is None or contestant.name in how.models:
                rows.append(_cell(table, contestant, data, graphs, how, kept=kept / name, say=say))
                say(f"{data}, {contestant.name}: {_shown(rows[-1])}")
    _chosen([contestant.name for contestant in table.contestants], how.models, "row")
    record = {
        "title": table.title,
        "rows": rows,
        "protocol": "quick" if how.quick else how.protocol,
        "command": f"egocnn reproduce {name}{how.words}",
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": versions(),
    }
    write_json(folder / f"{name}.json", record)
    write_text(folder / f"{name}.csv", _csv(rows))
    write_text(folder / f"{name}.md", markdown(record))
    return record


def _read(data: str, how: How) -> Graphs:
    graphs = read(data)
    if not how.quick or len(graphs) <= QUICK_GRAPHS:
        return graphs
    return graphs[np.sort(np.random.default_rng(how.seed).choice(len(graphs), QUICK_GRAPHS, replace=False))]


def _cell(
    table: ScoreTable, contestant: Contestant, data: str, graphs: Graphs, how: How, *, kept: Path, say: Say
) -> dict[str, Any]:
    row = contestant.printed_as or ""
    cell: dict[str, Any] = {"model": contestant.name, "data": data, "published": table.figures.get(row, {}).get(data)}
    if row in table.parameters:
        cell["published_parameters"] = table.parameters[row]
    if row in table.seconds:
        cell["published_seconds"] = table.seconds[row].get(data)
    train = shortened(contestant.train) if how.quick else contestant.train
    train = replace(train, seed=how.seed, device=how.device)
    try:
        protocol = Protocol(name="plain", folds=3) if how.quick else choose_protocol(how.protocol, data=data)
        model = contestant.model if contestant.rival is None else find_rival(contestant.rival)
        out = kept / f"{data}-{_file_name(contestant.name)}-{'quick' if how.quick else how.protocol}.json"
        result = cross_validate(graphs, model, train, protocol=protocol, jobs=how.jobs, data=data, out=out, say=say)
    except (EgoCNNError, MemoryError) as error:
        return cell | {"mean": None, "reason": " ".join(str(error).split()) or "out of memory"}
    return cell | _scores(result)


def _scores(result: CrossValidation) -> dict[str, Any]:
    return {
        "mean": round(100 * result.mean, 2),
        "std": round(100 * result.std, 2),
        "interval": [round(100 * bound, 2) for bound in result.interval],
        "folds": [round(100 * fold.score, 2) for fold in result.folds],
        "protocol": result.protocol,
        "parameters": result.parameters,
        "seconds": round(result.seconds, 1),
        "peak_megabytes": result.peak_megabytes,
        "seed": result.seed,
        "machine": result.machine,
    }


def _chosen(there: Sequence[str], wanted: Sequence[str] | None, kind: str) -> list[str]:
    for name in wanted or ():
        if name not in there:
            raise ConfigError(f"the table has no {kind} {name!r}; it has {', '.join(there)}")
    return [name for name in there if wanted is None or name in wanted]


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def _shown(cell: dict[str, Any]) -> str:
    return f"{cell['mean']:.1f} ± {cell['std']:.1f}" if cell["mean"] is not None else f"could not run: {cell['reason']}"


def markdown(record: dict[str, Any]) -> str:
    """One line a system, one column a data set; ours ± deviation over folds, the printed figure in brackets."""
    data = list(dict.fromkeys(row["data"] for row in record["rows"]))
    cells = {(row["model"], row["data"]): row for row in record["rows"]}
    lines = [f"| | {' | '.join(data)} |", "|---" * (len(data) + 1) + "|"]
    for model in dict.fromkeys(row["model"] for row in record["rows"]):
        words = [_words(cells[model, name]) if (model, name) in cells else "" for name in data]
        lines.append(f"| {model} | {' | '.join(words)} |")
    reasons = [f"- {r['model']} on {r['data']}: {r['reason']}" for r in record["rows"] if r["mean"] is None]
    return "\n".join(
        [
            f"# {record['title']}",
            "",
            *lines,
            "",
            "Mean test accuracy in per cent ± standard deviation over the folds; in brackets what the paper prints.",
            *([] if not reasons else ["", "Could not run:", *reasons]),
            "",
            f"`{record['command']}`, {record['date']}, {record['machine']}, torch {record['versions']['torch']}.",
            "",
        ]
    )


def _words(cell: dict[str, Any]) -> str:
    printed = "" if cell["published"] is None else f" [{cell['published']}]"
    return ("could not run" if cell["mean"] is None else f"{cell['mean']:.1f} ± {cell['std']:.1f}") + printed


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    columns = ("model", "data", "mean", "std", "published", "parameters", "seconds", "protocol", "reason")
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
