"""JSON lines -> Graphs."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import egocnn
from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from tests.support.samples import as_list, refusal, sure


def read(folder: Path, *lines: Any, config: ReadConfig | None = None) -> Graphs:
    """Read lines that are given as text or as what JSON is to be made of."""
    path = folder / "g.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return egocnn.read(path, config)


def test_nodes_may_be_labels_a_number_or_objects_and_edges_lists_objects_or_left_out(tmp_path: Path) -> None:
    import egocnn.data.sources.jsonlines as module

    example = next(line for line in (module.__doc__ or "").splitlines() if line.strip().startswith("{"))
    graphs = read(tmp_path, example)
    assert (graphs.names, graphs[0].target) == (("ethanol",), "alcohol")
    assert (graphs[0].node_label, graphs[0].edge_label) == (("C", "C", "O"), ("single", "single"))
    graphs = read(tmp_path, {"nodes": 3}, "", {"nodes": 2, "edges": [[0, 1], [1, 0], [1, 1]]})
    assert graphs.names == ("1", "3")
    assert graphs.node_counts.tolist() == [3, 2]
    assert graphs[1].edges.tolist() == [[0, 1], [1, 1]]
    assert graphs.node_label is None
    assert graphs.target is None
    nodes = [{"label": 6, "attributes": [0.5, 1]}, {"label": None, "attributes": [1e-3, -2]}]
    edges = [{"source": 1, "target": 0, "label": "x", "weight": 2}]
    graph = read(tmp_path, {"nodes": nodes, "edges": edges})[0]
    assert graph.node_label == ("6", "?")
    assert graph.edge_label == ("x",)
    assert as_list(graph.edge_weight) == [2]
    assert sure(graph.node_attr).shape == (2, 2)


def test_the_fields_of_a_graph_follow_the_settings_and_known_critical_parts_are_read(tmp_path: Path) -> None:
    line = {"nodes": 1, "title": "a", "toxic": True, "part": "test", "family": 3, "label": "other"}
    config = ReadConfig(name="title", target="toxic", split="part", group="family")
    graphs = read(tmp_path, line, {**line, "toxic": None}, config=config)
    assert (graphs.names, graphs.class_names) == (("a", "a"), ("True",))
    assert [as_list(column) for column in (graphs.target, graphs.part, graphs.group)] == [[0, -1], [2, 2], [0, 0]]
    assert not read(tmp_path, '{"nodes": 1, "target": 1.0}', '{"nodes": 1, "target": 0}').is_classification
    assert read(tmp_path, '{"nodes": 1, "target": 1}', '{"nodes": 1, "target": 0}').is_classification
    line = {"nodes": 3, "edges": [[0, 1], [1, 2], [2, 1]], "critical_nodes": [2, 1], "critical_edges": [[2, 1]]}
    graph = read(tmp_path, line)[0]
    assert as_list(graph.node_truth) == [False, True, True]
    assert as_list(graph.edge_truth) == [False, True]


PAIR = {"nodes": 2, "edges": [[0, 1]]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON (Expecting property name"),
        ("[1]", "a line must be one JSON object"),
        ("3", "a line must be one JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"nodes": ' + "[" * 100_000, "nested too deeply"),
        ('{"nodes": ' + "9" * 5000 + "}", "not JSON (Exceeds the limit"),
        ('{"nodes": 1, "nodes": 2}', "the field 'nodes' is given twice"),
        ('{"nodes": 1, "target": NaN}', "NaN is not a number that JSON knows"),
        ('{"nodes": 1, "target": -Infinity}', "-Infinity is not a number"),
        ('{"nodes": 1, "target": 1e999}', "target 'inf' is not a finite number"),
        ('{"nodes": [{"attributes": [1e999]}]}', "node attributes must be finite numbers, got inf"),
        ({"edges": []}, "nodes must be a number or a list, got None"),
        ({"nodes": True}, "nodes must be a number or a list, got True"),
        ({"nodes": 1.0}, "nodes must be a number or a list, got 1.0"),
        ({"nodes": "CCO"}, "nodes must be a number or a list, got 'CCO'"),
        ({"nodes": 0}, "nodes must be 1 to 10000000, got 0"),
        ({"nodes": -1}, "nodes must be 1 to 10000000, got -1"),
        ({"nodes": 10**12}, "nodes must be 1 to 10000000, got 1000000000000"),
        ({"nodes": []}, "a graph must have at least one node"),
        ({"nodes": ["C", True]}, "node label True must be a text or a whole number"),
        ({"nodes": ["C", 1.5]}, "node label 1.5 must be a text or a whole number"),
        ({"nodes": ["C", {"label": "C"}]}, "node label {'label': 'C'} must be a text"),
        ({"nodes": [{"label": "C"}, "C"]}, "node 1 must be an object with label, attributes, got 'C'"),
        ({"nodes": [{"label": "C"}, {}]}, "node 1 has other fields than node 0"),
        ({"nodes": [{"lable": "C"}]}, "node 0 has a field 'lable'; there may be label, attributes"),
        ({"nodes": [{"attributes": 3}]}, "attributes of node 0 must be numbers, got 3"),
        ({"nodes": [{"attributes": [True]}]}, "attributes of node 0 must be numbers, got [True]"),
        ({"nodes": [{"attributes": [1]}, {"attributes": [1, 2]}]}, "node attributes must be numbers"),
        ({"nodes": 2, "edges": 3}, "edges must be a list, got 3"),
        ({"nodes": 2, "edges": None}, "edges must be a list, got None"),
        ({"nodes": 2, "edges": [3]}, "edge 3 must be a list or an object"),
        ({"nodes": 2, "edges": [[0]]}, "edge [0] must be [source, target] or [source, target, label]"),
        ({"nodes": 2, "edges": [[0, 1, "x", 2]]}, "edge [0, 1, 'x', 2] must be"),
        ({"nodes": 2, "edges": [[0, 2]]}, "edge [0, 2] must join two nodes, numbered 0 to 1"),
        ({"nodes": 2, "edges": [[0, -1]]}, "edge [0, -1] must join two nodes"),
        ({"nodes": 2, "edges": [[0, True]]}, "edge [0, True] must join two nodes"),
        ({"nodes": 2, "edges": [[0, 1.0]]}, "edge [0, 1.0] must join two nodes"),
        ({"nodes": 2, "edges": [[0, "1"]]}, "edge [0, '1'] must join two nodes"),
        ({"nodes": 2, "edges": [[0, 10**40]]}, "edge [0, 1"),
        ({"nodes": 2, "edges": [[0, 1, "x"], [0, 1]]}, "edge [0, 1] is not written as edge 0 is"),
        ({"nodes": 2, "edges": [{"source": 0}]}, "edge {'source': 0} must have a source and a target"),
        ({"nodes": 2, "edges": [{"from": 0, "to": 1}]}, "edge {'from': 0, 'to': 1} has a field 'from'"),
        ({"nodes": 2, "edges": [{"source": 0, "target": 1, "weight": "2"}]}, "edge weights must be numbers"),
        ({"nodes": 2, "edges": [{"source": 0, "target": 1, "weight": None}]}, "edge weights must be numbers"),
        ({"nodes": 2, "edges": [[0, 1, "x"], [1, 0, "y"]]}, "edge 1, 0 is given twice with different labels: x and y"),
        ({**PAIR, "critical_nodes": [2]}, "critical_nodes must be a list of nodes, got [2]"),
        ({**PAIR, "critical_nodes": True}, "critical_nodes must be a list of nodes, got True"),
        ({**PAIR, "critical_edges": [[0, 0]]}, "critical edge 0, 0 is not among the edges"),
        ({"nodes": 1, "target": [1]}, "target [1] must be a text or a number"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_in_one_line(tmp_path: Path, line: Any, message: str) -> None:
    found = refusal(read, tmp_path, line)
    assert found.startswith(f"g.jsonl, line 1: {message}")
    assert len(found) < 250


def test_what_is_wrong_with_a_whole_file_is_said_too(tmp_path: Path) -> None:
    for lines, message in (
        ([""], "g.jsonl: no graphs in it"),
        (["\n \n"], "g.jsonl: no graphs in it"),
        (['{"nodes": 1, "name": "\\ud800"}'], "g.jsonl, line 1: '\\ud800' is not text that can be written as UTF-8"),
        (['{"nodes": 1, "x\\ud800": 1}'], "g.jsonl, line 1: '\\ud800' is not text that can be written as UTF-8"),
        (['{"nodes": 1, "x": ["\\udfff"]}'], "g.jsonl, line 1: '\\udfff' is not text that can be written as UTF-8"),
        ([{"nodes": 1}, {"nodes": ["C"]}], "g.jsonl, line 1: has no node labels, but g.jsonl, line 2 has"),
    ):
        assert refusal(read, tmp_path, *lines).startswith(message)


def test_bad_lines_can_be_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="egocnn"):
        graphs = read(tmp_path, "{", {"nodes": 1}, {"nodes": 0}, config=ReadConfig(skip_invalid=True))
    assert graphs.names == ("2",)
    assert [row[0] for row in graphs.skipped] == [1, 3]
    assert len(caplog.messages) == 1
