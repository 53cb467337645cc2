"""Scores of structures and contributions, the controls beside them, and the draw of the two halves."""

import json
from collections import Counter

import numpy as np
import pytest
from scipy.stats import kendalltau

from egocnn.data.graphs import Graphs
from lab.record import ROOT
from lab.truths import Truth
from lab.truths.ours import Structure
from lab.truths.suite.catalogue import CATALOGUE
from lab.truths.suite.halves import DRAW_SEED, draw_halves
from lab.truths.suite.scoring import measures
from lab.truths.suite.scoring.ceilings import ceiling
from lab.truths.suite.scoring.controls import by_label, labels_of
from lab.truths.suite.scoring.part import ExplainedPart
from lab.truths.suite.task import NAMED

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
    scores = measures.structure_scores([found([2, 1, 0, 0], [0, 1]), found([0, 0, 0, 0], [])], part)
    ones = ("connected", "structure_jaccard", "nothing_chosen", "nothing_stands_out")
    assert scores == {"share_of_nodes": 0.5, **dict.fromkeys(ones, 1.0)}
    worse = measures.structure_scores([found([2, 0, 0, 1], [0, 3]), found([0, 0, 0, 9], [3])], part)
    assert worse["connected"] == worse["nothing_chosen"] == worse["nothing_stands_out"] == 0.0
    assert worse["structure_jaccard"] == pytest.approx(1 / 3)
    assert measures.best_jaccard(np.array([0, 1, 2]), (np.array([0]), np.array([0, 1]))) == pytest.approx(2 / 3)
    assert measures.is_connected(part.graphs[0], np.array([1, 2, 3]))
    assert not measures.is_connected(part.graphs[0], np.array([0, 2]))


def test_rankings_are_scored_where_the_truth_is_known_and_predictions_as_classes_or_values(
    part: ExplainedPart, valued: ExplainedPart
) -> None:
    scores = measures.ranking_scores([found([2, 1, 0, 0], []), found([5, 0, 0, 0], [])], part)
    assert scores["node_auc"] == scores["node_jaccard"] == 1.0
    assert "pearson" not in scores
    assert measures.prediction_scores(np.array([[0.2, 0.8], [0.4, 0.6]]), part) == {"accuracy": 0.5}
    target = valued.graphs.target
    assert target is not None
    assert measures.prediction_scores(target, valued) == {"r2": 1.0, "rmse": 0.0}


def test_where_nodes_add_the_same_no_order_without_ties_reaches_a_tau_of_one(part: ExplainedPart) -> None:
    graphs = part.graphs.replace(target=np.array([3.0, 6.0]), class_names=())
    tied, distinct = (Truth(values=np.array(own)) for own in ([0.0, 0.0, 0.0, 3.0], [0.0, 1.0, 2.0, 3.0]))
    assert ceiling(ExplainedPart(graphs, (distinct, distinct))) == 1
    # three of six pairs differ, and all three stand in the right order: 3 / sqrt(6 * 3)
    assert ceiling(ExplainedPart(graphs, (tied, tied))) == pytest.approx(3 / 18**0.5)
    assert ceiling(part) is None


def test_contributions_that_are_right_up_to_scale_correlate_fully(valued: ExplainedPart) -> None:
    right = [Structure(3 * t.values + 1, np.zeros(0), NO_NODES) for t in valued.truths[:1] if t.values is not None]
    assert measures.ranking_scores(right, valued.only([0])) == {
        "pearson": pytest.approx(1.0),
        "kendall": pytest.approx(1.0),
    }
    assert measures.ranking_scores([found([1, 2, 3, 4], [])], valued.only([1])) == {}  # whose nodes all add the same


def test_kendall_is_that_of_scipy_nodes_stand_out_beyond_quartiles_and_the_seed_draws_the_halves() -> None:
    random = np.random.default_rng(0)
    for _ in range(5):
        one, other = random.integers(0, 4, 12).astype(float), random.integers(0, 4, 12).astype(float)
        assert measures.kendall(one, other) == pytest.approx(float(kendalltau(one, other).statistic))
    assert measures.kendall(np.ones(3), np.arange(3.0)) == measures.pearson(np.ones(3), np.arange(3.0)) == 0.0
    assert measures.stands_out(np.array([0.0, 0.1, 0.0, 0.1, 0.05, 3.0]))
    assert measures.stands_out(np.array([0.0, 0.1, 0.0, 0.1, 0.05, -3.0]))
    assert not measures.stands_out(np.arange(8.0))
    assert not measures.stands_out(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0 + 1e-9]))
    written = json.loads((ROOT / "results" / "truths_halves.json").read_text(encoding="utf-8"))
    assert written["seed"] == DRAW_SEED
    assert {half: written[half] for half in ("choosing", "reporting", "named")} == draw_halves()


def test_the_trivial_rule_is_the_label_that_finds_most_or_what_each_label_adds(
    part: ExplainedPart, valued: ExplainedPart
) -> None:
    first, second = by_label(part, part.graphs)
    assert first.node_importance.tolist() == [1, 1, 0, 0]
    assert second.node_importance.tolist() == [0, 0, 0, 0]
    adds = by_label(valued, valued.graphs)[0].node_importance
    assert adds[0] == adds[1] > 0 > adds[2] == adds[3]
    bare = part.graphs.replace(node_label=None, node_label_names=())
    assert labels_of(bare)[0] == ["1", "2", "2", "1"]  # numbers of neighbours stand in for labels


def test_every_task_stands_in_one_half_families_are_split_evenly_and_named_tasks_choose_nothing() -> None:
    halves = draw_halves()
    one, other = (Counter(CATALOGUE[name].family for name in halves[half]) for half in ("choosing", "reporting"))
    assert one.total() + other.total() >= 26
    assert abs(one.total() - other.total()) <= 1
    assert all(abs(one[family] - other[family]) <= 1 for family in one | other)
    assert draw_halves(seed=1) != draw_halves(seed=2)
    assert sorted(name for names in halves.values() for name in names) == sorted(CATALOGUE)
    assert all((CATALOGUE[name].family == NAMED) == (half == "named") for half, own in halves.items() for name in own)
