"""Graphs -> folds: which graphs are learned from, which choose, which are tested, and the seeds of the trainings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from egocnn.arrays import Ints
from egocnn.config import TrainConfig
from egocnn.errors import DataError
from egocnn.graphs import Graphs
from egocnn.schema import PARTS
from egocnn.splitting import split_in_two


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One fold to be."""

    fold: int
    rest: Ints
    tested: Ints
    restarts: int

    def learned(self, graphs: Graphs, train: TrainConfig) -> Graphs:
        """The training part, its validation graphs marked: the restarts share them, so that their scores compare."""
        rest = graphs[self.rest]
        classes = rest.target if rest.is_classification else None
        seed = derived(train.seed, self.fold)
        _, validation = split_in_two(len(rest), train.validation, classes=classes, groups=rest.group, seed=seed)
        part = np.full(len(rest), PARTS.index("train"), np.int8)
        part[validation] = PARTS.index("validation")
        return rest.replace(part=part)

    def seeds(self, train: TrainConfig) -> list[int]:
        return [derived(train.seed, self.fold, restart) for restart in range(self.restarts)]


def fold_numbers(graphs: Graphs, folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """The graphs to train on and those to test on, for every fold."""
    from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold

    assert graphs.target is not None
    classes = graphs.target if graphs.is_classification else np.zeros(len(graphs), np.int64)
    group = np.arange(len(graphs)) if graphs.group is None else graphs.group
    _check_enough(graphs, classes, group, folds)
    draw = {"n_splits": folds, "shuffle": True, "random_state": derived(seed)}
    if graphs.group is not None:
        split = StratifiedGroupKFold(**draw).split(classes, classes, group)
    elif graphs.is_classification:
        split = StratifiedKFold(**draw).split(classes, classes)
    else:
        split = KFold(**draw).split(classes)
    numbers = [(rest, tested) for rest, tested in split]
    if not all(len(tested) for _, tested in numbers):
        raise DataError(f"the groups are too unequal for {folds} folds: one would have no graph to test")
    return numbers


def _check_enough(graphs: Graphs, classes: Ints, group: Ints, folds: int) -> None:
    what = "graphs" if graphs.group is None else "groups of graphs"
    for number in np.unique(classes):
        found = len(np.unique(group[classes == number]))
        if found < folds:
            whose = f"class {graphs.class_names[int(number)]!r} has" if graphs.is_classification else "there are"
            raise DataError(f"{whose} {found} {what}, too few for {folds} folds; --folds {max(found, 2)} at most")


def derived(*numbers: int) -> int:
    """A seed that follows from others."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
