"""Scores of structures, contributions and of graphs without a structure, and the controls beside them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from egocnn.data.graphs import Graphs
from lab.truths import Truth
from lab.truths.ours import Structure
from lab.truths.suite.scoring.controls import by_label, labels_of
from lab.truths.suite.scoring.measures import (
    best_jaccard,
    is_connected,
    kendall,
    pearson,
    prediction_scores,
    ranking_scores,
    stands_out,
    structure_scores,
)
from lab.truths.suite.scoring.part import ExplainedPart

EDGES = np.array([[0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7]])
NODES, NO_NODES = np.array([0, 1]), np.zeros(0, np.int64)


@pytest.fixture
def part() -> ExplainedPart:
    """Two paths of four nodes: A A B B, whose truth are the two A, and B B B B, in which there is nothing."""
    graphs = Graphs.from_edges(
        node_counts=[4, 4],
        edges=EDGES,
        node_label=np.array([0, 0, 1, 1, 1, 1, 1, 1]),
        node_label_names=("A", "B"),
        target=np.array([1, 0]),
        class_names=("no", "yes"),
        part=np.array([2, 2]),
    )
    return ExplainedPart(graphs, (Truth((NODES,), np.array([True, False, False])), Truth(nothing=True)))


@pytest.fixture
def valued() -> ExplainedPart:
    """The same graphs, in which an A adds 2 and a B takes 1 away."""
    graphs = Graphs.from_edges(
        node_counts=[4, 4, 2, 1],
        edges=np.concatenate([EDGES, [[8, 9]]]),
        node_label=np.array([0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0]),
        node_label_names=("A", "B"),
        target=np.array([2.0, -4.0, 1.0, 2.0]),
        part=np.array([0, 0, 0, 0]),
    )
    values = np.where(graphs.node_label == 0, 2.0, -1.0)
    return ExplainedPart(graphs, tuple(Truth(values=own) for own in np.split(values, [4, 8, 10])))


def found(nodes: list[float], critical: list[int]) -> Structure:
    return Structure(np.array(nodes), np.zeros(3), np.array(critical, np.int64))


def test_structures_are_small_connected_like_the_truth_and_empty_where_there_is_nothing(part: ExplainedPart) -> None:
    scores = structure_scores([found([2, 1, 0, 0], [0, 1]), found([0, 0, 0, 0], [])], part)
    assert scores == {
        "share_of_nodes": 0.5,
        "connected": 1.0,
        "structure_jaccard": 1.0,
        "nothing_chosen": 1.0,
        "nothing_stands_out": 1.0,
    }
    worse = structure_scores([found([2, 0, 0, 1], [0, 3]), found([0, 0, 0, 9], [3])], part)
    assert worse["connected"] == worse["nothing_chosen"] == worse["nothing_stands_out"] == 0.0
    assert worse["structure_jaccard"] == pytest.approx(1 / 3)


def test_rankings_are_scored_where_the_truth_is_known_alone(part: ExplainedPart) -> None:
    scores = ranking_scores([found([2, 1, 0, 0], []), found([5, 0, 0, 0], [])], part)
    assert scores["node_auc"] == scores["node_jaccard"] == 1.0
    assert "pearson" not in scores


def test_contributions_that_are_right_up_to_scale_correlate_fully(valued: ExplainedPart) -> None:
    right = [Structure(3 * t.values + 1, np.zeros(0), NO_NODES) for t in valued.truths[:1] if t.values is not None]
    first = valued.only([0])
    assert ranking_scores(right, first) == {"pearson": pytest.approx(1.0), "kendall": pytest.approx(1.0)}


def test_graphs_whose_nodes_all_add_the_same_have_no_order_to_find(valued: ExplainedPart) -> None:
    second = valued.only([1])
    assert ranking_scores([found([1, 2, 3, 4], [])], second) == {}


def test_kendall_is_that_of_scipy_and_equal_importances_count_nothing() -> None:
    random = np.random.default_rng(0)
    for _ in range(5):
        one, other = random.integers(0, 4, 12).astype(float), random.integers(0, 4, 12).astype(float)
        assert kendall(one, other) == pytest.approx(float(kendalltau(one, other).statistic))
    assert kendall(np.ones(3), np.arange(3.0)) == pearson(np.ones(3), np.arange(3.0)) == 0.0


def test_a_node_stands_out_beyond_the_quartiles_and_rounding_does_not() -> None:
    assert stands_out(np.array([0.0, 0.1, 0.0, 0.1, 0.05, 3.0]))
    assert stands_out(np.array([0.0, 0.1, 0.0, 0.1, 0.05, -3.0]))
    assert not stands_out(np.arange(8.0))
    assert not stands_out(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0 + 1e-9]))


def test_nodes_are_connected_by_edges_among_themselves(part: ExplainedPart) -> None:
    graph = part.graphs[0]
    assert is_connected(graph, np.array([1, 2, 3]))
    assert not is_connected(graph, np.array([0, 2]))
    assert best_jaccard(np.array([0, 1, 2]), (np.array([0]), np.array([0, 1]))) == pytest.approx(2 / 3)


def test_predictions_are_scored_as_classes_or_as_values(part: ExplainedPart, valued: ExplainedPart) -> None:
    assert prediction_scores(np.array([[0.2, 0.8], [0.4, 0.6]]), part) == {"accuracy": 0.5}
    target = valued.graphs.target
    assert target is not None
    assert prediction_scores(target, valued) == {"r2": 1.0, "rmse": 0.0}


def test_the_trivial_rule_is_the_label_that_finds_most(part: ExplainedPart) -> None:
    first, second = by_label(part, part.graphs)
    assert first.node_importance.tolist() == [1, 1, 0, 0]
    assert second.node_importance.tolist() == [0, 0, 0, 0]


def test_the_trivial_rule_of_a_value_is_what_each_label_adds(valued: ExplainedPart) -> None:
    first = by_label(valued, valued.graphs)[0].node_importance
    assert first[0] == first[1] > 0 > first[2] == first[3]


def test_without_labels_numbers_of_neighbours_stand_in_for_them(part: ExplainedPart) -> None:
    bare = part.graphs.replace(node_label=None, node_label_names=())
    assert labels_of(bare)[0] == ["1", "2", "2", "1"]
