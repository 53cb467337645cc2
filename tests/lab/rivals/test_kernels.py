"""Graph kernels with support vector machines: values by definition, and nothing learned from the wrong part."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph, Graphs
from egocnn.errors import DataError
from lab.rivals.kernels import KERNELS, WL, KernelMachine
from lab.rivals.kernels.embedded import EmbeddedKernel, WordCounts, adjacent_words, texts_of_graphs
from lab.rivals.kernels.laplacian import LaplacianKernel, Scale, project
from lab.rivals.kernels.machine import Kernel, check_memory
from lab.rivals.kernels.subtree import SubtreeKernel
from lab.rivals.kernels.words import Vocabulary, labelled, word_rounds
from lab.rivals.rival import Rival
from tests.support.invariance import relabel
from tests.support.samples import cycle, one_graph, sure
from tests.support.strategies import random_graphs, random_trees
from tests.support.tiny import alcohols_of_all_sizes


def rings_with_tails(n_graphs: int, *, seed: int, rings: Sequence[int] = (3, 4)) -> Graphs:
    """Told apart by the ring; nodes in random order, and tails of 2 to 5, so that counting nodes does not help."""
    random = np.random.default_rng(seed)
    target = np.arange(n_graphs) % len(rings)
    counts: list[int] = []
    edges = []
    for kind in target:
        ring, tail = rings[int(kind)], int(random.integers(2, 6))
        own = cycle(*range(ring)) + [(node - 1, node) for node in range(ring, ring + tail)]
        edges.append(random.permutation(ring + tail)[np.array(own)] + sum(counts))
        counts.append(ring + tail)
    return Graphs.from_edges(
        node_counts=counts,
        edges=np.concatenate(edges),
        target=target.astype(np.int64),
        class_names=tuple(f"ring of {ring}" for ring in rings),
    )


@pytest.fixture(autouse=True)
def short_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gensim.models", reason="gensim is not installed")
    # a tenth of what is read otherwise: enough for these tasks, with any of five seeds
    monkeypatch.setattr("lab.rivals.kernels.embedded.WORDS_TO_READ", 200_000)


def one_setting(name: str, seed: int = 0) -> Kernel[Any, Any]:
    kernels: dict[str, Kernel[Any, Any]] = {
        "WL kernel": SubtreeKernel(rounds=(2,)),
        "DGK": EmbeddedKernel(texts_of_graphs, seed=seed, window=5, rounds=(2,)),
        "Subgraph2vec": EmbeddedKernel(adjacent_words, seed=seed, window=1, rounds=(2,)),
        "MLG": LaplacianKernel(seed=seed, levels=(2,), smoothing=(0.1,)),
    }
    return kernels[name]


def values(kernel: Kernel[Any, Any], learned: Graphs, others: Graphs) -> Floats:
    """(others, learned) under the kernel's first setting"""
    description = next(kernel.fit(learned))
    return kernel.compare(kernel.describe(others, kernel.settings[0]), description)


each_rival = pytest.mark.parametrize("rival", KERNELS, ids=lambda rival: str(rival.name))
each_name = pytest.mark.parametrize("name", [rival.name for rival in KERNELS])


def subtrees(graph: Graph, rounds: int) -> Counter[Any]:
    """Words as nested tuples, by the definition."""
    neighbours: list[list[int]] = [[] for _ in range(graph.n_nodes)]
    for u, v in graph.edges.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    words: list[Any] = list(sure(graph.node_label))
    counted: Counter[Any] = Counter((0, word) for word in words)
    for step in range(1, rounds + 1):
        words = [(words[n], tuple(sorted((words[m] for m in neighbours[n]), key=repr))) for n in range(len(words))]
        counted.update((step, word) for word in words)
    return counted


@given(random_graphs(min_graphs=2, node_labels=True, edge_labels=None, loops=False))
def test_the_subtree_kernel_counts_pairs_of_equal_subtrees(graphs: Graphs) -> None:
    counted = [subtrees(graph, 2) for graph in graphs]
    raw = np.array([[sum(one[word] * other[word] for word in one) for other in counted] for one in counted])
    expected = raw / np.sqrt(np.outer(np.diag(raw), np.diag(raw)))
    half = (len(graphs) + 1) // 2
    np.testing.assert_allclose(values(SubtreeKernel(rounds=(2,)), graphs[:half], graphs), expected[:, :half])


