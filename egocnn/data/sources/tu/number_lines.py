"""Text of numbers, in chunks of bytes -> arrays (rows, columns), or a DataError that names the line. Fields are parted
by commas, blanks around them free, or by blanks alone, equally many in every line; blank lines may only follow the last
one. Two engines read a piece: numpy the tidy ones, and what it declines ``_parse_lines``, line by line, which defines
the format and describes what is wrong."""

import io
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.sources.text import short
from egocnn.errors import DataError

LONGEST_LINE = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TIDY = b"0123456789+-.eE, \t\r\n"


@dataclass(frozen=True, slots=True)
class _Kind:
    noun: str
    dtype: type[np.generic]
    pattern: re.Pattern[bytes]


WHOLE = _Kind("a whole number", np.int64, re.compile(rb"[+-]?[0-9]+"))
REAL = _Kind("a finite number", np.float64, re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"))


def read_numbers(chunks: Iterable[bytes], where: str, columns: int | None = None, kind: _Kind = WHOLE) -> NDArray[Any]:
    """(rows, columns) of 64-bit numbers, all finite; without ``columns`` the first line decides how many there are."""
    blocks = [block for _, block in number_blocks(chunks, where, columns, kind)]
    return np.concatenate(blocks) if blocks else np.empty((0, columns or 1), kind.dtype)


def number_blocks(
    chunks: Iterable[bytes], where: str, columns: int | None = None, kind: _Kind = WHOLE
) -> Iterator[tuple[int, NDArray[Any]]]:
    """The same piece by piece: number of its first line (from 1), rows."""
    line = 1
    for piece in whole_lines(chunks, where):
        if columns is None:
            columns = max(1, len(_fields(piece[: piece.index(b"\n")])))
        block = _parse_tidy(piece, columns, kind)
        block = _parse_lines(piece, columns, kind, where, line) if block is None else block
        yield line, block
        line += len(block)


def whole_lines(chunks: Iterable[bytes], where: str) -> Iterator[bytes]:
    """Cut the text anew so that every piece ends with a line end; the mark at its start and blanks at its end go."""
    rest, lines, first = b"", 0, True
    for chunk in chunks:
        rest += chunk
        if first:
            if len(rest) < len(BYTE_ORDER_MARK):
                continue
            rest, first = rest.removeprefix(BYTE_ORDER_MARK), False
        # the last line that is not blank stays behind: it may go on, or only blank lines may follow
        end = rest.rfind(b"\n", 0, len(rest.rstrip())) + 1
        if end:
            piece, rest = rest[:end], rest[end:]
            yield piece
            lines += int(np.count_nonzero(np.frombuffer(piece, np.uint8) == ord("\n")))
        if len(rest) > LONGEST_LINE:
            raise DataError(f"{where}, line {lines + 1}: longer than {LONGEST_LINE} bytes; a line must be shorter")
    if last := rest.rstrip():
        yield last + b"\n"


def _parse_tidy(piece: bytes, columns: int, kind: _Kind) -> NDArray[Any] | None:
    """Lines of finite numbers that numpy reads as this module does; None where it might not."""
    if piece.translate(None, TIDY):  # other blanks, say, which numpy knows and this format does not
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a whole number that is written as a real one numpy only warns
        try:
            delimiter = "," if b"," in piece else None
            values = np.loadtxt(io.StringIO(piece.decode()), kind.dtype, None, delimiter, ndmin=2)
        except (ValueError, OverflowError, Warning):
            return None
    is_whole = values.shape == (piece.count(b"\n"), columns)  # numpy leaves blank lines out
    return values if is_whole and np.isfinite(values).all() else None


def _parse_lines(piece: bytes, columns: int, kind: _Kind, where: str, first_line: int) -> NDArray[Any]:
    rows = []
    for number, line in enumerate(piece[:-1].split(b"\n"), first_line):
        fields = _fields(line)
        try:
            is_text = "\0" not in line.decode("utf-8")
        except UnicodeDecodeError:
            is_text = False
        if not is_text:
            raise _refusal(where, number, line, "is not text; the file must be plain UTF-8")
        if len(fields) != columns:
            plural = "field" if len(fields) == 1 else "fields"
            raise _refusal(where, number, line, f"has {len(fields)} {plural}; every line must have {columns}")
        for field in fields:
            if not kind.pattern.fullmatch(field):
                raise _refusal(where, number, field, f"is not {kind.noun}; every field must be one")
            if not (np.isfinite(float(field)) if kind is REAL else len(field) <= 20 and -(2**63) <= int(field) < 2**63):
                raise _refusal(where, number, field, "is too large; it must fit in 64 bits")
        rows.append([float(field) if kind is REAL else int(field) for field in fields])
    return np.array(rows, kind.dtype).reshape(-1, columns)


def _fields(line: bytes) -> list[bytes]:
    return [field.strip() for field in line.split(b",")] if b"," in line else line.split()


def _refusal(where: str, line: int, value: bytes, broken: str) -> DataError:
    return DataError(f"{where}, line {line}: {short(value[:200].decode('utf-8', 'replace').strip(), 40)} {broken}")
