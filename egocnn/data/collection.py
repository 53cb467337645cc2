"""What training, testing and cross-validation ask of graphs, be they in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self, TypeVar

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import graphs_of_part
from egocnn.errors import DataError


class Collection(Protocol):
    """G graphs: :class:`~egocnn.data.graphs.Graphs` in memory, :class:`~egocnn.data.store.Stored` on disk."""

    @property
    def outline(self) -> Graphs:
        """(G) the graphs without their nodes: targets, groups and parts, all that decides a split"""
        ...

    @property
    def node_counts(self) -> Ints:
        """(G)"""
        ...

    @property
    def digest(self) -> str:
        """Changes with the graphs, their order, and the parts they are in."""
        ...

    @property
    def bytes_on_disk(self) -> int:
        """What would have to be read to have all of them in memory; 0 where they are there."""
        ...

    def __len__(self) -> int: ...

    def choose(self, which: Ints) -> Self:
        """The graphs with these numbers, ascending."""
        ...

    def with_parts(self, part: Ints | None) -> Self:
        """The same graphs with another split, (G) positions in ``PARTS``, or with none."""
        ...

    def portions(self, first: int = 0, last: int | None = None) -> Iterator[Graphs]:
        """The graphs from number ``first`` to before ``last``, in order, as many at a time as memory should hold."""
        ...

    def whole(self) -> Graphs:
        """All graphs in memory."""
        ...


Chosen = TypeVar("Chosen", bound=Collection)


def choose_part(collection: Chosen, where: object, part: str = "", limit: int | None = None) -> Chosen:
    """The graphs of one part of the data's own split ('' for all), and of these the first ``limit``."""
    if part:
        collection = collection.choose(graphs_of_part(collection.outline.part, part))
    if len(collection) == 0:
        raise DataError(f"{where}: no graph is in the part {part!r}")
    return collection if limit is None else collection.choose(np.arange(min(limit, len(collection))))
