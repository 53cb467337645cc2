"""A graph, importances and critical parts -> what a picture shows, checked: strengths from 0 to 1, marks, colours."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.errors import ConfigError, DataError, rule

FOR, AGAINST = "#d55e00", "#0072b2"  # Of Okabe and Ito: apart in hue and lightness for every common colour vision.
NEUTRAL = "#7f7f7f"  # Critical, yet neither for nor against.
WHITE, INK = "#ffffff", "#333333"
FAINT = "#dcdcdc"  # What recedes.
GREY = "#8c8c8c"  # Words that recede.
SMALLEST_SIDE, LARGEST_SIDE = 40, 10_000
LEAST = 0.02  # Strength below which nothing is coloured.
QUIET = 0.25  # Strength of the largest importance in a picture in which nothing is critical.


def signed(importance: float) -> str:
    """The colour of an importance of this sign."""
    return FOR if importance > 0 else AGAINST if importance < 0 else NEUTRAL


def mix(one: str, other: str, share: float) -> str:
    """``share`` of the other colour, the rest of the one."""
    share = min(max(share, 0.0), 1.0)
    mixed = (round(a + (b - a) * share) for a, b in zip(channels(one), channels(other), strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


@cache
def channels(colour: str) -> tuple[int, int, int]:
    """#rrggbb -> 0 to 255 each"""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureItems:
    """The nodes, or the edges, of a picture."""

    importance: Floats
    strength: Floats  # |importance| over the largest of its kind, 0 to 1, whatever the sign
    critical: Bools


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A graph with everything that its drawing depends on."""

    graph: Graph
    nodes: PictureItems
    edges: PictureItems
    caption: str
    size: tuple[int, int]  # width, height in pixels
    words: tuple[str, str]  # what a positive and a negative importance mean

    def __post_init__(self) -> None:
        if not all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in self.size):
            sides = f"{self.size[0]} x {self.size[1]}"
            raise ConfigError(f"size must be {SMALLEST_SIDE} to {LARGEST_SIDE} pixels a side, got {sides}")

    @property
    def unit(self) -> float:
        """Pixels that look the same share of the picture whatever its size; 1 at 480 x 360"""
        return min(self.size[0] / 480, self.size[1] / 360)

    @property
    def signs(self) -> tuple[bool, bool]:
        """whether anything that is coloured has a positive importance, and whether anything has a negative one"""
        shown = np.concatenate([some.importance[some.strength > LEAST] for some in (self.nodes, self.edges)])
        return bool((shown > 0).any()), bool((shown < 0).any())


def items(importance: Floats, critical: Ints | None, count: int, what: str, name: str, most: float) -> PictureItems:
    """Checked; the largest importance has the strength ``most``. ``what`` and ``name``: for messages."""
    values = np.asarray(importance, np.float64)
    rule(values.shape == (count,), f"graph {name}: {values.size} importances for {count} {what}s")
    unfit = np.flatnonzero(~np.isfinite(values))
    if len(unfit):
        raise DataError(f"graph {name}: the importance of {what} {unfit[0]} is {values[unfit[0]]}, not a finite number")
    chosen = np.asarray([] if critical is None else critical, np.int64)
    outside = chosen[(chosen < 0) | (chosen >= count)]
    if len(outside):
        raise DataError(f"graph {name}: critical {what} {outside[0]} of {count} {what}s")
    marks = np.zeros(count, bool)
    marks[chosen] = True
    largest = float(np.abs(values).max(initial=0.0))
    strength = most * np.abs(values) / largest if largest > 0 else np.zeros(count)
    return PictureItems(importance=values, strength=strength, critical=marks)
