"""Jobs of a sweep for workers, who import them by name: the first one dies in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from egocnn.study.sweep.record import Scored
from egocnn.study.sweep.run import score
from tests.support.tiny import names_in


def killed_once(folder: Path, *job: Any) -> tuple[int, Scored]:
    attempt = len(names_in(folder)) + 1
    (folder / f"{attempt}-{os.getpid()}").touch()
    if attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return score(*job)
