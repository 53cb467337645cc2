"""GraphML and GEXF files -> Graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.sources.networkx import read_graph_files
from egocnn.errors import DataError
from tests.support.samples import as_list, refusal

nx = pytest.importorskip("networkx")

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="l" for="node" attr.name="label" attr.type="string"><default>C</default></key>
<key id="w" for="edge" attr.name="weight" attr.type="double"/>
<key id="t" for="graph" attr.name="target" attr.type="string"/>
"""
FIRST = """<graph id="a" edgedefault="undirected"><data key="t">toxic</data>
<node id="n0"/><node id="n1"><data key="l">O</data></node>
<edge source="n0" target="n1"><data key="w">2.5</data></edge></graph>
"""
SECOND = '<graph id="b" edgedefault="directed"><data key="t">harmless</data><node id="n0"/></graph>'


def write(folder: Path, text: str | bytes, name: str = "g.graphml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read_one(path: Path) -> Graphs:
    return read_graph_files([path], path.name, ReadConfig())


def sample() -> Any:
    graph = nx.Graph(target=1.5)
    graph.add_node("a", label="C")
    graph.add_node("b", label="O")
    graph.add_edge("a", "b", label="single", weight=2.0)
    return graph


def test_all_graphs_of_a_file_are_read_with_their_data_and_defaults(tmp_path: Path) -> None:
    graphs = read_one(write(tmp_path, HEAD + FIRST + SECOND + "</graphml>"))
    assert graphs.names == ("g-1", "g-2")
    assert graphs[0].node_label == ("C", "O")
    assert graphs[1].node_label == ("C",)
    assert as_list(graphs[0].edge_weight) == [2.5]
    assert [graph.target for graph in graphs] == ["toxic", "harmless"]


def test_what_networkx_writes_is_read_and_called_after_the_file(tmp_path: Path) -> None:
    path = tmp_path / "ethanol.graphml"
    nx.write_graphml(sample(), path)
    graphs = read_one(path)
    assert graphs.names == ("ethanol",)
    assert graphs[0].node_label == ("C", "O")
    assert graphs[0].edge_label == ("single",)
    assert graphs[0].target == 1.5


def test_a_file_without_the_namespace_is_read(tmp_path: Path) -> None:
    nodes = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'
    text = f'<graphml><graph edgedefault="undirected">{nodes}</graph></graphml>'
    assert read_one(write(tmp_path, text)).n_edges == 1


def test_gexf_is_read_with_labels_and_weights(tmp_path: Path) -> None:
    path = tmp_path / "ethanol.gexf"
    nx.write_gexf(sample(), path)
    graph = read_one(path)[0]
    assert graph.name == "ethanol"
    assert graph.node_label == ("C", "O")
    assert graph.edge_label == ("single",)
    assert as_list(graph.edge_weight) == [2.0]


def test_a_node_of_gexf_that_is_called_by_its_id_has_no_label(tmp_path: Path) -> None:
    path = tmp_path / "path.gexf"
    nx.write_gexf(nx.path_graph(3), path)
    assert read_one(path).node_label is None


def test_an_edge_of_gexf_without_a_weight_weighs_one(tmp_path: Path) -> None:
    graph = nx.path_graph(3)
    graph.edges[0, 1]["weight"] = 4.0
    path = tmp_path / "path.gexf"
    nx.write_gexf(graph, path)
    weight = read_one(path)[0].edge_weight
    assert as_list(weight) == [4.0, 1.0]


def test_several_files_make_one_collection(tmp_path: Path) -> None:
    nx.write_graphml(nx.path_graph(3), tmp_path / "a.graphml")
    nx.write_gexf(nx.path_graph(4), tmp_path / "b.gexf")
    graphs = read_graph_files([tmp_path / "a.graphml", tmp_path / "b.gexf"], "folder", ReadConfig())
    assert graphs.names == ("a", "b")
    assert graphs.node_counts.tolist() == [3, 4]


LAUGHS = """<?xml version="1.0"?><!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<graphml><graph edgedefault="undirected"><node id="&b;"/></graph></graphml>"""
OUTSIDE = LAUGHS.replace('<!ENTITY a "ha">', '<!ENTITY a SYSTEM "file:///etc/hostname">')


def body(text: str) -> str:
    return f'{HEAD}<graph edgedefault="undirected">{text}</graph></graphml>'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", ", line 1: not XML (no element found)"),
        (b"<graphml>\n<graph>", ", line 2: not XML (no element found)"),
        (b"\x00\x01", ", line 1: not XML"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', ""),
        (LAUGHS, ": has a document type (<!DOCTYPE ...>), which may be harmful; remove it"),
        (LAUGHS.encode("utf-16"), ": has a document type"),
        (OUTSIDE, ": has a document type"),
        ("<html/>", ": no graphs in it"),
        (HEAD + "</graphml>", ": no graphs in it"),
        (body(""), ": a graph must have at least one node"),
        (body('<node id="a"/><edge source="a" target="b"/>'), ": an edge names the node 'b', which there is not"),
        (body('<node id="a"/><edge source="a"/>'), ": an edge names the node 'None', which there is not"),
        (body('<node id="a"/><node id="a"/>'), ": two nodes are called 'a'"),
        (body('<node id="a"><graph><node id="b"/></graph></node>'), ": graphs inside nodes are not read"),
        (body('<node id="a"><data key="q">1</data></node>'), ": networkx cannot read it (Bad GraphML data: no key q)"),
        (
            body('<node id="a"/><edge source="a" target="a"><data key="w">much</data></edge>'),
            ": networkx cannot read it (could not convert string to float: 'much')",
        ),
        (
            body('<node id="a"/><edge source="a" target="a"><data key="w">nan</data></edge>'),
            ": edge weights must be finite numbers, got nan",
        ),
        (HEAD.replace('"double"', '"complex"') + "</graphml>", ": networkx cannot read it ('complex')"),
        (
            body(
                '<node id="a"/><node id="b"/><edge id="1" source="a" target="b"><data key="w">1</data></edge>'
                '<edge id="2" source="b" target="a"><data key="w">2</data></edge>'
            ),
            ": edge 0, 1 is given twice with different weights: 1 and 2",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path: Path, data: str | bytes, message: str) -> None:
    assert refusal(read_one, write(tmp_path, data)).startswith(f"g.graphml{message}")


@pytest.mark.parametrize("data", ["<gexf/>", "<gexf><graph/></gexf>", HEAD + FIRST + "</graphml>"])
def test_a_file_that_is_not_gexf_is_refused(tmp_path: Path, data: str) -> None:
    with pytest.raises(DataError, match=r"^g\.gexf: "):
        read_one(write(tmp_path, data, "g.gexf"))
