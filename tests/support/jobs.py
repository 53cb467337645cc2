"""Jobs for workers of a cluster: some die, some refuse, some take their time.

Fresh processes import them by name, one after the other, so nothing heavy stands here.
"""

import os
import signal
import time
from pathlib import Path

from egocnn.errors import MissingExtraError

LONG = 60.0  # seconds that nobody waits for


def attempt_in(folder: Path) -> int:
    """Note an attempt of this process; how many there have been."""
    attempt = len(list(folder.iterdir())) + 1
    (folder / f"{attempt}-{os.getpid()}").touch()
    return attempt


def always_killed(folder: Path) -> None:
    (folder / str(os.getpid())).touch()
    os.kill(os.getpid(), signal.SIGKILL)


def killed_once(folder: Path, number: int) -> int:
    """The first that takes number 3 dies of it."""
    if number == 3 and attempt_in(folder) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def without_library() -> None:
    raise MissingExtraError("a library", "networks")


def broken(number: int) -> float:
    return 1 / number


def slow(folder: Path, number: int) -> int:
    (folder / f"{number} started").touch()
    time.sleep(0 if number == 0 else LONG)
    (folder / f"{number} ended").touch()
    return number
