"""networkx graphs -> Graphs, and back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.data.sources.networkx import from_networkx
from egocnn.errors import DataError
from tests.support.samples import as_list, refusal, sure

nx = pytest.importorskip("networkx")


def ethanol(**facts: Any) -> Any:
    graph = nx.Graph(**facts)
    graph.add_node("first", label="C", x=[0.5, 1])
    graph.add_node("second", label="C", x=(0.25, np.int64(2)))
    graph.add_node(7, label="O", x=np.array([1.0, 2.0]))
    graph.add_edge("second", 7, label="single", weight=2)
    graph.add_edge("first", "second", label="single", weight=0.5)
    return graph


def test_nodes_keep_their_order_and_data() -> None:
    graphs = from_networkx([ethanol(name="ethanol", target="alcohol"), ethanol(label="alkane")])
    graph = graphs[0]
    assert graphs.names == ("ethanol", "1")
    assert graph.node_label == ("C", "C", "O")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_label == ("single", "single")
    assert as_list(graph.edge_weight) == [0.5, 2]
    assert as_list(graph.node_attr) == [[0.5, 1], [0.25, 2], [1, 2]]
    assert graph.target == "alcohol"


def test_the_target_is_the_field_that_the_settings_name_and_the_coordinate_of_a_drawing_no_attribute() -> None:
    graphs = from_networkx([ethanol(toxic=1.5), ethanol(toxic=None)], ReadConfig(target="toxic"))
    assert np.array_equal(sure(graphs.target), [1.5, np.nan], equal_nan=True)
    graph = nx.Graph()
    graph.add_node(0, x=1.5, y=2.5)
    assert from_networkx([graph]).node_attr is None


def test_directed_graphs_are_read_as_undirected_and_parallel_edges_merge_where_they_agree() -> None:
    graph = nx.DiGraph([(0, 1), (1, 0), (2, 1)])
    assert from_networkx([graph])[0].edges.tolist() == [[0, 1], [1, 2]]
    graph.edges[0, 1]["label"], graph.edges[1, 0]["label"], graph.edges[2, 1]["label"] = "a", "b", "a"
    with pytest.raises(DataError, match="graph 0: edge 1, 0 is given twice with different labels: a and b"):
        from_networkx([graph])
    graph = nx.MultiGraph()
    graph.add_edge(0, 1, label="a")
    graph.add_edge(0, 1, label="a")
    assert from_networkx([graph]).n_edges == 1
    graph.add_edge(1, 0, label="b")
    with pytest.raises(DataError, match="given twice with different labels: a and b"):
        from_networkx([graph])


def attributed(*values: Any) -> Any:
    graph = nx.Graph()
    graph.add_nodes_from((node, {"attr": value}) for node, value in enumerate(values))
    return graph


def single(node: dict[str, Any] | None = None, edge: dict[str, Any] | None = None) -> Any:
    graph = nx.Graph()
    graph.add_node(0, **(node or {}))
    graph.add_node(1)
    graph.add_edge(0, 0, **(edge or {}))
    graph.add_edge(0, 1)
    return graph


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "networkx: no graphs in it"),
        ([nx.Graph()], "graph 0: a graph must have at least one node"),
        ([nx.path_graph(2), nx.Graph()], "graph 1: a graph must have at least one node"),
        ([3], "graph 0: 3 is not a networkx graph"),
        ([single(node={"label": "C"})], "graph 0: node 1 has no 'label', but 0 has; all need it"),
        ([single(edge={"label": "C"})], "graph 0: edge 1 has no 'label', but 0 has; all need it"),
        ([single(edge={"weight": 2})], "graph 0: edge 1 has no 'weight', but 0 has; all need it"),
        ([nx.Graph([(0, 1, {"weight": "2"})])], "graph 0: edge weight '2' must be a number"),
        ([nx.Graph([(0, 1, {"weight": True})])], "graph 0: edge weight True must be a number"),
        ([nx.Graph([(0, 1, {"weight": float("inf")})])], "graph 0: edge weights must be finite numbers, got inf"),
        ([attributed([1], [1, 2])], "graph 0: node attributes must be as many for every node"),
        ([attributed([1], ["2"])], "graph 0: node attribute '2' must be a number"),
        ([attributed([1], [float("nan")])], "graph 0: node attributes must be finite numbers, got nan"),
        ([attributed([1], [[2]])], "graph 0: node attribute [2] must be a number"),
        ([attributed([1], None)], "graph 0: node attribute None must be a number"),
    ],
)
def test_what_is_wrong_with_a_graph_is_said_in_one_line(graphs: list[Any], message: str) -> None:
    assert refusal(from_networkx, graphs) == message


def friends() -> Any:
    graph = nx.Graph()
    graph.add_node("alice", job="baker", age=31, height=1.7)
    graph.add_node("bob", job="smith", age=45, height=1.8)
    graph.add_edge("alice", "bob", kind="cousin", since=4.0)
    return graph


def test_data_of_other_names_are_read_by_these_and_what_is_left_out_is_told(caplog: pytest.LogCaptureFixture) -> None:
    graphs = from_networkx([friends()])
    told = "node job, node age, node height, edge kind, edge since"
    assert (graphs.used, graphs.left_out) == ((), tuple(told.split(", ")))
    assert [record.message.partition(" (")[0] for record in caplog.records] == [
        f"networkx: read of nodes and edges: nothing; left out: {told}"
    ]
    named: dict[str, Any] = {
        "node_label": "job",
        "node_attributes": ["age", "height"],
        "edge_label": "kind",
        "edge_weight": "since",
    }
    graphs = read([friends()], **named)
    assert graphs.left_out == ()
    assert as_list(graphs.node_attr) == [[31, pytest.approx(1.7)], [45, pytest.approx(1.8)]]
    graph = graphs[0]
    assert (graph.node_label, graph.edge_label, as_list(graph.edge_weight)) == (("baker", "smith"), ("cousin",), [4])
    with pytest.raises(
        DataError, match="networkx, nodes: no column or field is called 'jobs'; there are job, age, height"
    ):
        read([friends()], node_label="jobs")


def test_nodes_keep_the_names_that_they_have(tmp_path: Path) -> None:
    two = from_networkx([friends(), nx.path_graph(3)])
    assert [graph.node_names for graph in two] == [("alice", "bob"), ("0", "1", "2")]
    assert two[[1]][0].node_names == ("0", "1", "2")
    assert Graphs.concat([two, two])[2].node_names == ("alice", "bob")
    assert from_networkx([nx.path_graph(3)]).node_names is None
    assert from_networkx([nx.Graph([(1, "1")])]).node_names is None
    nx.write_graphml(friends(), tmp_path / "friends.graphml")
    graphs = read(tmp_path / "friends.graphml", edge_label="kind")
    assert (graphs[0].node_names, graphs.used) == (("alice", "bob"), ("edge kind",))
    two.save(tmp_path / "two.safetensors")
    assert Graphs.load(tmp_path / "two.safetensors").digest == two.digest
