"""What training, testing and cross-validation ask of graphs, be they in memory or on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs


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
