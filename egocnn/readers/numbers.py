"""Text of numbers, in chunks of bytes -> arrays (rows, columns), or a DataError that names the line.

A line holds fields separated by commas (blanks around them are free) or by blanks alone; every line has the same
number of fields; blank lines may only follow the last one. Two engines read a piece of the text: ``_parse_lines``
defines the format, line by line, and finds the words for what is wrong; ``_parse_at_once`` reads pieces of clean text
some fifty times as fast and leaves all others to the first.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.arrays import Floats, Ints
from egocnn.errors import DataError

LONGEST_LINE = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r"


@dataclass(frozen=True, slots=True)
class _Kind:
    noun: str
    dtype: Any
    pattern: re.Pattern[bytes]
    shapes: bytes
    """Table for bytes.translate: what may belong to a number -> 0, blanks -> blank, the rest as it is."""


def _shapes(of_numbers: bytes) -> bytes:
    table = bytearray(range(256))
    for byte in range(256):
        if byte in of_numbers:
            table[byte] = ord("0")
        elif byte in BLANKS:
            table[byte] = ord(" ")
    return bytes(table)


WHOLE = _Kind("a whole number", np.int64, re.compile(rb"[+-]?[0-9]+"), _shapes(b"0123456789-"))
REAL = _Kind(
    "a finite number",
    np.float64,
    re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    _shapes(b"0123456789+-.eE"),
)


def read_integers(chunks: Iterable[bytes], where: str, columns: int | None = None) -> Ints:
    """(rows, columns) of 64-bit integers; without ``columns`` the first line decides how many there are."""
    return _join([block for _, block in _blocks(chunks, where, columns, WHOLE)], columns, WHOLE)


def read_reals(chunks: Iterable[bytes], where: str, columns: int | None = None) -> Floats:
    """(rows, columns) of 64-bit floats, all finite."""
    return _join([block for _, block in _blocks(chunks, where, columns, REAL)], columns, REAL)


def integer_blocks(chunks: Iterable[bytes], where: str, columns: int) -> Iterator[tuple[int, Ints]]:
    """The same as :func:`read_integers` piece by piece: number of its first line (from 1), rows."""
    return _blocks(chunks, where, columns, WHOLE)


def whole_lines(chunks: Iterable[bytes], where: str) -> Iterator[bytes]:
    """Cut the text anew so that every piece ends with a line end; the mark at its start and blanks at its end go."""
    rest, lines, first = b"", 0, True
    for chunk in chunks:
        rest += chunk
        if first and len(rest) >= len(BYTE_ORDER_MARK):
            rest, first = rest.removeprefix(BYTE_ORDER_MARK), False
        # the last line that is not blank stays behind: it may go on, or only blank lines may follow
        end = rest.rfind(b"\n", 0, len(rest.rstrip())) + 1
        if end:
            piece, rest = rest[:end], rest[end:]
            yield piece
            lines += int(np.count_nonzero(np.frombuffer(piece, np.uint8) == ord("\n")))
        if len(rest) > LONGEST_LINE:
            raise DataError(f"{where}, line {lines + 1}: longer than {LONGEST_LINE} bytes; a line must be shorter")
    last = rest.removeprefix(BYTE_ORDER_MARK).rstrip() if first else rest.rstrip()
    if last:
        yield last + b"\n"


def shorten(value: bytes) -> str:
    """A value for an error message: on one line, in quotes, of bounded length."""
    text = value[:200].decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _blocks(
    chunks: Iterable[bytes], where: str, columns: int | None, kind: _Kind
) -> Iterator[tuple[int, NDArray[Any]]]:
    line = 1
    for piece in whole_lines(chunks, where):
        if columns is None:
            columns = max(1, len(_fields(piece[: piece.index(b"\n")])))
        block = _parse_at_once(piece, columns, kind)
        if block is None:
            block = _parse_lines(piece, columns, kind, where, line)
        yield line, block
        line += len(block)


def _join(blocks: list[NDArray[Any]], columns: int | None, kind: _Kind) -> NDArray[Any]:
    return np.concatenate(blocks) if blocks else np.empty((0, columns or 1), kind.dtype)


def _parse_at_once(piece: bytes, columns: int, kind: _Kind) -> NDArray[Any] | None:
    """Read a piece with numpy, or return None where its layout is not the plain one or a value is not plain."""
    shapes = np.frombuffer(piece.translate(kind.shapes), np.uint8)
    keep = shapes != ord(" ")
    keep[1:] &= (shapes[1:] != ord("0")) | (shapes[:-1] != ord("0"))  # one 0 is left of every number
    outline = shapes.compress(keep).tobytes()
    for separator in (b",", b""):
        line = separator.join([b"0"] * columns) + b"\n"
        if outline == line * (len(outline) // len(line)):
            break
    else:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # before numpy 2.4 text that is no number only warns
        try:
            values = np.fromstring(piece.replace(b",", b" "), kind.dtype, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    # numbers beyond the range come out as its end, or as infinite
    plain = values < np.iinfo(np.int64).max if kind is WHOLE else np.isfinite(values)
    if len(values) != len(outline) // len(line) * columns or not plain.all():
        return None
    return values.reshape(-1, columns)


def _parse_lines(piece: bytes, columns: int, kind: _Kind, where: str, first_line: int) -> NDArray[Any]:
    rows = []
    for number, line in enumerate(piece[:-1].split(b"\n"), first_line):
        try:
            rows.append(_parse_line(line, columns, kind))
        except ValueError as error:
            raise DataError(f"{where}, line {number}: {error}") from None
    return np.array(rows, kind.dtype).reshape(-1, columns)


def _parse_line(line: bytes, columns: int, kind: _Kind) -> list[int | float]:
    fields = _fields(line)
    if not _is_text(line):
        raise ValueError(f"{shorten(line)} is not text; the file must be plain UTF-8")
    if len(fields) != columns:
        plural = "field" if len(fields) == 1 else "fields"
        raise ValueError(f"{shorten(line)} has {len(fields)} {plural}; every line must have {columns}")
    return [_parse_field(field, kind) for field in fields]


def _fields(line: bytes) -> list[bytes]:
    return [field.strip() for field in line.split(b",")] if b"," in line else line.split()


def _parse_field(field: bytes, kind: _Kind) -> int | float:
    if kind.pattern.fullmatch(field):
        if kind is REAL and np.isfinite(value := float(field)):
            return value
        if kind is WHOLE and len(field) <= 20 and -(2**63) <= (whole := int(field)) < 2**63:
            return whole
        raise ValueError(f"{shorten(field)} is too large; it must fit in 64 bits")
    raise ValueError(f"{shorten(field)} is not {kind.noun}; every field must be one")


def _is_text(line: bytes) -> bool:
    try:
        return "\0" not in line.decode("utf-8")
    except UnicodeDecodeError:
        return False
