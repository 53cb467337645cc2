"""Files read in portions make the store that reading them whole would make, and are refused for the same reasons."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read, stream_source
from egocnn.errors import DataError
from egocnn.show.streaming import prepare
from tests.support.samples import assert_equal, molecules, refusal
from tests.support.strategies import random_graphs
from tests.support.tiny import write_table
from tests.support.writers import write_jsonlines

GRAPHS: list[dict[str, Any]] = [
    {"name": "a", "nodes": ["C", "O"], "edges": [[0, 1, "double"]], "target": 1},
    {"name": "b", "nodes": ["N", "C"], "edges": [[0, 1, "single"]], "target": 2},
    {"nodes": ["10", "9"], "edges": [], "target": 3},
]


@pytest.fixture(autouse=True)
def in_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("egocnn.data.read.AT_ONCE", 4)


def write_lines(path: Path, values: list[Any]) -> Path:
    path.write_text("\n".join(json.dumps(value) for value in values), encoding="utf-8")
    return path


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
    graphs = check_same(write_lines(tmp_path / "it.jsonl", GRAPHS))
    assert graphs.node_label_names == ("10", "9", "C", "N", "O")
    assert graphs.class_names == ()  # three whole numbers of three graphs: values, though any two would be classes
    again = check_same(write_lines(tmp_path / "it.jsonl", GRAPHS * 3))
    assert again.class_names == ("1", "2", "3")


def test_every_column_of_json_lines_is_kept(tmp_path: Path) -> None:
    write_jsonlines(molecules(), tmp_path / "it.jsonl")
    graphs = check_same(tmp_path / "it.jsonl", ReadConfig(split="split", group="group"))
    assert graphs.smiles == molecules().smiles
    assert graphs.edge_truth is not None


def test_lines_that_do_not_parse_are_left_out_when_asked_to(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "it.jsonl", [*GRAPHS, {"nodes": -1}, *GRAPHS])
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


def test_a_table_of_smiles_in_portions_is_the_table_whole(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    graphs = check_same(write_table(tmp_path), ReadConfig(split="split"))
    assert graphs.group is not None
    check_same(write_table(tmp_path), ReadConfig(hydrogens=True, group="label"))
    check_same(write_table(tmp_path, "smiles\tlabel\nCC\t1\nOCC\t2\nCCO\t2\n", "it.tsv"))
    path = write_table(tmp_path, "smiles\nC\nc1ccc\n")
    assert "row 2: SMILES 'c1ccc' does not parse" in refusal(prepare, str(path), tmp_path / "other", ReadConfig())


def test_other_sources_are_read_whole(tmp_path: Path) -> None:
    assert stream_source(tmp_path, ReadConfig()) is None
    assert stream_source(tmp_path / "graphs.graphml", ReadConfig()) is None
    manifest = prepare("compounds:alcohols:sizes=3-4,per_size=1", tmp_path / "store", ReadConfig(), limit=3)
    assert manifest.graphs == 3
