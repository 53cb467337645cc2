"""Files of a run that are not what was written, or no files at all: refused in one line, never waited for."""

import os
import shutil
from pathlib import Path

import pytest

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from egocnn.scale.shards import find_shards
from tests.support.commands import SHORT, Run, check_refused, printed
from tests.support.tiny import ALCOHOLS, contents


def words(folder: Path) -> list[object]:
    return ["train", ALCOHOLS, "-o", folder, *SHORT]


@pytest.fixture
def folder(alcohol_run: Path, tmp_path: Path) -> Path:
    """A complete run, trained by these words."""
    return Path(shutil.copytree(alcohol_run, tmp_path / "run"))


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [("metrics.json", '"epochs": ', '"epochs": 9'), ("history.csv", "\n1,", "\n1,9"), ("split.csv", "test", "train")],
)
def test_forged_metrics_are_refused_not_printed(file: str, before: str, after: str, folder: Path, run: Run) -> None:
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after, 1))
    check_refused(run, "its checksum differs; --overwrite starts the run anew", *words(folder), "--resume")
    (folder / file).write_bytes(b"\xff\xfe\x8c")
    check_refused(run, "--overwrite starts the run anew", *words(folder), "--resume")
    (folder / file).write_text(text)
    printed(run, *words(folder), "--resume")


def test_a_model_without_metrics_is_not_replaced_by_that_of_other_settings(folder: Path, run: Run) -> None:
    """Two files are enough to predict with: those that were copied to where the model is used."""
    for name in ("metrics.json", "history.csv", "settings.toml", "split.csv", "test_predictions.csv"):
        (folder / name).unlink()
    before = contents(folder)
    check_refused(run, "was started with other data or settings", *words(folder), "--seed", "1", "--resume")
    assert contents(folder) == before


@pytest.mark.parametrize(
    "file", ["config.json", "model.safetensors", "metrics.json", "attention.safetensors", "history.csv"]
)
def test_a_pipe_in_place_of_a_file_is_refused_not_waited_for(file: str, folder: Path, tmp_path: Path, run: Run) -> None:
    (folder / file).unlink(missing_ok=True)
    os.mkfifo(folder / file)
    asked: list[object] = [*words(folder), "--resume"]
    if file.endswith("safetensors"):
        asked = ["explain", folder, ALCOHOLS, "-o", tmp_path / "report", "--technique", "paper", "--quiet"]
    check_refused(run, "is a pipe or a device, not a file", *asked)


@pytest.mark.parametrize(
    "name", ["data.csv", "data.graphml", "data", "folder/one.graphml", "X/X_A.txt", "X/X_node_labels.txt"]
)
def test_a_pipe_as_data_or_in_a_folder_of_data_is_refused_by_its_name(name: str, tmp_path: Path, run: Run) -> None:
    pipe = tmp_path / name
    pipe.parent.mkdir(exist_ok=True)
    if pipe.parent.name == "X":
        (pipe.parent / "X_A.txt").write_text("1, 2\n2, 1\n")
        (pipe.parent / "X_graph_indicator.txt").write_text("1\n1\n")
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    asked = pipe if pipe.parent == tmp_path else pipe.parent
    check_refused(run, f"{pipe.name}: cannot be read (is a pipe or a device, not a file)", "info", asked)


def test_a_pipe_among_shards_or_in_place_of_saved_graphs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("smiles\nCCO\n")
    for name in ("b.csv", "graphs.safetensors"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="is a pipe or a device, not a file"):
        find_shards(str(tmp_path))
    with pytest.raises(DataError, match="is a pipe or a device, not a file"):
        Graphs.load(tmp_path / "graphs.safetensors")
