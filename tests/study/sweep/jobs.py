"""Jobs of a sweep for workers, who import them by name: the first one dies in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from egocnn.study.sweep.search import score_pair
from egocnn.study.sweep.table import PairScore
from tests.support.tiny import names_in


def killed_once(folder: Path, *job: Any) -> tuple[int, PairScore]:
    attempt = len(names_in(folder)) + 1
    (folder / f"{attempt}-{os.getpid()}").touch()
    if attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return score_pair(*job)
