"""A cell of a table that takes too long -> one that says so, and is not tried again for the same time."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from egocnn.errors import DataError
from egocnn.files import write_json


class TooLongError(DataError):
    """A time limit has passed."""


@contextmanager
def time_limit(minutes: float | None, out: Path) -> Iterator[None]:
    """Raise :class:`TooLongError` once the minutes are over, or at once if ``out`` was not done in as many before.

    What was tried is written to ``out`` + .late. Folds that were finished stay, as in any interrupted cross-validation.
    """
    late = _late(out)
    if minutes is None:
        yield
        return
    if not out.exists() and (tried := _tried(late)) >= minutes:
        raise _too_long(tried)

    def ring(*_: Any) -> NoReturn:
        raise _too_long(minutes)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    except TooLongError:
        write_json(late, {"minutes": minutes})
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def why_not(out: Path) -> str:
    """Why there is no ``out``, in the words of a table."""
    tried = _tried(_late(out))
    return str(_too_long(tried)) if tried else "not run yet"


def _late(out: Path) -> Path:
    return out.with_name(out.name + ".late")


def _tried(late: Path) -> float:
    """Minutes that were not enough; 0 where nothing, or nothing readable, says so."""
    try:
        return float(json.loads(late.read_text(encoding="utf-8"))["minutes"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0.0


def _too_long(minutes: float) -> TooLongError:
    return TooLongError(f"not done after {minutes:g} minutes")
