"""Vector operations on ragged flat arrays: ranges, and a list of edges -> sorted adjacency rows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from egocnn.errors import DataError, DuplicateEdgeError

Ints: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.floating[Any]]
Bools: TypeAlias = NDArray[np.bool_]


def pointers(lengths: Ints) -> Ints:
    """Lengths of consecutive rows (n) -> where each row starts, and the end of the last (n + 1)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def ranges(first: Ints, last: Ints) -> Ints:
    """All integers of first[0]..last[0]-1, first[1]..last[1]-1, and so on, end to end."""
    lengths = last - first
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    counted: Ints = np.arange(total) + np.repeat(first - (ends - lengths), lengths)
    return counted


def build_adjacency(edges: Ints, n_nodes: int) -> tuple[Ints, Ints, Ints]:
    """Edges (E, 2) -> indptr (N + 1), indices (M), and the edge that each entry comes from (M)."""
    if edges.size and (edges.min() < 0 or edges.max() >= n_nodes):
        raise DataError(f"an edge names node {edges.min() if edges.min() < 0 else edges.max()} of {n_nodes}")
    if n_nodes >= 2**31:
        raise DataError(f"{n_nodes} nodes; a collection holds fewer than 2^31")
    low = np.minimum(edges[:, 0], edges[:, 1]).astype(np.int64)
    high = np.maximum(edges[:, 0], edges[:, 1]).astype(np.int64)
    key, source = np.unique(low * n_nodes + high, return_index=True)
    low, high = np.divmod(key, max(n_nodes, 1))
    proper = np.flatnonzero(low != high)
    mirrored = proper[np.argsort(high[proper], kind="stable")]  # sorted by (high, low), as key was by (low, high)

    # a row lists its smaller neighbours first (the mirrored entries), then itself and the greater ones
    smaller = np.bincount(high[proper], minlength=n_nodes)
    greater = np.bincount(low, minlength=n_nodes)
    indptr = pointers(smaller + greater)
    indices = np.empty(len(key) + len(proper), np.int32)
    origin = np.empty(len(indices), np.int64)
    place_smaller = ranges(indptr[:-1], indptr[:-1] + smaller)
    place_greater = ranges(indptr[:-1] + smaller, indptr[1:])
    indices[place_smaller], origin[place_smaller] = low[mirrored], source[mirrored]
    indices[place_greater], origin[place_greater] = high, source
    return indptr, indices, origin


def check_duplicates_agree(edges: Ints, values: NDArray[Any], what: str) -> None:
    low, high = np.sort(edges, axis=1).T
    order = np.lexsort((high, low))
    same = (low[order][1:] == low[order][:-1]) & (high[order][1:] == high[order][:-1])
    differs = np.flatnonzero(same & (values[order][1:] != values[order][:-1]))
    if len(differs):
        first, second = int(order[differs[0]]), int(order[differs[0] + 1])
        u, v = int(edges[second, 0]), int(edges[second, 1])
        raise DuplicateEdgeError(
            f"edge {u}, {v} is given twice with different {what}: {values[first]} and {values[second]}",
            (first, second),
        )
