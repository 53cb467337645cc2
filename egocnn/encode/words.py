"""Labels of several words -> a column of numbers for each word. A label may say several things, ``C|H3`` or
``aromatic|ring6``: its first word is what nodes are ranked and counted by, and every word has filters of its own. Those
of the further words begin at zero: what a word adds to the first is learned where it helps, and does no harm where
graphs are few. Labels of one word are as they always were."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import SEPARATOR, Names


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """What the labels of some graphs say to a model, a column for the first words, the second, ...; -1: not known."""

    nodes: list[Ints]  # (N) each
    edges: list[Ints]  # (adjacency entries) each


def first_words(graphs: Graphs) -> Graphs:
    """The same graphs with labels of one word."""
    changes: dict[str, Any] = {}
    for kind in ("node", "edge"):
        names, label = getattr(graphs, f"{kind}_label_names"), getattr(graphs, f"{kind}_label")
        if label is not None and any(SEPARATOR in name for name in names):
            firsts = heads(names)
            numbers = columns(label, names, firsts, ())[0]
            changes |= {f"{kind}_label": numbers, f"{kind}_label_names": firsts}
    return replace(graphs, **changes) if changes else graphs


def heads(names: Sequence[str]) -> Names:
    """Each first word once, in the order of the names"""
    return tuple(dict.fromkeys(name.partition(SEPARATOR)[0] for name in names))


def further_words(names: Sequence[str]) -> Names:
    """Each further word once"""
    return tuple(sorted({word for name in names for word in name.split(SEPARATOR)[1:]}))


def columns(label: Ints | None, names: Sequence[str], firsts: Names, further: Names) -> list[Ints]:
    """Labels, numbers in ``names`` -> numbers of their words: in ``firsts``, and after these in ``further``"""
    if label is None or not firsts:
        return []
    table = _numbers(tuple(names), firsts, further)
    return [column[label] for column in table.T]


@lru_cache(maxsize=64)  # one graph after the other comes with the same names
def _numbers(names: Names, firsts: Names, further: Names) -> Ints:
    """(names and the one that is not known, words) the numbers of their words"""
    position = {word: len(firsts) + number for number, word in enumerate(further)}
    first = {word: number for number, word in enumerate(firsts)}
    split = (name.split(SEPARATOR) for name in names)
    spelled = [[first.get(own[0], -1), *(position.get(word, -1) for word in own[1:])] for own in split]
    spelled.append([-1])  # serves -1, a label that is not known
    width = max(map(len, spelled))
    return np.array([own + [-1] * (width - len(own)) for own in spelled], np.int32)


def told_apart(several: list[Ints]) -> Ints | None:
    """Columns -> one number for every combination of words that a model knows"""
    if len(several) < 2:
        return several[0] if several else None
    return np.unique(np.stack(several, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)
