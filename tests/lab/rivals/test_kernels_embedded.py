"""Kernels by embeddings of words: the formula, the sentences they are learned from, and what is left out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.rivals.kernels.embedded import EmbeddedKernel, WordCounts, adjacent_words, embed, texts_of_graphs
from lab.rivals.kernels.words import Vocabulary, labelled, word_rounds
from tests.lab.rivals.shapes import rings_with_tails
from tests.support.samples import one_graph

pytest.importorskip("gensim.models", reason="gensim is not installed")


def by_hand(similarity: str) -> float:
    """Two graphs, ``aab`` and ``abb`` by their labels, whose words are embedded as a = (3, 4) and b = (0, 2)."""
    graphs = Graphs.concat([one_graph(3, [], node_label="aab"), one_graph(3, [], node_label="abb")])
    kernel = EmbeddedKernel(texts_of_graphs, seed=0, window=1, rounds=(0,))
    words = word_rounds(labelled(graphs), 0)
    kernel.vocabulary = Vocabulary.of(words)
    a, b = kernel.vocabulary.positions(words[0][1:3])
    kernel.embedding = np.zeros((2, 2))
    kernel.embedding[[a, b]] = [[3, 4], [0, 2]]
    one, other = (kernel.describe(graphs[[g]], WordCounts(0, similarity)) for g in range(2))
    return float(kernel.compare(one, other)[0, 0])


def test_the_kernel_by_products_of_embeddings_is_the_one_computed_by_hand() -> None:
    # a.a = 25, a.b = 8, b.b = 4; counts (2, 1) and (1, 2)
    between = 2 * 1 * 25 + (2 * 2 + 1 * 1) * 8 + 1 * 2 * 4
    one, other = 4 * 25 + 2 * 2 * 8 + 4, 25 + 2 * 2 * 8 + 4 * 4
    assert by_hand("product") == pytest.approx(between / np.sqrt(one * other))


def test_the_kernel_by_lengths_of_embeddings_is_the_one_computed_by_hand() -> None:
    # |a| = 5, |b| = 2, and a is not like b at all
    assert by_hand("length") == pytest.approx((2 * 5 + 2 * 2) / np.sqrt((4 * 5 + 2) * (5 + 4 * 2)))


def text(graphs: Graphs, rounds: int) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Numbers that tell node and round apart: node n in round r is 10 r + n."""
    return [10 * r + np.arange(graphs.n_nodes) for r in range(rounds + 1)]


def test_sentences_of_deep_kernels_are_the_words_of_one_graph_and_round_cut_to_what_gensim_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graphs = Graphs.from_edges(node_counts=[2, 0, 3], edges=np.array([[0, 1], [2, 3]]))
    sentences = list(texts_of_graphs(text(graphs, 1), graphs, np.random.default_rng(0)))
    assert [sorted(map(int, sentence)) for sentence in sentences] == [[0, 1], [2, 3, 4], [10, 11], [12, 13, 14]]
    monkeypatch.setattr("lab.rivals.kernels.embedded.LONGEST", 2)
    sentences = list(texts_of_graphs(text(graphs, 0), graphs, np.random.default_rng(0)))
    assert [len(sentence) for sentence in sentences] == [2, 2, 1]


def test_sentences_of_deep_kernels_do_not_depend_on_the_numbers_of_nodes() -> None:
    graphs = Graphs.from_edges(node_counts=[6], edges=np.zeros((0, 2), np.int64))
    words = np.array([4, 2, 2, 0, 1, 3])
    one, other = (list(texts_of_graphs([text], graphs, np.random.default_rng(0))) for text in (words, words[::-1]))
    assert one == other


def test_the_radial_context_joins_neighbours_whose_rounds_differ_by_at_most_one() -> None:
    graphs = one_graph(3, [(0, 1), (1, 2), (2, 2)])
    pairs = [
        tuple(sorted(map(int, pair))) for pair in adjacent_words(text(graphs, 2), graphs, np.random.default_rng(0))
    ]
    context: set[frozenset[int]] = {
        frozenset((10 * depth + node, 10 * other + neighbour))
        for node, neighbour in ((0, 1), (1, 0), (1, 2), (2, 1))
        for depth in range(3)
        for other in range(max(depth - 1, 0), min(depth + 1, 2) + 1)
    }
    assert Counter(map(frozenset, pairs)) == Counter(context)


def test_no_more_pairs_are_read_than_allowed_and_every_reading_has_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.rivals.kernels.embedded.MOST_PAIRS", 7)
    monkeypatch.setattr("lab.rivals.kernels.embedded.PAIRS_AT_ONCE", 3)
    graphs = rings_with_tails(4, seed=0)
    few = adjacent_words(text(graphs, 1), graphs, np.random.default_rng(0))
    assert len(list(few)) == 7
    assert list(few) == list(few)


def test_words_that_keep_the_same_company_are_embedded_alike() -> None:
    sentences = [["0", "2"], ["1", "2"], ["3", "4"]] * 200
    vectors = embed(sentences, 6, window=1, seed=0, width=8)
    unit = vectors[:5] / np.linalg.norm(vectors[:5], axis=1, keepdims=True)
    assert unit[0] @ unit[1] > unit[0] @ unit[3] + 0.2
    assert not vectors[5].any()  # in no sentence


def test_graphs_without_edges_leave_every_word_at_zero() -> None:
    graphs = Graphs.from_edges(node_counts=[1, 2], edges=np.zeros((0, 2), np.int64))
    kernel = EmbeddedKernel(adjacent_words, seed=0, window=1)
    description = next(kernel.fit(graphs))
    assert not kernel.embedding.any()
    assert kernel.compare(description, description).tolist() == [[0, 0], [0, 0]]


def test_more_words_than_memory_can_embed_are_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.rivals.kernels.embedded.MOST_WORDS", 3)
    with pytest.raises(DataError, match=r"\d+ different subtrees; at most 3 can be embedded"):
        next(EmbeddedKernel(adjacent_words, seed=0, window=1).fit(rings_with_tails(4, seed=0)))
