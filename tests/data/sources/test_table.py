"""CSV and TSV files -> columns and rows."""

import csv
import gzip
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.data.sources import text
from egocnn.data.sources.jsonlines import json_rows
from egocnn.data.sources.text import table_rows
from egocnn.errors import DataError
from tests.support.samples import refusal, written


def rows_of(folder: Path, data: bytes | str, name: str = "m.csv") -> list[dict[str, str]]:
    return list(table_rows(written(folder, name, data)))


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        ("m.csv", 'a,b\r\n1,"x, ""y""\r\nz"\r\n\r\n2,\r\n', [("1", 'x, "y"\r\nz'), ("2", "")]),
        *((f"m.{suffix}", "a\tb\n1,5\t2\n", [("1,5", "2")]) for suffix in ("tsv", "TSV", "tab")),
        ("m.csv", "a;b;c\nC;-1,5;1,2 or 3\nN;,25;a,b\n", [("C", "-1.5", "1,2 or 3"), ("N", ".25", "a,b")]),
        ("m.csv", "a,b;c\n1,2;3\n", [("1", "2;3")]),
        *(("m.csv", MARK + f"a,b{end}C,1{end}".encode(), [("C", "1")]) for end in ("\n", "\r\n", "\r")),
    ],
    ids=["quoted", "tsv", "TSV", "tab", "semicolons and decimal commas", "a semicolon in a name", "LF", "CR LF", "CR"],
)
def test_fields_are_separated_as_the_name_or_the_header_says(
    tmp_path: Path, name: str, data: bytes | str, rows: list[tuple[str, ...]]
) -> None:
    found = rows_of(tmp_path, data, name)
    assert [tuple(row.values()) for row in found] == rows
    assert next(iter(found[0])) == "a"  # without a byte order mark


@pytest.mark.parametrize("header", ["", "SMILES Name\n"])
def test_a_smi_file_has_a_smiles_in_every_line_and_perhaps_a_name(tmp_path: Path, header: str) -> None:
    rows = rows_of(tmp_path, f"{header}C methane\n\nCCO\tethyl alcohol \nN\n", "m.smi")
    assert [(row["smiles"], row["name"]) for row in rows] == [("C", "methane"), ("CCO", "ethyl alcohol"), ("N", "")]
    assert refusal(rows_of, tmp_path, header, "m.smi") == "m.smi: no molecules in it"


@pytest.mark.parametrize(
    ("name", "text"), [("m.csv.gz", "smiles,name\nC,m\n"), ("m.TSV.GZ", "smiles\tname\nC\tm\n"), ("m.smi.gz", "C m\n")]
)
def test_packed_tables_are_read_and_damaged_ones_refused_in_one_line(tmp_path: Path, name: str, text: str) -> None:
    packed = gzip.compress(text.encode())
    assert rows_of(tmp_path, packed, name) == [{"smiles": "C", "name": "m"}]
    for damaged in (packed[:-9], text.encode(), packed[:12] + b"xxxx" + packed[16:]):
        assert re.search(rf"{name}: cannot be read \(.+\)$", refusal(rows_of, tmp_path, damaged, name))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "m.csv: is empty"),
        (b"\n\n", "m.csv: is empty"),
        (b"a,b\n", "m.csv: has a header and no rows"),
        (b"a,b\n1,2\n3\n", "m.csv, row 2: 1 fields where the header has 2"),
        (b"a,b\n1,2,3\n", "m.csv, row 1: 3 fields where the header has 2"),
        (b"a,b\n1,\xff\n", "m.csv, line 2: byte 0xff is not UTF-8"),
        (b"a,b\n1,\x00\n", "m.csv, line 2: holds a NUL byte"),
        (b"a,a\n1,2\n", "m.csv: two columns are called 'a'"),
        (b'a,b\n1,"2\n', "m.csv, line 2: unexpected end of data"),
        (b'a,b\n1,"2"x\n', "m.csv, line 2: "),
        (b"a,b\n1," + b"x" * 200_000 + b"\n", "m.csv, line 2: field larger than field limit"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_in_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    assert refusal(rows_of, tmp_path, data).startswith(message)


def test_a_file_that_is_not_there_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.csv: no such file"):
        list(table_rows(tmp_path / "nothing.csv"))
    with pytest.raises(DataError, match="cannot be read"):
        list(table_rows(tmp_path))


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_what_the_csv_module_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    rows = [(a.replace("\0", ""), b.replace("\0", "")) for a, b in rows]
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    again = rows_of(tmp_path_factory.mktemp("tables"), text.getvalue())
    assert [(row["a"], row["b"]) for row in again] == rows


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CR LF", "CR"])
def test_lines_of_every_text_end_as_those_of_unix_windows_or_an_old_macintosh(tmp_path: Path, end: str) -> None:
    assert rows_of(tmp_path, f"C m{end}N a{end}", "m.smi") == [
        {"smiles": "C", "name": "m"},
        {"smiles": "N", "name": "a"},
    ]
    assert rows_of(tmp_path, f"a;b{end}C;1,5{end}") == [{"a": "C", "b": "1.5"}]
    lines = written(tmp_path, "m.jsonl", f'{{"nodes": 1}}{end}{{"nodes": 2}}{end}')
    assert [row[0] for row in json_rows(lines)] == [1, 2]
    assert [row.get("name") for row in rows_of(tmp_path, f"a{end}$$$${end}b{end}$$$${end}", "m.sdf")] == ["a", "b"]


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "MOST_OF_LINE", 1000)
    for name, start in (("m.csv.gz", "a\n"), ("m.smi.gz", ""), ("m.sdf.gz", "")):
        packed = gzip.compress(f"{start}{'x' * 100_000}".encode())
        assert refusal(rows_of, tmp_path, packed, name).endswith(
            "has more than 1000 characters, the most that are read"
        )


def test_two_columns_of_one_name_are_refused_in_parquet_as_in_text(tmp_path: Path) -> None:
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(pa.table([["C"], ["1"], ["2"]], names=["smiles", "y", "y"]), tmp_path / "m.parquet")
    with pytest.raises(DataError, match=r"^m\.parquet: two columns are called y$"):
        list(table_rows(tmp_path / "m.parquet"))
