"""Graphs + settings -> the part to learn from and the part that chooses the best epoch, both fit to be used."""

import logging

import numpy as np

from egocnn.config import TrainConfig
from egocnn.data.arrays import Bools, Ints
from egocnn.data.collection import Chosen, split_off
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.data.sources.text import one_line, short
from egocnn.encode.colours import looks
from egocnn.encode.encoder import varies
from egocnn.errors import DataError, rule

FEW_CLASSES = 5  # as many may each have a single graph

log = logging.getLogger("egocnn")


def with_known_target(collection: Chosen) -> Chosen:
    """The graphs without those whose target is not known; a line in the log counts these."""
    outline = collection.outline
    if outline.target is None or not (missing := _is_missing(outline)).any() or missing.all():
        return collection
    count = f"{missing.sum()} of {len(outline)} {outline.unit}"
    log.warning("%s have no target and are left out of the training", count)
    return collection.choose(np.flatnonzero(~missing))


def part_numbers(graphs: Graphs, config: TrainConfig) -> tuple[Ints, Ints]:
    """The outline of a collection -> the numbers of the graphs of both parts, ascending."""
    check_targets(graphs)
    learned, validation = np.arange(len(graphs)), np.zeros(0, np.int64)
    if graphs.part is not None:
        learned, validation = (np.flatnonzero(graphs.part == PARTS.index(part)) for part in ("train", "validation"))
        rule(len(learned), f"no graph is marked {PARTS[0]!r} in the data's own split")
        check_targets(graphs[learned])
    if len(validation):
        return learned, validation
    rest, chosen = split_off(graphs[learned], config.validation, config.seed)
    return learned[rest], learned[chosen]


def tell_look_alikes(graphs: Graphs, of: str = "") -> None:
    """Say in the log how many graphs no network can tell from one of another class, and name two; ``of``: the target"""
    for name in graphs.target_names:
        one = graphs.of_target(name)
        tell_look_alikes(one[~_is_missing(one)], f"{one_line(name, 60)}: ")
    if graphs.target is None or graphs.targets or not graphs.is_classification:
        return
    look, target = looks(graphs), graphs.target
    order = np.lexsort((target, look))
    is_pair = (np.diff(look[order]) == 0) & (np.diff(target[order]) != 0)  # neighbours in this order
    if is_pair.any():
        pair = order[int(is_pair.argmax()) : int(is_pair.argmax()) + 2]
        shown = [f"{short(graphs.names[g])} ({one_line(graphs.class_names[target[g]], 60)})" for g in pair.tolist()]
        n = int(np.isin(look, look[order[1:][is_pair]]).sum())
        counts = f"{of}{n} of {len(graphs)} {graphs.unit}"
        log.warning("%s look to the network like one of another class: %s and %s", counts, *shown)


def check_targets(graphs: Graphs) -> None:
    """Raise unless there is something to learn: a target for every graph, and more than one of them."""
    rule(len(graphs) >= 2, f"training needs at least 2 graphs, got {len(graphs)}")
    if graphs.target is None:
        where = "name its column with --target (egocnn info DATA tells what each could be)"
        raise DataError(f"these {graphs.unit} have no target to learn; {where}")
    if (missing := _is_missing(graphs)).any():
        name = graphs.names[int(np.flatnonzero(missing)[0])]
        raise DataError(f"{missing.sum()} {graphs.unit} have no target, {name!r} the first; training needs all")
    for name in graphs.target_names:
        try:
            own = graphs.of_target(name)
            check_targets(own[~_is_missing(own)])
        except DataError as error:
            raise DataError(f"target {name}: {error}") from None
    if graphs.targets:
        return
    distinct = len(np.unique(graphs.target))
    if graphs.is_classification and distinct > max(FEW_CLASSES, 0.8 * len(graphs)):
        advice = "name another column with --target, or --task regression for numbers"
        raise DataError(f"{distinct} classes for {len(graphs)} {graphs.unit}, almost one for each; {advice}")
    if distinct < 2 or not (graphs.is_classification or varies(graphs.target.std(), graphs.target.mean())):
        only = graphs.class_names[int(graphs.target[0])] if graphs.is_classification else graphs.target[0]
        rounding = " but for rounding" if distinct > 1 else ""
        raise DataError(f"every graph has the same target, {only}{rounding}; there is nothing to tell apart")


def _is_missing(graphs: Graphs) -> Bools:
    assert graphs.target is not None
    if graphs.targets:
        return np.asarray(np.isnan(graphs.target).all(axis=1))
    return graphs.target < 0 if graphs.is_classification else ~np.isfinite(graphs.target)
