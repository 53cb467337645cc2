"""Graphs + settings -> the part to learn from and the part that chooses the best epoch, both fit to be used."""

from __future__ import annotations

import numpy as np

from egocnn.arrays import Ints
from egocnn.config import TrainConfig
from egocnn.errors import DataError
from egocnn.graphs import Graphs
from egocnn.schema import PARTS


def training_parts(graphs: Graphs, config: TrainConfig) -> tuple[Graphs, Graphs]:
    """The graphs to learn from and those that choose the best epoch, all of them fit to be used."""
    check_targets(graphs)
    if graphs.part is None:
        return graphs.split(test=config.validation, seed=config.seed)
    learned, validation = graphs.select("train"), graphs.select("validation")
    if len(learned) == 0:
        raise DataError(f"no graph is marked {PARTS[0]!r} in the data's own split")
    check_targets(learned)
    return (learned, validation) if len(validation) else learned.split(test=config.validation, seed=config.seed)


def with_own_labels(graphs: Graphs) -> Graphs:
    """The graphs with those label names alone that they use.

    A label that only the test part has must be to the model what it is in any new data: unseen.
    """

    def used(codes: Ints | None, names: tuple[str, ...]) -> tuple[str, ...]:
        return names if codes is None else tuple(names[code] for code in np.unique(codes[codes >= 0]))

    return graphs.with_names(
        nodes=used(graphs.node_label, graphs.node_label_names), edges=used(graphs.edge_label, graphs.edge_label_names)
    )


def check_targets(graphs: Graphs) -> None:
    """Raise unless there is something to learn: a target for every graph, and more than one of them."""
    if len(graphs) < 2:
        raise DataError(f"training needs at least 2 graphs, got {len(graphs)}")
    if graphs.target is None:
        raise DataError("these graphs have no target to learn; name its column with --target")
    missing = graphs.target < 0 if graphs.is_classification else ~np.isfinite(graphs.target)
    if missing.any():
        name = graphs.names[int(np.flatnonzero(missing)[0])]
        raise DataError(f"{int(missing.sum())} graphs have no target, {name!r} the first; training needs all")
    if len(np.unique(graphs.target)) < 2:
        only = graphs.class_names[int(graphs.target[0])] if graphs.is_classification else graphs.target[0]
        raise DataError(f"every graph has the same target, {only}; there is nothing to tell apart")