@each_name
def test_every_kernel_is_normalised_and_blind_to_the_order_of_nodes(name: str) -> None:
    graphs = rings_with_tails(24, seed=0)
    kernel = one_setting(name)
    similarity = values(kernel, graphs, graphs)
    np.testing.assert_allclose(np.diag(similarity), 1)
    np.testing.assert_allclose(similarity, similarity.T, atol=1e-9)
    assert np.linalg.eigvalsh(similarity).min() > -1e-6
    shuffled = kernel.describe(relabel(graphs, 1)[0], kernel.settings[0])
    np.testing.assert_allclose(kernel.compare(shuffled, next(one_setting(name).fit(graphs))), similarity, atol=1e-9)


@pytest.mark.parametrize("task", ["rings", "alcohols"])
@each_rival
def test_each_learns_to_tell_three_rings_apart_and_alcohols_from_alkanes(rival: Rival, task: str) -> None:
    if task == "rings":
        rings = (3, 4, 5) if rival is WL else (3, 4)
        learned, validation, test = (rings_with_tails(n, seed=s, rings=rings) for s, n in enumerate((60, 20, 40)))
    else:
        graphs = alcohols_of_all_sizes()
        learned, validation, test = (graphs.select(part) for part in ("train", "validation", "test"))
    system = rival.build(0).fit(learned, validation)
    assert np.mean(system.predict(test) == test.target) > 0.9
    assert system.parameters is None


def test_the_validation_part_chooses_rounds_and_penalty_and_may_count_its_classes_in_another_order() -> None:
    learned, validation = (rings_with_tails(60, seed=seed) for seed in range(2))
    swapped = validation.with_names(classes=validation.class_names[::-1])
    for judges, penalties in ((validation, (100.0, 1e-9)), (swapped, (1e-9, 100.0))):
        machine = KernelMachine[int, Any](SubtreeKernel(rounds=(0, 2)), penalties=penalties).fit(learned, judges)
        assert (machine.setting, machine.machine.C) == (2, 100)  # labels alone, without a round, are all the same


def test_the_vocabulary_is_that_of_the_training_part_and_unknown_words_have_no_place_in_it() -> None:
    learned, others = rings_with_tails(10, seed=0), rings_with_tails(10, seed=1, rings=(3, 7))
    kernel = SubtreeKernel(rounds=(2,))
    values(kernel, learned, others)
    expected = np.unique(np.concatenate(word_rounds(labelled(learned), 2)))
    assert kernel.vocabulary.words.tolist() == expected.tolist()
    assert not set(np.concatenate(word_rounds(labelled(others), 2)).tolist()) <= set(expected.tolist())
    vocabulary = Vocabulary(np.array([3, 7], np.uint64))
    assert vocabulary.positions(np.array([7, 5, 3, 9], np.uint64)).tolist() == [1, -1, 0, -1]
    assert Vocabulary(np.zeros(0, np.uint64)).positions(np.array([7], np.uint64)).tolist() == [-1]


@each_name
def test_validation_and_test_graphs_leave_the_kernel_as_it_was(name: str) -> None:
    learned, test = rings_with_tails(20, seed=0), rings_with_tails(10, seed=1)
    judges = (rings_with_tails(6, seed=2, rings=rings) for rings in ((3, 4), (4, 9)))
    systems = [KernelMachine[Any, Any](one_setting(name), penalties=(1.0,)).fit(learned, each) for each in judges]
    systems[1].predict(rings_with_tails(10, seed=3, rings=(5, 6)))
    one, other = (s.kernel.compare(s.kernel.describe(test, s.setting), s.learned) for s in systems)
    np.testing.assert_array_equal(one, other)


@each_name
def test_a_graph_is_judged_alike_alone_and_among_others_and_by_the_same_seed(name: str) -> None:
    learned, test = rings_with_tails(20, seed=0), rings_with_tails(6, seed=1)
    kernel = one_setting(name)
    together = values(kernel, learned, test)
    np.testing.assert_array_equal(values(one_setting(name), learned, test), together)
    other_seed = values(one_setting(name, seed=1), learned, test)
    assert (name == "WL kernel") == bool(np.array_equal(other_seed, together))
    fitted = next(one_setting(name).fit(learned))
    alone = [kernel.compare(kernel.describe(test[[g]], kernel.settings[0]), fitted)[0] for g in range(len(test))]
    np.testing.assert_allclose(np.stack(alone), together, atol=1e-9)


