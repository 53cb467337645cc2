"""The one small interface of every rival: graphs with classes -> a fitted system -> class numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self

from egocnn.arrays import Ints
from egocnn.graphs import Graphs


class System(Protocol):
    """Learns the classes of graphs.

    Whatever is fitted (vocabularies, embeddings, scales, weights) is fitted on the graphs given to :meth:`fit`; the
    validation graphs only choose between settings or epochs. Test graphs are seen by :meth:`predict` alone.
    """

    parameters: int | None
    """numbers that training changes; None where the question makes no sense"""

    def fit(self, graphs: Graphs, validation: Graphs) -> Self: ...

    def predict(self, graphs: Graphs) -> Ints:
        """(G) class numbers, counted by the names of the training graphs"""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A system by name, and what a reader must know about it."""

    name: str
    """as in the paper's tables"""
    source: str
    """who published it, and where"""
    library: str
    """which parts are a library's"""
    departures: str
    """where it differs from what was published"""
    build: Callable[[int], System]
    """seed -> an untrained system"""
    build_quick: Callable[[int], System] | None = None
    """the same, trained for a rough answer in seconds; None where it takes no longer anyway"""

    def quick(self) -> Rival:
        return self if self.build_quick is None else replace(self, build=self.build_quick)
