"""A text file -> its text, or one clear line; and any value -> a few words fit for an error message."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from pathlib import Path

from egocnn.errors import DataError


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    data = read_bytes(path).removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"0x{data[error.start]:02x}"
        raise DataError(f"{path.name}, line {line}: byte {byte} is not UTF-8 text; save the file as UTF-8") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{path.name}, line {line}: holds a NUL byte; this is not a text file")
    return text


def short(value: object, length: int = 60) -> str:
    """The value as Python writes it, on one line, cut where it is long."""
    text = " ".join(line.strip() for line in repr(value).splitlines())
    return text if len(text) <= length else f"{text[: length - 3]}..."


def one_line(text: str, length: int = 800) -> str:
    """The text fit for a terminal: on one line, signs that cannot be printed spelled out, its middle left out if long.

    What stands in a file must not reach the terminal as it is: an escape sequence there is a command.
    """
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


def is_sound(text: str) -> bool:
    """Whether the text can be written as UTF-8: half a surrogate pair, which JSON can spell, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
