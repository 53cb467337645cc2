"""A CSV or TSV file with a header -> its columns and rows, or one clear line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from egocnn.data.sources.text import one_line, read_text, short
from egocnn.errors import DataError

TAB_SUFFIXES = (".tsv", ".tab")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; data rows are counted from 1, the header and blank lines not counted."""

    where: str
    columns: tuple[str, ...]
    rows: list[dict[str, str]]

    def place(self, row: int) -> str:
        return f"{self.where}, row {row + 1}"


def read_table(path: Path) -> Table:
    """Read commas, or tabs where the name ends in .tsv or .tab; fields may be quoted and then span lines."""
    delimiter = "\t" if path.suffix.lower() in TAB_SUFFIXES else ","
    # newline="" leaves line ends inside quotes as they are, as the csv module asks for
    lines = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    try:
        filled = [line for line in lines if line]
    except csv.Error as error:
        raise DataError(f"{path.name}, line {lines.line_num}: {one_line(str(error))}") from None
    if not filled:
        raise DataError(f"{path.name}: is empty; a header with the names of the columns is needed")
    columns = tuple(name.strip() for name in filled[0])
    for name, times in Counter(columns).items():
        if times > 1 and name:
            raise DataError(f"{path.name}: two columns are called {short(name)}")
    table = Table(path.name, columns, [])
    for row, line in enumerate(filled[1:]):
        if len(line) != len(columns):
            raise DataError(f"{table.place(row)}: {len(line)} fields where the header has {len(columns)}")
        table.rows.append(dict(zip(columns, line, strict=True)))
    if not table.rows:
        raise DataError(f"{path.name}: has a header and no rows")
    return table