@each_name
def test_labels_are_matched_by_name_and_unknown_ones_do_no_harm(name: str) -> None:
    trees = random_trees(30, nodes=8, seed=0, target=np.arange(30) % 2, class_names=("no", "yes"))
    system = KernelMachine[Any, Any](one_setting(name)).fit(trees[:20], trees[20:])
    renamed = trees.with_names(nodes=("O", "Xe", "N", "C"), classes=("yes", "no"))
    assert system.predict(renamed).tolist() == system.predict(trees).tolist()
    strange = one_graph(3, [(0, 1), (1, 2)], node_label=["Xe", "C", "Xe"])
    assert system.predict(strange)[0] in (0, 1)
    assert system.predict(trees[:0]).shape == (0,)


def test_what_cannot_be_learned_is_refused() -> None:
    graphs = rings_with_tails(10, seed=0)
    with pytest.raises(DataError, match="validation part is empty"):
        WL.build(0).fit(graphs, graphs[:0])
    with pytest.raises(DataError, match="100000 graphs takes 75 GiB; at most 4 GiB"):
        check_memory(100_000)


@pytest.mark.parametrize(
    ("similarity", "between", "one", "other"),
    [  # a.a = 25, a.b = 8, b.b = 4; |a| = 5, |b| = 2, and by lengths a is not like b at all; counts (2, 1) and (1, 2)
        ("product", 2 * 25 + (2 * 2 + 1) * 8 + 2 * 4, 4 * 25 + 2 * 2 * 8 + 4, 25 + 2 * 2 * 8 + 4 * 4),
        ("length", 2 * 5 + 2 * 2, 4 * 5 + 2, 5 + 4 * 2),
    ],
)
def test_kernels_by_products_and_by_lengths_of_embeddings_are_those_computed_by_hand(
    similarity: str, between: int, one: int, other: int
) -> None:
    """Two graphs, ``aab`` and ``abb`` by their labels, whose words are embedded as a = (3, 4) and b = (0, 2)."""
    graphs = Graphs.concat([one_graph(3, [], node_label="aab"), one_graph(3, [], node_label="abb")])
    kernel = EmbeddedKernel(texts_of_graphs, seed=0, window=1, rounds=(0,))
    words = word_rounds(labelled(graphs), 0)
    kernel.vocabulary = Vocabulary.of(words)
    a, b = kernel.vocabulary.positions(words[0][1:3])
    kernel.embedding = np.zeros((2, 2))
    kernel.embedding[[a, b]] = [[3, 4], [0, 2]]
    first, second = (kernel.describe(graphs[[g]], WordCounts(0, similarity)) for g in range(2))
    assert kernel.compare(first, second)[0, 0] == pytest.approx(between / np.sqrt(one * other))


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
    words, alone = np.array([4, 2, 2, 0, 1, 3]), Graphs.from_edges(node_counts=[6], edges=np.zeros((0, 2), np.int64))
    one, other = (list(texts_of_graphs([text], alone, np.random.default_rng(0))) for text in (words, words[::-1]))
    assert one == other  # whatever the numbers of the nodes


def test_the_radial_context_joins_neighbours_whose_rounds_differ_by_at_most_one() -> None:
    graphs = one_graph(3, [(0, 1), (1, 2), (2, 2)])
    pairs = [frozenset(map(int, pair)) for pair in adjacent_words(text(graphs, 2), graphs, np.random.default_rng(0))]
    context: set[frozenset[int]] = {
        frozenset((10 * depth + node, 10 * other + neighbour))
        for node, neighbour in ((0, 1), (1, 0), (1, 2), (2, 1))
        for depth in range(3)
        for other in range(max(depth - 1, 0), min(depth + 1, 2) + 1)
    }
    assert Counter(pairs) == Counter(context)


