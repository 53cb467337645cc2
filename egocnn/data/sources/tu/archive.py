"""A folder or a zip -> its files as chunks of bytes; nothing is written, and a hostile zip is refused."""

import re
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Self, TypeAlias

from egocnn.data.schema import rule
from egocnn.data.sources.text import reading, reason, short
from egocnn.errors import DataError

CHUNK = 1 << 20
MOST_BYTES = 64 << 30  # a zip that holds more than this is refused
MOST_EXPANSION = 100  # and so is one that expands by more than this, to more than ``SMALL``: no real set comes near it
SMALL = 1 << 20
LONGEST_NAME = 120  # characters of a member's name that a message shows

# all that zipfile has been seen to raise over bytes that are not as they should be
DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError, OverflowError)


class Folder:
    """The files directly in a folder and in the folders directly in it."""

    def __init__(self, path: Path) -> None:
        self.where = str(path)  # what to call it in a message
        self._path = path
        with reading(path):
            entries = list(path.iterdir())
            inner = [file for entry in entries if entry.is_dir() for file in entry.iterdir()]
            files = [file for file in entries + inner if not file.is_dir()]
        self.paths = _printable(file.relative_to(path).as_posix() for file in files)  # inside it, sorted

    def chunks(self, path: str) -> Iterator[bytes]:
        """The content of one file."""
        with reading(self._path / path), (self._path / path).open("rb") as file:
            yield from iter(lambda: file.read(CHUNK), b"")

    def verify(self) -> None:
        """A folder has no checksums of its own."""


class Archive:
    """The members of a zip, decompressed as they are read: never more than the sizes that the zip states."""

    def __init__(self, path: Path, where: str | None = None) -> None:
        self.where = where or str(path)
        try:
            size = path.stat().st_size
            self._zip = zipfile.ZipFile(path)
        except DAMAGE as error:
            raise DataError(f"{self.where}: not a zip file, or a damaged one ({reason(error)})") from None
        try:
            self._members = self._checked_members(size)
        except DataError:
            self._zip.close()
            raise
        self.paths = _printable(self._members)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def chunks(self, path: str) -> Iterator[bytes]:
        """The content of one member."""
        try:
            with self._zip.open(self._members[path]) as stream:
                yield from iter(lambda: stream.read(CHUNK), b"")
        except DAMAGE as error:
            raise DataError(f"{self.where}: {short(path, LONGEST_NAME)} is damaged ({reason(error)})") from None

    def verify(self) -> None:
        """Decompress every member, which compares it with its checksum."""
        for path in self._members:
            deque(self.chunks(path), maxlen=0)

    def _checked_members(self, packed: int) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        for member in self._zip.infolist():
            name = member.orig_filename  # filename is cleaned already: it hides what is wrong
            shown = f"{self.where}: {short(name, LONGEST_NAME)}"
            inside = PurePosixPath(name.replace("\\", "/"))
            stays = not inside.is_absolute() and ".." not in inside.parts and not re.match("[A-Za-z]:", name)
            rule(stays, f"{shown} points outside the zip; every path must stay inside")
            rule(not member.flag_bits & 1, f"{shown} is encrypted; only plain members can be read")
            # other methods decompress without a bound on what one step yields
            is_bounded = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            rule(is_bounded, f"{shown} is compressed by method {member.compress_type}; use deflate")
            rule(member.filename not in members, f"{shown} is in it twice; every path must be there once")
            if not member.filename.endswith("/"):
                members[member.filename] = member
        total = sum(member.file_size for member in members.values())
        rule(total <= MOST_BYTES, f"{self.where}: holds {total} bytes; a zip may hold at most {MOST_BYTES}")
        # members may share their compressed bytes, so what counts is the size of the zip itself
        is_bomb = total > SMALL and total > MOST_EXPANSION * packed
        allowed = f"a zip that holds over {SMALL} bytes may expand {MOST_EXPANSION} times"
        rule(not is_bomb, f"{self.where}: expands from {packed} bytes to {total}; {allowed}")
        return members


Files: TypeAlias = Folder | Archive


@contextmanager
def open_files(path: Path) -> Iterator[Files]:
    """A folder or a zip, whichever ``path`` is."""
    with reading(path):  # a name may be longer than the system allows
        is_folder, is_file = path.is_dir(), path.is_file()
    rule(is_folder or is_file, f"{path}: no such folder or zip file")
    if is_folder:
        yield Folder(path)
    else:
        with Archive(path) as archive:
            yield archive


def _printable(paths: Iterable[str]) -> tuple[str, ...]:
    """A name that cannot be printed belongs to no data set, and would break a message."""
    return tuple(sorted(path for path in paths if path.isprintable()))
