"""Pieces of a critical structure that stand close together, and what hangs on them and contributes little."""

import networkx as nx
import numpy as np
import pytest

from egocnn.data.graphs import Graphs
from egocnn.data.sources.networkx import from_networkx
from egocnn.explain.selection.pieces import MOST_TAKEN_OFF, joined, pared
from tests.support.invariance import relabel


def graphs_of(*several: nx.Graph) -> Graphs:
    return from_networkx(list(several))


PATH, RING = nx.path_graph(10), nx.cycle_graph(6)
LOLLIPOP = nx.Graph([(0, 1), (1, 2), (1, 3), (3, 4)])  # two leaves and an arm around node 1


@pytest.mark.parametrize(
    ("graph", "nodes", "wanted"),
    [
        (PATH, (3,), [3]),
        (PATH, (3, 4), [3, 4]),
        (PATH, (3, 5), [3, 4, 5]),
        (PATH, (3, 6), [3, 4, 5, 6]),
        (PATH, (3, 7), [3, 7]),  # three nodes lie between
        (PATH, (0, 1, 4, 9), [0, 1, 2, 3, 4, 9]),
        (RING, (0, 3), [0, 1, 2, 3, 4, 5]),  # opposite sides become the whole ring
        (RING, (0, 2), [0, 1, 2]),
        (LOLLIPOP, (0, 2), [0, 1, 2]),  # what lies beside the way stays out
        (nx.disjoint_union(nx.path_graph(2), nx.path_graph(2)), (0, 2), [0, 2]),
    ],
)
def test_pieces_are_joined_over_two_nodes_by_all_shortest_ways_and_no_more(
    graph: nx.Graph, nodes: tuple[int, ...], wanted: list[int]
) -> None:
    assert joined(graphs_of(graph), np.array(nodes)).tolist() == wanted


@pytest.mark.parametrize(
    ("graph", "score", "wanted"),
    [
        (PATH, "0 1 .9 .2 .8 0 0 0 0 0", "1 2 3 4"),  # it holds both sides together
        (PATH, "0 1 .9 .8 .24 0 0 0 0 0", "1 2 3"),
        (PATH, "0 1 .9 .8 .25 0 0 0 0 0", "1 2 3 4"),
        (PATH, "0 1 .9 .1 .2 .2 .2 0 0 0", "1 2"),  # the least leaves last: it held the others
        (RING, "1 .2 .2 .9 .2 .2", "0 1 2 3 4 5"),  # those alike leave together, or not at all
        (RING, "1 .2 .2 .9 .1 .1", "0 1 2 3"),
        (RING, "1 .2 -.5 .9 0 0", "0 1 2 3"),
        (LOLLIPOP, "-1 .2 1 .1 .2", "2"),  # all at once
        (nx.empty_graph(3), "1 .2 0", "0"),
    ],
)
def test_nodes_of_little_contribution_leave_where_they_hold_nothing_together(
    graph: nx.Graph, score: str, wanted: str
) -> None:
    scores = np.array(score.split(), float)
    left = pared(graphs_of(graph, graph), np.tile(scores, 2), np.tile(scores != 0, 2))
    expected = np.isin(np.arange(len(scores)), np.array(wanted.split(), int))
    assert left.tolist() == [*expected, *expected]


def test_of_very_many_nodes_none_leaves_and_of_no_part_none() -> None:
    star = graphs_of(nx.star_graph(MOST_TAKEN_OFF + 1))
    score, every = np.full(star.n_nodes, 0.1), np.ones(star.n_nodes, bool)
    score[0] = 1.0
    assert pared(star, score, every).all()
    assert not pared(star, score, ~every).any()
    every[-1] = False
    assert np.flatnonzero(pared(star, score, every)).tolist() == [0]


def test_numbers_of_nodes_do_not_matter() -> None:
    graphs = graphs_of(nx.grid_2d_graph(3, 4))
    part = np.array([0, 5, 11])
    for seed in range(5):
        relabelled, new = relabel(graphs, seed)
        assert set(joined(relabelled, np.sort(new[part])).tolist()) == set(new[joined(graphs, part)].tolist())
        score = np.round(np.random.default_rng(seed).normal(size=graphs.n_nodes), 1)
        there = np.empty_like(score)
        there[new] = score
        left = pared(graphs, score, np.ones(len(score), bool))
        assert np.flatnonzero(pared(relabelled, there, np.ones(len(score), bool))).tolist() == sorted(new[left])
        assert left[score.argmax()]
