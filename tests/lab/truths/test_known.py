"""Where known structures come from: graphs, tables of alternatives, marked edges, mirrors and the real ones."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.families import Family, generate, read
from lab.truths import (
    Truth,
    has_marked_edge,
    label_importances,
    random_scores,
    read_alternatives,
    read_edge_marks,
    score_structures,
)
from lab.truths.isomers import mirror
from lab.truths.tasks import TASKS
from tests.data.generated.molecules import atoms
from tests.lab.test_families import families
from tests.support.samples import as_list, molecules, sure

TABLE = 'id,smiles,critical_atoms\na,CCO,"[[2], [1, 2]]"\nb,CC,[]\nc,CCN,"[[]]"\na,CCO,"[[2], [1, 2]]"\n'


def table(folder: Path, text: str = TABLE) -> Path:
    path = folder / "known.csv"
    path.write_text(text, encoding="utf-8")
    return path


def chains(*lengths: int, names: list[str]) -> Graphs:
    edges = [(i, i + 1) for i in range(sum(lengths)) if i + 1 not in np.cumsum(lengths)]
    return Graphs.from_edges(node_counts=lengths, edges=np.array(edges), names=names)


def test_alternatives_are_found_by_the_names_of_the_graphs_and_without_names_by_row(tmp_path: Path) -> None:
    truths = read_alternatives(table(tmp_path), chains(3, 3, 2, names=["c", "a", "b"]))
    assert [[one.tolist() for one in truth.alternatives] for truth in truths] == [[[]], [[2], [1, 2]], []]
    assert all(truth.edges is None for truth in truths)
    path = table(tmp_path, 'atoms\n"[[0]]"\n"[[1]]"\n')
    (truth,) = read_alternatives(path, chains(2, names=["2"]), column="atoms")
    assert [one.tolist() for one in truth.alternatives] == [[1]]


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        ('"[[3]]"', r"known.csv, row 1: critical_atoms '\[\[3\]\]' names atom 3; the molecule's are 0 to 2"),
        ('"[[1.0]]"', r"row 1: .* holds 1.0; an atom must be a whole number"),
        ("[1]", r"row 1: critical_atoms '\[1\]' must be a JSON list of lists"),
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
    twice = "id,critical_atoms\na,[[1]]\na,[]\n"
    for text, name, column, rule in (
        (TABLE, "a", "critical", "no column is called 'critical'"),
        (TABLE, "z", "critical_atoms", "no row is called 'z'"),
        (twice, "a", "critical_atoms", r"known.csv, row 2: 'a' has critical_atoms '\[\]', but '\[\[1\]\]' in row 1"),
    ):
        with pytest.raises(DataError, match=rule):
            read_alternatives(table(tmp_path, text), chains(3, names=[name]), column=column)


def test_a_graph_brings_its_own_truth() -> None:
    water, atom, _ = (Truth.of(graph) for graph in molecules())
    assert [one.tolist() for one in water.alternatives] == [[1, 2]]
    assert as_list(water.edges) == [False, True]
    assert atom.alternatives == ()
    assert has_marked_edge(molecules()).tolist() == [True, False, True]
    assert has_marked_edge(molecules().replace(edge_truth=None)).tolist() == [False] * 3


def marked(folder: Path, marks: str) -> tuple[Path, Path]:
    """A TU set, and a file that marks its six pairs of nodes."""
    path = folder / "TINY.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("TINY/TINY_A.txt", "1, 2\n2, 1\n3, 2\n2, 3\n4, 5\n5, 4\n")
        archive.writestr("TINY/TINY_graph_indicator.txt", "1\n1\n1\n2\n2\n")
        archive.writestr("TINY/TINY_graph_labels.txt", "0\n1\n")
    (folder / "marks.txt").write_text(marks)
    return path, folder / "marks.txt"


def test_marked_edges_stand_where_the_lines_of_the_pairs_say(tmp_path: Path) -> None:
    source, path = marked(tmp_path, "0\n0\n1\n1\n0\n0\n")
    graphs = read_edge_marks(path, read(source), source)
    assert [as_list(graph.edge_truth) for graph in graphs] == [[False, True], [False]]
    for others in (read(source)[:1], chains(2, 3, names=["one", "two"])):
        with pytest.raises(DataError, match="give the whole set"):
            read_edge_marks(path, others, source)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="0 files are called NAME_A"):
        read_edge_marks(path, read(source), tmp_path / "empty")


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
    source, path = marked(tmp_path, text)
    with pytest.raises(DataError, match=rule):
        read_edge_marks(path, read(source), source)


@settings(max_examples=25)
@given(families())
def test_the_mirror_is_an_automorphism_that_exchanges_the_arms(family: Family) -> None:
    for graph in generate(family):
        if graph.target == "symmetric":
            partner = mirror(graph)
            assert (partner[partner] == np.arange(graph.n_nodes)).all()
            assert [atoms(graph)[n] for n in partner] == list(atoms(graph))
            moved = np.sort(partner[graph.edges], axis=1)
            assert {(u, v) for u, v in moved.tolist()} == {(u, v) for u, v in graph.edges.tolist()}
            fixed = np.flatnonzero(partner == np.arange(graph.n_nodes))
            assert sum(atoms(graph)[n] == "C" for n in fixed) == 2


def test_no_automorphism_of_an_asymmetric_isomer_exchanges_the_arms() -> None:
    networkx = pytest.importorskip("networkx", exc_type=ImportError)
    for graph in read("compounds:isomers:sizes=3-6,per_size=10"):
        network = networkx.Graph(graph.edges.tolist())
        (centre,) = networkx.center(network)
        matcher = networkx.isomorphism.GraphMatcher(network, network)
        moves = [any(found[n] != n for n in network[centre]) for found in matcher.isomorphisms_iter()]
        assert any(moves) == (graph.target == "symmetric")


@pytest.mark.parametrize(
    ("edges", "n_nodes", "message"),
    [
        ([[0, 1], [1, 2], [2, 0]], 3, "only a tree"),
        ([[0, 1], [1, 2], [2, 0]], 4, "only a tree"),
        ([[0, 1], [1, 2], [2, 3]], 4, "its centre is a bond"),
        ([[0, 1], [1, 2], [2, 3], [3, 4], [1, 5]], 6, "two arms differ"),
        ([], 1, "two arms differ"),
    ],
)
def test_a_graph_without_a_mirror_says_why(edges: list[list[int]], n_nodes: int, message: str) -> None:
    (graph,) = Graphs.from_edges(node_counts=[n_nodes], edges=np.array(edges, int), names=["odd one"])
    with pytest.raises(DataError, match=f"^odd one: .*{message}"):
        mirror(graph)


def test_alcohols_are_explained_by_the_oxygen_and_its_hydrogen() -> None:
    problem = TASKS["alcohols"].load(0)
    assert len(problem.explained) == len(problem.truths)
    for graph, truth in zip(problem.explained, problem.truths, strict=True):
        (critical,) = truth.alternatives
        assert sorted(sure(graph.node_label)[node] for node in critical) == ["H", "O"]


def test_chance_and_a_trivial_rule_score_on_the_47_positives_of_logic7_what_was_measured_before(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rdkit")
    monkeypatch.setenv("EGOCNN_DATA", str(data_folder))
    task = TASKS["logic7"]
    positive, truths = (loaded := task.load(0)).explained, loaded.truths
    assert all(truth.alternatives for truth in truths)
    assert random_scores(positive, truths, draws=20).mean.node_auc == pytest.approx(0.574, abs=0.02)
    rule = score_structures(label_importances(positive, task.trivial), truths)
    assert rule.node_graphs == len(positive) == 47
    assert rule.node_auc == pytest.approx(0.835, abs=0.0005)


def test_mutagenicity_explains_the_1015_marked_mutagens_and_the_second_task_trains_on_no_unmarked_ones(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EGOCNN_DATA", str(data_folder))
    whole, marked = (TASKS[name].load(0) for name in ("mutagenicity", "mutagenicity-marked"))
    assert len(whole.explained) == len(marked.explained) == 1015
    assert all(truth.edges is not None and truth.edges.any() for truth in whole.truths)
    chosen, nitrogen = whole.explained, "N"
    ends = sure(chosen.node_label)[np.stack([chosen.entry_node, chosen.indices])[:, sure(chosen.edge_truth)]]
    assert (ends == chosen.node_label_names.index(nitrogen)).any(axis=0).all()
    for graphs in (marked.training, marked.test):
        mutagens = graphs[np.flatnonzero(sure(graphs.target) == graphs.class_names.index("0"))]
        assert all(graph.edge_truth is not None and graph.edge_truth.any() for graph in mutagens)
