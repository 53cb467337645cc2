"""Files of a run that are not what was written, or no files at all: refused in one line, never waited for."""

import os
from pathlib import Path

import pytest

from tests.support.commands import SHORT, Run, check_refused, printed
from tests.support.tiny import ALCOHOLS


def words(folder: Path) -> list[object]:
    return ["train", ALCOHOLS, "-o", folder, *SHORT]


@pytest.mark.parametrize(
    ("file", "before", "after"), [("metrics.json", '"epochs": ', '"epochs": 9'), ("history.csv", "\n1,", "\n1,9")]
)
def test_forged_metrics_are_refused_not_printed(file: str, before: str, after: str, tmp_path: Path, run: Run) -> None:
    printed(run, *words(tmp_path / "run"))
    forged = tmp_path / "run" / file
    text = forged.read_text()
    assert before in text
    forged.write_text(text.replace(before, after, 1))
    wanted = "its checksum differs; --overwrite starts the run anew"
    check_refused(run, wanted, *words(tmp_path / "run"), "--resume")
    forged.write_text(text)
    printed(run, *words(tmp_path / "run"), "--resume")


@pytest.mark.parametrize(
    "file", ["config.json", "model.safetensors", "metrics.json", "attention.safetensors", "history.csv"]
)
def test_a_pipe_in_place_of_a_file_is_refused_not_waited_for(file: str, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "run"
    printed(run, *words(folder))
    (folder / file).unlink(missing_ok=True)
    os.mkfifo(folder / file)
    asked: list[object] = [*words(folder), "--resume"]
    if file.endswith("safetensors"):
        asked = ["explain", folder, ALCOHOLS, "-o", tmp_path / "report", "--technique", "paper", "--quiet"]
    check_refused(run, "is a pipe or a device, not a file", *asked)


@pytest.mark.parametrize("name", ["data.csv", "data.graphml", "data"])
def test_a_pipe_as_data_is_refused_by_its_name(name: str, tmp_path: Path, run: Run) -> None:
    os.mkfifo(tmp_path / name)
    check_refused(run, f"{name}: cannot be read (is a pipe or a device, not a file)", "info", tmp_path / name)


def test_a_pipe_among_the_files_of_a_folder_is_refused(tmp_path: Path, run: Run) -> None:
    os.mkfifo(tmp_path / "one.graphml")
    check_refused(run, "one.graphml: cannot be read (is a pipe", "info", tmp_path)
