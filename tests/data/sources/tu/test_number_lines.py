"""Text of numbers -> arrays: the format, its two engines, and the words for what is wrong."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from egocnn.data.sources.tu.reader import (
    LONGEST_LINE,
    REAL,
    WHOLE,
    _parse_lines,
    _parse_tidy,
    number_blocks,
    read_numbers,
    whole_lines,
)
from egocnn.errors import DataError
from tests.support.samples import refusal, sure

FIELDS = st.one_of(
    st.integers(-(10**4), 10**8).map(str),
    st.sampled_from(["0", "7", "-0", "+3", "1-2", "--1", "-", "1.5", "1e3", "1e999", "nan", "x", "", "9" * 19, "٣"]),
)
SEPARATORS = st.sampled_from([",", ", ", " ", "\t", " , ", ",,"])


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """Lines that are mostly plain, now and then not."""
    separator = draw(SEPARATORS)
    digits = draw(st.integers(1, 17))
    plain = st.integers(0, 10**digits - 1).map(lambda number: str(number).zfill(digits))
    field = plain if draw(st.booleans()) else FIELDS
    rows = draw(st.lists(st.lists(field, min_size=1, max_size=3), min_size=1, max_size=6))
    width = len(rows[0])
    if draw(st.booleans()):
        rows = [(row * 3)[:width] for row in rows]
    end = draw(st.sampled_from(["\n", "\r\n", " \n"]))
    return "".join(separator.join(row) + end for row in rows).encode()


@given(tables(), st.booleans(), st.integers(1, 3))
@example(b"1-2\n", True, 1)
@example(b"-\n", True, 1)
@example(b"1 -\n- 1\n", True, 2)
@example(b"9223372036854775808\n", True, 1)
@example(b"999999999999999,1\n", True, 2)
@example(b"1\r2\n", True, 2)
@example(b"1\x1c2\n", True, 2)
@example(b"1\x0b2\n", True, 2)
@example(b"1,2\n3 4\n", True, 2)
@example(b"#1\n", True, 1)
@example(b'"1"\n', False, 1)
@example(b"1_0\n", False, 1)
@example(b"0x1p3\n", False, 1)
def test_the_fast_engine_says_what_the_slow_one_says_or_nothing(text: bytes, whole: bool, columns: int) -> None:
    kind = WHOLE if whole else REAL
    fast = _parse_tidy(text, columns, kind)
    try:
        slow = _parse_lines(text, columns, kind, "file", 1)
    except DataError:
        assert fast is None
        return
    if fast is not None:
        assert fast.dtype == slow.dtype
        np.testing.assert_array_equal(fast, slow)


ALIKE = (b"12, 13\n14, 15\n", b"1,2\n3,4\n", b"1 2\n3 4\n", b"123456789 1\n987654321 2\n")
TIDY = (b"1, 22\n333, 4\n", b"-1 22\r\n333\t4\r\n", b"  5,6 \n7 ,8\n", b"1,2\n+3,4\n")


@pytest.mark.parametrize("text", [*ALIKE, *TIDY])
def test_tidy_lines_are_read_by_the_fast_engine(text: bytes) -> None:
    values = sure(_parse_tidy(text, 2, WHOLE))
    np.testing.assert_array_equal(values, _parse_lines(text, 2, WHOLE, "file", 1))


@pytest.mark.parametrize(
    "text",
    [
        b"1, 2\n30, 4",
        b"1,2\n30,4\n",
        b"1 2\n30\t4\n\n \n",
        b"1, 2\r\n30, 4\r\n",
        b"\xef\xbb\xbf1, 2\n30, 4\n",
        b" 1,2 \n+30, 4",
    ],
)
def test_separators_line_ends_blank_ends_and_a_byte_order_mark_do_not_matter(text: bytes) -> None:
    np.testing.assert_array_equal(read_numbers([text], "file"), [[1, 2], [30, 4]])


def test_real_numbers_keep_every_digit_empty_texts_have_no_rows_and_blocks_say_where_they_begin() -> None:
    values = read_numbers([b"0.1, -2e-3\n 23.000000,.5\n1.,+7\n"], "file", kind=REAL)
    np.testing.assert_array_equal(values, [[0.1, -2e-3], [23, 0.5], [1, 7]])
    assert read_numbers([], "file", 2).shape == (0, 2)
    assert read_numbers([b"\n\n"], "file").shape == (0, 1)
    blocks = list(number_blocks([b"1,1\n2,2\n3", b",3\n4,4\n", b"5,5"], "file", 2))
    assert [first for first, _ in blocks] == [1, 3, 4, 5]
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in blocks])[:, 0], [1, 2, 3, 4, 5])
    with pytest.raises(DataError) as error:
        read_numbers([b"1\n" + b"z" * 10_000], "file")
    assert len(str(error.value)) < 120


@given(st.lists(st.sampled_from([b"1, 2\n", b"345, 6\r\n", b"\n", b" ", b"7 8\n", b"\xef\xbb\xbf"])), st.data())
def test_where_chunks_are_cut_does_not_matter(lines: list[bytes], data: st.DataObject) -> None:
    text = b"".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    chunks = [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    pieces = list(whole_lines(chunks, "file"))
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert b"".join(pieces) == b"".join(whole_lines([text], "file"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1, 2\n1, x\n", "file, line 2: 'x' is not a whole number; every field must be one"),
        (b"1, 2\n1, 2.5\n", "file, line 2: '2.5' is not a whole number; every field must be one"),
        (b"1, 2\n1,\n", "file, line 2: '' is not a whole number; every field must be one"),
        (b"1, 2\n1", "file, line 2: '1' has 1 field; every line must have 2"),
        (b"1, 2\n1, 2, 3\n", "file, line 2: '1, 2, 3' has 3 fields; every line must have 2"),
        (b"1, 2\n\n3, 4\n", "file, line 2: '' has 0 fields; every line must have 2"),
        (b"1, 2\n3, 9999999999999999999\n", "file, line 2: '9999999999999999999' is too large; it must fit in 64 bits"),
        (b"1, 2\n\xff\xfe, 4\n", "file, line 2: '��, 4' is not text; the file must be plain UTF-8"),
        (b"1, 2\n3, \x004\n", "file, line 2: '3, \\x004' is not text; the file must be plain UTF-8"),
        ("1, 2\n3, ٣\n".encode(), "file, line 2: '٣' is not a whole number; every field must be one"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_value_and_rule(text: bytes, message: str) -> None:
    assert refusal(read_numbers, [text], "file") == message


@pytest.mark.parametrize("field", [b"nan", b"inf", b"-Infinity", b"1e999", b"1_0", b"0x10"])
def test_only_finite_decimal_numbers_are_real_numbers(field: bytes) -> None:
    with pytest.raises(DataError, match=r"file, line 2: .* is (not a finite number|too large)"):
        read_numbers([b"1\n" + field + b"\n"], "file", kind=REAL)


def test_an_endless_line_is_refused_before_it_fills_the_memory() -> None:
    def endless() -> Iterator[bytes]:
        yield b"1\n"
        while True:
            yield b"1" * (1 << 20)

    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="file, line 2: longer than"):
            read_numbers(endless(), "file")
        assert tracemalloc.get_traced_memory()[1] < 6 * LONGEST_LINE
    finally:
        tracemalloc.stop()
