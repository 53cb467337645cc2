"""read: any source -> Graphs; a library that is not installed -> one line that says how to install it."""

import gzip
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.data.sources.pyg import to_pyg
from egocnn.errors import ConfigError, DataError, MissingExtraError
from tests.support.samples import refusal

EDGE = SimpleNamespace(edge_index=np.array([[0], [1]]))


def pair() -> Graphs:
    return Graphs.from_edges(node_counts=[2], edges=np.array([[0, 1]]))


def test_options_are_fields_of_the_settings(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    path = tmp_path / "molecules.CSV"
    path.write_text("structure,toxic\nCC,yes\nCO,no\n")
    graphs = read(path, smiles="structure", target="toxic")
    assert graphs.class_names == ("no", "yes")
    assert read(str(path), ReadConfig(smiles="structure"), target="toxic").class_names == ("no", "yes")
    with pytest.raises(TypeError, match="colour"):
        read(path, colour="red")
    with pytest.raises(ConfigError, match="task must be one of"):
        read(path, task="guess")


def test_a_column_with_the_name_of_a_part_reads_that_part_alone(tmp_path: Path) -> None:
    path = tmp_path / "molecules.csv"
    path.write_text("smiles,y,fold\nCC,1,train\nCO,2,test\nCN,3,val\n")
    pytest.importorskip("rdkit")
    assert read(path, split="fold=test").smiles == ("CO",)
    assert read(path, split="fold=validation").smiles == ("CN",)
    with pytest.raises(DataError, match="no part is called 'exam'; there are train, validation, test"):
        read(path, split="fold=exam")
    with pytest.raises(DataError, match="no column or field is called 'half'"):
        read(path, split="half=test")


def test_graphs_json_lines_and_what_was_saved_are_read(tmp_path: Path) -> None:
    graphs = pair()
    assert read(graphs) is graphs
    graphs.save(tmp_path / "graphs.safetensors")
    for suffix in (".jsonl", ".ndjson", ".json"):
        (tmp_path / f"graphs{suffix}").write_text('{"nodes": 2, "edges": [[0, 1]]}\n')
    for path in tmp_path.iterdir():
        assert read(path).n_edges == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv.gz", "Canonical_SMILES,name,y\nCCO,a,1\nCN,b,0\n"),
        ("m.tsv", "name\tcanonical smiles\ty\na\tCCO\t1\nb\tCN\t0\n"),
        ("m.csv", "name;My SMILES;y\na;CCO;1\nb;CN;0\n"),
        ("m.smi", "CCO a\nCN b\n"),
        ("m.smi.gz", "CCO a\nCN b\n"),
    ],
)
def test_tables_of_molecules_are_read_as_chemists_have_them(tmp_path: Path, name: str, text: str) -> None:
    pytest.importorskip("rdkit")
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    graphs = read(tmp_path / name)
    assert graphs.smiles == ("CCO", "CN")
    assert graphs.names == ("a", "b")
    assert graphs.class_names == (() if ".smi" in name else ("0", "1"))


def test_columns_that_could_all_hold_smiles_are_named(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("acid_smiles,Base_SMILES\nCC(=O)O,N\n")
    wanted = "m.csv: acid_smiles, Base_SMILES could all be the column of SMILES; name one with --smiles"
    assert refusal(read, tmp_path / "m.csv") == wanted
    assert read(tmp_path / "m.csv", smiles="Base_SMILES").smiles == ("N",)
    (tmp_path / "m.csv").write_text("acid_smiles,smiles\nCC(=O)O,N\n")
    assert read(tmp_path / "m.csv").smiles == ("N",)


def test_a_folder_of_graphml_and_gexf_is_one_collection_sorted_by_name(tmp_path: Path) -> None:
    nx = pytest.importorskip("networkx")
    nx.write_graphml(nx.path_graph(3), tmp_path / "b.graphml")
    nx.write_gexf(nx.path_graph(2), tmp_path / "a.gexf")
    (tmp_path / "notes.txt").write_text("nothing")
    graphs = read(tmp_path)
    assert graphs.names == ("a", "b")
    assert graphs.node_counts.tolist() == [2, 3]


def test_objects_and_networkx_graphs_are_read_alone_or_in_a_sequence() -> None:
    assert len(read(EDGE)) == 1
    assert len(read([EDGE, EDGE])) == len(read(item for item in (EDGE, EDGE))) == 2
    nx = pytest.importorskip("networkx")
    assert read(nx.path_graph(3)).node_counts.tolist() == [3]
    assert read((nx.path_graph(3), nx.DiGraph([(0, 1)]))).node_counts.tolist() == [3, 2]


def test_data_batches_and_data_sets_of_pytorch_geometric_are_as_many_graphs_as_they_have() -> None:
    data = pytest.importorskip("torch_geometric.data")
    import torch

    item = data.Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    assert len(read(item)) == 1
    assert len(read(data.Batch.from_data_list([item, item]))) == 2
    items = [data.Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, y=torch.tensor([i])) for i in range(3)]
    dataset = data.InMemoryDataset()
    dataset.data, dataset.slices = dataset.collate(items)
    assert len(read(dataset)) == 3
    assert read(dataset[1:]).class_names == ("1", "2")


