"""Stores: what is written is read back in any portions, sources are written in portions, and old stores stay whole."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ReadConfig
from egocnn.data.collection import Collection, choose_part
from egocnn.data.graphs import Graphs
from egocnn.data.read import read, stream_source
from egocnn.data.store import Store, Stored, is_store, write_store
from egocnn.errors import DataError
from egocnn.show.streaming import prepare
from tests.support.samples import as_list, assert_equal, molecules, one_graph, refusal, written
from tests.support.strategies import random_graphs
from tests.support.tiny import alcohols, both_targets, names_in, oxygens, write_table
from tests.support.writers import write_jsonlines


@settings(max_examples=20)
@given(random_graphs(unseen=True), st.integers(1, 2000), st.integers(1, 2000))
def test_a_store_holds_the_same_graphs_whatever_portions_it_is_written_and_read_in(
    graphs: Graphs, written: int, at_once: int
) -> None:
    with TemporaryDirectory() as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        write_store([graphs], first)
        assert_equal(read(first), graphs)
        write_store(Store.open(first).portions(written), second)
        assert_equal(read(second), graphs)
        portions = list(Store.open(second).portions(at_once))
        assert sum(map(len, portions)) == len(graphs)
        start = 0
        for portion in portions:
            assert_equal(portion, graphs[start : start + len(portion)])
            start += len(portion)


@pytest.mark.parametrize(
    "graphs",
    [molecules(), alcohols(), oxygens(), both_targets()],
    ids=["all columns", "classes", "values", "several targets"],
)
def test_every_kind_of_column_comes_back(graphs: Graphs, tmp_path: Path) -> None:
    manifest = write_store([graphs], tmp_path / "store", source="here", read={"target": "y"})
    assert_equal(read(tmp_path / "store"), graphs)
    assert (manifest.graphs, manifest.nodes, manifest.entries) == (len(graphs), graphs.n_nodes, graphs.n_entries)
    assert Store.open(tmp_path / "store").manifest == manifest
    sizes = [file.stat().st_size for file in (tmp_path / "store").glob("*.bin")]
    assert manifest.size == sum(sizes)


def test_a_whole_store_is_mapped_and_not_loaded(tmp_path: Path) -> None:
    write_store([molecules()], tmp_path / "store")
    graphs = read(tmp_path / "store")
    assert isinstance(graphs.indices, np.memmap)
    assert isinstance(graphs.node_attr, np.memmap)
    assert not graphs.indices.flags.writeable


def test_portions_stay_within_the_bytes_asked_for_unless_one_graph_is_larger(tmp_path: Path) -> None:
    write_store([oxygens(40)], tmp_path / "store")
    store = Store.open(tmp_path / "store")
    portions = list(store.portions(2000))
    assert len(portions) > 2
    assert [name for portion in portions for name in portion.names] == list(oxygens(40).names)
    for portion in portions:
        rows = (portion.n_nodes * 12) + portion.n_entries * 8 + len(portion) * 8
        assert rows <= 2000 or len(portion) == 1
    assert [len(portion) for portion in store.portions(1)] == [1] * 40
    assert [len(portion) for portion in store.portions(1 << 30)] == [40]


def test_labels_and_classes_of_different_portions_are_united(tmp_path: Path) -> None:
    one = one_graph(2, [(0, 1)], node_label=["C", "O"], target=np.array([0]), class_names=("yes",))
    other = one_graph(3, [(0, 1)], node_label=["N", "C", "C"], target=np.array([1]), class_names=("yes", "no"))
    write_store([one, other], tmp_path / "store")
    assert_equal(read(tmp_path / "store"), Graphs.concat([one, other]))


def test_a_portion_without_edges_need_not_label_them(tmp_path: Path) -> None:
    lonely = one_graph(2, [])
    joined = one_graph(2, [(0, 1)], edge_label=["single"])
    for number, portions in enumerate([[lonely, joined], [joined, lonely]]):
        write_store(portions, tmp_path / str(number))
        graphs = read(tmp_path / str(number))
        assert graphs.edge_label_names == ("single",)
        assert as_list(graphs.edge_label) == [0, 0]


def test_portions_that_do_not_fit_together_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    plain, labelled = one_graph(2, [(0, 1)]), one_graph(2, [(0, 1)], node_label=["C", "O"])
    for message, portions in {
        "have node_label, those before do not": [plain, labelled],
        "2 attributes per node after 3": [one_graph(1, [], node_attr=[[1.0] * width]) for width in (3, 2)],
        "classes and some have values": [alcohols().replace(group=None, part=None), oxygens()],
        "other targets, or other classes": [both_targets(), both_targets().of_target("kind")],
        "no graphs to write": [],
    }.items():
        with pytest.raises(DataError, match=message):
            write_store(portions, tmp_path / "store")
    assert names_in(tmp_path) == []


def test_parts_and_limits_choose_the_same_graphs_from_memory_and_from_disk(tmp_path: Path) -> None:
    graphs = alcohols()
    write_store([graphs], tmp_path / "store")
    collections: list[Collection] = [graphs, Stored.of(Store.open(tmp_path / "store"))]
    for collection in collections:
        assert choose_part(collection, "here", "test").whole().names == graphs.select("test").names
        assert choose_part(collection, "here", limit=7).whole().names == graphs.names[:7]
        assert choose_part(collection, "here", "test", 6).whole().names == graphs.select("test").names[:6]
        with pytest.raises(DataError, match=r"^here: no graph is in the part 'validation'$"):
            choose_part(choose_part(collection, "here", "train"), "here", "validation")
        with pytest.raises(DataError, match=r"^no part is called 'tset'; there are train, validation, test$"):
            choose_part(collection, "here", "tset")


def test_a_failure_on_the_way_leaves_the_earlier_store_as_it_was(tmp_path: Path) -> None:
    write_store([molecules()], tmp_path / "store")

    def failing() -> Iterator[Graphs]:
        yield alcohols()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_store(failing(), tmp_path / "store", overwrite=True)
    assert_equal(read(tmp_path / "store"), molecules())
    assert names_in(tmp_path) == ["store"]


@pytest.mark.parametrize("exchange", [True, False])
def test_overwriting_replaces_the_store_with_or_without_an_exchange_of_names_and_leaves_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr("egocnn.files._exchange", lambda *_: False)
    write_store([molecules()], tmp_path / "store")
    with pytest.raises(DataError, match="holds a store already; --overwrite"):
        write_store([alcohols()], tmp_path / "store")
    write_store([alcohols()], tmp_path / "store", overwrite=True)
    assert_equal(read(tmp_path / "store"), alcohols())
    write_store(Store.open(tmp_path / "store").portions(1), tmp_path / "store", overwrite=True)  # anew from itself
    assert_equal(read(tmp_path / "store"), alcohols())
    assert names_in(tmp_path) == ["store"]


def test_other_peoples_folders_and_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("dear")
    with pytest.raises(DataError, match="not empty and holds no store"):
        write_store([molecules()], tmp_path / "letters", overwrite=True)
    with pytest.raises(DataError, match="is a file, not a folder"):
        write_store([molecules()], tmp_path / "letters" / "dear.txt" / "store")
    assert names_in(tmp_path / "letters") == ["dear.txt"]
    write_store([molecules()], tmp_path / "store")
    notes = tmp_path / "store" / "notes.txt"
    notes.write_text("mine")
    with pytest.raises(DataError, match=r"store: holds notes\.txt beside the store; move it away"):
        write_store([alcohols()], tmp_path / "store", overwrite=True)
    notes.unlink()
    assert_equal(read(tmp_path / "store"), molecules())
    (tmp_path / "empty").mkdir()
    write_store([molecules()], tmp_path / "empty")
    assert is_store(tmp_path / "empty")


def test_what_a_killed_writer_left_is_cleared_and_what_another_is_writing_is_not(tmp_path: Path) -> None:
    left = tmp_path / ".st[o]re.0123abcd.tmp"
    left.mkdir()
    (left / "indices.bin").write_bytes(b"half")
    other = tmp_path / ".other.0123abcd.tmp"
    other.mkdir()

    def meanwhile() -> Iterator[Graphs]:
        yield molecules()
        (busy,) = tmp_path.glob(".st?o?re.*.tmp")
        assert busy.name != left.name
        write_store([alcohols()], tmp_path / "st[o]re")
        assert busy.is_dir()

    with pytest.raises(DataError, match="holds a store already"):
        write_store(meanwhile(), tmp_path / "st[o]re")
    assert_equal(read(tmp_path / "st[o]re"), alcohols())
    assert names_in(tmp_path) == [other.name, "st[o]re"]


def test_a_store_has_the_permissions_of_ordinary_files(tmp_path: Path) -> None:
    write_store([molecules()], tmp_path / "store")
    (tmp_path / "ordinary").mkdir()
    (tmp_path / "ordinary" / "file").touch()
    modes = [(tmp_path / name).stat().st_mode for name in ("store", "ordinary", "store/names.bin", "ordinary/file")]
    assert modes[0] == modes[1]
    assert modes[2] == modes[3]


def test_a_link_to_a_store_is_followed_and_stays_a_link_and_a_copy_is_the_same_store(tmp_path: Path) -> None:
    write_store([molecules()], tmp_path / "store")
    (tmp_path / "link").symlink_to(tmp_path / "store")
    write_store([alcohols()], tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert_equal(read(tmp_path / "store"), alcohols())
    shutil.copytree(tmp_path / "store", tmp_path / "elsewhere" / "copy")
    assert_equal(read(tmp_path / "elsewhere" / "copy"), alcohols())


GRAPHS: list[dict[str, Any]] = [
    {"name": "a", "nodes": ["C", "O"], "edges": [[0, 1, "double"]], "target": 1},
    {"name": "b", "nodes": ["N", "C"], "edges": [[0, 1, "single"]], "target": 2},
    {"nodes": ["10", "9"], "edges": [], "target": 3},
]


@pytest.fixture(autouse=True)
def in_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("egocnn.data.read.AT_ONCE", 4)


def write_lines(folder: Path, values: list[Any]) -> Path:
    return written(folder, "it.jsonl", "\n".join(map(json.dumps, values)))


def check_same(source: Path, config: ReadConfig | None = None) -> Graphs:
    config = config or ReadConfig()
    prepare(str(source), source.parent / "store", config, overwrite=True)
    graphs = read(source.parent / "store")
    assert_equal(graphs, read(source, config))
    return graphs


@settings(max_examples=20)
@given(random_graphs(unseen=True))
def test_json_lines_in_portions_are_the_json_lines_whole(graphs: Graphs) -> None:
    with TemporaryDirectory() as folder:
        write_jsonlines(graphs, Path(folder, "graphs.jsonl"))
        check_same(Path(folder, "graphs.jsonl"))


def test_labels_are_sorted_and_targets_judged_over_all_portions(tmp_path: Path) -> None:
    graphs = check_same(write_lines(tmp_path, GRAPHS))
    assert graphs.node_label_names == ("10", "9", "C", "N", "O")
    assert graphs.class_names == ()  # three whole numbers of three graphs: values, though any two would be classes
    again = check_same(write_lines(tmp_path, GRAPHS * 3))
    assert again.class_names == ("1", "2", "3")


def test_every_column_of_json_lines_is_kept(tmp_path: Path) -> None:
    write_jsonlines(molecules(), tmp_path / "it.jsonl")
    graphs = check_same(tmp_path / "it.jsonl", ReadConfig(split="split", group="group"))
    assert graphs.smiles == molecules().smiles
    assert graphs.edge_truth is not None


def test_lines_that_do_not_parse_are_left_out_when_asked_to(tmp_path: Path) -> None:
    path = write_lines(tmp_path, [*GRAPHS, {"nodes": -1}, *GRAPHS])
    with pytest.raises(DataError, match=r"it.jsonl, line 4: "):
        prepare(str(path), tmp_path / "store", ReadConfig())
    with pytest.raises(DataError, match="no column or field is called 'toxic'"):
        prepare(str(path), tmp_path / "store", ReadConfig(target="toxic", skip_invalid=True))
    assert not (tmp_path / "store").exists()
    assert len(check_same(path, ReadConfig(skip_invalid=True))) == 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no graphs in it"),
        (b'{"nodes": 1}\n\xff\n', "line 2: byte 0xff is not UTF-8"),
        (b'{"nodes": 1}\n\0\n', "line 2: holds a NUL byte"),
        (b'{"nodes": 1, "name": "\\ud800"}\n', "not text that can be written as UTF-8"),
        (b'{"nodes": 4}\n{"nodes": ["C", "C", "C", "C"]}\n', "those before do not; give all graphs some or none"),
    ],
)
def test_what_is_wrong_with_json_lines_is_told_in_one_line(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "it.jsonl").write_bytes(content)
    assert message in refusal(prepare, str(tmp_path / "it.jsonl"), tmp_path / "store", ReadConfig())
    assert not (tmp_path / "store").exists()


def test_a_table_of_smiles_or_an_sdf_in_portions_is_the_file_whole(tmp_path: Path) -> None:
    chem = pytest.importorskip("rdkit.Chem")
    blocks = [chem.MolToMolBlock(chem.MolFromSmiles(smiles)) for smiles in ("CCO", "c1ccccc1O")]
    records = "".join(f"{title}{block}> <label>\n{title}\n\n$$$$\n" for title, block in zip("ab", blocks, strict=True))
    assert check_same(written(tmp_path, "it.sdf", records), ReadConfig(hydrogens=True)).class_names == ("a", "b")
    graphs = check_same(write_table(tmp_path), ReadConfig(split="split"))
    assert graphs.group is not None
    check_same(write_table(tmp_path), ReadConfig(hydrogens=True, group="label"))
    check_same(write_table(tmp_path, "smiles\tlabel\nCC\t1\nOCC\t2\nCCO\t2\n", "it.tsv"))
    path = write_table(tmp_path, "smiles\nC\nc1ccc\n")
    assert "row 2: SMILES 'c1ccc' does not parse" in refusal(prepare, str(path), tmp_path / "other", ReadConfig())


def test_several_targets_with_gaps_come_back_from_tables_and_lines(tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("smiles,toxic,logp\nCCO,yes,0.5\nCC,,1.5\nCCN,no,NA\nC,,\n")
    known: list[dict[str, Any]] = [{"toxic": "yes", "logp": 0.5}, {"logp": 1}, {"toxic": "no"}]
    lines = [{"nodes": 2, "edges": [[0, 1]], **own} for own in known]
    (tmp_path / "few.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for name in ("few.csv", "few.jsonl"):
        config = ReadConfig(target="toxic,logp")
        prepare(str(tmp_path / name), tmp_path / f"{name}.store", config)
        graphs = read(tmp_path / f"{name}.store")
        assert_equal(graphs, read(tmp_path / name, config))
        assert graphs.targets == (("toxic", ("no", "yes")), ("logp", ()))
    again = prepare(str(tmp_path / "few.csv.store"), tmp_path / "again", ReadConfig(), limit=2)
    assert (again.graphs, again.targets) == (2, graphs.targets)
    assert Store.open(tmp_path / "few.csv.store").outline().names == ("", "", "", "4")  # of which nothing is known


def test_other_sources_are_read_whole(tmp_path: Path) -> None:
    assert stream_source(tmp_path, ReadConfig()) is None
    assert stream_source(tmp_path / "graphs.graphml", ReadConfig()) is None
    manifest = prepare("compounds:alcohols:sizes=3-4,per_size=1", tmp_path / "store", ReadConfig(), limit=3)
    assert manifest.graphs == 3
