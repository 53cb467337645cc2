"""Where known structures come from: graphs, tables of alternatives, files of marked edges, and the real ones."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.errors import DataError
from lab.truths import Truth, has_marked_edge, read_alternatives, read_edge_marks
from tests.support.samples import molecules

TABLE = 'id,smiles,critical_atoms\na,CCO,"[[2], [1, 2]]"\nb,CC,[]\nc,CCN,"[[]]"\na,CCO,"[[2], [1, 2]]"\n'


def table(folder: Path, text: str = TABLE) -> Path:
    path = folder / "known.csv"
    path.write_text(text, encoding="utf-8")
    return path


def chains(*lengths: int, names: list[str]) -> Graphs:
    edges = [(i, i + 1) for i in range(sum(lengths)) if i + 1 not in np.cumsum(lengths)]
    return Graphs.from_edges(node_counts=lengths, edges=np.array(edges), names=names)


def test_alternatives_are_found_by_the_names_of_the_graphs(tmp_path: Path) -> None:
    truths = read_alternatives(table(tmp_path), chains(3, 3, 2, names=["c", "a", "b"]))
    assert [[one.tolist() for one in truth.alternatives] for truth in truths] == [[[]], [[2], [1, 2]], []]
    assert all(truth.edges is None for truth in truths)


def test_without_names_alternatives_are_found_by_row(tmp_path: Path) -> None:
    path = table(tmp_path, 'atoms\n"[[0]]"\n"[[1]]"\n')
    (truth,) = read_alternatives(path, chains(2, names=["2"]), column="atoms")
    assert [one.tolist() for one in truth.alternatives] == [[1]]


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        ('"[[3]]"', r"known.csv, row 1: critical_atoms '\[\[3\]\]' names atom 3; the molecule's are 0 to 2"),
        ('"[[-1]]"', r"row 1: .* names atom -1"),
        ('"[[1.0]]"', r"row 1: .* holds 1.0; an atom must be a whole number"),
        ('"[[true]]"', r"row 1: .* holds True"),
        ("[1]", r"row 1: critical_atoms '\[1\]' must be a JSON list of lists"),
        ("", r"row 1: critical_atoms '' must be a JSON list of lists"),
        ("[" * 100_000, r"row 1: .* must be a JSON list of lists"),
        ('"[[' + "9" * 5000 + ']]"', r"row 1: .* must be a JSON list of lists"),
    ],
)
def test_a_cell_that_breaks_a_rule_is_named(tmp_path: Path, cell: str, rule: str) -> None:
    with pytest.raises(DataError, match=rule) as caught:
        read_alternatives(table(tmp_path, f"id,critical_atoms\na,{cell}\n"), chains(3, names=["a"]))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_missing_columns_missing_rows_and_rows_that_disagree_are_named(tmp_path: Path) -> None:
    graphs = chains(3, names=["a"])
    with pytest.raises(DataError, match="no column is called 'critical'"):
        read_alternatives(table(tmp_path), graphs, column="critical")
    with pytest.raises(DataError, match="no row is called 'z'"):
        read_alternatives(table(tmp_path), chains(3, names=["z"]))
    with pytest.raises(DataError, match=r"known.csv, row 2: 'a' has critical_atoms '\[\]', but '\[\[1\]\]' in row 1"):
        read_alternatives(table(tmp_path, "id,critical_atoms\na,[[1]]\na,[]\n"), graphs)


def test_a_graph_brings_its_own_truth() -> None:
    water, atom, _ = (Truth.of(graph) for graph in molecules())
    assert [one.tolist() for one in water.alternatives] == [[1, 2]]
    assert water.edges is not None
    assert water.edges.tolist() == [False, True]
    assert atom.alternatives == ()
    assert has_marked_edge(molecules()).tolist() == [True, False, True]
    assert has_marked_edge(molecules().replace(edge_truth=None)).tolist() == [False] * 3


def tu_set(folder: Path, pairs: str = "1, 2\n2, 1\n3, 2\n2, 3\n4, 5\n5, 4\n") -> Path:
    path = folder / "TINY.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("TINY/TINY_A.txt", pairs)
        archive.writestr("TINY/TINY_graph_indicator.txt", "1\n1\n1\n2\n2\n")
        archive.writestr("TINY/TINY_graph_labels.txt", "0\n1\n")
    return path


def test_marked_edges_stand_where_the_lines_of_the_pairs_say(tmp_path: Path) -> None:
    source, path = tu_set(tmp_path), tmp_path / "marks.txt"
    path.write_text("0\n0\n1\n1\n0\n0\n")
    graphs = read_edge_marks(path, read(source), source)
    assert [graph.edge_truth.tolist() for graph in graphs if graph.edge_truth is not None] == [[False, True], [False]]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0\n0\n2\n1\n0\n0\n", "marks.txt, line 3: 2 is no mark; it must be 0 or 1"),
        ("0\n0\n1\n", "marks.txt has 3 lines for 6 of TINY/TINY_A.txt"),
        ("0\n0\n1\n0\n0\n0\n", "marks.txt, line 4: edge 2, 3 is marked 0, but 1 on line 3; both directions"),
        ("0\n0\nx\n1\n0\n0\n", "marks.txt, line 3: 'x' is not a whole number"),
    ],
)
def test_marks_that_break_a_rule_are_named(tmp_path: Path, text: str, rule: str) -> None:
    source, path = tu_set(tmp_path), tmp_path / "marks.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=rule):
        read_edge_marks(path, read(source), source)


def test_marks_need_the_whole_set(tmp_path: Path) -> None:
    source, path = tu_set(tmp_path), tmp_path / "marks.txt"
    path.write_text("0\n0\n1\n1\n0\n0\n")
    for graphs in (read(source)[:1], chains(2, 3, names=["one", "two"])):
        with pytest.raises(DataError, match="give the whole set"):
            read_edge_marks(path, graphs, source)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="0 files are called NAME_A"):
        read_edge_marks(path, read(source), tmp_path / "empty")
