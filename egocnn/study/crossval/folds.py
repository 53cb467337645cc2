"""Graphs + protocol -> folds: which graphs are learned from, which choose, which are tested, and all seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from egocnn.config import TrainConfig
from egocnn.data.arrays import Ints
from egocnn.data.collection import split_in_two
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.errors import DataError
from egocnn.study.crossval.protocol import Protocol


@dataclass(frozen=True, slots=True, eq=False)
class FoldTask:
    """A fold to compute: numbers of graphs, and seeds."""

    fold: int  # from 1
    learned: Ints
    validation: Ints
    tested: Ints
    seeds: tuple[tuple[int, ...], ...]  # for every run, one per restart

    @property
    def trainings(self) -> int:
        """of all runs and restarts"""
        return sum(map(len, self.seeds))

    def without_tested(self, graphs: Graphs) -> Graphs:
        """All but the tested graphs, with the part that each belongs to: all trainings of a fold share these parts."""
        rest = np.sort(np.concatenate([self.learned, self.validation]))
        part = np.where(np.isin(rest, self.validation), PARTS.index("validation"), PARTS.index("train"))
        return graphs[rest].replace(part=part.astype(np.int8))


def make_tasks(graphs: Graphs, protocol: Protocol, train: TrainConfig) -> list[FoldTask]:
    """The folds of a protocol; ``train.seed`` decides whatever is drawn."""
    protocol.check_validation(train.validation)
    if protocol.splits is None:
        parts = []
        for number, (rest, tested) in enumerate(fold_numbers(graphs, protocol.folds, train.seed), start=1):
            learned, validation = split_off_validation(graphs, rest, train.validation, derived(train.seed, number))
            parts.append((learned, validation, tested))
    else:
        parts = [(split.train, split.validation, split.tested) for split in protocol.splits]
        last = max(int(numbers.max()) for fold in parts for numbers in fold)
        if last >= len(graphs):
            raise DataError(f"the given splits name graph {last}, counted from 0; there are {len(graphs)} graphs")
    return [FoldTask(number, *fold, _seeds(protocol, train.seed, number)) for number, fold in enumerate(parts, start=1)]


def split_off_validation(graphs: Graphs, numbers: Ints, share: float, seed: int) -> tuple[Ints, Ints]:
    """These graphs without a share of them, and the share: classes in equal parts, groups never torn apart."""
    here = graphs[numbers]
    classes = here.target if here.is_classification else None
    learned, validation = split_in_two(len(here), share, classes=classes, groups=here.group, seed=seed)
    return numbers[learned], numbers[validation]


def _seeds(protocol: Protocol, seed: int, number: int) -> tuple[tuple[int, ...], ...]:
    count = protocol.restarts
    return tuple(
        tuple(derived(seed, number, run * count + restart) for restart in range(count)) for run in range(protocol.runs)
    )


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
    numbers = list(split)
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


def digest_of_folds(tasks: Sequence[FoldTask]) -> str:
    """Which graphs each fold tests, in short: scores are paired only where this is the same."""
    return hashlib.sha256(json.dumps([task.tested.tolist() for task in tasks]).encode()).hexdigest()[:16]
