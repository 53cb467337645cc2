r"""The Weisfeiler-Lehman subtree kernel: two graphs -> how many pairs of nodes unfold to the same subtree.

.. math:: k(G, H) = \sum_{r=0}^{R} \sum_w c_r(G, w) \, c_r(H, w), \qquad
    \hat k(G, H) = k(G, H) / \sqrt{k(G, G) \, k(H, H)}

where :math:`c_r(G, w)` counts the nodes of G with the word w after r rounds. A word that no training graph has
adds nothing to the kernel with any of them, but to a graph's likeness to itself it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_matrix, diags

from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graphs
from egocnn.encode.colours import Colours
from lab.rivals.kernels.words import Vocabulary, labelled, word_rounds

ROUNDS = (0, 1, 2, 3, 4, 5, 6, 8, 10)  # to choose from; the kernel's paper tries 0 to 10


class SubtreeKernel:
    """Settings are numbers of rounds; a description is the counts of words (G, V), scaled."""

    def __init__(self, rounds: Sequence[int] = ROUNDS) -> None:
        self.settings = rounds

    def fit(self, graphs: Graphs) -> Iterator[csr_matrix]:
        graphs = labelled(graphs)
        words = word_rounds(graphs, max(self.settings))
        self.vocabulary = Vocabulary.of(words)
        for rounds in self.settings:
            yield self._scaled(words[: rounds + 1], graphs)

    def describe(self, graphs: Graphs, setting: int) -> csr_matrix:
        graphs = labelled(graphs)
        return self._scaled(word_rounds(graphs, setting), graphs)

    def compare(self, one: csr_matrix, other: csr_matrix) -> Floats:
        values: Floats = (one @ other.T).toarray()
        return values

    def _scaled(self, words: Sequence[Colours], graphs: Graphs) -> csr_matrix:
        own = Vocabulary.of(words).count(words, graphs)
        length = np.sqrt(np.asarray(own.multiply(own).sum(axis=1)).ravel())
        return diags(1 / np.maximum(length, 1)) @ self.vocabulary.count(words, graphs)
