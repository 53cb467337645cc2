"""A text file -> its text, or one clear line; and any value -> a few words fit for an error message."""

from __future__ import annotations

import codecs
import re
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
    text = re.sub(r"\s*\n\s*", " ", repr(value))
    return text if len(text) <= length else f"{text[: length - 3]}..."


def is_sound(text: str) -> bool:
    """Whether the text can be written as UTF-8: half a surrogate pair, which JSON can spell, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
