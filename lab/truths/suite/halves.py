"""Which tasks choose rules and settings and which are only ever reported: names -> two halves, drawn once by a seed.

Every family is split as evenly as its number of tasks allows. Tasks with published figures belong to neither half:
they are reported. ``python -m lab truths halves`` wrote the draw to ``results/truths_halves.json``, and a test holds
the one to the other: a new task or another seed would change what was promised.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lab.truths.suite.catalogue import CATALOGUE
from lab.truths.suite.task import NAMED, SuiteTask

DRAW_SEED = 20261117  # the day of the draw


def draw_halves(tasks: Iterable[SuiteTask] | None = None, seed: int = DRAW_SEED) -> dict[str, list[str]]:
    """The names of every half, in alphabetical order."""
    tasks = list(CATALOGUE.values() if tasks is None else tasks)
    random = np.random.default_rng(seed)
    halves: dict[str, list[str]] = {"choosing": [], "reporting": [], "named": []}
    for family in sorted({task.family for task in tasks} - {NAMED}):
        names = sorted(task.name for task in tasks if task.family == family)
        order = [names[i] for i in random.permutation(len(names))]
        # of an odd number the half that has fewer so far gets one more
        first, second = sorted(("choosing", "reporting"), key=lambda half: len(halves[half]))
        middle = (len(order) + 1) // 2
        halves[first] += order[:middle]
        halves[second] += order[middle:]
    halves["named"] = [task.name for task in tasks if task.family == NAMED]
    return {half: sorted(names) for half, names in halves.items()}
