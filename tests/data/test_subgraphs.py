from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.arrays import Bools
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.subgraphs import keep_nodes, without_each_edge, without_each_node
from tests.support.samples import assert_equal, molecules, one_graph
from tests.support.strategies import random_graphs

NODES = ("node_label", "node_attr", "node_truth")
EDGES = ("edge_label", "edge_weight", "edge_truth")
Plain = dict[str, Any]


def plain(graph: Graph) -> Plain:
    """A graph as dictionaries: node -> its columns, edge -> its columns."""

    def columns_of(columns: tuple[str, ...], position: int) -> Plain:
        values = {name: getattr(graph, name) for name in columns}
        return {name: None if v is None else np.asarray(v)[position].tolist() for name, v in values.items()}

    return {
        "name": graph.name,
        "target": graph.target,
        "nodes": {n: columns_of(NODES, n) for n in range(graph.n_nodes)},
        "edges": {(int(u), int(v)): columns_of(EDGES, e) for e, (u, v) in enumerate(graph.edges)},
    }


def slowly(graph: Plain, keeps_node: Callable[[int], bool], keeps_edge: Callable[[tuple[int, int]], bool]) -> Plain:
    """The same cut on dictionaries, the nodes that are left counted anew."""
    number = {node: i for i, node in enumerate(filter(keeps_node, graph["nodes"]))}
    return graph | {
        "nodes": {number[n]: columns for n, columns in graph["nodes"].items() if n in number},
        "edges": {
            (number[u], number[v]): columns
            for (u, v), columns in graph["edges"].items()
            if u in number and v in number and keeps_edge((u, v))
        },
    }


def always(_: object) -> bool:
    return True


def without_node(graphs: Graphs, node: int) -> Graphs:
    """One graph without one node, built by hand."""
    return by_hand(graphs, [n for n in range(graphs.n_nodes) if n != node])


def without_edge(graphs: Graphs, u: int, v: int) -> Graphs:
    """One graph without one edge, built by hand."""
    return by_hand(graphs, list(range(graphs.n_nodes)), lambda edge: edge != (u, v))


def by_hand(graphs: Graphs, nodes: list[int], keeps: Callable[[tuple[int, int]], bool] = always) -> Graphs:
    """One graph with these nodes and the edges among them that are kept."""
    entries = [
        (entry, u, v)
        for entry, (u, v) in enumerate(zip(graphs.entry_node.tolist(), graphs.indices.tolist(), strict=True))
        if u <= v and u in nodes and v in nodes and keeps((u, v))
    ]
    chosen = [entry for entry, _, _ in entries]
    return Graphs.from_edges(
        node_counts=[len(nodes)],
        edges=np.array([(nodes.index(u), nodes.index(v)) for _, u, v in entries], np.int64).reshape(-1, 2),
        node_label_names=graphs.node_label_names,
        edge_label_names=graphs.edge_label_names,
        **{name: None if (values := getattr(graphs, name)) is None else values[nodes] for name in NODES},
        **{name: None if (values := getattr(graphs, name)) is None else values[chosen] for name in EDGES},
    )


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


@settings(max_examples=150)
@given(case=graphs_and_nodes())
def test_keeping_nodes_keeps_them_with_the_edges_among_them(case: tuple[Graphs, Bools]) -> None:
    graphs, kept = case
    cut = keep_nodes(graphs, kept)
    cut.validate()
    assert len(cut) == len(graphs)
    for g, graph in enumerate(graphs):
        own = kept[int(graphs.node_ptr[g]) :]
        assert plain(cut[g]) == slowly(plain(graph), own.__getitem__, always)


@settings(max_examples=100)
@given(case=graphs_and_nodes())
def test_each_node_is_taken_out_of_a_copy_of_its_graph(case: tuple[Graphs, Bools]) -> None:
    graphs, chosen = case
    nodes = np.flatnonzero(chosen)[::-1]  # in any order
    copies = without_each_node(graphs, nodes)
    copies.validate()
    assert len(copies) == len(nodes)
    for number, node in enumerate(nodes):
        g = int(graphs.graph_of[node])
        inner = int(node - graphs.node_ptr[g])
        assert plain(copies[number]) == slowly(plain(graphs[g]), partial(operator.ne, inner), always)


@settings(max_examples=100)
@given(case=graphs_and_nodes(), turned=st.booleans())
def test_each_edge_is_taken_out_of_a_copy_of_its_graph(case: tuple[Graphs, Bools], turned: bool) -> None:
    graphs, _ = case
    edges = graphs.edges[::-1, ::-1] if turned else graphs.edges
    copies = without_each_edge(graphs, edges)
    copies.validate()
    assert len(copies) == len(edges)
    for number, (u, v) in enumerate(edges.tolist()):
        g = int(graphs.graph_of[u])
        gone = tuple(sorted((u - int(graphs.node_ptr[g]), v - int(graphs.node_ptr[g]))))
        assert plain(copies[number]) == slowly(plain(graphs[g]), always, partial(operator.ne, gone))


def test_keeping_everything_changes_nothing_but_the_smiles() -> None:
    graphs = molecules()
    assert_equal(keep_nodes(graphs, np.ones(graphs.n_nodes, bool)), graphs.replace(smiles=None))


def test_keeping_nothing_leaves_graphs_without_nodes() -> None:
    graphs = molecules()
    cut = keep_nodes(graphs, np.zeros(graphs.n_nodes, bool))
    assert cut.node_counts.tolist() == [0, 0, 0]
    assert cut.names == graphs.names
    assert cut.n_edges == 0
    np.testing.assert_array_equal(cut.target, graphs.target)


def test_a_collection_without_graphs_stays_one() -> None:
    nothing = molecules()[:0]
    assert len(keep_nodes(nothing, np.zeros(0, bool))) == 0
    assert len(without_each_node(nothing, np.zeros(0, np.int64))) == 0
    assert len(without_each_edge(nothing, np.zeros((0, 2), np.int64))) == 0


def test_what_groups_and_parts_say_of_a_graph_stays_with_its_copies() -> None:
    graphs = molecules()
    copies = without_each_node(graphs, np.array([5, 0, 4]))
    assert copies.names == ("ring", "water", "ring")
    np.testing.assert_array_equal(copies.group, [1, 0, 1])
    np.testing.assert_array_equal(copies.part, [2, 0, 2])


@pytest.mark.parametrize("edge", [(0, 0), (0, 1)])
def test_a_loop_and_an_edge_are_taken_out_alone(edge: tuple[int, int]) -> None:
    graphs = one_graph(3, [(0, 0), (0, 1), (1, 2)])
    (left,) = without_each_edge(graphs, np.array([edge]))
    assert left.n_nodes == 3
    assert left.edges.tolist() == [list(e) for e in [(0, 0), (0, 1), (1, 2)] if e != edge]
