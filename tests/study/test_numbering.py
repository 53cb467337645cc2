from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from egocnn.data.graphs import Graphs
from tests.support.invariance import assert_relabelling_invariant, relabel
from tests.support.samples import molecules, sure
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


def labels_of_first_nodes(graphs: Graphs) -> NDArray[Any]:
    return sure(graphs.node_label)[graphs.node_ptr[:-1]].astype(float)


def several() -> Graphs:
    """Of the three graphs only the last has nodes that differ."""
    return Graphs.from_edges(
        node_counts=[2, 3, 9],
        edges=np.zeros((0, 2), int),
        names=["pair", "three", "nine"],
        node_label=np.array([4] * 5 + [*range(9)]),
        node_label_names=tuple("abcdefghi"),
    )


def test_what_hardly_depends_on_numbers_passes_else_the_first_graph_is_named_with_the_amount() -> None:
    assert_relabelling_invariant(lambda graphs: np.stack([graphs.node_counts] * 2, axis=1), several(), seed=7)
    assert_relabelling_invariant(lambda graphs: graphs.node_counts, several()[:0])
    assert_relabelling_invariant(labels_of_first_nodes, several(), tolerance=9)
    before, after = (labels_of_first_nodes(graphs) for graphs in (several(), relabel(several(), 0)[0]))
    change = abs(before - after)[2]
    assert change > 0
    with pytest.raises(AssertionError, match=rf"graph 2 \(nine\).* changes the prediction by {change:.3g}, .*1 of 3"):
        assert_relabelling_invariant(labels_of_first_nodes, several())
    with pytest.raises(AssertionError, match="graph 0"):
        assert_relabelling_invariant(lambda graphs: np.full(len(graphs), np.nan), several())
    with pytest.raises(AssertionError, match="1 predictions for 3 graphs"):
        assert_relabelling_invariant(lambda _: np.zeros(1), several())
