from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ExplainConfig, Selection
from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs
from egocnn.explain.selection.select import STEPS_ONE_BY_ONE, select_nodes
from tests.support.samples import one_graph

VALUES = (-1.0, 0.0, 0.25, 0.5, 0.5, 1.0)
"""few values, so that equal ones are common"""


def never(numbers: Ints, chosen: Bools) -> Bools:
    return np.zeros(len(numbers), bool) & chosen.any()


def nodes(*counts: int) -> Graphs:
    """Graphs without edges."""
    return Graphs.from_edges(node_counts=counts, edges=np.zeros((0, 2), np.int64))


@st.composite
def importances(draw: st.DrawFn) -> tuple[Graphs, Floats]:
    graphs = nodes(*draw(st.lists(st.integers(0, 6), min_size=1, max_size=4)))
    size = graphs.n_nodes
    return graphs, np.array(draw(st.lists(st.sampled_from(VALUES), min_size=size, max_size=size)))


def per_graph(graphs: Graphs, values: Bools | Floats) -> list[list[float]]:
    return [values[a:b].tolist() for a, b in zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True)]


@settings(max_examples=80)
@given(case=importances(), share=st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]))
def test_the_threshold_is_a_share_of_the_largest_importance_of_the_graph(
    case: tuple[Graphs, Floats], share: float
) -> None:
    graphs, importance = case
    chosen = select_nodes(graphs, importance, ExplainConfig(select="threshold", threshold=share), never)
    for values, picked in zip(per_graph(graphs, importance), per_graph(graphs, chosen), strict=True):
        assert picked == [x > 0 and x >= share * max(values) - 1e-9 for x in values]


@settings(max_examples=80)
@given(case=importances(), top=st.integers(1, 5))
def test_top_takes_the_first_few_and_never_what_speaks_against(case: tuple[Graphs, Floats], top: int) -> None:
    graphs, importance = case
    chosen = select_nodes(graphs, importance, ExplainConfig(select="top", top=top), never)
    for values, picked in zip(per_graph(graphs, importance), per_graph(graphs, chosen), strict=True):
        taken = [x for x, is_in in zip(values, picked, strict=True) if is_in]
        assert sorted(taken, reverse=True) == [x for x in sorted(values, reverse=True) if x > 0][:top]


@settings(max_examples=80)
@given(case=importances(), needed=st.integers(0, 7))
def test_the_smallest_set_is_the_first_that_suffices_and_equals_stay_together(
    case: tuple[Graphs, Floats], needed: int
) -> None:
    """A prediction that holds as soon as so many nodes are there."""
    graphs, importance = case

    def keeps(numbers: Ints, chosen: Bools) -> Bools:
        counts = np.bincount(graphs.graph_of[chosen], minlength=len(graphs))
        return np.asarray(counts[numbers] >= needed)

    chosen = select_nodes(graphs, importance, ExplainConfig(select="smallest"), keeps)
    for values, picked in zip(per_graph(graphs, importance), per_graph(graphs, chosen), strict=True):
        ordered = sorted(values, reverse=True)
        wanted = [False] * len(values)
        for size in range(1, len(values) + 1):
            wanted = [x >= ordered[size - 1] for x in values]
            if sum(wanted) >= needed:
                break
        assert picked == wanted


def test_where_no_smaller_set_suffices_the_whole_graph_is_critical() -> None:
    graphs = nodes(3, 0, 70)
    importance = np.random.default_rng(0).normal(size=73)
    assert select_nodes(graphs, importance, ExplainConfig(select="smallest"), never).all()


def test_the_search_takes_larger_steps_in_large_graphs_and_asks_about_open_graphs_alone() -> None:
    graphs = nodes(500, 2)
    calls: list[tuple[list[int], int]] = []

    def keeps(numbers: Ints, chosen: Bools) -> Bools:
        calls.append((numbers.tolist(), int(chosen[:500].sum())))
        return np.asarray((numbers == 0) & (chosen[:500].sum() >= 400), bool)

    chosen = select_nodes(graphs, -np.arange(502.0), ExplainConfig(select="smallest"), keeps)
    sizes = [size for _, size in calls]
    assert sizes[:STEPS_ONE_BY_ONE] == list(range(1, STEPS_ONE_BY_ONE + 1))
    assert 400 <= sizes[-1] < 400 * 1.16 + 1
    assert len(sizes) < 60
    assert [numbers for numbers, _ in calls[:3]] == [[0, 1], [0, 1], [0]]
    assert chosen[:500].sum() == sizes[-1]
    assert chosen[500:].all()


@pytest.mark.parametrize("select", get_args(Selection))
def test_a_graph_without_nodes_has_no_critical_ones(select: Selection) -> None:
    assert select_nodes(nodes(0), np.zeros(0), ExplainConfig(select=select), never).tolist() == []


def test_where_everything_speaks_against_the_class_nothing_is_critical() -> None:
    graphs, importance = one_graph(3, [(0, 1)]), np.array([-1.0, -2.0, 0.0])
    assert not select_nodes(graphs, importance, ExplainConfig(select="threshold"), never).any()
    assert not select_nodes(graphs, importance, ExplainConfig(select="top"), never).any()


def test_rounding_does_not_part_nodes_that_reach_the_threshold_together() -> None:
    importance = np.array([1.0, 1.0 - 1e-9, 0.5])
    chosen = select_nodes(nodes(3), importance, ExplainConfig(select="threshold", threshold=1.0), never)
    assert chosen.tolist() == [True, True, False]
