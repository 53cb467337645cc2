"""Rows of text -> tables in Markdown and CSV, and the line that says how a record was made."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> list[str]:
    """The lines of one table; the columns named in ``right`` hold numbers and end at the right."""
    rule = "".join("---:|" if name in right else "---|" for name in head)
    return [_line(head).replace("|  |", "| |"), f"|{rule}", *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def made_by(record: Mapping[str, Any], *, where: str | None = None) -> str:
    """The command behind a record, when and where it ran (on the record's machine unless told) and torch's version."""
    machine = where or record["machine"]
    return f"`{record['command']}`, {record['date']}, {machine}, torch {record['versions']['torch']}."


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """These columns of every row; what a row does not have stays empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