def test_graphs_without_edges_leave_every_word_at_zero_and_too_many_words_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = EmbeddedKernel(adjacent_words, seed=0, window=1)
    description = next(kernel.fit(Graphs.from_edges(node_counts=[1, 2], edges=np.zeros((0, 2), np.int64))))
    assert not kernel.embedding.any()
    assert kernel.compare(description, description).tolist() == [[0, 0], [0, 0]]
    monkeypatch.setattr("lab.rivals.kernels.embedded.MOST_WORDS", 3)
    with pytest.raises(DataError, match=r"\d+ different subtrees; at most 3 can be embedded"):
        next(EmbeddedKernel(adjacent_words, seed=0, window=1).fit(rings_with_tails(4, seed=0)))


def laplacian_values(graphs: Graphs, level: int, smoothing: float) -> Floats:
    """Kernel values with every node in the sample."""
    kernel = LaplacianKernel(seed=0, levels=(level,), smoothing=(smoothing,), sample=graphs.n_nodes)
    description = next(kernel.fit(graphs))
    np.testing.assert_allclose(kernel.describe(graphs, Scale(level, smoothing)).inverse, description.inverse)
    return kernel.compare(description, description)


def flg(laplacians: list[Floats], features: list[Floats], smoothing: float) -> Floats:
    """The kernel of whole graphs, word by word."""

    def s(laplacian: Floats, u: Floats) -> Floats:
        inverse: Floats = np.linalg.inv(laplacian + smoothing * np.eye(len(laplacian)))
        spread: Floats = u.T @ inverse @ u + smoothing * np.eye(u.shape[1])
        return spread

    def k(one: Floats, other: Floats) -> float:
        middle = np.linalg.inv(np.linalg.inv(one) / 2 + np.linalg.inv(other) / 2)
        own = np.linalg.det(one) * np.linalg.det(other)
        return float(np.linalg.det(middle) ** 0.5 / own**0.25)

    spreads = [s(laplacian, u) for laplacian, u in zip(laplacians, features, strict=True)]
    return np.array([[k(one, other) for other in spreads] for one in spreads])


def by_definition(graphs: Graphs, levels: int, smoothing: float) -> Floats:
    """Without samples, flat arrays or batches: one dense adjacency matrix for all."""
    adjacency = np.zeros((graphs.n_nodes,) * 2)
    adjacency[graphs.entry_node, graphs.indices] = 1
    np.fill_diagonal(adjacency, 0)

    def laplacian(nodes: Ints) -> Floats:
        inside = adjacency[np.ix_(nodes, nodes)]
        matrix: Floats = np.diag(inside.sum(axis=1)) - inside
        return matrix

    features = np.eye(3)[sure(graphs.node_label)]
    reach = np.eye(graphs.n_nodes)
    for _ in range(levels):
        reach = np.minimum(reach + reach @ adjacency, 1)
        around = [np.flatnonzero(row) for row in reach]
        kernel = flg([laplacian(nodes) for nodes in around], [features[nodes] for nodes in around], smoothing)
        features = kernel @ project(kernel)
    whole = [np.arange(first, last) for first, last in zip(graphs.node_ptr, graphs.node_ptr[1:], strict=False)]
    return flg([laplacian(nodes) for nodes in whole], [features[nodes] for nodes in whole], smoothing)


labelled_graphs = random_graphs(node_labels=True, edge_labels=False, weights=False, attributes=False)


@settings(max_examples=30)
@given(labelled_graphs, st.integers(0, 3))
def test_values_are_those_of_the_definition(graphs: Graphs, level: int) -> None:
    np.testing.assert_allclose(
        laplacian_values(graphs, level, 0.5), by_definition(graphs, level, 0.5), rtol=1e-4, atol=1e-6
    )


def test_empty_graphs_and_small_portions_change_nothing_and_hubs_that_take_too_long_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graphs = Graphs.from_edges(node_counts=[0, 2, 2], edges=np.array([[0, 1]]))
    assert np.isfinite(laplacian_values(graphs, 1, 0.1)).all()
    trees = random_trees(9, nodes=7, seed=0)
    expected = laplacian_values(trees, 1, 0.1)
    monkeypatch.setattr("lab.rivals.kernels.laplacian.PAIRS_AT_ONCE", 5)
    np.testing.assert_allclose(laplacian_values(trees, 1, 0.1), expected)
    star = one_graph(40_001, [(0, leaf) for leaf in range(1, 40_001)])
    with pytest.raises(DataError, match=r"up to .* multiplications on 1 graphs with up to 40001 nodes within 3 edges"):
        next(LaplacianKernel(seed=0).fit(star))
