"""Graphs + settings -> the part to learn from and the part that chooses the best epoch, both fit to be used."""

from __future__ import annotations

import numpy as np

from egocnn.config import TrainConfig
from egocnn.data.arrays import Ints
from egocnn.data.collection import split_in_two
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.errors import DataError


def part_numbers(graphs: Graphs, config: TrainConfig) -> tuple[Ints, Ints]:
    """The outline of a collection -> the numbers of the graphs of both parts, ascending."""
    check_targets(graphs)
    learned, validation = np.arange(len(graphs)), np.zeros(0, np.int64)
    if graphs.part is not None:
        learned, validation = (np.flatnonzero(graphs.part == PARTS.index(part)) for part in ("train", "validation"))
        if len(learned) == 0:
            raise DataError(f"no graph is marked {PARTS[0]!r} in the data's own split")
        check_targets(graphs[learned])
    if graphs.targets and graphs.target is not None:  # a graph of which nothing is known teaches nothing
        is_known = ~np.isnan(graphs.target).all(axis=1)
        learned, validation = (numbers[is_known[numbers]] for numbers in (learned, validation))
    if len(validation):
        return learned, validation
    here = graphs[learned]
    classes = here.target if here.class_names else None
    rest, chosen = split_in_two(len(here), config.validation, classes=classes, groups=here.group, seed=config.seed)
    return learned[rest], learned[chosen]


def check_targets(graphs: Graphs) -> None:
    """Raise unless there is something to learn: a target for every graph, and more than one of them."""
    if len(graphs) < 2:
        raise DataError(f"training needs at least 2 graphs, got {len(graphs)}")
    if graphs.target is None:
        raise DataError("these graphs have no target to learn; name its column with --target")
    for name in graphs.target_names:
        known = graphs.of_target(name).target
        known = (
            np.zeros(0) if known is None else known[known >= 0 if dict(graphs.targets)[name] else np.isfinite(known)]
        )
        if len(np.unique(known)) < 2:
            raise DataError(
                f"target {name}: every graph where it is known has the same; there is nothing to tell apart"
            )
    if graphs.targets:
        return
    missing = graphs.target < 0 if graphs.is_classification else ~np.isfinite(graphs.target)
    if missing.any():
        name = graphs.names[int(np.flatnonzero(missing)[0])]
        raise DataError(f"{int(missing.sum())} graphs have no target, {name!r} the first; training needs all")
    if len(np.unique(graphs.target)) < 2:
        only = graphs.class_names[int(graphs.target[0])] if graphs.is_classification else graphs.target[0]
        raise DataError(f"every graph has the same target, {only}; there is nothing to tell apart")
