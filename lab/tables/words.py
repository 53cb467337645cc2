"""The record of a table -> Markdown for people, CSV for spreadsheets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lab.markdown import csv_text, made_by, table

Cell = dict[str, Any]

CERTAIN = 0.05  # A difference with a smaller p is marked.

COLUMNS = (
    *("model", "data", "mean", "std", "low", "high", "published", "protocol", "runs", "restarts"),
    *("parameters", "seconds", "ours_minus", "p", "machine", "reason"),
)


def markdown(record: dict[str, Any]) -> str:
    """One line a system, one column a data set, and under it what a reader must know to judge them."""
    rows: list[Cell] = record["rows"]
    reasons = [f"- {row['model']} on {row['data']}: {row['reason']}" for row in rows if row["mean"] is None]
    parts = [
        f"# {record['title']}",
        "\n".join(_grid(rows, _accuracy)),
        "Mean test accuracy in per cent ± standard deviation over the folds; in brackets what the paper prints."
        + _about_protocol(rows),
    ]
    if any("ours_minus" in row for row in rows):
        parts.append(
            f"¹ differs from {record['compared_with']} with p < {CERTAIN} by the corrected resampled t-test over the "
            "folds."
        )
    for title, own, printed, show in (
        ("Parameters", "parameters", "published_parameters", lambda number: f"{number:,.0f}"),
        ("Seconds, for all folds together", "seconds", "published_seconds", lambda number: f"{number:,.0f}"),
    ):
        if any(printed in row for row in rows):
            parts += [
                f"{title}; in brackets what the paper prints:",
                "\n".join(_grid(rows, _number(own, printed, show))),
            ]
    if reasons:
        parts.append("\n".join(["Without a score:", *reasons]))
    machines = list(dict.fromkeys(row["machine"] for row in rows if row.get("machine")))
    where = " and ".join(machines) or record["machine"]
    parts.append(made_by(record, where=where))
    return "\n\n".join(parts) + "\n"


def table_csv(rows: Sequence[Cell]) -> str:
    return csv_text(COLUMNS, map(_flat, rows))


def _flat(row: Cell) -> Cell:
    low, high = row.get("interval", ("", ""))
    against = row.get("ours_minus", {})
    return {**row, "low": low, "high": high, "ours_minus": against.get("difference"), "p": against.get("p")}


def shown(cell: Cell) -> str:
    return f"{cell['mean']:.1f} ± {cell['std']:.1f}" if cell["mean"] is not None else f"no score: {cell['reason']}"


def _grid(rows: Sequence[Cell], words: Callable[[Cell], str]) -> list[str]:
    data = list(dict.fromkeys(row["data"] for row in rows))
    cells = {(row["model"], row["data"]): row for row in rows}
    models = dict.fromkeys(row["model"] for row in rows)
    found = ([m, *(words(cells[m, name]) if (m, name) in cells else "" for name in data)] for m in models)
    return table(["", *data], found)


def _accuracy(cell: Cell) -> str:
    printed = "" if cell["published"] is None else f" [{cell['published']}]"
    if cell["mean"] is None:
        return f"–{printed}"
    mark = "¹" if cell.get("ours_minus", {}).get("p", 1.0) < CERTAIN else ""
    return f"{cell['mean']:.1f} ± {cell['std']:.1f}{mark}{printed}"


def _number(own: str, printed: str, show: Callable[[float], str]) -> Callable[[Cell], str]:
    def words(cell: Cell) -> str:
        ours = "" if cell.get(own) is None else show(cell[own])
        theirs = "" if cell.get(printed) is None else f" [{show(cell[printed])}]"
        return ours + theirs

    return words


def _about_protocol(rows: Sequence[Cell]) -> str:
    """Which sets were run how."""
    ways: dict[str, list[str]] = {}
    for row in rows:
        if row["mean"] is not None:
            sets = ways.setdefault(row["protocol"], [])
            if row["data"] not in sets:
                sets.append(row["data"])
    words = {
        "fair": "the published splits by Errica and others",
        "paper": "ten stratified folds, the best of the restarts in validation",
        "plain": "three stratified folds of a few graphs, for a rough answer only",
    }
    return "".join(f" {', '.join(sets)}: {words[way]}." for way, sets in ways.items())
