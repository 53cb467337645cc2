"""A text file -> its lines, or a DataError of one line; any value -> a short text for an error message."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from egocnn.errors import DataError


def suffix_of(path: Path) -> str:
    """The ending of a file's name in small letters, that of what is packed where it ends in .gz"""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def read_bytes(path: Path) -> bytes:
    """The content of a file; a :class:`DataError` where it cannot be read."""
    with _reading(path):
        return path.read_bytes()


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file one at a time, each with its line end; a byte order mark is left out."""
    with _reading(path), gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        for number, data in enumerate(file, 1):
            place = f"{path.name}, line {number}"
            try:
                text = (data.removeprefix(codecs.BOM_UTF8) if number == 1 else data).decode()
            except UnicodeDecodeError as error:
                byte = f"0x{error.object[error.start]:02x}"
                raise DataError(f"{place}: byte {byte} is not UTF-8 text; save the file as UTF-8") from None
            if "\0" in text:
                raise DataError(f"{place}: holds a NUL byte; this is not a text file")
            yield text


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


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


def check_texts(where: str, texts: Iterable[str]) -> None:
    """Refuse text that cannot be written as UTF-8: half a surrogate pair, which JSON can spell."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError(f"{where}: {short(text)} is not text that can be written as UTF-8") from None
