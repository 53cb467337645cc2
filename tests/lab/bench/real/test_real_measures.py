"""Measures of explanations without a truth: hand-made structures with known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.encode.encoder import Encoder
from egocnn.explain import explain
from egocnn.model import Model
from lab.bench.real import measures
from tests.lab.bench.real.hand_made import structure

# ── predictions ───────────────────────────────────────────────────────────────────────────────────


def test_classes_are_scored_by_accuracy_and_by_the_order_of_their_probabilities() -> None:
    likely = np.array([0.1, 0.6, 0.4, 0.9])
    scores = measures.scores_of_predictions(np.stack([1 - likely, likely], axis=1), np.array([0, 0, 1, 1]))
    assert scores == {"roc_auc": 0.75, "accuracy": 0.5}


def test_values_are_scored_by_the_root_of_their_mean_square_error() -> None:
    scores = measures.scores_of_predictions(np.array([1.0, 2.0]), np.array([4.0, 6.0]))
    assert scores["rmse"] == pytest.approx(np.sqrt((9 + 16) / 2))
    assert scores["r2"] == pytest.approx(1 - 25 / 2)


# ── structures ────────────────────────────────────────────────────────────────────────────────────


def test_empty_structures_count_for_the_size_but_not_among_those_that_have_one() -> None:
    found = [structure([1.0] * 4), structure([1.0] * 4), structure([1.0] * 4, [1]), structure([1.0] * 4, [0, 1])]
    scores = measures.size_scores(found)
    assert scores["share_of_nodes"] == pytest.approx(0.125)
    assert scores["share_of_nodes_where_any"] == pytest.approx(0.375)
    assert scores["empty"] == 0.5


def test_a_structure_with_a_gap_in_it_is_not_connected_and_an_empty_one_is_not_asked() -> None:
    found = [
        structure([1.0] * 4, [0, 1]),
        structure([1.0] * 4, [0, 2]),
        structure([1.0] * 4, [1, 2, 3]),
        structure([1]),
    ]
    assert measures.size_scores(found)["connected"] == pytest.approx(2 / 3)


def test_where_every_structure_is_empty_there_is_nothing_to_be_connected() -> None:
    scores = measures.size_scores([structure([1.0, 1.0])])
    assert scores == {"share_of_nodes": 0.0, "share_of_nodes_where_any": None, "empty": 1.0, "connected": None}


def test_a_node_speaks_beyond_a_twentieth_of_the_largest_contribution_in_its_own_graph() -> None:
    found = [structure([100.0, 4.0, -6.0, 0.0]), structure([-0.1, 0.05, 0.004, 0.006])]
    assert measures.sign_shares(found) == {"nodes_for": 3 / 8, "nodes_against": 2 / 8}


def test_nodes_that_contribute_nothing_still_count_as_nodes() -> None:
    assert measures.sign_shares([structure([0.0, 0.0]), structure([1.0, -1.0])]) == {
        "nodes_for": 0.25,
        "nodes_against": 0.25,
    }


def test_the_gap_is_the_largest_of_any_graph_whatever_its_sign() -> None:
    found = [
        structure([1.0, 2.0], base=1.0),
        structure([1.0], base=0.0, output=0.5),
        structure([1.0], base=0.0, output=1.25),
    ]
    assert measures.gap_scores(found) == {"gap": 0.5, "gap_of_range": pytest.approx(0.5 / 3.5)}


# ── evidence ──────────────────────────────────────────────────────────────────────────────────────


def test_evidence_by_presence_is_the_median_over_structures_that_hold_something() -> None:
    found = [
        structure([1.0], [0], evidence=(0.9, 0.5)),
        structure([1.0], [0], evidence=(0.7, 0.6)),
        structure([1.0], [0], evidence=(0.8, 0.1)),
        structure([1.0], [0], evidence=(None, None)),
        structure([1.0], [], evidence=(0.0, 0.0)),
    ]
    assert measures.evidence_by_presence(found) == {"kept": 0.8, "lost": 0.5}


def test_evidence_by_cutting_asks_about_the_part_alone_and_about_the_rest() -> None:
    graphs = Graphs.from_edges(node_counts=[4, 2], edges=np.array([[0, 1], [1, 2], [2, 3], [4, 5]]))
    asked: list[list[int]] = []

    def square_of_size(cut: Graphs) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        asked.append(cut.node_counts.tolist())
        return 1.0 + cut.node_counts.astype(np.float64) ** 2

    found = [structure([1.0] * 4, [3], base=1.0, output=17.0), structure([1.0] * 2, [], base=1.0, output=5.0)]
    scores = measures.evidence_by_cutting(graphs, found, square_of_size)
    assert asked == [[1, 0], [3, 2]]
    assert scores == {"kept_cut": 1 / 16, "lost_cut": (16 - 9) / 16}


def test_a_structure_without_evidence_has_no_share_of_it() -> None:
    graphs = Graphs.from_edges(node_counts=[2], edges=np.array([[0, 1]]))
    found = [structure([1.0, -1.0], [0], base=2.0, output=2.0)]
    scores = measures.evidence_by_cutting(graphs, found, lambda cut: cut.node_counts.astype(np.float64))
    assert scores == {"kept_cut": None, "lost_cut": None}


@pytest.mark.parametrize("task", ["class", "value"])
def test_whole_graphs_give_the_output_that_was_explained_and_what_is_left_may_be_empty(task: str) -> None:
    graphs = read("compounds:alcohols:sizes=3-5,per_size=2")
    if task == "value":
        graphs = graphs.replace(target=np.linspace(-3, 9, len(graphs)), class_names=())
    config = ModelConfig(width=8, hidden=8, depth=2)
    torch.manual_seed(0)
    model = replace(Model.build(config, Encoder.fit(graphs, config)), temperature=2.5)
    classes = ["alkane", "alcohol"] * (len(graphs) // 2) if task == "class" else None
    found = explain(model, graphs, classes=classes, fidelity=False, device="cpu")
    outputs = measures.explained_outputs(model, graphs, found, device="cpu")
    np.testing.assert_allclose(outputs, [one.output for one in found], rtol=1e-4, atol=1e-5)
    every = [replace(one, critical_nodes=np.arange(one.graph.n_nodes)) for one in found]
    scores = measures.evidence_by_cutting(
        graphs, every, lambda cut: measures.explained_outputs(model, cut, every, device="cpu")
    )
    assert scores["kept_cut"] == pytest.approx(1, abs=1e-3)
    assert scores["lost_cut"] is not None
    assert np.isfinite(scores["lost_cut"])


# ── two trainings ─────────────────────────────────────────────────────────────────────────────────


def test_only_the_order_of_contributions_counts_for_the_rank_correlation() -> None:
    one = np.array([0.1, 0.2, 5.0, 7.0])
    assert measures.spearman(one, np.exp(one)) == pytest.approx(1)
    assert measures.spearman(one, -one) == pytest.approx(-1)
    assert measures.spearman(one, np.array([1.0, 0.0, 2.0, 3.0])) == pytest.approx(0.8)


def test_equal_contributions_share_their_rank() -> None:
    ranked = np.array([1.5, 1.5, 3.0]), np.array([1.0, 2.0, 3.0])
    expected = np.corrcoef(*ranked)[0, 1]
    assert measures.spearman(np.array([2.0, 2.0, 9.0]), np.array([-1.0, 0.0, 1.0])) == pytest.approx(expected)


def test_two_trainings_agree_by_the_mean_over_graphs_in_which_both_have_an_order() -> None:
    one = [structure([1.0, 2.0, 3.0]), structure([1.0, 2.0]), structure([1.0, 1.0])]
    other = [structure([1.0, 2.0, 3.0]), structure([2.0, 1.0]), structure([1.0, 2.0])]
    assert measures.agreement(one, other) == pytest.approx(0)
    assert measures.agreement(one[2:], other[2:]) is None


def test_a_mean_over_trainings_leaves_out_those_without_the_number() -> None:
    assert measures.mean_of(
        [{"kept": 1.0, "lost": None}, {"kept": 2.0, "lost": None}, {"kept": None, "lost": None}]
    ) == {
        "kept": 1.5,
        "lost": None,
    }
