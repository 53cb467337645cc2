"""A model for cross-validations that says the commonest class, unless something happens to it."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.rivals.rival import Rival
from tests.support.jobs import attempt_in


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
