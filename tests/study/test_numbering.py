from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from egocnn.data.graphs import Graphs
from tests.support.invariance import relabel
from tests.support.samples import molecules
from tests.support.strategies import random_graphs


@given(random_graphs(min_nodes=0, unseen=True), st.integers(0, 50))
@example(molecules(), 1)  # with every column there is
def test_relabelled_graphs_are_the_same_graphs_with_other_numbers_and_without_smiles(graphs: Graphs, seed: int) -> None:
    relabelled, new = relabel(graphs, seed)
    assert (relabel(graphs, seed)[1] == new).all()
    relabelled.validate()
    assert sorted(new) == list(range(graphs.n_nodes))
    assert (relabelled.graph_of[new] == graphs.graph_of).all()
    for column in ("node_label", "node_attr", "node_truth"):
        before, after = getattr(graphs, column), getattr(relabelled, column)
        assert before is None or (after[new] == before).all()
    assert entries(relabelled, np.arange(graphs.n_nodes)) == entries(graphs, new)
    assert relabelled.names == graphs.names
    np.testing.assert_array_equal(relabelled.target, graphs.target)
    assert relabelled.smiles is None


def entries(graphs: Graphs, number: NDArray[Any]) -> set[tuple[Any, ...]]:
    """Every adjacency entry with all that is known of it, its nodes called by other numbers."""
    columns = [c for c in (graphs.edge_label, graphs.edge_weight, graphs.edge_truth) if c is not None]
    rows = zip(number[graphs.entry_node], number[graphs.indices], *columns, strict=True)
    return {tuple(float(value) for value in row) for row in rows}
