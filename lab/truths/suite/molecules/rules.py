"""Rules over functional groups: matches in a molecule -> whether the rule holds, and the sets of atoms that show it.

Where several matches would each do, so would several of them together: all of these are alternatives, as in the
benchmark of Sanchez-Lengeling et al. (NeurIPS 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Protocol, TypeAlias

from lab.truths.suite.molecules.groups import Match

Find: TypeAlias = Callable[[str], tuple[Match, ...]]  # name of a group -> its matches in one molecule
MOST_ALTERNATIVES = 64
FEW = 4  # matches of one group up to which every set of them is an alternative; of more, each alone and all together


class Rule(Protocol):
    """What decides the class of a molecule."""

    @property
    def groups(self) -> tuple[str, ...]:
        """those that the rule looks at"""
        ...

    def holds(self, find: Find) -> bool: ...

    def kind(self, find: Find) -> tuple[int, ...]:
        """which of the cases that look alike this is: molecules are drawn from all cases evenly"""
        ...

    def alternatives(self, find: Find) -> list[Match]:
        """where the rule holds"""
        ...


@dataclass(frozen=True)
class AllOf:
    """Every group is there."""

    groups: tuple[str, ...]
    beside: tuple[str, ...] = ()  # groups that look like them: negatives with and without these are drawn evenly

    def holds(self, find: Find) -> bool:
        return all(find(group) for group in self.groups)

    def kind(self, find: Find) -> tuple[int, ...]:
        return tuple(int(bool(find(group))) for group in (*self.groups, *self.beside))

    def alternatives(self, find: Find) -> list[Match]:
        choices = [unions(find(group)) for group in self.groups]
        return capped(joined(choice) for choice in product(*choices))


@dataclass(frozen=True)
class AnyOf:
    """At least one of the groups is there."""

    groups: tuple[str, ...]

    def holds(self, find: Find) -> bool:
        return any(find(group) for group in self.groups)

    def kind(self, find: Find) -> tuple[int, ...]:
        return tuple(int(bool(find(group))) for group in self.groups)

    def alternatives(self, find: Find) -> list[Match]:
        return capped(unions([match for group in self.groups for match in find(group)]))


@dataclass(frozen=True)
class Without:
    """One group is there and the other is not; what speaks for it is the first."""

    present: str
    absent: str

    @property
    def groups(self) -> tuple[str, ...]:
        return self.present, self.absent

    def holds(self, find: Find) -> bool:
        return bool(find(self.present)) and not find(self.absent)

    def kind(self, find: Find) -> tuple[int, ...]:
        return int(bool(find(self.present))), int(bool(find(self.absent)))

    def alternatives(self, find: Find) -> list[Match]:
        return capped(unions(find(self.present)))


@dataclass(frozen=True)
class AtLeast:
    """The group is there so many times or more."""

    group: str
    times: int = 2

    @property
    def groups(self) -> tuple[str, ...]:
        return (self.group,)

    def holds(self, find: Find) -> bool:
        return len(find(self.group)) >= self.times

    def kind(self, find: Find) -> tuple[int, ...]:
        return (min(len(find(self.group)), self.times),)

    def alternatives(self, find: Find) -> list[Match]:
        places = find(self.group)
        return capped([joined(some) for some in combinations(places, self.times)] + [joined(places)])


@dataclass(frozen=True)
class Once:
    """The group is there exactly once."""

    group: str

    @property
    def groups(self) -> tuple[str, ...]:
        return (self.group,)

    def holds(self, find: Find) -> bool:
        return len(find(self.group)) == 1

    def kind(self, find: Find) -> tuple[int, ...]:
        return (min(len(find(self.group)), 2),)

    def alternatives(self, find: Find) -> list[Match]:
        return list(find(self.group))


def unions(places: Sequence[Match]) -> list[Match]:
    """Every set of matches as one set of atoms; of many matches each alone, and all of them together."""
    if len(places) > FEW:
        return [*places, joined(places)]
    return [joined(some) for size in range(1, len(places) + 1) for some in combinations(places, size)]


def joined(places: Iterable[Match]) -> Match:
    return tuple(sorted({atom for match in places for atom in match}))


def capped(alternatives: Iterable[Match]) -> list[Match]:
    """Each once; beyond the limit the first of them, and the largest, which holds all matches."""
    found = list(dict.fromkeys(alternatives))
    if len(found) <= MOST_ALTERNATIVES:
        return found
    return [*found[: MOST_ALTERNATIVES - 1], max(found, key=len)]
