"""A call that must behave -> nothing, or a ViolationError that says what it did.

While a call is watched, the interpreter's own audit events tell what happens: nothing may be run, imported from
elsewhere, unpickled, sent, or written, and no file may be opened but those of the case. Time and memory may grow with
the size of the input, and no faster than :class:`Limits` says.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from egocnn.errors import EgoCNNError, MissingExtraError

LONGEST_MESSAGE = 1000
"""Characters of a refusal, the path of the input not counted."""

FORBIDDEN = (
    *("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.startfile", "pty."),
    *("pickle.", "marshal.load", "code.__new__", "ctypes.", "socket.", "urllib.", "http.", "ftplib.", "smtplib."),
    *("os.putenv", "os.unsetenv", "os.chdir", "os.kill", "signal.", "webbrowser."),
)
"""Audit events, by how they start, that reading never causes."""
CHANGES = (
    *("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate"),
    *("os.utime", "os.setxattr", "os.removexattr", "shutil.", "tempfile."),
)
"""Audit events that change files; their first arguments are paths."""
CODE = ("exec", "compile")
OF_IMPORTS = ("marshal.", "os.putenv", "ctypes.")
"""Forbidden ones that Python's import, or a library that is being imported, may cause."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

TRUSTED = tuple(
    {
        *(str(Path(path).resolve()) for path in sysconfig.get_paths().values()),
        *(str(Path(path).resolve()) for path in (sys.prefix, sys.base_prefix, Path(__file__).parents[1] / "egocnn")),
    }
)
"""Folders of programs: what lies there may be read and imported."""
SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/usr/share/zoneinfo", "/etc/localtime")


class ViolationError(BaseException):
    """What no input may bring about; no ``except Exception`` in the code under watch can hide it."""


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: float = 5.0
    """of processor time that any call may use"""
    seconds_per_kilobyte: float = 0.2
    """that it may use for each kilobyte of its input, besides"""
    base: int = 64 << 20
    """bytes of memory that any call may use"""
    multiple: int = 200
    """bytes that it may use for each byte of its input, besides"""

    def time(self, size: int) -> float:
        return self.seconds + self.seconds_per_kilobyte * size / 1024

    def memory(self, size: int) -> int:
        return self.base + self.multiple * size


@dataclass(slots=True)
class _Watch:
    """What is being watched; the audit hook, which cannot be taken away, looks here."""

    folder: Path | None = None
    writable: bool = False
    found: str | None = None


_watch = _Watch()
_hooked: list[bool] = []


@contextmanager
def watched(folder: Path, size: int, limits: Limits, *, writable: bool = False) -> Iterator[None]:
    """Watch what happens: input of ``size`` bytes lies in ``folder``, the only place that may be read.

    ``writable`` allows changes there, and there alone.
    """
    if not _hooked:
        sys.addaudithook(_audit)
        logger = logging.getLogger("egocnn")
        logger.addHandler(_Log())
        logger.setLevel(logging.INFO)
        logger.propagate = False
        _hooked.append(True)
    modules = set(sys.modules)
    gc.collect(0)
    before = _reset_peak()
    _watch.writable, _watch.found = writable, None
    former = signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, limits.time(size))
    _watch.folder = folder.resolve()
    try:
        yield
    finally:
        _watch.folder = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
    if _watch.found is not None:  # somebody may have caught the error itself
        raise ViolationError(_watch.found)
    for name in set(sys.modules) - modules:
        _check_module(name)
    used = _peak() - before
    if used > limits.memory(size):
        raise ViolationError(f"{used >> 20} MB of memory for an input of {size} bytes")


def check_refusal(error: EgoCNNError, folder: Path) -> None:
    """A refusal is one short line that a terminal can show as it is."""
    if isinstance(error, MissingExtraError):
        raise ViolationError(f"a library is missing: {error}") from error
    objection = _objection_to_line(str(error).replace(str(folder), ""))
    if objection is not None:
        raise ViolationError(f"a refusal {objection}") from error


