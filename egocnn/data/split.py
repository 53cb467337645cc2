"""Choose graphs for two sides: sizes, classes and groups -> two arrays of graph numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints
from egocnn.errors import DataError


def split_in_two(
    n_graphs: int, share: float, *, classes: NDArray[Any] | None, groups: Ints | None, seed: int
) -> tuple[Ints, Ints]:
    """Put about ``share`` of the graphs on the second side, both in ascending order.

    Whole groups are drawn, so no group stands on both sides; classes get equal shares as far as the
    groups allow (the class of a group is that of its first graph). Each side gets at least one group.
    """
    if not 0 < share < 1:
        raise DataError(f"the share to split off must be between 0 and 1, got {share}")
    _, first, group = np.unique(
        np.arange(n_graphs) if groups is None else groups, return_index=True, return_inverse=True
    )
    if len(first) < 2:
        raise DataError(
            f"{n_graphs} graphs of one and the same group, copies of one molecule say, cannot be split in two"
        )
    random = np.random.default_rng(seed)
    order = random.permutation(len(first))
    if classes is not None:
        # one draw per class: spread each class evenly over [0, 1), then cut at the share
        of_group = classes[first][order]
        order = order[np.argsort(_evenly(of_group, random), kind="stable")]
    n_second = min(max(round(share * len(first)), 1), len(first) - 1)
    second = np.zeros(len(first), bool)
    second[order[:n_second]] = True
    return np.flatnonzero(~second[group]), np.flatnonzero(second[group])


def _evenly(classes: NDArray[Any], random: np.random.Generator) -> NDArray[np.float64]:
    """A place in [0, 1) for every group, such that each class is spread evenly over it."""
    place = np.empty(len(classes))
    for value in np.unique(classes):
        members = np.flatnonzero(classes == value)
        place[members] = (np.arange(len(members)) + random.random()) / len(members)
    return place
