"""GraphML and GEXF files -> Graphs."""

from pathlib import Path
from typing import Any

import pytest

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.sources.networkx import read_graph_files
from tests.support.samples import as_list, refusal, written

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


def read_one(path: Path) -> Graphs:
    return read_graph_files([path], path.name, ReadConfig())


def sample() -> Any:
    graph = nx.Graph(target=1.5)
    graph.add_node("a", label="C")
    graph.add_node("b", label="O")
    graph.add_edge("a", "b", label="single", weight=2.0)
    return graph


def test_all_graphs_of_a_file_are_read_with_their_data_and_defaults(tmp_path: Path) -> None:
    graphs = read_one(written(tmp_path, "g.graphml", HEAD + FIRST + SECOND + "</graphml>"))
    assert graphs.names == ("g-1", "g-2")
    assert graphs[0].node_label == ("C", "O")
    assert graphs[1].node_label == ("C",)
    assert as_list(graphs[0].edge_weight) == [2.5]
    assert [graph.target for graph in graphs] == ["toxic", "harmless"]


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_what_networkx_writes_is_read_and_called_after_the_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"ethanol.{kind}"
    getattr(nx, f"write_{kind}")(sample(), path)
    graphs = read_one(path)
    assert graphs.names == ("ethanol",)
    assert graphs[0].node_label == ("C", "O")
    assert graphs[0].edge_label == ("single",)
    assert as_list(graphs[0].edge_weight) == [2.0]
    assert graphs[0].target == (1.5 if kind == "graphml" else None)


def test_a_file_without_the_namespace_is_read(tmp_path: Path) -> None:
    nodes = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'
    text = f'<graphml><graph edgedefault="undirected">{nodes}</graph></graphml>'
    assert read_one(written(tmp_path, "g.graphml", text)).n_edges == 1


def test_a_node_of_gexf_called_by_its_id_has_no_label_and_an_edge_without_a_weight_weighs_one(tmp_path: Path) -> None:
    graph = nx.path_graph(3)
    graph.edges[0, 1]["weight"] = 4.0
    nx.write_gexf(graph, tmp_path / "path.gexf")
    graphs = read_one(tmp_path / "path.gexf")
    assert graphs.node_label is None
    assert as_list(graphs[0].edge_weight) == [4.0, 1.0]


LAUGHS = """<?xml version="1.0"?><!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<graphml><graph edgedefault="undirected"><node id="&b;"/></graph></graphml>"""
OUTSIDE = LAUGHS.replace('<!ENTITY a "ha">', '<!ENTITY a SYSTEM "file:///etc/hostname">')


def body(text: str) -> str:
    return f'{HEAD}<graph edgedefault="undirected">{text}</graph></graphml>'


def weighs(source: str, target: str, weight: str) -> str:
    """An edge, after the node that it starts at."""
    edge = f'<edge id="{source}{target}" source="{source}" target="{target}"><data key="w">{weight}</data></edge>'
    return f'<node id="{source}"/>{edge}'


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
        (body('<node/><node id="a"/>'), ": a node has no id"),
        (body('<node id="a"/><node id="a"/>'), ": two nodes are called 'a'"),
        (body('<node id="a"><graph><node id="b"/></graph></node>'), ": graphs inside nodes are not read"),
        (body('<node id="a"><data key="q">1</data></node>'), ": networkx cannot read it (Bad GraphML data: no key q)"),
        (body(weighs("a", "a", "much")), ": networkx cannot read it (could not convert string to float: 'much')"),
        (body(weighs("a", "a", "nan")), ": edge weights must be finite numbers, got nan"),
        (HEAD.replace('"double"', '"complex"') + "</graphml>", ": networkx cannot read it ('complex')"),
        (body(weighs("a", "b", "1") + weighs("b", "a", "2")), ": edge 0, 1 is given twice with different weights: 1"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path: Path, data: str | bytes, message: str) -> None:
    assert refusal(read_one, written(tmp_path, "g.graphml", data)).startswith(f"g.graphml{message}")


@pytest.mark.parametrize("data", ["<gexf/>", "<gexf><graph/></gexf>", HEAD + FIRST + "</graphml>"])
def test_a_file_that_is_not_gexf_is_refused(tmp_path: Path, data: str) -> None:
    assert refusal(read_one, written(tmp_path, "g.gexf", data)).startswith("g.gexf: ")
