from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.explain.contributions import EdgeNumbers
from egocnn.explain.techniques import TECHNIQUES
from tests.explain.random_models import array, assert_close, forward_pass, head_for, predictor_for
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs

CPU = torch.device("cpu")


@settings(max_examples=60)
@given(graphs=random_graphs(max_graphs=3, min_nodes=0), seed=st.integers(0, 99))
def test_amounts_are_added_up_by_edge_whichever_end_comes_first(graphs: Graphs, seed: int) -> None:
    random = np.random.default_rng(seed)
    size = 40 if graphs.n_nodes else 0
    u, v = random.integers(0, max(graphs.n_nodes, 1), (2, size))
    amount = random.normal(size=size)
    wanted = {tuple(edge): 0.0 for edge in graphs.edges.tolist()}
    for a, b, x in zip(u.tolist(), v.tolist(), amount.tolist(), strict=True):
        if (min(a, b), max(a, b)) in wanted:
            wanted[min(a, b), max(a, b)] += x
    edges = EdgeNumbers.of(graphs, CPU)
    found = edges.add_up(torch.from_numpy(u), torch.from_numpy(v), torch.from_numpy(amount))
    assert_close(found, list(wanted.values()), tolerance=1e-12)
    np.testing.assert_array_equal(torch.stack(edges.ends, dim=1), graphs.edges)


def test_what_crosses_an_edge_either_way_is_added_up() -> None:
    edges = EdgeNumbers.of(one_graph(3, [(0, 1), (1, 2)]), CPU)
    table = torch.tensor([[1, -1, -1], [2, 0, -1], [1, 0, -1]])  # 0 is no neighbour of 2: two hops away
    crossed = torch.tensor([[1.0, 7.0], [10.0, 100.0], [1000.0, 5.0]])
    assert edges.crossings(table, crossed).tolist() == [101.0, 1010.0]


@pytest.mark.parametrize("technique", [name for name in TECHNIQUES if name != "integrated-gradients"])
@pytest.mark.parametrize("embedding", ["patchy-san", "adjacency"])
@settings(max_examples=10)
@given(graphs=random_graphs(max_graphs=2, max_nodes=6), seed=st.integers(0, 99))
def test_nodes_together_hold_what_edges_together_hold_where_all_nodes_have_edges(
    technique: str, embedding: str, graphs: Graphs, seed: int
) -> None:
    predictor = predictor_for(graphs, outputs=2, seed=seed, embedding=embedding, width=8)
    importances = TECHNIQUES[technique](forward_pass(predictor, graphs, attention=head_for(8, seed=seed)))
    nodes, apart = array(importances.nodes), graphs.degree == 0
    assert_close(nodes[~apart].sum(), importances.edges.sum(), tolerance=1e-5 * max(1.0, float(np.abs(nodes).sum())))
