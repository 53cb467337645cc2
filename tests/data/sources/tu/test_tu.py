"""Sets in the TU Dortmund format -> Graphs: the real ones, the odd ones, and what is wrong with broken ones."""

import io
import logging
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ReadConfig
from egocnn.data.sources.tu import archive, read_tu
from tests.support import samples

AUTO = ReadConfig()

# two triangles, a pair and a lonely node: graphs of 3, 3, 2 and 1 nodes
TINY = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n5, 6\n6, 5\n4, 6\n6, 4\n7, 8\n8, 7\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n3\n3\n4\n",
    "graph_labels": "1\n-1\n1\n-1\n",
    "node_labels": "10\n2\n2\n2\n2\n10\n2\n2\n-3\n",
    "edge_labels": "0\n0\n1\n1\n0\n0\n0\n0\n0\n0\n1\n1\n5\n5\n",
    "node_attributes": "".join(f"{i}.5, -1e-{i}\n" for i in range(9)),
}


def write_set(folder: Path, tables: dict[str, str] | dict[str, bytes], name: str = "TINY") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for table, text in tables.items():
        (folder / f"{name}_{table}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def refusal(source: Path, config: ReadConfig = AUTO) -> str:
    return samples.refusal(read_tu, source, config)


# graphs, classes, nodes and edges of a graph, most nodes, node labels, edge labels, attributes
STATISTICS = {
    "MUTAG": (188, 2, 17.93, 19.79, 28, 7, 4, 0),
    "PTC_MR": (344, 2, 14.29, 14.69, 64, 18, 4, 0),
    "PROTEINS": (1113, 2, 39.06, 72.82, 620, 3, 0, 1),
    "NCI1": (4110, 2, 29.87, 32.30, 111, 37, 0, 0),
    "IMDB-BINARY": (1000, 2, 19.77, 96.53, 136, 0, 0, 0),
    "IMDB-MULTI": (1500, 3, 13.00, 65.94, 89, 0, 0, 0),
    "REDDIT-BINARY": (2000, 2, 429.63, 497.75, 3782, 0, 0, 0),
    "COLLAB": (5000, 3, 74.49, 2457.78, 492, 0, 0, 0),
    "Mutagenicity": (4337, 2, 30.32, 30.77, 417, 14, 3, 0),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_the_sets_of_the_paper_have_the_statistics_of_the_collection(data_folder: Path, name: str) -> None:
    read = read_tu(data_folder / "tu" / f"{name}.zip", AUTO)
    read.validate()
    n, classes = len(read), len(read.class_names)
    sizes = (n, classes, round(read.n_nodes / n, 2), round(read.n_edges / n, 2), int(read.node_counts.max()))
    columns = 0 if read.node_attr is None else read.node_attr.shape[1]
    assert (*sizes, len(read.node_label_names), len(read.edge_label_names), columns) == STATISTICS[name]
    assert (read.names[0], read.names[-1]) == (f"{name} 1", f"{name} {n}")
    assert read.part is None
    assert read.group is None
    assert read.target is not None
    assert set(read.target.tolist()) == set(range(classes))


def test_every_table_arrives_in_its_column(tmp_path: Path) -> None:
    write_set(tmp_path / "other", TINY, "OTHER")  # a set directly in the folder goes before one inside
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


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "expected"),
    [
        ("MUTAG", "0 2", "1", (("C", "O"), ("single",))),
        ("Mutagenicity", "4 1", "1", (("O", "N"), ("double",))),
        ("NCI1", "0 2", "1", (("0", "2"), ("1",))),
        ("MUTAG", "0 7", "1", (("0", "7"), ("1",))),  # another set of this name: one of its numbers means nothing
        ("MUTAG", "0 2", "4", (("0", "2"), ("4",))),
    ],
)
def test_numbers_are_atoms_and_bonds_in_the_sets_that_say_what_they_mean(
    tmp_path: Path, name: str, nodes: str, edges: str, expected: tuple[tuple[str, ...], ...]
) -> None:
    tables = {"A": "1, 2\n", "graph_indicator": "1\n1\n", "graph_labels": "1\n"}
    labels = {"node_labels": nodes.replace(" ", "\n") + "\n", "edge_labels": f"{edges}\n"}
    read = read_tu(write_set(tmp_path, tables | labels, name), AUTO)
    assert (read.node_label_names, read.edge_label_names) == expected


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
    samples.assert_equal(read_tu(source, AUTO), expected)


@pytest.mark.parametrize("chunk", [1, 7, 40])
@pytest.mark.parametrize("labelled", [True, False])
def test_where_the_file_is_cut_into_chunks_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, labelled: bool
) -> None:
    tables = {table: text for table, text in TINY.items() if labelled or table != "edge_labels"}
    source = write_set(tmp_path, tables)
    expected = read_tu(source, AUTO)
    monkeypatch.setattr(archive, "CHUNK", chunk)
    samples.assert_equal(read_tu(source, AUTO), expected)


