"""The colours of a picture: sign and strength of an importance -> a colour that colour-blind readers tell apart too."""

from __future__ import annotations

from functools import cache

FOR = "#d55e00"
AGAINST = "#0072b2"
"""Vermilion and blue of Okabe and Ito: apart in hue and in lightness for every common kind of colour vision."""
NEUTRAL = "#7f7f7f"
"""Critical, yet neither for nor against."""
WHITE = "#ffffff"
INK = "#333333"
FAINT = "#dcdcdc"
"""What recedes."""
GREY = "#8c8c8c"
"""Words that recede."""


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
