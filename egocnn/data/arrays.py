"""Vector operations on flat arrays: ranges, hashes, and a list of edges -> sorted adjacency rows."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from egocnn.errors import DataError, DuplicateEdgeError, rule

Ints: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.floating[Any]]
Bools: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]
LARGEST = float(np.finfo(np.float32).max)  # the largest number that networks compute with
ENTRIES_AT_ONCE = 1 << 16  # entries of adjacency rows handed out together: few enough for the processor's cache
# the numbers of splitmix64: what is added, the shifts and factors, the last shift
MIX_START = np.uint64(0x9E3779B97F4A7C15)
MIX_STEPS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
MIX_LAST = np.uint64(31)


def pointers(lengths: Ints) -> Ints:
    """Lengths of consecutive rows (n) -> where each row starts, and the end of the last (n + 1)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def ranges(first: Ints, last: Ints) -> Ints:
    """All integers of first[0]..last[0]-1, first[1]..last[1]-1, and so on, end to end."""
    starts = pointers(last - first)
    return np.asarray(np.arange(int(starts[-1])) + np.repeat(first - starts[:-1], last - first))


def starts(values: NDArray[Any]) -> Ints:
    """Where every run of equal values starts."""
    return np.concatenate([np.zeros(1, np.int64), np.flatnonzero(values[1:] != values[:-1]) + 1])[: len(values)]


def row_portions(pointer: Ints) -> Iterator[tuple[slice, slice]]:
    """Consecutive rows, cut where their entries reach a bound: the rows and their entries, as slices."""
    bounds = np.arange(ENTRIES_AT_ONCE, int(pointer[-1]), ENTRIES_AT_ONCE)
    cuts = [0, *np.searchsorted(pointer, bounds).tolist(), len(pointer) - 1]
    for first, last in pairwise(cuts):
        if first < last:
            yield slice(first, last), slice(int(pointer[first]), int(pointer[last]))


def equal_rows(pointer: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Rows of equal length together: their numbers (n) and their entries (n, length), a portion at a time; no empty
    ones. To sort each row of such a matrix is far cheaper than to sort all entries by row first."""
    lengths = np.diff(pointer)
    rows, of_length = np.argsort(lengths, kind="stable"), np.bincount(lengths, minlength=1)
    first = pointers(of_length)
    for length in np.flatnonzero(of_length[1:]) + 1:
        alike = rows[first[length] : first[length + 1]]
        at_once = max(1, ENTRIES_AT_ONCE // int(length))
        for start in range(0, len(alike), at_once):
            some = alike[start : start + at_once]
            yield some, pointer[some][:, None] + np.arange(length)


def positions(which: Any, length: int) -> Ints:
    """A slice, a mask or a list of numbers, negative ones counting from the end -> positions 0 to length - 1."""
    if isinstance(which, slice):
        return np.arange(*which.indices(length))
    chosen = np.asarray(which)
    if chosen.ndim != 1:
        raise IndexError("graphs are chosen by a number, a slice, a mask or a list of whole numbers")
    return np.asarray(np.arange(length)[chosen if chosen.size else chosen.astype(np.int64)])


def mix(values: Words) -> Words:
    """Scatter 64-bit numbers so that sums of the results look random (the finaliser of splitmix64)."""
    mixed = values + MIX_START
    for shift, factor in MIX_STEPS:
        mixed ^= mixed >> shift
        mixed *= factor
    mixed ^= mixed >> MIX_LAST
    return mixed


def bits(values: NDArray[Any]) -> Words:
    """Numbers of any kind as 64-bit words, equal words for equal numbers."""
    if np.issubdtype(values.dtype, np.floating):
        return (values.astype(np.float64) + 0.0).view(np.uint64)  # + 0.0: -0 is 0
    return values.astype(np.int64).view(np.uint64)


def sum_rows(values: Words, indptr: Ints) -> Words:
    """Sum of every row, modulo 2^64; differences of running sums also serve empty rows."""
    running = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values, out=running[1:])
    return running[indptr[1:]] - running[indptr[:-1]]


def build_adjacency(edges: Ints, n_nodes: int) -> tuple[Ints, Ints, Ints]:
    """Edges (E, 2) -> indptr (N + 1), indices (M), and the edge that each entry comes from (M)."""
    if edges.size and (edges.min() < 0 or edges.max() >= n_nodes):
        raise DataError(f"an edge names node {edges.min() if edges.min() < 0 else edges.max()} of {n_nodes}")
    rule(n_nodes < 2**31, f"{n_nodes} nodes; a collection holds fewer than 2^31")
    edges = edges.astype(np.int32, copy=False)
    key: Ints = np.minimum(edges[:, 0], edges[:, 1]).astype(np.int64)  # one number per edge, ascending like (low, high)
    key *= n_nodes  # in place: tens of millions of edges are touched more slowly than they are computed
    key += np.maximum(edges[:, 0], edges[:, 1])
    source: Ints
    if (key[1:] < key[:-1]).any():
        key, source = np.unique(key, return_index=True)
    else:  # files often list the edges in order, both directions together: nothing to sort
        source = starts(key)
        key = key[source]
    low, high = (ends.astype(np.int32) for ends in np.divmod(key, max(n_nodes, 1)))
    proper = np.flatnonzero(low != high)
    mirrored = proper[np.argsort(high[proper], kind="stable")]  # sorted by (high, low), as key was by (low, high)
    # a row lists its smaller neighbours first (the mirrored entries), then itself and the greater ones
    smaller = np.bincount(high[proper], minlength=n_nodes)
    greater = np.bincount(low, minlength=n_nodes)
    is_smaller = np.repeat(np.tile([True, False], n_nodes), np.stack([smaller, greater], axis=1).ravel())
    indices = np.empty(len(is_smaller), np.int32)
    origin = np.empty(len(is_smaller), np.int64)
    for place, neighbour, edge in ((is_smaller, low[mirrored], source[mirrored]), (~is_smaller, high, source)):
        indices[place], origin[place] = neighbour, edge
    return pointers(smaller + greater), indices, origin


def check_duplicates_agree(edges: Ints, values: NDArray[Any], what: str) -> None:
    """Raise :class:`DuplicateEdgeError` where an edge (E, 2) stands twice with different values (E)."""
    low, high = np.sort(edges, axis=1).T
    order = np.lexsort((high, low))
    same = (low[order][1:] == low[order][:-1]) & (high[order][1:] == high[order][:-1])
    differs = np.flatnonzero(same & (values[order][1:] != values[order][:-1]))
    if len(differs):
        first, second = int(order[differs[0]]), int(order[differs[0] + 1])
        edge, pair = ", ".join(map(str, edges[second])), f"{values[first]} and {values[second]}"
        raise DuplicateEdgeError(f"edge {edge} is given twice with different {what}: {pair}", (first, second))
