"""Random graphs: their neighbour tables, and the same graphs as edge lists."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.bench.tools.problems import LARGEST_DEGREE, REACH, degree_histogram, edge_list, neighbour_table, with_loops

NODES = st.integers(REACH + 1, 200)
K = st.integers(1, 9)
SEEDS = st.integers(0, 1000)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(NODES, K, SEEDS)
def test_where_all_neighbours_are_present_they_are_near_and_not_the_node_itself(n: int, k: int, seed: int) -> None:
    table = neighbour_table(n, k, "full", seeded(seed))
    assert table.dtype == torch.int32
    assert table.shape == (n, k)
    distance = (table - torch.arange(n)[:, None]).abs()
    distance = torch.minimum(distance, n - distance)  # positions go round
    assert bool(((table >= 0) & (table < n) & (distance >= 1) & (distance <= REACH)).all())
    assert torch.equal(table, neighbour_table(n, k, "full", seeded(seed)))


@given(NODES, K, SEEDS)
def test_molecules_have_few_neighbours_and_the_absent_ones_come_last(n: int, k: int, seed: int) -> None:
    present = neighbour_table(n, k, "molecules", seeded(seed)) >= 0
    assert int(present.sum(1).min()) >= 1
    assert int(present.sum(1).max()) <= LARGEST_DEGREE
    assert not bool((~present[:, :-1] & present[:, 1:]).any())


def test_molecules_have_about_two_neighbours_a_node() -> None:
    present = neighbour_table(20_000, 16, "molecules", seeded(0)) >= 0
    assert 2.1 < float(present.sum(1).double().mean()) < 2.4


@given(NODES, K, SEEDS)
def test_the_edges_are_the_entries_of_the_table(n: int, k: int, seed: int) -> None:
    table = neighbour_table(n, k, "molecules", seeded(seed))
    edges = edge_list(table)
    wanted = [(int(j), i) for i, row in enumerate(table) for j in row if j >= 0]
    assert edges.T.tolist() == [list(pair) for pair in wanted]
    histogram = degree_histogram(edges, n)
    assert int(histogram.sum()) == n
    assert int((histogram * torch.arange(len(histogram))).sum()) == edges.shape[1]
    assert with_loops(edges, n)[:, edges.shape[1] :].tolist() == [list(range(n))] * 2
