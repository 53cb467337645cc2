"""A file -> a file that somebody hostile, careless or unlucky might send; every choice follows from the generator."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from random import Random

NUMBERS = (
    *(b"0", b"-1", b"1", b"2", b"-0", b"127", b"255", b"256", b"65535", b"65536", b"2147483647", b"2147483648"),
    *(b"-2147483649", b"4294967296", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809"),
    *(b"18446744073709551616", b"1" + b"0" * 40, b"9" * 400, b"9" * 5000, b"1e5", b"1e308", b"1e309", b"-1e400"),
    *(b"1e-400", b"5e-324", b"0.1", b"1.", b".5", b"1e", b"NaN", b"nan", b"inf", b"-Infinity", b"0x10"),
    *(b"1_000", b"007", b"+1", b"--1", "٣".encode(), b"10000000", b"1000000000"),
)
TEXTS = (
    *(b"", b" ", b"\t", b"\n", b"\r\n", b"\r", b"\n\n", b"\x00", b"\x1b[2J", b"\x7f", b"\xff", b"\xc0\x80"),
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xe2\x80\xa8", b"\xe2\x80\xae", b"\xc2\x85"),
    *(b"\x0b", b"\x0c", b"\x1c", b'"', b"'", b"`", b"\\", b"/", b"..", b"../", b"/etc/passwd", b"%s%n", b"{0}"),
    *(b"{{x}}", b"$(id)", b";", b"|", b"null", b"true", b"None", b"__class__", b"__reduce__", b"constructor"),
    *(b"javascript:alert(1)", b"\\u0000", b"\\ud800", b"<", b">", b"&", b"</", b"/>", b"]]>", b"<!--", b"-->"),
    *(b"&lt;", b"&#0;", b"&#x1f;", b"&x;", b"[", b"]", b"{", b"}", b"(", b")", b",", b":", b"=", b"@", b"#"),
    b"a" * 300,
)
LARGE = 1 << 16
"""Bytes up to which a stretch is repeated."""

_NUMBER = re.compile(rb"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][\w.-]*")

Change = Callable[[bytes, Random], bytes]


def mutate(data: bytes, generator: Random, words: Sequence[bytes] = (), most: int = LARGE) -> bytes:
    """The data with one to four changes, ``words`` of the format among what is put in; at most ``most`` bytes."""
    for _ in range(generator.choice((1, 1, 1, 2, 2, 3, 4))):
        if words and generator.random() < 0.25:
            data = _put(data, generator, generator.choice(words))
        else:
            data = generator.choice(CHANGES)(data, generator)
    return data[:most]


def _span(data: bytes, generator: Random, longest: int = 16) -> tuple[int, int]:
    start = generator.randint(0, len(data))
    return start, min(len(data), start + generator.randint(0, longest))


def _put(data: bytes, generator: Random, piece: bytes) -> bytes:
    start, end = _span(data, generator)
    return data[:start] + piece + data[end if generator.random() < 0.5 else start :]


def _put_text(data: bytes, generator: Random) -> bytes:
    return _put(data, generator, generator.choice(TEXTS))


def _change_number(data: bytes, generator: Random) -> bytes:
    return _change_match(data, generator, _NUMBER, generator.choice(NUMBERS))


def _change_word(data: bytes, generator: Random) -> bytes:
    return _change_match(data, generator, _WORD, generator.choice(TEXTS))


def _swap_words(data: bytes, generator: Random) -> bytes:
    found = _WORD.findall(data)
    return _change_match(data, generator, _WORD, generator.choice(found)) if found else data


def _change_match(data: bytes, generator: Random, pattern: re.Pattern[bytes], piece: bytes) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return _put(data, generator, piece)
    chosen = generator.choice(found)
    return data[: chosen.start()] + piece + data[chosen.end() :]


def _change_bytes(data: bytes, generator: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 8))):
        if changed:
            place = generator.randrange(len(changed))
            changed[place] = generator.choice((generator.randrange(256), changed[place] ^ 1 << generator.randrange(8)))
    return bytes(changed)


def _change_field(data: bytes, generator: Random) -> bytes:
    """Another binary number in the place of one: sizes, offsets, counts."""
    kind = generator.choice(("<H", "<I", "<Q", ">I"))
    width = struct.calcsize(kind)
    if len(data) < width:
        return data
    most = 256**width - 1
    value = generator.choice((0, 1, most, most // 2, most // 2 + 1, len(data), generator.randint(0, most)))
    start = generator.randint(0, len(data) - width)
    return data[:start] + struct.pack(kind, min(value, most)) + data[start + width :]


def _cut(data: bytes, generator: Random) -> bytes:
    start, end = _span(data, generator, max(1, len(data) // generator.choice((2, 8, 64))))
    return data[:start] + data[end:]


def _repeat(data: bytes, generator: Random) -> bytes:
    start, end = _span(data, generator, generator.choice((4, 40, 400)))
    piece = data[start:end]
    times = generator.choice((2, 3, 10, 100, 5000))
    return data[:start] + piece * min(times, LARGE // max(1, len(piece))) + data[end:]


def _move(data: bytes, generator: Random) -> bytes:
    start, end = _span(data, generator, 80)
    rest = data[:start] + data[end:]
    place = generator.randint(0, len(rest))
    return rest[:place] + data[start:end] + rest[place:]


def _shuffle_lines(data: bytes, generator: Random) -> bytes:
    lines = data.split(b"\n")
    one, other = generator.randrange(len(lines)), generator.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    if generator.random() < 0.3:
        lines.insert(one, lines[other])
    return b"\n".join(lines)


def _line_ends(data: bytes, generator: Random) -> bytes:
    return data.replace(b"\n", generator.choice((b"\r\n", b"\r", b"\n\n", b" \n", b"")))


def _mark(data: bytes, generator: Random) -> bytes:
    return generator.choice((b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2, b"\n", b" ", b"\x00")) + data


def _recode(data: bytes, generator: Random) -> bytes:
    encoding = generator.choice(("utf-16", "utf-16-le", "utf-32", "latin-1"))
    return data.decode("utf-8", "replace").encode(encoding, "replace")


def _nest(data: bytes, generator: Random) -> bytes:
    """Brackets or elements, one in the other, as deep as any parser dares to go."""
    opening, closing = generator.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"<graph>", b"</graph>"), (b"(", b")")))
    times = generator.choice((3, 100, 3000))
    return _put(data, generator, opening * times + b"0" + closing * times)


CHANGES: tuple[Change, ...] = (
    *(_put_text, _change_number, _change_number, _change_number, _change_word, _swap_words, _change_bytes),
    *(_change_field, _cut, _repeat, _repeat, _move, _shuffle_lines, _line_ends, _mark, _recode, _nest),
)
