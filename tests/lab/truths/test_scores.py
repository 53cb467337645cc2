"""TruthScores against known structures, each by hand, and the controls that need no model."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab import truths
from lab.families import FAMILIES, generate
from lab.truths import Importance, Outcomes, Truth, TruthScores, score_structures, unmatched_above_matched
from lab.truths.isomers import mirror
from tests.support.samples import molecules, one_graph


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float64)


def nodes(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def marks(text: str) -> np.ndarray:
    return np.array([letter == "1" for letter in text])


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=30))
def test_roc_auc_is_scikit_learns_and_makes_no_sense_where_all_or_none_are_critical(
    rows: list[tuple[int, bool]],
) -> None:
    importance, critical = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    found = truths.roc_auc(importance, critical)
    if critical.all() or not critical.any():
        assert found is None
    else:
        assert found == pytest.approx(roc_auc_score(critical, importance))


def test_the_best_alternative_counts_and_pooled_scores_compare_edges_of_different_graphs() -> None:
    importance = numbers(3, 2, 1, 0)
    assert truths.node_auc(importance, [nodes(3)]) == 0
    assert truths.node_auc(importance, [nodes(3), nodes(1), nodes(0, 3)]) == pytest.approx(2 / 3)
    assert truths.node_auc(importance, [nodes(), nodes(0, 1, 2, 3), nodes(3)]) == 0
    assert truths.node_auc(importance, [nodes(), nodes(0, 1, 2, 3)]) is None
    assert truths.node_auc(importance, []) is None
    with pytest.raises(DataError, match="node 4 of 4"):
        truths.node_auc(importance, [nodes(4)])
    found, known = [numbers(0.2, 0.1), numbers(0.9, 0.8)], [marks("10"), marks("10")]
    assert [truths.edge_auc(*pair) for pair in zip(found, known, strict=True)] == [1, 1]
    assert truths.pooled_auc(found, known) == 0.75  # 0.8 of the second graph, not critical, beats 0.2 of the first
    assert truths.pooled_auc([], []) is None
    importance = numbers(5, 4, 3, 2, 1)
    assert truths.precision_at_size(importance, [nodes(0, 2)]) == 0.5
    assert truths.jaccard_at_size(importance, [nodes(0, 2)]) == pytest.approx(1 / 3)
    assert truths.precision_at_size(importance, [nodes(0, 2), nodes(0, 1)]) == 1
    assert truths.precision_at_size(importance, [nodes(*range(5))]) is None


@given(st.lists(st.integers(0, 2), min_size=3, max_size=6), st.data())
def test_expected_scores_are_the_mean_over_all_ways_to_break_the_ties(values: list[int], data: st.DataObject) -> None:
    importance = np.array(values, float)
    size = data.draw(st.integers(1, len(values) - 1))
    known = set(data.draw(st.permutations(range(len(values))))[:size])
    orders = [sorted(order, key=lambda n: -values[n]) for order in permutations(range(len(values)))]
    hits = [len(known & set(order[:size])) for order in orders]
    alternative = nodes(*sorted(known))
    assert truths.precision_at_size(importance, [alternative]) == pytest.approx(np.mean(hits) / size)
    assert truths.jaccard_at_size(importance, [alternative]) == pytest.approx(
        np.mean([h / (2 * size - h) for h in hits])
    )


def test_fidelities_are_mean_losses_of_probability() -> None:
    outcomes = Outcomes(full=numbers(0.9, 0.8), removed=numbers(0.1, 0.6), kept=numbers(0.8, 0.9))
    assert truths.fidelity_plus(outcomes) == pytest.approx(0.5)
    assert truths.fidelity_minus(outcomes) == pytest.approx(0.0)
    assert truths.characterisation(0.5, 0.0) == pytest.approx(2 / 3)
    assert truths.characterisation(-0.1, 0.5) == truths.characterisation(0.5, 1.0) == 0
    assert truths.characterisation(0.7, 0.2, weight=0.25) == pytest.approx(
        1 / (0.25 / 0.7 + 0.75 / 0.8)
    )  # as PyG has it
    importance = numbers(0, 3, 1, 3, 2)
    for sparsity, chosen in ((0.6, [1, 3]), (0.99, [1]), (0, [0, 1, 2, 3, 4])):
        assert truths.most_important(importance, sparsity).tolist() == chosen
    with pytest.raises(DataError, match="sparsity"):
        truths.most_important(importance, 1.0)


def chain_with_methyls(*places: int, length: int = 7) -> Graphs:
    """A carbon chain 0 to length - 1 and a methyl on each of the places, numbered on."""
    edges = [(i, i + 1) for i in range(length - 1)] + [(place, length + n) for n, place in enumerate(places)]
    return one_graph(length + len(places), edges, names=["chain"])


def test_importances_that_are_their_own_mirror_image_correlate_perfectly() -> None:
    graph = chain_with_methyls(3, 1, 5)[0]
    random = np.random.default_rng(0).random(graph.n_nodes)
    assert truths.mirror_correlation(graph, random + random[mirror(graph)]) == pytest.approx(1)
    one_arm = numbers(0, 0, 0, 0, 0, 0, 1, 0, 0, 0)  # the end of one arm alone
    by_hand = (-0.1 * 0.1 * 10) / (0.1 * 0.9 * 10)
    assert truths.mirror_correlation(graph, one_arm) == pytest.approx(by_hand)
    assert truths.mirror_correlation(graph, np.ones(graph.n_nodes)) is None


def test_methyls_without_a_counterpart_must_stand_above_those_with_one() -> None:
    # methyls 7 (centre), 8 and 9 (matched, places 2 and 4), 10 (alone, next to the end 6)
    graph = chain_with_methyls(3, 2, 4, 5)[0]
    importance = np.zeros(graph.n_nodes)
    assert unmatched_above_matched(graph, importance) is False  # equal is not above
    importance[10] = 1
    assert unmatched_above_matched(graph, importance) is True
    importance[[10, 6]] = 0, 1  # the end of the arm is the methyl's twin
    assert unmatched_above_matched(graph, importance) is True
    for matched in (7, 8, 9):
        importance[matched] = 2
        assert unmatched_above_matched(graph, importance) is False
        importance[matched] = 0
    importance[0] = 2  # the end of the other arm is no methyl
    assert unmatched_above_matched(graph, importance) is True


def test_a_matched_methyl_next_to_the_end_may_be_read_as_either_twin() -> None:
    # 8 and 9 next to the ends 0 and 6; 10 is alone
    graph = chain_with_methyls(3, 1, 5, 2)[0]
    importance = np.zeros(graph.n_nodes)
    importance[[10, 9, 6]] = 2, 0, 3
    assert unmatched_above_matched(graph, importance) is True
    importance[9] = 3
    assert unmatched_above_matched(graph, importance) is False
    for nothing_to_compare in (chain_with_methyls(3, 1, 5)[0], chain_with_methyls(2)[0]):
        assert unmatched_above_matched(nothing_to_compare, np.zeros(nothing_to_compare.n_nodes)) is None


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (2, 0)], [(0, 1)], [(0, 1), (1, 2), (3, 4), (4, 5), (5, 3)]])
def test_what_is_no_chain_with_methyls_is_refused(edges: list[tuple[int, int]]) -> None:
    graph = one_graph(1 + max(v for _, v in edges), edges)[0]
    with pytest.raises(DataError):
        unmatched_above_matched(graph, np.zeros(graph.n_nodes))


@pytest.mark.parametrize("hydrogens", [False, True])
def test_the_generated_isomers_name_the_same_methyls(hydrogens: bool) -> None:
    graphs = generate(replace(FAMILIES["isomers"], sizes=(3, 5), per_size=20, hydrogens=hydrogens))
    truths = [Truth.of(graph) for graph in graphs]
    perfect = [Importance(np.asarray(g.node_truth, float), np.asarray(g.edge_truth, float)) for g in graphs]
    scores = score_structures(perfect, truths, graphs=graphs)
    assert scores.unmatched_above_matched == 1
    assert scores.mirror_correlation == pytest.approx(1)
    assert scores.node_auc == scores.node_precision == scores.node_jaccard == scores.edge_auc == 1
    wrong = [Importance(-one.node_importance, -one.edge_importance) for one in perfect]
    assert score_structures(wrong, truths, graphs=graphs).unmatched_above_matched == 0


def test_controls_by_degree_by_label_and_by_chance() -> None:
    ring = one_graph(4, [(0, 1), (1, 2), (3, 3)], node_label=["C", "O", "F", "C"])
    (degree,) = truths.degree_importances(ring)
    assert degree.node_importance.tolist() == [1, 2, 1, 1]
    assert degree.edge_importance.tolist() == [3, 3, 2]
    (label,) = truths.label_importances(ring, {"F", "N"})
    assert label.node_importance.tolist() == [0, 0, 1, 0]
    assert label.edge_importance.tolist() == [0, 1, 0]
    with pytest.raises(DataError, match="no node labels"):
        truths.label_importances(chain_with_methyls(2), {"C"})
    one, same, other = (truths.random_importances(molecules(), seed=seed) for seed in (1, 1, 2))
    for a, b, c in zip(one, same, other, strict=True):
        assert a.node_importance.tolist() == b.node_importance.tolist() != c.node_importance.tolist()
        assert a.edge_importance.tolist() == b.edge_importance.tolist()
    graph = one_graph(4, [(0, 1), (1, 2)])[0]  # nodes and edges stand in for each other
    assert truths.edges_from_nodes(graph, numbers(1, 3, 5, 7)).tolist() == [2, 4]
    assert truths.nodes_from_edges(graph, numbers(1, 3)).tolist() == [1, 2, 3, 0]


def test_chance_scores_one_half_with_one_alternative_and_averages_leave_out_what_does_not_apply() -> None:
    graphs = Graphs.from_edges(node_counts=[10] * 200, edges=np.zeros((0, 2), np.int64))
    one = truths.random_scores(graphs, [Truth((nodes(0, 1),))] * 200)
    assert one.runs == 10
    assert one.mean.node_auc == pytest.approx(0.5, abs=0.02)
    assert one.mean.node_precision == pytest.approx(0.2, abs=0.02)
    assert (one.least.node_auc or 1) < (one.mean.node_auc or 0) < (one.most.node_auc or 0)
    two = truths.random_scores(graphs, [Truth((nodes(0, 1), nodes(5, 6)))] * 200)
    assert (two.mean.node_auc or 0) > 0.58
    found = truths.average(
        [TruthScores(graphs=2, node_auc=0.5), TruthScores(graphs=2, node_auc=1.0), TruthScores(graphs=2)]
    )
    assert (found.runs, found.mean.node_auc, found.least.node_auc, found.most.node_auc) == (3, 0.75, 0.5, 1.0)
    assert found.mean.edge_auc is None
    assert found.to_plain()["mean"] == {"graphs": 2, "node_graphs": 0, "edge_graphs": 0, "node_auc": 0.75}
    with pytest.raises(DataError, match="nothing to average"):
        truths.average([])


def test_all_numbers_that_apply_are_given_and_no_others() -> None:
    found = [Importance(numbers(2, 1, 0), numbers(0.2, 0.1)), Importance(numbers(0, 1), numbers(0.9))]
    truths = [Truth((nodes(0),), marks("10")), Truth((), marks("0"))]
    scores = score_structures(found, truths)
    assert scores.to_plain() == {
        "graphs": 2,
        "node_graphs": 1,
        "edge_graphs": 1,
        "node_auc": 1.0,
        "node_precision": 1.0,
        "node_jaccard": 1.0,
        "edge_auc": 1.0,
        "pooled_edge_auc": 0.5,  # the lone edge of the second graph, not critical, is the most important of all
    }
    outcomes = Outcomes(full=numbers(1, 1), removed=numbers(0.5, 0.5), kept=numbers(1, 1))
    assert score_structures(found, truths, outcomes=outcomes).characterisation == pytest.approx(2 / 3)


def test_importances_that_do_not_fit_are_refused() -> None:
    good, odd = Importance(numbers(2, 1), numbers(1)), Importance(numbers(np.nan, 1), numbers(1))
    for found, known, rule in (
        (good, [Truth(), Truth()], "1 importances for 2 truths"),
        (odd, [Truth()], "graph 0: node importances must be finite"),
        (good, [Truth(edges=marks("10"))], "graph 0: 1 edge importances for 2 edges"),
    ):
        with pytest.raises(DataError, match=rule):
            score_structures([found], known)
