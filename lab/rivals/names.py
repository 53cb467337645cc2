"""A name -> the rival it means."""

from __future__ import annotations

from egocnn.errors import ConfigError
from egocnn.study.crossval import EGO_CNN
from lab.rivals.rival import Rival


def rivals() -> dict[str, Rival]:
    """All rivals by the word to type, the simplest first; their libraries are imported when one is built."""
    from lab.rivals.counts import LABEL_COUNTS
    from lab.rivals.gine_system import GINE_RIVAL
    from lab.rivals.kernels import KERNELS
    from lab.rivals.networks import RIVALS

    known = (LABEL_COUNTS, *KERNELS, *RIVALS, GINE_RIVAL)
    return {word_for(rival.name): rival for rival in known}


def word_for(name: str) -> str:
    """'Label counts' -> 'label-counts'"""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name.lower()).split())


def find_rival(name: str) -> Rival:
    """A rival by its name in the tables, or by the word for it."""
    known = rivals()
    word = word_for(name)
    if word not in known:
        raise ConfigError(f"no model is called {name!r}; there are {', '.join([EGO_CNN, *known])}")
    return known[word]
