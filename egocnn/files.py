"""Write files so that a reader never meets half of one, and checksums by which it meets no other than was written. What
a killed process leaves is a hidden file or folder that no lock is on; the next one to write there removes it."""

import csv
import ctypes
import errno
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from egocnn.errors import DataError, EgoCNNError

exists, isdir, isfile = os.path.exists, os.path.isdir, os.path.isfile  # say no where pathlib raises: too long a name

STAGE = "egocnn"  # Folders in which several files wait to be put in place are called .egocnn.XXXXXXXX.tmp.
EXCHANGE = 2  # RENAME_EXCHANGE of Linux: two names change places in one step
HERE = -100  # AT_FDCWD of Linux: paths count from the working folder
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; on success it takes the place of ``path``. A link stays a link, and
    what it points to is replaced. What is there and is no file, a pipe or /dev/null, is yielded itself: the rename
    would put a file in the place of the device."""
    if path.exists() and not path.is_file():
        with telling(path, path):
            yield path
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with scratch(path) as (_, temporary):
        yield temporary
        # without fsync a crash of the machine may leave the new name on an empty file
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~umask())  # mkstemp makes private files; results are ordinary ones
        temporary.replace(path)


@contextmanager
def replacing_in(folder: Path, *, first: str, last: str, patterns: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a temporary folder; on success the files in it take the places of those of the same names in ``folder``.
    Until then nothing in ``folder`` changes. The files ``first`` and ``last`` go before and after all others; what an
    earlier writer left by a name that one of the patterns matches, and this one did not write again, is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    with scratch(folder / STAGE, folder) as (_, temporary):
        yield temporary
        new = [file.relative_to(temporary) for file in temporary.rglob("*") if file.is_file()]
        for old in {file.relative_to(folder) for each in patterns for file in folder.glob(each)}.difference(new):
            remove(folder / old)
        for file in sorted(new, key=lambda file: (str(file) != first, str(file) == last, file)):
            (folder / file.parent).mkdir(parents=True, exist_ok=True)
            (temporary / file).replace(folder / file)


def put_folder(new: Path, place: Path) -> None:
    """Let a folder take the place of another; what was there is under the name of the new one then, or gone."""
    if not place.exists() or not any(place.iterdir()):
        new.rename(place)
    elif not _exchange(new, place):
        old = new.with_suffix(".old")
        place.rename(old)
        new.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    with suppress(OSError):  # some file systems cannot
        handle = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change names in one step; false where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return bool(rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0)


def check_writable(path: Path) -> None:
    """Refuse, before anything is computed, a file or folder that cannot be made or replaced."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return  # a device
    folder = next(place for place in (path, *path.absolute().parents) if place.is_dir())
    if not os.access(folder, os.W_OK | os.X_OK):
        is_read_only = hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY
        number = errno.EROFS if is_read_only else errno.EACCES
        raise OSError(number, os.strerror(number), str(path))


def check_is_no_file(folder: Path, error: type[EgoCNNError] = DataError) -> None:
    """Refuse, before anything is computed, a folder that cannot be made because a file stands there or above it."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise error(f"{place}: is a file, not a folder")


def is_left(name: str, *of: str) -> bool:
    """Whether this is the name of what a killed writer of one of these may have left."""
    return name.endswith(".tmp") and any(name.startswith(f".{each}.") for each in (*of, STAGE))


@contextmanager
def scratch(path: Path, folder: Path | None = None) -> Iterator[tuple[int, Path]]:
    """A new file beside the path, or a folder that errors call ``folder``, with a lock on it, gone in the end."""
    handle, temporary = _locked_scratch(path, folder)
    try:
        with telling(folder or path, temporary):
            yield handle, temporary
    finally:
        remove(temporary)
        os.close(handle)


def _locked_scratch(path: Path, folder: Path | None) -> tuple[int, Path]:
    """Once what is left of earlier ones is gone."""
    for left in [Path(entry.path) for entry in os.scandir(path.parent) if is_left(entry.name, path.name)]:
        with suppress(OSError):
            handle = os.open(left, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                if lock(handle):
                    remove(left)
            finally:
                os.close(handle)
    words = (".tmp", f".{path.name}.", path.parent)
    while True:
        try:
            made, name = tempfile.mkstemp(*words) if folder is None else (None, tempfile.mkdtemp(*words))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder or path)) from None
        with suppress(FileNotFoundError):  # another process may take it for one that is left, before it is locked
            handle = os.open(name, os.O_RDONLY) if made is None else made
            lock(handle, wait=True)
            if is_still_at(Path(name), handle):
                return handle, Path(name)
            os.close(handle)


def is_still_at(path: Path, handle: int) -> bool:
    """Whether the path still names what was opened there."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except OSError:
        return False


@contextmanager
def telling(path: Path, temporary: Path) -> Iterator[None]:
    """Errors tell of the place that the user knows in place of the temporary one."""
    try:
        yield
    except OSError as error:
        place = Path(os.path.realpath(str(error.filename)))  # an inner writer has followed all links
        is_ours = error.filename is not None and place.is_relative_to(os.path.realpath(temporary))
        if is_ours or (error.filename is None and error.errno in FULL):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def remove(path: Path) -> None:
    """A file, a link or a folder with all that is in it; what is gone already is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def lock(handle: int, *, wait: bool = False) -> bool | None:
    """Take the lock that goes when the process does; false where another has it, None where the system has none."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # not Unix, or a file system without locks
        return None
    return True


def umask() -> int:
    """The permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: Path, text: str) -> None:
    """Whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """The text of a CSV file, None as an empty field; a spreadsheet runs nothing of it."""
    rows = [["" if value is None else _harmless(value) for value in row] for row in rows]
    # Python before 3.13 leaves a lone \r unquoted, and readers take it for the end of the line
    returns = any("\r" in value for row in rows for value in row if isinstance(value, str))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL).writerows(rows)
    return text.getvalue()


def _harmless(value: Any) -> Any:
    """The value, a text that a spreadsheet would take for a formula with an apostrophe before it."""
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Plain data as an indented JSON file."""
    write_text(path, to_json(value))


def to_json(value: Mapping[str, Any]) -> str:
    """The text of such a file."""
    return finite_json(value, indent=2, ensure_ascii=False) + "\n"


def finite_json(value: Any, **layout: Any) -> str:
    """JSON on which all readers agree: it has no word for what is not a finite number."""
    try:
        return json.dumps(value, allow_nan=False, **layout)
    except ValueError:
        raise DataError("a result is not a finite number, and so cannot be written as JSON") from None


def to_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Tables of texts, numbers and truth values as TOML; what is None is left out, because TOML has no word for it."""
    texts = []
    for name, table in tables.items():
        # TOML has them as JSON does, but for the delete character
        plain = {key: finite_json(value, ensure_ascii=False) for key, value in table.items() if value is not None}
        lines = [f"{key} = {text}\n".replace("\x7f", "\\u007f") for key, text in plain.items()]
        if lines:
            texts.append(f"[{name}]\n{''.join(lines)}")
    return "\n".join(texts)


def regular(path: Path) -> Path:
    """The same path; refused where a pipe or a device stands there: to read from it may never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "is a pipe or a device, not a file", str(path))
    return path


def digest_of_file(path: Path) -> str:
    """SHA-256 of the bytes of a file."""
    with regular(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_plain(value: Mapping[str, Any]) -> str:
    """SHA-256 of the values in JSON, not of its layout."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
