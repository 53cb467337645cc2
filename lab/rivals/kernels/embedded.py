r"""Kernels that know which words are alike: counts of words -> counts times embeddings of words -> kernel values.

.. math:: k(G, H) = c(G)^T M \, c(H), \qquad M = E E^T \text{ or } M = \mathrm{diag}(|E_1|, |E_2|, \dots)

where c counts the words of a graph and row w of E embeds word w. Both forms of M are products of features, so M
itself, which is as large as the square of the vocabulary, is never stored. Embeddings are learned on training
graphs; words that they do not have are passed over.

Deep graph kernels learn E from words that occur together in a graph; subgraph2vec from words of adjacent nodes whose
rounds differ by at most one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.preprocessing import normalize

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError, MissingExtraError
from lab.rivals.kernels.words import Vocabulary, labelled, word_rounds

ROUNDS = (1, 2, 3, 4)  # of words that are counted, to choose from; embeddings are learned for all of them at once

WIDTH = 64  # numbers that embed a word

WINDOW = 5  # words to each side that count as occurring together

WORDS_TO_READ = 2_000_000
"""Texts are read again until so many words have passed: a few hundred molecules teach nothing in one reading."""

READINGS = (1, 100)  # the fewest and the most

MOST_PAIRS = 4_000_000  # of adjacent words; where there are more, so many are drawn

MOST_WORDS = 4_000_000  # that can be embedded: with the library's own notes each takes a kilobyte

PAIRS_AT_ONCE = 10_000

LONGEST = 10_000  # words of a sentence that gensim reads; what follows it would drop

Text = Sequence[Ints]  # rounds -> position of each node's word in the vocabulary (N)

Sentences = Iterable[list[str]]


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Which words count, and what makes two of them alike."""

    rounds: int
    similarity: str
    """``product``: of their embeddings; ``length``: of the embedding, and every word is like itself alone"""


class EmbeddedKernel:
    """A description is the features (G, D) or (G, V), scaled to length 1."""

    def __init__(
        self,
        sentences: Callable[[Text, Graphs, np.random.Generator], Sentences],
        *,
        seed: int,
        window: int,
        rounds: Sequence[int] = ROUNDS,
        similarities: Sequence[str] = ("product",),
    ) -> None:
        self.sentences, self.seed, self.window = sentences, seed, window
        self.settings = [WordCounts(*choice) for choice in product(rounds, similarities)]

    def fit(self, graphs: Graphs) -> Iterator[Any]:
        graphs = labelled(graphs)
        words = word_rounds(graphs, max(setting.rounds for setting in self.settings))
        self.vocabulary = Vocabulary.of(words)
        if len(self.vocabulary) > MOST_WORDS:
            raise DataError(
                f"these graphs have {len(self.vocabulary)} different subtrees; at most {MOST_WORDS} can be embedded"
            )
        text = [self.vocabulary.positions(of_round) for of_round in words]
        sentences = self.sentences(text, graphs, np.random.default_rng(self.seed))
        self.embedding = embed(sentences, len(self.vocabulary), window=self.window, seed=self.seed)
        for setting in self.settings:
            yield self._features(self.vocabulary.count(words[: setting.rounds + 1], graphs), setting)

    def describe(self, graphs: Graphs, setting: WordCounts) -> Any:
        graphs = labelled(graphs)
        return self._features(self.vocabulary.count(word_rounds(graphs, setting.rounds), graphs), setting)

    def compare(self, one: Any, other: Any) -> Floats:
        values = one @ other.T
        dense: Floats = values.toarray() if issparse(values) else values
        return dense

    def _features(self, counts: csr_matrix, setting: WordCounts) -> Any:
        if setting.similarity == "product":
            return normalize(counts @ self.embedding)
        return normalize(counts.multiply(np.sqrt(np.linalg.norm(self.embedding, axis=1))).tocsr())


def texts_of_graphs(text: Text, graphs: Graphs, random: np.random.Generator) -> Sentences:
    """One sentence for every graph and round: the words of its nodes, in an order that says nothing."""
    names = _names(text)
    sentences = []
    for words in text:
        order = np.lexsort((words, graphs.graph_of))  # by word: node numbers must not decide what stands together
        for first, last in pairwise(graphs.node_ptr.tolist()):
            sentence = names[random.permutation(words[order[first:last]])].tolist()
            sentences += [sentence[start : start + LONGEST] for start in range(0, len(sentence), LONGEST)]
    return sentences


def adjacent_words(text: Text, graphs: Graphs, random: np.random.Generator) -> Sentences:
    """The radial context: a sentence of two words for every edge and two rounds that differ by at most one.

    The relation is symmetric, and skip-gram reads a sentence of two words both ways: just the pairs of a word and
    its context that subgraph2vec defines.
    """
    edges = graphs.edges
    edges = edges[edges[:, 0] != edges[:, 1]]
    rounds = [(one, other) for one in range(len(text)) for other in range(len(text)) if abs(one - other) <= 1]
    total = len(edges) * len(rounds)
    drawn = random.permutation(total) if total <= MOST_PAIRS else random.integers(total, size=MOST_PAIRS)
    which, edge = np.divmod(drawn, max(len(edges), 1))
    words = np.stack(text)
    one, other = np.array(rounds).T
    pairs = np.stack([words[one[which], edges[edge, 0]], words[other[which], edges[edge, 1]]], axis=1)
    return Pairs(pairs, _names(text))


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Sentences of two words that are made when they are read: as lists they would take ten times the memory."""

    words: Ints  # (n, 2)
    names: Any  # (V) texts

    def __iter__(self) -> Iterator[list[str]]:
        for first in range(0, len(self.words), PAIRS_AT_ONCE):
            yield from self.names[self.words[first : first + PAIRS_AT_ONCE]].tolist()


def embed(sentences: Sentences, n_words: int, *, window: int, seed: int, width: int = WIDTH) -> Floats:
    """(V, D) skip-gram embeddings; a word in no sentence of two or more is embedded as zero"""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise MissingExtraError("gensim", "baselines") from None

    # one worker: with more of them the order of the steps, and so the result, is left to chance
    model = Word2Vec(
        vector_size=width,
        window=window,
        shrink_windows=False,
        sg=1,
        negative=5,
        sample=0,
        min_count=1,
        workers=1,
        seed=seed,
    )
    model.build_vocab(sentences)
    embedding = np.zeros((n_words, width), np.float64)
    if len(model.wv) == 0:
        return embedding
    readings = int(np.clip(WORDS_TO_READ // model.corpus_total_words, *READINGS))
    model.train(sentences, total_examples=model.corpus_count, epochs=readings)
    embedding[[int(name) for name in model.wv.index_to_key]] = model.wv.vectors
    return embedding


def _names(text: Text) -> Any:
    """Words by position as the texts that gensim reads."""
    most = max((int(words.max(initial=-1)) for words in text), default=-1)
    return np.array([str(word) for word in range(most + 1)], dtype=object)
