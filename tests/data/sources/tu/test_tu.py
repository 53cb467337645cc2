"""Sets in the TU Dortmund format -> Graphs: the real ones and the odd ones."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ReadConfig
from egocnn.data.sources.tu import archive, read_tu
from tests.data.sources.tu.tu_sets import AUTO, TINY, assert_same, refusal, write_set

# ── the real sets ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "graphs", "classes", "nodes", "edges", "most", "node_labels", "edge_labels", "attributes"),
    [
        ("MUTAG", 188, 2, 17.93, 19.79, 28, 7, 4, 0),
        ("PTC_MR", 344, 2, 14.29, 14.69, 64, 18, 4, 0),
        ("PROTEINS", 1113, 2, 39.06, 72.82, 620, 3, 0, 1),
        ("NCI1", 4110, 2, 29.87, 32.30, 111, 37, 0, 0),
        ("IMDB-BINARY", 1000, 2, 19.77, 96.53, 136, 0, 0, 0),
        ("IMDB-MULTI", 1500, 3, 13.00, 65.94, 89, 0, 0, 0),
        ("REDDIT-BINARY", 2000, 2, 429.63, 497.75, 3782, 0, 0, 0),
        ("COLLAB", 5000, 3, 74.49, 2457.78, 492, 0, 0, 0),
        ("Mutagenicity", 4337, 2, 30.32, 30.77, 417, 14, 3, 0),
    ],
)
def test_the_sets_of_the_paper_have_the_statistics_of_the_collection(
    data_folder: Path,
    name: str,
    graphs: int,
    classes: int,
    nodes: float,
    edges: float,
    most: int,
    node_labels: int,
    edge_labels: int,
    attributes: int,
) -> None:
    read = read_tu(data_folder / "tu" / f"{name}.zip", AUTO)
    read.validate()
    assert (len(read), len(read.class_names), int(read.node_counts.max())) == (graphs, classes, most)
    assert round(read.n_nodes / graphs, 2) == nodes
    assert round(read.n_edges / graphs, 2) == edges
    assert (len(read.node_label_names), len(read.edge_label_names)) == (node_labels, edge_labels)
    assert (0 if read.node_attr is None else read.node_attr.shape[1]) == attributes
    assert read.names[0] == f"{name} 1"
    assert read.names[-1] == f"{name} {graphs}"
    assert read.part is None
    assert read.group is None
    assert read.target is not None
    assert set(read.target.tolist()) == set(range(classes))


# ── what a set may look like ──────────────────────────────────────────────────────────────────────────────────


def test_every_table_arrives_in_its_column(tmp_path: Path) -> None:
    graphs = read_tu(write_set(tmp_path, TINY), AUTO)
    graphs.validate()
    assert graphs.node_counts.tolist() == [3, 3, 2, 1]
    assert graphs.names == ("TINY 1", "TINY 2", "TINY 3", "TINY 4")
    assert graphs.class_names == ("-1", "1")
    assert graphs.node_label_names == ("-3", "2", "10")
    assert graphs.edge_label_names == ("0", "1", "5")
    first = graphs[0]
    assert first.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert first.edge_label == ("0", "0", "1")
    assert first.node_label == ("10", "2", "2")
    assert [graph.target for graph in graphs] == ["1", "-1", "1", "-1"]
    assert graphs[3].node_attr == pytest.approx(np.array([[8.5, -1e-8]]))


@pytest.mark.parametrize("where", ["folder", "folder inside", "zip", "zip with a folder"])
def test_folders_and_zips_give_the_same_graphs(tmp_path: Path, where: str) -> None:
    expected = read_tu(write_set(tmp_path / "plain", TINY), AUTO)
    inner = "set/" if where in ("folder inside", "zip with a folder") else ""
    if "zip" in where:
        source = tmp_path / "some.zip"
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as opened:
            opened.writestr(f"{inner}README.txt", "about")
            opened.writestr("__MACOSX/._TINY_A.txt", b"\0")
            for table, text in TINY.items():
                opened.writestr(f"{inner}TINY_{table}.txt", text)
    else:
        source = tmp_path / "outer"
        write_set(source / inner, TINY)
    assert_same(read_tu(source, AUTO), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(", ", ","),
        lambda text: text.replace(", ", " "),
        lambda text: text.replace(", ", "\t"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n \n\n",
        lambda text: text.rstrip("\n"),
        lambda text: "\ufeff" + text,
        lambda text: " " + text.replace("\n", " \n "),
    ],
)
def test_separators_line_ends_and_marks_do_not_matter(tmp_path: Path, change: object) -> None:
    assert callable(change)
    expected = read_tu(write_set(tmp_path / "plain", TINY), AUTO)
    changed = {table: change(text) for table, text in TINY.items()}
    assert_same(read_tu(write_set(tmp_path / "changed", changed), AUTO), expected)


@pytest.mark.parametrize("chunk", [1, 7, 40])
@pytest.mark.parametrize("labelled", [True, False])
def test_where_the_file_is_cut_into_chunks_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, labelled: bool
) -> None:
    tables = {table: text for table, text in TINY.items() if labelled or table != "edge_labels"}
    source = write_set(tmp_path, tables)
    expected = read_tu(source, AUTO)
    monkeypatch.setattr(archive, "CHUNK", chunk)
    assert_same(read_tu(source, AUTO), expected)


@given(st.permutations(TINY["A"].splitlines()))
@settings(deadline=None, max_examples=30)
def test_the_order_of_the_edges_does_not_matter(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.mktemp("sets")
    tables = {"A": TINY["A"], "graph_indicator": TINY["graph_indicator"]}
    expected = read_tu(write_set(folder / "ordered", tables), AUTO)
    shuffled = read_tu(write_set(folder / "shuffled", tables | {"A": "\n".join(lines)}), AUTO)
    assert_same(shuffled, expected)


def test_one_direction_repeated_edges_and_loops_are_understood(tmp_path: Path) -> None:
    source = write_set(tmp_path, {"A": "1, 2\n1, 2\n3, 3\n3, 2\n", "graph_indicator": "1\n1\n1\n"})
    graphs = read_tu(source, AUTO)
    assert graphs.edges.tolist() == [[0, 1], [1, 2], [2, 2]]
    assert graphs.target is None
    assert graphs.class_names == ()


def test_nodes_without_edges_are_fine(tmp_path: Path) -> None:
    graphs = read_tu(write_set(tmp_path, {"A": "", "graph_indicator": "1\n2\n2\n"}), AUTO)
    graphs.validate()
    assert graphs.node_counts.tolist() == [1, 2]
    assert graphs.n_edges == 0
    labelled = read_tu(write_set(tmp_path, {"edge_labels": ""}), AUTO)
    assert labelled.n_edges == 0


def test_a_row_of_several_labels_is_one_label(tmp_path: Path) -> None:
    source = write_set(tmp_path, TINY | {"node_labels": "10, 1\n2, 1\n2,1\n" + "2, 0\n" * 6})
    graphs = read_tu(source, AUTO)
    assert graphs.node_label_names == ("2, 0", "2, 1", "10, 1")
    assert graphs[0].node_label == ("10, 1", "2, 1", "2, 1")


def test_edge_attributes_are_left_alone_and_that_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = write_set(tmp_path, TINY | {"edge_attributes": "no numbers"})
    with caplog.at_level(logging.INFO, "egocnn"):
        read_tu(source, AUTO)
    assert [record.getMessage() for record in caplog.records] == [
        "TINY_edge_attributes.txt is left alone: edge attributes are not read"
    ]


def test_a_set_directly_in_the_folder_goes_before_one_inside(tmp_path: Path) -> None:
    write_set(tmp_path / "other", TINY, "OTHER")
    assert read_tu(write_set(tmp_path, TINY), AUTO).names[0] == "TINY 1"


# ── what is to be predicted ───────────────────────────────────────────────────────────────────────────────────

NUMBERS = "0.5, 1\n1.5, 2\n2.5, 3\n-3.5, 4\n"


def test_graph_attributes_are_predicted_where_there_are_no_labels(tmp_path: Path) -> None:
    tables = {table: text for table, text in TINY.items() if table != "graph_labels"}
    source = write_set(tmp_path, tables | {"graph_attributes": NUMBERS})
    graphs = read_tu(source, ReadConfig(target="0"))
    assert not graphs.is_classification
    assert [graph.target for graph in graphs] == [0.5, 1.5, 2.5, -3.5]
    assert [graph.target for graph in read_tu(source, ReadConfig(target="1"))] == [1, 2, 3, 4]
    assert refusal(source) == "TINY_graph_attributes.txt: 2 columns; target must be 0 to 1"
    assert refusal(source, ReadConfig(target="2")).startswith("TINY_graph_attributes.txt: no column '2'")
    assert "TINY_graph_labels.txt is missing" in refusal(source, ReadConfig(target="0", task="classification"))


def test_the_task_chooses_between_labels_and_numbers(tmp_path: Path) -> None:
    source = write_set(tmp_path, TINY)
    assert [graph.target for graph in read_tu(source, ReadConfig(task="regression"))] == [1, -1, 1, -1]
    write_set(tmp_path, {"graph_attributes": "0.5\n1.5\n2.5\n3.5\n"})
    assert read_tu(source, AUTO).class_names == ("-1", "1")
    assert [graph.target for graph in read_tu(source, ReadConfig(task="regression"))] == [0.5, 1.5, 2.5, 3.5]


def test_settings_that_name_a_column_are_refused(tmp_path: Path) -> None:
    source = write_set(tmp_path, {"A": "", "graph_indicator": "1\n"})
    assert "split names a column, and a TU set has none" in refusal(source, ReadConfig(split="part"))
    assert "neither graph labels nor graph attributes" in refusal(source, ReadConfig(target="toxic"))
