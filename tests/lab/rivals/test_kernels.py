"""Graph kernels with support vector machines: values, tasks learned, and nothing learned from the wrong part."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.read import read
from egocnn.errors import DataError
from lab.rivals.kernels import KERNELS, WL, KernelMachine
from lab.rivals.kernels.embedded import EmbeddedKernel, adjacent_words, texts_of_graphs
from lab.rivals.kernels.laplacian import LaplacianKernel
from lab.rivals.kernels.machine import Kernel, check_memory
from lab.rivals.kernels.subtree import SubtreeKernel
from lab.rivals.kernels.words import Vocabulary, labelled, word_rounds
from lab.rivals.rival import Rival
from tests.lab.rivals.shapes import rings_with_tails
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs, random_trees
from tests.support.tiny import oxygens

ALCOHOLS = "compounds:alcohols:sizes=3-10,per_size=8,hold_out=molecules"
FEW_WORDS = 200_000
"""a tenth of what is read otherwise: enough for these tasks, with any of five seeds"""


@pytest.fixture(autouse=True)
def short_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gensim.models", reason="gensim is not installed")
    monkeypatch.setattr("lab.rivals.kernels.embedded.WORDS_TO_READ", FEW_WORDS)


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


# ── values ────────────────────────────────────────────────────────────────────────────────────────


def subtrees(graph: Graph, rounds: int) -> Counter[Any]:
    """Words as nested tuples, by the definition."""
    neighbours: list[list[int]] = [[] for _ in range(graph.n_nodes)]
    for u, v in graph.edges.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    assert graph.node_label is not None
    words: list[Any] = list(graph.node_label)
    counted: Counter[Any] = Counter((0, word) for word in words)
    for step in range(1, rounds + 1):
        words = [(words[n], tuple(sorted((words[m] for m in neighbours[n]), key=repr))) for n in range(len(words))]
        counted.update((step, word) for word in words)
    return counted


@settings(deadline=None, max_examples=40)
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
    again = rings_with_tails(24, seed=0)
    random = np.random.default_rng(1)
    moved = np.concatenate(
        [first + random.permutation(n) for first, n in zip(again.node_ptr, again.node_counts, strict=False)]
    )
    shuffled = Graphs.from_edges(node_counts=again.node_counts, edges=moved[again.edges])
    shuffled_values = kernel.compare(kernel.describe(shuffled, kernel.settings[0]), next(one_setting(name).fit(graphs)))
    np.testing.assert_allclose(shuffled_values, similarity, atol=1e-9)


# ── learning ──────────────────────────────────────────────────────────────────────────────────────


def accuracy(system: Any, graphs: Graphs) -> float:
    assert graphs.target is not None
    return float(np.mean(system.predict(graphs) == graphs.target))


@each_rival
def test_each_learns_to_tell_rings_of_three_from_rings_of_four(rival: Rival) -> None:
    learned, validation, test = (rings_with_tails(n, seed=seed) for seed, n in enumerate((60, 20, 40)))
    assert accuracy(rival.build(0).fit(learned, validation), test) > 0.9


@each_rival
def test_each_learns_to_tell_alcohols_from_alkanes(rival: Rival) -> None:
    graphs = read(ALCOHOLS)
    system = rival.build(0).fit(graphs.select("train"), graphs.select("validation"))
    assert accuracy(system, graphs.select("test")) > 0.9
    assert system.parameters is None


def test_more_classes_than_two_are_told_apart() -> None:
    learned, validation, test = (rings_with_tails(60, seed=seed, rings=(3, 4, 5)) for seed in range(3))
    assert accuracy(WL.build(0).fit(learned, validation), test) > 0.9


def test_the_validation_part_chooses_rounds_and_penalty_and_may_count_its_classes_in_another_order() -> None:
    learned, validation = (rings_with_tails(60, seed=seed) for seed in range(2))
    swapped = validation.with_names(classes=validation.class_names[::-1])
    for judges, penalties in ((validation, (100.0, 1e-9)), (swapped, (1e-9, 100.0))):
        machine = KernelMachine[int, Any](SubtreeKernel(rounds=(0, 2)), penalties=penalties).fit(learned, judges)
        assert (machine.setting, machine.machine.C) == (2, 100)  # labels alone, without a round, are all the same


# ── what belongs to which part ────────────────────────────────────────────────────────────────────


def test_the_vocabulary_is_that_of_the_training_part() -> None:
    learned, others = rings_with_tails(10, seed=0), rings_with_tails(10, seed=1, rings=(3, 7))
    kernel = SubtreeKernel(rounds=(2,))
    values(kernel, learned, others)
    expected = np.unique(np.concatenate(word_rounds(labelled(learned), 2)))
    assert kernel.vocabulary.words.tolist() == expected.tolist()
    assert not set(np.concatenate(word_rounds(labelled(others), 2)).tolist()) <= set(expected.tolist())


@each_name
def test_validation_and_test_graphs_leave_the_kernel_as_it_was(name: str) -> None:
    learned, test = rings_with_tails(20, seed=0), rings_with_tails(10, seed=1)
    systems = [
        KernelMachine[Any, Any](one_setting(name), penalties=(1.0,)).fit(
            learned, rings_with_tails(6, seed=2, rings=rings)
        )
        for rings in ((3, 4), (4, 9))
    ]
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


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_word_has_no_place_in_a_vocabulary() -> None:
    vocabulary = Vocabulary(np.array([3, 7], np.uint64))
    assert vocabulary.positions(np.array([7, 5, 3, 9], np.uint64)).tolist() == [1, -1, 0, -1]
    assert Vocabulary(np.zeros(0, np.uint64)).positions(np.array([7], np.uint64)).tolist() == [-1]


def test_what_cannot_be_learned_is_refused() -> None:
    graphs = rings_with_tails(10, seed=0)
    with pytest.raises(DataError, match="have none"):
        WL.build(0).fit(oxygens(), oxygens())
    with pytest.raises(DataError, match="validation part is empty"):
        WL.build(0).fit(graphs, graphs[:0])
    with pytest.raises(DataError, match="no classes to choose"):
        WL.build(0).fit(graphs, graphs.replace(target=None))


def test_too_many_graphs_for_a_kernel_matrix_are_refused_before_any_work() -> None:
    with pytest.raises(DataError, match="100000 graphs takes 75 GiB; at most 4 GiB"):
        check_memory(100_000)
