"""Rows of named values, a portion at a time -> one file, by its ending CSV, JSON lines or Parquet."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from egocnn.data.sources.text import arrow
from egocnn.errors import ConfigError
from egocnn.files import csv_text, finite_json, replacing
from egocnn.train.predictions import csv_row

FORMATS = (".csv", ".jsonl", ".parquet")
Kinds = Mapping[str, Any]  # What each column holds: string, double, list<float>, list<int>, or a type of Arrow.
Write = Callable[[Any], None]  # takes rows, or a table of Arrow where it writes Parquet


def check_format(path: Path) -> None:
    """Refuse, before anything is computed, a name that says no format, and Parquet where pyarrow is missing."""
    if path.suffix.lower() not in FORMATS and not (path.exists() and not path.is_file()):
        raise ConfigError(f"{path}: the file to write must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if path.suffix.lower() == ".parquet":
        arrow()


def column_kinds(path: Path | None, columns: Sequence[str]) -> dict[str, Any]:
    """What the columns of a table hold: of Parquet its own types, of anything else texts."""
    kinds: dict[str, Any] = dict.fromkeys(columns, "string")
    if path is not None and path.suffix.lower() == ".parquet":
        kinds |= {field.name: field.type for field in arrow().parquet.read_schema(path) if field.name in kinds}
    return kinds


@contextmanager
def table_writer(path: Path, kinds: Kinds, note: Mapping[str, str] | None = None) -> Iterator[Write]:
    """What appends rows to a file, which is put in place at the end; what is not a text or a number becomes one.
    ``note``: texts that a Parquet file keeps beside its rows; they may be added until the end"""
    with replacing(path) as temporary:
        if path.suffix.lower() == ".parquet":
            with arrow().parquet.ParquetWriter(temporary, arrow_table([], kinds).schema) as writer:
                yield lambda rows: writer.write_table(rows if hasattr(rows, "schema") else arrow_table(rows, kinds))
                writer.add_key_value_metadata(note or {})
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            if path.suffix.lower() == ".jsonl":
                yield lambda rows: file.writelines(
                    finite_json({name: _plain(row.get(name)) for name in kinds}, default=str, ensure_ascii=False) + "\n"
                    for row in rows
                )
                return
            file.write(csv_text([tuple(kinds)]))
            yield lambda rows: file.writelines([csv_text(csv_row(row, kinds) for row in rows)])


def arrow_table(rows: Sequence[Mapping[str, Any]], kinds: Kinds) -> Any:
    """The rows as Arrow and Parquet hold them."""
    pa = arrow()
    types = {"string": pa.string(), "double": pa.float64()}
    types |= {"list<float>": pa.list_(pa.float32()), "list<int>": pa.list_(pa.int32())}
    columns = {name: [row.get(name) for row in rows] for name in kinds}
    for values in (columns[name] for name, kind in kinds.items() if kind == "string"):
        values[:] = [v if v is None or isinstance(v, str) else finite_json(_plain(v)) for v in values]
    return pa.table({name: pa.array(columns[name], types.get(kind, kind)) for name, kind in kinds.items()})


def _plain(value: Any) -> Any:
    """JSON has no word for what is not a finite number: null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
