"""Records -> one collection, or one clear line."""

import logging
from typing import Any

import pytest

from egocnn.config import ReadConfig
from egocnn.data.sources.builder import GraphFields
from egocnn.data.sources.records import GraphRecord, assemble
from egocnn.errors import ConfigError, DataError
from tests.support.samples import as_list, refusal


def pair(place: str = "graph 0", **columns: Any) -> GraphRecord:
    return GraphRecord(**{"place": place, "n_nodes": 2, "edges": [(0, 1)], **columns})


def test_records_are_put_end_to_end() -> None:
    first = pair(node_label=["C", "O"], edge_label=["single"], edge_weight=[2], node_attr=[[1], [2]])
    second = GraphRecord(place="graph 1", n_nodes=1, edges=[], node_label=[None], node_attr=[[3]])
    graphs = assemble([first, second], "here", names=("a", "b"))
    assert graphs.names == ("a", "b")
    assert graphs.edges.tolist() == [[0, 1]]
    assert graphs.node_label_names == ("C", "O")
    assert [graph.node_label for graph in graphs] == [("C", "O"), ("?",)]
    assert as_list(graphs.edge_label) == [0, 0]
    assert as_list(graphs.node_attr) == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "here: no graphs in it"),
        ([pair(n_nodes=0, edges=[])], "graph 0: a graph must have at least one node"),
        ([pair(n_nodes=10**9, edges=[])], "graph 0: 1000000000 nodes; a graph may have 10000000"),
        ([pair(edges=[(0, 2)])], "graph 0: edge 0, 2 leaves the graph; its nodes are 0 to 1"),
        ([pair(edges=[(-1, 0)])], "graph 0: edge -1, 0 leaves the graph"),
        ([pair(edges=[(0, 10**30)])], "graph 0: edge 0, 1000000000000000000000000000000 leaves the graph"),
        ([pair(), pair("graph 1", node_label=["C", "C"])], "graph 0: has no node labels, but graph 1 has"),
        ([pair(edge_weight=[1]), pair("graph 1")], "graph 1: has no edge weights, but graph 0 has"),
        ([pair(node_attr=[[1], [2]]), pair("graph 1")], "graph 1: has no node attributes, but graph 0 has"),
        ([pair(node_attr=[[1], [2, 3]])], "graph 0: node attributes must be numbers"),
        ([pair(node_attr=[[1]])], "graph 0: node attributes must be one row of numbers per node"),
        (
            [pair(node_attr=[[1], [2]]), pair("graph 1", node_attr=[[1, 2], [3, 4]])],
            "graph 1: 2 attributes per node, but graph 0 has 1",
        ),
        ([pair(edge_weight=[float("nan")])], "graph 0: edge weights must be finite numbers, got nan"),
        ([pair(edge_weight=[1e39])], "graph 0: edge weights must be finite numbers, got 1e+39"),
        ([pair(edge_weight=[10**400])], "graph 0: edge weights must be numbers"),
        ([pair(node_label=["\ud800", "C"])], "node_label_names must be texts that can be written as UTF-8"),
        (
            [pair(edge_label=["x"]), pair("graph 1", edges=[(0, 1), (1, 0)], edge_label=["single", "double"])],
            "graph 1: edge 1, 0 is given twice with different labels: single and double",
        ),
        (
            [pair(edges=[(0, 1), (0, 1)], edge_weight=[1, 2.5])],
            "graph 0: edge 0, 1 is given twice with different weights: 1 and 2.5",
        ),
    ],
)
def test_what_is_wrong_with_a_graph_is_said_in_one_line(records: list[GraphRecord], message: str) -> None:
    assert refusal(assemble, records, "here", names=[record.place for record in records]).startswith(message)


def test_an_edge_given_twice_alike_counts_once() -> None:
    graphs = assemble([pair(edges=[(0, 1), (1, 0)], edge_label=["x", "x"], edge_weight=[2, 2])], "here")
    assert graphs.n_edges == 1


def skip(config: ReadConfig, *, bad: int, valid: int) -> list[tuple[int, str, str]]:
    fields = GraphFields("m.csv", config, way_out="; a way out")
    for row in range(valid):
        fields.add(f"m.csv, row {bad + row + 1}", "", {})
    for row in range(bad):
        fields.skip(f"m.csv, row {row + 1}", row + 1, "x", DataError("bad"))
    fields.conclude("rows")
    return fields.skipped


def test_one_bad_row_in_twenty_is_left_out_and_counted_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="egocnn"):
        assert skip(ReadConfig(), bad=2, valid=38) == [(1, "x", "bad"), (2, "x", "bad")]
    assert caplog.messages == ["m.csv: 2 of 40 rows left out; the first is m.csv, row 1: bad"]


@pytest.mark.parametrize(
    ("config", "bad", "valid"),
    [(ReadConfig(), 2, 37), (ReadConfig(), 1, 1), (ReadConfig(strict=True), 1, 1000)],
    ids=["more", "half of two", "strict"],
)
def test_more_bad_rows_or_one_where_that_is_strict_stop(config: ReadConfig, bad: int, valid: int) -> None:
    with pytest.raises(DataError, match=r"^m\.csv, row 1: bad; a way out$"):
        skip(config, bad=bad, valid=valid)


def test_where_all_rows_are_left_out_the_first_reason_is_said() -> None:
    with pytest.raises(DataError, match=r"^m\.csv: no rows in it; the first is m\.csv, row 1: bad$"):
        skip(ReadConfig(skip_invalid=True), bad=2, valid=0)


def test_however_many_bad_rows_are_left_out_where_that_is_asked_for() -> None:
    assert len(skip(ReadConfig(skip_invalid=True), bad=12, valid=1)) == 12
    with pytest.raises(ConfigError, match="exclude each other"):
        ReadConfig(skip_invalid=True, strict=True)
