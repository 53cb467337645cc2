"""Text of numbers, in chunks of bytes -> arrays (rows, columns), or a DataError that names the line. Fields are parted
by commas, blanks around them free, or by blanks alone, equally many in every line; blank lines may only follow the last
one. Three engines read a piece, each what the one before declines: ``_parse_even`` lines that all look alike,
``_parse_clean`` any tidy text, and ``_parse_lines``, line by line, defines the format and describes what is wrong."""

import re
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Floats, Ints
from egocnn.data.sources.text import short
from egocnn.errors import DataError

LONGEST_LINE = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r"
DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"0" * 9)
WIDEST_EVEN_LINE = 256
MOST_PRODUCTS = 1 << 17  # of one matrix product: larger ones go to threads, which wait for each other on busy cores
LONE_SIGN = re.compile(rb"-(?![0-9.])")


class _Kind:
    def __init__(self, noun: str, dtype: Any, pattern: bytes, letters: bytes) -> None:
        self.noun, self.dtype, self.pattern = noun, dtype, re.compile(pattern)
        # for bytes.translate: what may belong to a number -> 0, blanks -> blank, the rest as it is
        self.shapes = bytes.maketrans(letters + BLANKS, b"0" * len(letters) + b" " * len(BLANKS))


WHOLE = _Kind("a whole number", np.int64, rb"[+-]?[0-9]+", b"0123456789-")
A_REAL = rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
REAL = _Kind("a finite number", np.float64, A_REAL, b"0123456789+-.eE")


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
        block = _parse_even(piece, columns) if kind is WHOLE else None
        block = _parse_clean(piece, columns, kind) if block is None else block
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


def _parse_even(piece: bytes, columns: int) -> Ints | None:
    """Whole numbers whose lines differ in their digits alone: a table of digits times their place values."""
    width = piece.index(b"\n") + 1
    n_lines, partial = divmod(len(piece), width)
    if partial or width > WIDEST_EVEN_LINE:
        return None
    layout = _layout(piece[:width].translate(DIGITS_TO_ZERO), columns, 1 << (n_lines - 1).bit_length())
    if layout is None:
        return None
    zero, most, place_value = layout
    digits = np.frombuffer(piece, np.uint8) - zero[: len(piece)]
    if (digits > most[: len(piece)]).any():
        return None
    digits = digits.reshape(n_lines, width)
    values = np.empty((n_lines, columns), np.int64)
    step = max(1, MOST_PRODUCTS // place_value.size)
    # in floats: only they have a fast product, and such short numbers are exact; a product of a BLAS may compute on
    # what lies beside its matrices, to no effect but a warning
    with np.errstate(all="ignore"):
        for first in range(0, n_lines, step):
            rows = slice(first, first + step)
            values[rows] = digits[rows].astype(place_value.dtype) @ place_value
    return values


@lru_cache(maxsize=4)
def _layout(line: bytes, columns: int, n_lines: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], Floats] | None:
    """A line whose digits are all 0, repeated; what may be added to each byte; place values (width, columns)."""
    fields = _fields(line)
    longest = max(map(len, fields), default=0)
    if len(fields) != columns or not all(set(field) == {ord("0")} for field in fields) or longest > 15:
        return None
    place_value = np.zeros((len(line), columns), np.float32 if longest <= 7 else np.float64)
    for column, number in enumerate(re.finditer(b"0+", line)):
        place_value[number.start() : number.end(), column] = 10.0 ** np.arange(len(number[0]))[::-1]
    zero = np.frombuffer(line, np.uint8)
    most = np.where(zero == ord("0"), 9, 0).astype(np.uint8)
    return np.tile(zero, n_lines), np.tile(most, n_lines), place_value


def _parse_clean(piece: bytes, columns: int, kind: _Kind) -> NDArray[Any] | None:
    """Numbers where blanks and commas stand as they should, none of them out of range."""
    if LONE_SIGN.search(piece):  # numpy takes a minus alone for 0
        return None
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
