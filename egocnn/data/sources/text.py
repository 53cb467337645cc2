"""A text file -> its lines or the rows of its table, or a DataError; any value -> a short text for an error message."""

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from egocnn.data.schema import rule
from egocnn.errors import DataError, MissingExtraError
from egocnn.files import regular

TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".smi", ".sdf", ".parquet")
AT_ONCE = 2000  # rows that are read and handled together
ESCAPED = re.compile(r"[\udc80-\udcff]")  # bytes that are no UTF-8, as Python spells them among text
DECIMAL = re.compile(r"^\s*([+-]?\d*),(\d+)\s*$")
MOLECULE = "\0"  # The column of an SDF with its molecules: no file can have another of this name.
MOST_OF_LINE = 1 << 28  # Characters: what is packed in a megabyte may be a line of a gigabyte.
MOST_OF_RECORD = 2_000_000  # Characters of one record of an SDF.
PROPERTY = re.compile(r"^>[^<\n]*<([^\n]+)>[^>\n]*((?:\n[^\n]+)*)", re.MULTILINE)  # up to a blank line


class MolBlock(NamedTuple):
    """A molecule as an SDF spells it, from its title to M  END."""

    text: str


def suffix_of(path: Path) -> str:
    """The ending of a file's name in small letters, that of what is packed where it ends in .gz"""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file one at a time, each with its line end, be it of Unix, Windows or an old Macintosh; a
    byte order mark is left out."""
    for number, text in enumerate(raw_lines(path), 1):
        yield checked_text(text, f"{path.name}, line {number}: ")


def raw_lines(path: Path) -> Iterator[str]:
    """The same of a file in which single lines may be no text; :func:`checked_text` tells."""
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    how: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
    with reading(path), opened(path, "rt", **how) as file:
        for number, text in enumerate(iter(lambda: file.readline(MOST_OF_LINE), ""), 1):
            too_long = f"{path.name}, line {number}: has more than {MOST_OF_LINE} characters, the most that are read"
            rule(len(text) < MOST_OF_LINE, too_long)
            yield text


def checked_text(text: str, place: str = "") -> str:
    """The same line; refused where bytes of it are no text."""
    if not text.isascii() and (escaped := ESCAPED.search(text)):
        byte = f"0x{ord(escaped[0]) - 0xDC00:02x}"
        raise DataError(f"{place}byte {byte} is not UTF-8 text; save the file as UTF-8")
    rule("\0" not in text, f"{place}holds a NUL byte; this is not a text file")
    return text


def optional(name: str, extra: str) -> Any:
    """A module of a library that comes with an extra; the error says what to type where it is not installed."""
    library = name.partition(".")[0]
    try:
        return import_module(library) and import_module(name)  # a part may be there while the whole is not
    except ImportError:
        raise MissingExtraError(library.replace("_", "-"), extra) from None


def arrow() -> Any:
    """pyarrow, which reads and writes Parquet."""
    optional("pyarrow.parquet", "parquet")
    return optional("pyarrow", "parquet")


def table_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Column name -> text for every row, by commas, or by tabs where the name ends in .tsv or .tab; Parquet has types.

    A header with semicolons and no comma says that semicolons part the fields, and commas are decimal points. Fields
    may be quoted and then span lines. A table without a header or without rows is refused. Rows are counted from 1, the
    header and blank lines not counted. A .smi file has no header: a SMILES in every line, and perhaps a name behind it.
    A row of an SDF is a record: its title as ``name``, its properties, and the molecule itself as ``MOLECULE``."""
    suffix = suffix_of(path)
    if suffix == ".parquet":
        with reading(path), arrow().parquet.ParquetFile(path) as file:
            twice = [name for name, times in Counter(file.schema_arrow.names).items() if times > 1]
            rule(not twice, f"{path.name}: two columns are called {listed(twice)}")
            for batch in file.iter_batches(AT_ONCE):
                yield from batch.to_pylist()
    elif suffix in (".sdf", ".smi"):
        rows = (_sdf_rows if suffix == ".sdf" else _smi_rows)(text_lines(path))
        first = list(islice(rows, 1))
        rule(first, f"{path.name}: no molecules in it")
        yield from chain(first, rows)
    else:
        yield from _csv_rows(path, by_tabs=suffix in (".tsv", ".tab"))


