"""Records of benchmarks -> tables in Markdown, and a document with them between its markers.

No figure is typed by hand: whatever stands between ``<!-- bench:NAME -->`` and ``<!-- /bench:NAME -->`` is replaced by
the tables of all records of that name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from egocnn.errors import DataError
from egocnn.files import write_text
from lab.markdown import table

Record: TypeAlias = Mapping[str, Any]

KEYS = {"name", "title", "device", "quick", "cases", "command", "date", "machine", "versions"}
EMPTY = "*Not measured yet.*"

Cell: TypeAlias = Callable[[Mapping[str, Any]], str]


def read_records(folder: Path) -> list[Record]:
    """All records of a folder: those of a GPU first, each kind by name."""
    records = []
    for file in sorted(folder.glob("*.json")):
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{file}: {error}") from None
        if not isinstance(record, dict) or not record.keys() >= KEYS:
            raise DataError(f"{file}: is not the record of a benchmark")
        records.append(record)
    if not records:
        raise DataError(f"{folder}: holds no records; egocnn bench NAME writes them")
    return sorted(records, key=lambda record: (record["device"] != "cuda", record["name"]))


def fill_document(path: Path, records: Sequence[Record], *, picture: str | None = None) -> None:
    """Replace what stands between the markers; a benchmark without a record says so.

    ``picture`` is the file that the markers of the name ``chart`` show.
    """

    def tables(match: re.Match[str]) -> str:
        name = match["name"]
        text = "\n".join(markdown(record) for record in records if record["name"] == name).strip()
        if name == "chart" and picture is not None:
            text = f"![Times of peers as multiples of ours, and how time and memory grow]({picture})"
        return f"<!-- bench:{name} -->\n\n{text or EMPTY}\n\n<!-- /bench:{name} -->"

    text = path.read_text(encoding="utf-8")
    pattern = r"<!-- bench:(?P<name>[\w-]+) -->.*?<!-- /bench:(?P=name) -->"
    filled, count = re.subn(pattern, tables, text, flags=re.DOTALL)
    if not count:
        raise DataError(f"{path}: has no markers <!-- bench:NAME --> … <!-- /bench:NAME --> to write between")
    write_text(path, filled)


def markdown(record: Record) -> str:
    """One record as a caption, its ceilings, and a table with a row per case and system."""
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    small = " Small sizes (`--quick`): these figures say little." if record["quick"] else ""
    lines = [f"**{record['title']}**: {record['machine']}, {record['date']}.{small}", ""]
    lines += _ceilings(record["ceilings"]) if "ceilings" in record else []
    lines += _table(record["cases"]) if record["cases"] else []
    if record.get("exponents"):
        grown = "; ".join(
            f"{size}: " + ", ".join(f"{system} {power:.2f}" for system, power in powers.items())
            for size, powers in record["exponents"].items()
        )
        lines += [f"Time grows with this power of the size, over the larger half of the curve: {grown}.", ""]
    for name, reason in record.get("missing", {}).items():
        lines += [f"{name} is missing: {reason}.", ""]
    return "\n".join([*lines, f"`{record['command']}`, {versions}.", ""])


def _ceilings(ceilings: Mapping[str, Any]) -> list[str]:
    rows = [("copy, bytes read and written", f"{ceilings['copy_gigabytes_per_second']:,.0f} GB/s")]
    for key, words in (
        ("matrix_teraflops", "square matrix product"),
        ("tall_matrix_teraflops", "product shaped like the layer"),
    ):
        rows += [(f"{words}, {name}", f"{_number(rate)} TFLOP/s") for name, rate in ceilings[key].items()]
    return [*table(("ceiling, measured in the same run", ""), rows), ""]


COLUMNS: dict[str, Cell] = {
    "time": lambda row: _time(row.get("milliseconds")),
    "time / ours": lambda row: _times(row.get("time_ratio")),
    "time / floor": lambda row: _times(row.get("times_floor")),
    "useful TFLOP/s": lambda row: _number(row.get("useful_teraflops")),
    "peak memory": lambda row: _memory(row.get("peak_megabytes")),
    "memory / ours": lambda row: _times(row.get("memory_ratio")),
    "remark": lambda row: row.get("problem") or row.get("note") or "",
}


def _table(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [row for case in cases for row in _rows(case)]
    # a column that nobody fills says nothing
    columns = {name: cell for name, cell in COLUMNS.items() if any(cell(row) for _, row in rows)}
    cells = ([title, row["system"], *(cell(row) for cell in columns.values())] for title, row in rows)
    return [*table(("case", "system", *columns), cells, right=[name for name in columns if name != "remark"]), ""]


def _rows(case: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The title of the case stands in its first row alone."""
    for number, row in enumerate(case["systems"]):
        yield ("" if number else case["case"]), row
    if case["floor"] is not None:
        floor = case["floor"]
        yield "", {"system": "*floor*", "milliseconds": floor["milliseconds"], "note": f"bound by the {floor['bound']}"}


def _time(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    return f"{_number(milliseconds / 1000)} s" if milliseconds >= 1000 else f"{_number(milliseconds)} ms"


def _memory(megabytes: float | None) -> str:
    if megabytes is None:
        return ""
    return f"{_number(megabytes / 1000)} GB" if megabytes >= 1000 else f"{_number(megabytes)} MB"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{_number(ratio)}×"


def _number(value: float | None) -> str:
    """Three digits that count, never in powers of ten."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.6f}"
