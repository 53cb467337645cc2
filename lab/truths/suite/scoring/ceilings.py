"""The best that contributions without ties can score: tasks with known values -> Kendall's tau of the truth itself.

    python -m lab truths ceilings --tasks FOLDER

Most nodes of these graphs add exactly nothing to the value, and a network gives no two of them the same number.
Kendall's tau-b counts every order between nodes that are equal in truth as a fault, so it stays below 1 even where all
nodes that differ stand in the right order. The ceiling is the tau of the true values with ties broken by chance.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from egocnn.files import write_json
from lab.record import circumstances, one_line
from lab.truths.suite.files import load
from lab.truths.suite.index import read_index
from lab.truths.suite.scoring.measures import kendall
from lab.truths.suite.scoring.part import ExplainedPart

SEED = 0
SHIFT = 1e-6  # that breaks a tie: far less than two values of a task differ


def ceiling(part: ExplainedPart, seed: int = SEED) -> float | None:
    """The mean over the graphs in which some nodes add more than others; None where no values are known."""
    random = np.random.default_rng(seed)
    known = [truth.values for truth in part.truths if truth.values is not None and np.ptp(truth.values) > 0]
    return fmean(kendall(own + SHIFT * random.random(len(own)), own) for own in known) if known else None


def score_ceilings(tasks: Path, out: Path, *, command: str) -> dict[str, Any]:
    """Write the ceiling of every task with known values, and the mean of each half."""
    found: dict[str, dict[str, float]] = {}
    for name, info in read_index(tasks).items():
        best = ceiling(ExplainedPart.of(*load(tasks, name), "test"))
        if best is not None:
            found.setdefault(info.half, {})[name] = round(best, 4)
    means = {half: round(fmean(own.values()), 4) for half, own in found.items()}
    what = one_line(__doc__.splitlines()[0])
    record = {"what": what, "kendall": found, "mean": means, "command": command, **circumstances()}
    write_json(out, record)
    return record