class _Log(logging.Handler):
    """What is told on the way must be fit for a terminal, too."""

    def emit(self, record: logging.LogRecord) -> None:
        objection = _objection_to_line(record.getMessage())
        if _watch.folder is not None and objection is not None:
            _watch.found = _watch.found or f"a line of the log {objection}"


def _objection_to_line(text: str) -> str | None:
    if not text.isprintable():
        return f"that is not one printable line: {text[:300]!r}"
    if not text or len(text) > LONGEST_MESSAGE:
        return f"of {len(text)} characters: {text[:300]!r}"
    return None


def _too_slow(_: int, frame: FrameType | None) -> None:
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "nowhere"
    _watch.found = _watch.found or f"too much time, at {place}"
    raise ViolationError(_watch.found)


# ── what happens ──────────────────────────────────────────────────────────────────────────────────


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watch.folder is None:
        return
    reason = _objection(event, arguments)
    if reason is not None:
        _watch.found = _watch.found or reason
        raise ViolationError(reason)


def _objection(event: str, arguments: tuple[Any, ...]) -> str | None:
    if event == "open":
        return _objection_to_opening(*arguments)
    if event in CODE:
        return None if _importing() or _wrapping() else f"{event} of {str(arguments[:1])[:200]}"
    if event.startswith(FORBIDDEN):
        return None if event.startswith(OF_IMPORTS) and _importing() else f"{event} {str(arguments)[:200]}"
    if event.startswith(CHANGES):
        inside = all(_inside(path) for path in _paths(arguments))
        return None if _watch.writable and inside else f"{event} {str(arguments)[:200]}"
    return None


def _paths(arguments: tuple[Any, ...]) -> list[Any]:
    """The paths among the arguments of an event; a number after them is an open folder from which they count."""
    paths = [path for path in arguments[:2] if isinstance(path, (str, bytes, os.PathLike))]
    folders = [number for number in arguments if isinstance(number, int) and number > 2]
    if event_folder := next((Path(f"/proc/self/fd/{number}") for number in folders), None):
        return [event_folder / os.fsdecode(path) for path in paths]
    return paths


def _objection_to_opening(path: Any, mode: Any, flags: Any) -> str | None:
    if isinstance(path, int):  # a file that is open already
        return None
    writing = isinstance(flags, int) and flags & WRITING
    if _inside(path):
        return f"{os.fsdecode(path)!r} opened for writing" if writing and not _watch.writable else None
    place = str(Path(os.fsdecode(path)).resolve())
    if writing or not place.startswith((*TRUSTED, *SYSTEM)):
        return f"{place!r} opened ({mode}), which is outside the input"
    return None


def _inside(path: Any) -> bool:
    assert _watch.folder is not None
    # links are followed: a path inside may lead outside
    return Path(os.fsdecode(path)).resolve().is_relative_to(_watch.folder)


def _importing() -> bool:
    """Whether the event comes from Python's own import, which runs what lies in trusted folders."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _wrapping() -> bool:
    """Whether networkx compiles the wrapper of one of its own functions, as it does when that is first called."""
    return sys._getframe(3).f_code.co_filename.endswith("networkx/utils/decorators.py")


def _check_module(name: str) -> None:
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is not None and not str(Path(file).resolve()).startswith(TRUSTED):
        raise ViolationError(f"the module {name} was imported from {file}")


# ── memory ────────────────────────────────────────────────────────────────────────────────────────


def _reset_peak() -> int:
    """Start to measure the peak anew, from what is in use now; bytes."""
    try:
        with open("/proc/self/clear_refs", "wb", buffering=0) as file:  # noqa: PTH123
            file.write(b"5")
    except OSError:  # not Linux, or not allowed: the peak of all time must do, which finds less
        return _peak()
    return _status("VmRSS")


def _peak() -> int:
    try:
        return _status("VmHWM")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(name: str) -> int:
    with open("/proc/self/status", "rb", buffering=0) as file:  # noqa: PTH123
        text = file.read(8192)
    start = text.index(name.encode())
    return int(text[start:].split(maxsplit=2)[1]) * 1024
