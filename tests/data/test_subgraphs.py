from collections.abc import Callable
from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from egocnn.data.arrays import Bools
from egocnn.data.collection import keep_nodes, without_each_edge, without_each_node
from egocnn.data.graphs import TEXTS, Graphs
from egocnn.data.schema import EDGE_COLUMNS, GRAPH_COLUMNS, NODE_COLUMNS
from tests.support.samples import assert_equal, molecules
from tests.support.strategies import random_graphs

ALL_COLUMNS = (molecules(), np.arange(8) % 3 > 0)


def by_hand(graphs: Graphs, nodes: list[int], keeps: Callable[[tuple[int, int]], bool] = lambda _: True) -> Graphs:
    """A collection of one graph with these nodes and the edges among them that are kept, one after the other."""
    entries = [
        (entry, u, v)
        for entry, (u, v) in enumerate(zip(graphs.entry_node.tolist(), graphs.indices.tolist(), strict=True))
        if u <= v and u in nodes and v in nodes and keeps((u, v))
    ]
    chosen = [entry for entry, _, _ in entries]
    columns = {name: getattr(graphs, name) for name in (*TEXTS, *GRAPH_COLUMNS) if name != "smiles"}
    for names, which in ((NODE_COLUMNS, nodes), (EDGE_COLUMNS, chosen)):
        columns |= {name: None if (values := getattr(graphs, name)) is None else values[which] for name in names}
    edges = np.array([(nodes.index(u), nodes.index(v)) for _, u, v in entries], np.int64).reshape(-1, 2)
    return Graphs.from_edges(node_counts=[len(nodes)], edges=edges, **columns)


def without_node(graphs: Graphs, node: int) -> Graphs:
    return by_hand(graphs, [n for n in range(graphs.n_nodes) if n != node])


def without_edge(graphs: Graphs, u: int, v: int) -> Graphs:
    return by_hand(graphs, list(range(graphs.n_nodes)), lambda edge: edge != (u, v))


def with_truths(graphs: Graphs, draw: Callable[[int], Bools]) -> Graphs:
    """Truths for nodes; an edge is critical where both its ends are."""
    node_truth = draw(graphs.n_nodes)
    return graphs.replace(node_truth=node_truth, edge_truth=node_truth[graphs.entry_node] & node_truth[graphs.indices])


@st.composite
def graphs_and_nodes(draw: st.DrawFn) -> tuple[Graphs, Bools]:
    """Graphs with every kind of column, some without nodes, and a choice of nodes."""

    def bools(n: int) -> Bools:
        return np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)

    graphs = draw(random_graphs(min_graphs=0, min_nodes=0, max_nodes=6, unseen=True))
    return with_truths(graphs, bools), bools(graphs.n_nodes)


@given(case=graphs_and_nodes())
@example(case=ALL_COLUMNS)
def test_keeping_nodes_keeps_them_with_the_edges_among_them(case: tuple[Graphs, Bools]) -> None:
    graphs, kept = case
    cut = keep_nodes(graphs, kept)
    assert len(cut) == len(graphs)
    for g, (first, last) in enumerate(pairwise(graphs.node_ptr)):
        assert_equal(cut[[g]], by_hand(graphs[[g]], np.flatnonzero(kept[first:last]).tolist()))


@given(case=graphs_and_nodes())
@example(case=ALL_COLUMNS)
def test_each_node_is_taken_out_of_a_copy_of_its_graph(case: tuple[Graphs, Bools]) -> None:
    graphs, chosen = case
    nodes = np.flatnonzero(chosen)[::-1]  # in any order
    copies = without_each_node(graphs, nodes)
    assert len(copies) == len(nodes)
    for number, (node, g) in enumerate(zip(nodes, graphs.graph_of[nodes], strict=True)):
        assert_equal(copies[[number]], without_node(graphs[[g]], node - graphs.node_ptr[g]))


@given(case=graphs_and_nodes(), turned=st.booleans())
@example(case=ALL_COLUMNS, turned=True)
def test_each_edge_is_taken_out_of_a_copy_of_its_graph(case: tuple[Graphs, Bools], turned: bool) -> None:
    graphs, _ = case
    edges = graphs.edges[::-1, ::-1] if turned else graphs.edges
    copies = without_each_edge(graphs, edges)
    assert len(copies) == len(edges)
    for number, (edge, g) in enumerate(zip(edges, graphs.graph_of[edges[:, 0]], strict=True)):
        u, v = sorted(edge - graphs.node_ptr[g])
        assert_equal(copies[[number]], without_edge(graphs[[g]], u, v))


def test_keeping_everything_changes_nothing_but_the_smiles() -> None:
    graphs = molecules()
    assert_equal(keep_nodes(graphs, np.ones(graphs.n_nodes, bool)), graphs.replace(smiles=None))
