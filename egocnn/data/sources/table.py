"""A CSV or TSV file with a header -> its rows, one at a time, or a DataError of one line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from egocnn.data.sources.text import one_line, short, text_lines
from egocnn.errors import DataError

TABLE_SUFFIXES = (".csv", ".tsv", ".tab")


def table_rows(path: Path) -> Iterator[dict[str, str]]:
    """Column name -> text for every row, by commas, or by tabs where the name ends in .tsv or .tab.

    Fields may be quoted and then span lines. A table without a header or without rows is refused. Rows are counted from
    1, the header and blank lines not counted.
    """
    delimiter = "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    # newline="" leaves line ends inside quotes as they are, as the csv module asks for
    split = (part for line in text_lines(path) for part in io.StringIO(line, newline=""))
    lines = csv.reader(split, delimiter=delimiter, strict=True)
    columns: tuple[str, ...] | None = None
    row = 0
    try:
        for line in filter(None, lines):
            if columns is None:
                columns = tuple(name.strip() for name in line)
                for name, times in Counter(columns).items():
                    if times > 1 and name:
                        raise DataError(f"{path.name}: two columns are called {short(name)}")
                continue
            row += 1
            if len(line) != len(columns):
                raise DataError(f"{path.name}, row {row}: {len(line)} fields where the header has {len(columns)}")
            yield dict(zip(columns, line, strict=True))
    except csv.Error as error:
        raise DataError(f"{path.name}, line {lines.line_num}: {one_line(str(error))}") from None
    if columns is None:
        raise DataError(f"{path.name}: is empty; a header with the names of the columns is needed")
    if row == 0:
        raise DataError(f"{path.name}: has a header and no rows")
