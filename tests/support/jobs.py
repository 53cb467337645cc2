"""Jobs for workers of a cluster, who import them by name: some die, some refuse, some take their time."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError, MissingExtraError
from lab.rivals.rival import Rival
from tests.support.tiny import names_in

LONG = 60.0  # seconds that nobody waits for


def attempt_in(folder: Path) -> int:
    """Note an attempt of this process; how many there have been."""
    attempt = len(names_in(folder)) + 1
    (folder / f"{attempt}-{os.getpid()}").touch()
    return attempt


@dataclass(slots=True)
class Most:
    """Says the class that most training graphs have, unless something happens to it; notes every attempt to fit it."""

    folder: Path
    fate: str = ""
    parameters: int | None = None
    answer: int = 0

    def fit(self, graphs: Graphs, validation: Graphs) -> Self:
        attempt = attempt_in(self.folder)
        if self.fate == "killed once" and attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fate == f"stopped at {attempt}":
            raise KeyboardInterrupt
        if self.fate == "refuses":
            raise DataError(f"no use for {len(validation)} graphs")
        assert graphs.target is not None
        self.answer = int(np.bincount(graphs.target).argmax())
        return self

    def predict(self, graphs: Graphs) -> Ints:
        return np.full(len(graphs), self.answer)


def most(folder: Path, fate: str = "") -> Rival:
    folder.mkdir(exist_ok=True)
    return Rival(name="most", source="a test", library="none", departures="none", build=lambda _: Most(folder, fate))


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