@pytest.mark.skipif("EGOCNN_DATA" not in os.environ, reason="EGOCNN_DATA does not name the folder with the data sets")
def test_a_data_set_is_read_by_its_name() -> None:
    assert len(read("MUTAG")) == 188


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.csv", "missing.csv: no such file or folder"),
        ("~nobody-has-this-name/graphs.csv", "~nobody-has-this-name/graphs.csv: no such file or folder"),
        ("some/where/else", "some/where/else: no such file or folder"),
        ("", "an empty text is not a source of graphs; graphs are read from"),
        ("a\nb\0c", r"'a\nb\x00c': no such file or folder"),
        (3, "3 is not a source of graphs; graphs are read from the name of a TU data set"),
        (None, "None is not a source of graphs"),
        (b"bytes", "b'bytes' is not a source of graphs"),
        ([], "no graphs are given"),
        ({"CCO", "CCN"}, "a set of graphs has no order; give a list"),
        ([1, 2.0], "a sequence of float, int is not a source of graphs"),
        ([None, "CCO"], "item 0 is None and item 1 a SMILES; all must be of one kind"),
        ([EDGE, 3], "item 1 is 3 and item 0 data with an edge_index; all must be of one kind"),
        (["CCO", None], "item 1 is None and item 0 a SMILES; all must be of one kind"),
        (["CCO", "C", pair()[0]], "item 2 is a Graph and item 0 a SMILES; all must be of one kind"),
        (np.array([["CCO"]]), "an array of shape (1, 1) is not a source of graphs; give it one dimension"),
        (Path("CCO"), "CCO: is neither a file or folder nor the name of a published TU data set"),
    ],
)
def test_anything_else_is_refused_with_what_is_accepted(source: Any, message: str) -> None:
    assert refusal(read, source).startswith(message)


def test_graphs_of_a_collection_are_read_alone_or_in_a_list() -> None:
    graphs = read("compounds:alcohols:sizes=3-4,per_size=2")
    again = read(list(graphs))
    assert again.names == graphs.names
    assert [again.target_of(g) for g in range(len(again))] == [graphs.target_of(g) for g in range(len(graphs))]
    assert again.smiles == graphs.smiles
    for one, other in ((read(graphs[3])[0], graphs[3]), (again[3], graphs[3])):
        assert one.node_label == other.node_label
        assert one.edge_label == other.edge_label
        np.testing.assert_array_equal(one.edges, other.edges)
        np.testing.assert_array_equal(one.node_truth, other.node_truth)
    unknown = pair().replace(node_label=np.array([0, -1]), node_label_names=("C",))
    assert read(unknown[0])[0].node_label == ("C", "?")


def test_a_very_long_name_and_a_file_of_an_unknown_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read|no such file"):
        read("x/" * 10_000)
    path = tmp_path / "graphs.docx"
    path.write_text("")
    with pytest.raises(DataError, match=r"graphs\.docx: cannot tell what this is from its name; graphs are read from"):
        read(path)


def test_a_library_that_is_missing_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("rdkit", "networkx", "torch_geometric.data"):
        monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / "m.csv").write_text("smiles\nC\n")
    with pytest.raises(MissingExtraError, match=r"rdkit is not installed; type: pip install \"egocnn\[molecules\]\""):
        read(tmp_path / "m.csv", skip_invalid=True)
    (tmp_path / "g.graphml").write_text("<graphml/>")
    with pytest.raises(MissingExtraError, match=r"egocnn\[networks\]"):
        read(tmp_path / "g.graphml")
    with pytest.raises(MissingExtraError, match=r"egocnn\[pyg\]"):
        to_pyg(pair())
