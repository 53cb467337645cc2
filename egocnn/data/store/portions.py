"""A collection -> consecutive parts of it, each small enough to be worked on in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import take_columns
from egocnn.errors import DataError

PORTION_BYTES = 1 << 23
"""What the columns of a portion take, unless it is one larger graph; what is computed from them takes several times
as much."""


def cut(graphs: Graphs, first: int, last: int) -> Graphs:
    """The graphs from ``first`` to before ``last``: columns are views, only pointers and node ids are counted anew.

    ``graphs[first:last]`` is the same, but looks at every node of the collection first.
    """
    node, after = int(graphs.node_ptr[first]), int(graphs.node_ptr[last])
    indptr = graphs.indptr[node : after + 1]
    entry, end = int(indptr[0]), int(indptr[-1])

    return replace(
        graphs,
        node_ptr=graphs.node_ptr[first : last + 1] - node,
        indptr=indptr - entry,
        indices=graphs.indices[entry:end] - graphs.indices.dtype.type(node),
        names=graphs.names[first:last],
        smiles=None if graphs.smiles is None else graphs.smiles[first:last],
        **take_columns(graphs, nodes=slice(node, after), entries=slice(entry, end), chosen=slice(first, last)),
    )


def cuts(end: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Running sums of sizes (G) -> first and last graph of portions, none above ``most`` unless one graph is."""
    first, done = 0, 0
    while first < len(end):
        last = max(first + 1, int(np.searchsorted(end, done + most, side="right")))
        yield first, last
        first, done = last, int(end[last - 1])


def choose_portions(portions: Iterable[Graphs], part: str = "", limit: int | None = None) -> Iterator[Graphs]:
    """The graphs of one part of the data's own split, and of these the first ``limit``; empty portions left out"""
    done = 0
    for graphs in portions:
        if limit is not None and done >= limit:
            return
        graphs = graphs.select(part) if part else graphs
        graphs = graphs if limit is None else graphs[: limit - done]
        done += len(graphs)
        if len(graphs):
            yield graphs
    if done == 0:
        raise DataError(f"no graph is in the part {part!r}")
