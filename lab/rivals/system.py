"""A rival by name: what a reader must know about it, and how it is built for a cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from egocnn.study.crossval.systems import System

__all__ = ["Rival", "System"]


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
