"""A CSV or TSV file with a header, or a SMI file -> its rows, one at a time, or a DataError of one line."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from egocnn.data.sources.text import one_line, short, suffix_of, text_lines
from egocnn.errors import DataError

TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".smi")
DECIMAL = re.compile(r"^\s*([+-]?\d*),(\d+)\s*$")


def table_rows(path: Path) -> Iterator[dict[str, str]]:
    """Column name -> text for every row, by commas, or by tabs where the name ends in .tsv or .tab.

    A header with semicolons and no comma says that semicolons part the fields, and commas are decimal points. Fields
    may be quoted and then span lines. A table without a header or without rows is refused. Rows are counted from 1, the
    header and blank lines not counted. A .smi file has no header: a SMILES in every line, and perhaps a name behind it.
    """
    if suffix_of(path) == ".smi":
        yield from _smi_rows(path)
        return
    texts = text_lines(path)
    header = next(texts, "")
    by_semicolons = ";" in header and "," not in header
    delimiter = "\t" if suffix_of(path) in (".tsv", ".tab") else ";" if by_semicolons else ","
    # newline="" leaves line ends inside quotes as they are, as the csv module asks for
    split = (part for line in chain([header], texts) for part in io.StringIO(line, newline=""))
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
            fields = [DECIMAL.sub(r"\1.\2", field) for field in line] if delimiter == ";" else line
            yield dict(zip(columns, fields, strict=True))
    except csv.Error as error:
        raise DataError(f"{path.name}, line {lines.line_num}: {one_line(str(error))}") from None
    if columns is None:
        raise DataError(f"{path.name}: is empty; a header with the names of the columns is needed")
    if row == 0:
        raise DataError(f"{path.name}: has a header and no rows")


def _smi_rows(path: Path) -> Iterator[dict[str, str]]:
    """A first line that begins with the word SMILES, as RDKit writes it, is left out."""
    is_empty = True
    for number, line in enumerate(filter(str.strip, text_lines(path))):
        smiles, *name = line.split(maxsplit=1)
        if number or smiles.lower() != "smiles":
            yield {"smiles": smiles, "name": name[0].strip() if name else ""}
            is_empty = False
    if is_empty:
        raise DataError(f"{path.name}: no molecules in it")