@given(st.permutations(TINY["A"].splitlines()))
@settings(max_examples=30)
def test_the_order_of_the_edges_does_not_matter(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.mktemp("sets")
    tables = {"A": TINY["A"], "graph_indicator": TINY["graph_indicator"]}
    expected = read_tu(write_set(folder / "ordered", tables), AUTO)
    shuffled = read_tu(write_set(folder / "shuffled", tables | {"A": "\n".join(lines)}), AUTO)
    samples.assert_equal(shuffled, expected)


def test_one_direction_repeated_edges_loops_and_nodes_without_edges_are_understood(tmp_path: Path) -> None:
    source = write_set(tmp_path, {"A": "1, 2\n1, 2\n3, 3\n3, 2\n", "graph_indicator": "1\n1\n1\n"})
    graphs = read_tu(source, AUTO)
    assert graphs.edges.tolist() == [[0, 1], [1, 2], [2, 2]]
    assert graphs.target is None
    assert graphs.class_names == ()
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


HUGE = 10**12
INSIDE, ONE_EACH = "an edge must stay inside one graph", "it must have one for each"
NO_NODES = "where graph 2 should, which has no nodes; every graph must have one"
ASCENDING = "the nodes of a graph must follow one another, graphs ascending"
NOT_FINITE, TOO_LARGE = "is not a finite number; every field must be one", "is too large; it must fit in 32 bits"
TWO_LABELS = "'0' on line 1; an edge must have one label, the same in both directions"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": "1, 2\n2, x\n"}, "A.txt, line 2: 'x' is not a whole number; every field must be one"),
        ({"A": "1, 2\n3, 4\n"}, f"A.txt, line 2: edge 3, 4 joins graph 1 to graph 2; {INSIDE}"),
        ({"A": "1, 2\n0, 1\n"}, "A.txt, line 2: node 0 is out of range; nodes are numbered 1 to 9"),
        ({"A": "1, 2\n1, -1\n"}, "A.txt, line 2: node -1 is out of range; nodes are numbered 1 to 9"),
        ({"A": "1, 2\n1, 10\n"}, "A.txt, line 2: node 10 is out of range; nodes are numbered 1 to 9"),
        ({"A": f"1, 2\n{2**40}, 1\n"}, f"A.txt, line 2: node {2**40} is out of range; nodes are numbered 1 to 9"),
        ({"graph_labels": "1\n-1\n1\n"}, "graph_labels.txt has 3 lines for 4 graphs; it must have one for each"),
        ({"node_labels": "1\n"}, "node_labels.txt has 1 lines for 9 nodes; it must have one for each"),
        ({"edge_labels": "1\n1\n"}, f"edge_labels.txt has 2 lines for 14 lines of TINY_A.txt; {ONE_EACH}"),
        ({"node_attributes": "1\n" * 10}, "node_attributes.txt has 10 lines for 9 nodes; it must have one for each"),
        ({"graph_indicator": ""}, "graph_indicator.txt is empty: the set has no graphs"),
        ({"graph_indicator": "0\n1\n"}, "graph_indicator.txt, line 1: graph 0; graphs are counted from 1"),
        ({"graph_indicator": "1\n-2\n"}, "graph_indicator.txt, line 2: graph -2; graphs are counted from 1"),
        ({"graph_indicator": "1\n1\n3\n"}, f"graph_indicator.txt, line 3: graph 3 comes {NO_NODES}"),
        ({"graph_indicator": "1\n2\n1\n"}, f"graph_indicator.txt, line 3: graph 1 after graph 2; {ASCENDING}"),
        ({"node_attributes": "1\n" * 8 + "nan\n"}, f"node_attributes.txt, line 9: 'nan' {NOT_FINITE}"),
        ({"node_attributes": "1\n" * 8 + "-1e39\n"}, f"node_attributes.txt, line 9: 1e+39 {TOO_LARGE}"),
        ({"node_labels": "C\n" * 9}, "node_labels.txt, line 1: 'C' is not a whole number; every field must be one"),
        ({"edge_labels": "0\n1\n" * 7}, f"edge_labels.txt, line 2: edge 2, 1 has label '1', but {TWO_LABELS}"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    assert refusal(write_set(tmp_path, TINY | changes)) == f"TINY_{message}"


def test_the_line_is_counted_through_all_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "CHUNK", 64)
    source = write_set(tmp_path, {"A": "1, 2\n2, 1\n" * 500 + "1, 3\n", "graph_indicator": "1\n1\n2\n"})
    assert refusal(source).startswith("TINY_A.txt, line 1001: edge 1, 3 joins graph 1 to graph 2")


def test_a_graph_number_far_beyond_takes_no_memory(tmp_path: Path) -> None:
    source = write_set(tmp_path, {"A": "", "graph_indicator": f"1\n{HUGE}\n"})
    tracemalloc.start()
    try:
        assert f"graph {HUGE} comes where graph 2 should" in refusal(source)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("missing", ["A", "graph_indicator"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    source = write_set(tmp_path, {table: text for table, text in TINY.items() if table != missing})
    assert refusal(source) == f"{tmp_path}: TINY_{missing}.txt is missing; a TU set needs it"


def test_a_folder_without_a_set_no_folder_and_several_sets_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: no NAME_A.txt in it, so it is not a set in the TU format"
    assert refusal(tmp_path / "absent") == f"{tmp_path / 'absent'}: no such folder or zip file"
    write_set(tmp_path, TINY, "ONE")
    assert "holds several sets, ONE, TWO" in refusal(write_set(tmp_path, TINY, "TWO"))


def test_damage_to_a_zip_is_named_before_the_line_it_spoils(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as opened:
        for table, text in TINY.items():
            opened.writestr(f"TINY_{table}.txt", text)
    source = tmp_path / "TINY.zip"
    source.write_bytes(stream.getvalue().replace(b"7, 8\n", b"7, 0\n"))
    assert "TINY.zip: 'TINY_A.txt' is damaged (Bad CRC-32" in refusal(source)