def _csv_rows(path: Path, *, by_tabs: bool) -> Iterator[dict[str, Any]]:
    texts = text_lines(path)
    header = next(texts, "")
    by_semicolons = ";" in header and "," not in header and not by_tabs
    delimiter = "\t" if by_tabs else ";" if by_semicolons else ","
    lines = csv.reader(chain([header], texts), delimiter=delimiter, strict=True)
    filled = filter(None, lines)
    row = 0
    try:
        columns = [name.strip() for name in next(filled, ())]
        for name, times in Counter(columns).items():
            rule(times == 1 or not name, f"{path.name}: two columns are called {short(name)}")
        for row, line in enumerate(filled, 1):
            if len(line) != len(columns):
                raise DataError(f"{path.name}, row {row}: {len(line)} fields where the header has {len(columns)}")
            fields = [DECIMAL.sub(r"\1.\2", field) for field in line] if by_semicolons else line
            yield dict(zip(columns, fields, strict=True))
    except csv.Error as error:
        raise DataError(f"{path.name}, line {lines.line_num}: {one_line(str(error))}") from None
    rule(columns, f"{path.name}: is empty; a header with the names of the columns is needed")
    rule(row, f"{path.name}: has a header and no rows")


def _smi_rows(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, text in enumerate(filter(str.strip, texts)):
        smiles, *names = text.split(maxsplit=1)
        if number or smiles.lower() != "smiles":  # a header as RDKit writes it is left out
            yield {"smiles": smiles, "name": names[0].strip() if names else ""}


def _sdf_rows(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    lines, size = list[str](), 0
    for text in chain(texts, [""]):
        if text and not text.startswith("$$$$"):
            size += len(text)
            lines += [text.rstrip()] if size <= MOST_OF_RECORD else []  # no more than that is ever held
        elif text or any(lines):
            whole = "\n".join(lines)
            block, end, _ = whole.partition("\nM  END")
            title = {"name": lines[0].strip()} if lines and lines[0].strip() else {}
            found = {name.strip(): value.strip() for name, value in PROPERTY.findall(whole)}
            too_long = DataError(f"the record has {size} characters; {MOST_OF_RECORD} are read at most")
            molecule = too_long if size > MOST_OF_RECORD else MolBlock(f"{block}{end}\n")
            yield {**title, **found, **title, MOLECULE: molecule}
            lines, size = [], 0


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A :class:`DataError` where the file cannot be read."""
    try:
        regular(path)
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({reason(error)})") from None


def reason(error: BaseException) -> str:
    """What the system or a library says of a failure, on one line."""
    text = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return one_line(" ".join(str(text).split()), 200) or type(error).__name__


def short(value: object, length: int = 60) -> str:
    """The value as Python writes it, on one line, cut where it is long."""
    text = " ".join(line.strip() for line in repr(value).splitlines())
    return text if len(text) <= length else f"{text[: length - 3]}..."


def one_line(text: str, length: int = 800) -> str:
    """The text fit for a terminal: on one line, signs that cannot be printed spelled out, its middle left out if long.
    What stands in a file must not reach the terminal as it is: an escape sequence there is a command."""
    if not text.isprintable():
        text = " ".join(filter(None, map(str.strip, text.splitlines())))
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= length else f"{text[: length // 2]} … {text[-length // 2 :]}"


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names for a message, as they are where they can be printed: name, label, 'a\\nb' and 3 more."""
    names = list(names)
    shown = [name if name.isprintable() and 0 < len(name) <= 60 else short(name) for name in names[:most]]
    more = len(names) - most
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
