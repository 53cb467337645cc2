"""Graphs as texts: Graphs -> the Weisfeiler-Lehman colours of their nodes as words -> how often each graph has each.

A word is the colour of one node after one round: the subtree that unfolds from it to that depth. Colours of
different rounds never coincide, so the words of all rounds share one vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.colours import Colours, initial_colours, wl_rounds


def labelled(graphs: Graphs) -> Graphs:
    """The graphs as the kernels read them: node labels, the degree where there are none, and plain edges."""
    changes: dict[str, Any] = {"edge_label": None, "edge_label_names": ()}
    if graphs.node_label is None:
        names = tuple(str(degree) for degree in range(int(graphs.degree.max(initial=0)) + 1))
        changes |= {"node_label": graphs.degree.astype(np.int32), "node_label_names": names}
    return graphs.replace(**changes)


def word_rounds(graphs: Graphs, rounds: int) -> list[Colours]:
    """The words (N) of round 0, which are the labels, to ``rounds``; ``graphs`` come from :func:`labelled`."""
    return [initial_colours(graphs), *wl_rounds(graphs, rounds)]


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The words that training graphs have; any other is unknown."""

    words: Colours  # (V) ascending

    @classmethod
    def of(cls, rounds: Sequence[Colours]) -> Vocabulary:
        return cls(np.unique(np.concatenate(rounds)))

    def __len__(self) -> int:
        return len(self.words)

    def positions(self, words: Colours) -> Ints:
        """Where each word stands in the vocabulary, -1: nowhere"""
        place = np.minimum(np.searchsorted(self.words, words), max(len(self) - 1, 0))
        found: Ints = np.where(self.words[place] == words, place, -1) if len(self) else np.full(len(words), -1)
        return found

    def count(self, rounds: Sequence[Colours], graphs: Graphs) -> csr_matrix:
        """(G, V) how many nodes of each graph have each word; unknown words are passed over"""
        place = self.positions(np.concatenate(rounds))
        graph = np.tile(graphs.graph_of, len(rounds))[place >= 0]
        place = place[place >= 0]
        return csr_matrix((np.ones(len(place)), (graph, place)), shape=(len(graphs), len(self)))
