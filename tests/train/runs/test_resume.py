"""Real processes, killed or stopped while they train, and what --resume makes of what they leave."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from egocnn.cli import main
from egocnn.model import Model
from tests.support.tiny import ALCOHOLS, COMPLETE, FLAGS, PATIENCE, alcohols, names_in


def words(folder: Path) -> list[str]:
    """A training of some seconds, most of them spent on writing checkpoints."""
    return ["train", ALCOHOLS, *FLAGS, "--epochs", "60", "--patience", "60", "--quiet", "-o", str(folder)]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    assert main(words(folder)) == 0
    return folder


def end_when(folder: Path, ready: Callable[[], bool], how: signal.Signals) -> tuple[int, str]:
    """Start a training, send it the signal as soon as it is ready for that; its exit code and stderr."""
    command = [sys.executable, "-m", "egocnn", *words(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        started = time.monotonic()
        while not ready():
            assert process.poll() is None, "the training ended before it could be stopped"
            assert time.monotonic() - started < PATIENCE
            time.sleep(0.002)
        process.send_signal(how)
        _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err


def some_epochs(folder: Path) -> Callable[[], bool]:
    history = folder / "history.csv"
    return lambda: history.exists() and history.read_text().count("\n") > 5


def check_resumes(folder: Path, unbroken: Path) -> None:
    assert main([*words(folder), "--resume"]) == 0
    assert names_in(folder) == COMPLETE
    for name in ("model.safetensors", "config.json"):
        assert (folder / name).read_bytes() == (unbroken / name).read_bytes()
    one, other = (json.loads((run / "metrics.json").read_text()) for run in (folder, unbroken))
    assert one | {"seconds": 0} == other | {"seconds": 0}
    assert len((folder / "history.csv").read_text().splitlines()) == 1 + other["epochs"]


def test_a_run_killed_in_the_middle_resumes_to_the_same_bytes(tmp_path: Path, unbroken: Path) -> None:
    folder = tmp_path / "run"
    code, err = end_when(folder, some_epochs(folder), signal.SIGKILL)
    assert (code, err) == (-signal.SIGKILL, "")
    assert (folder / "checkpoint.safetensors").exists()
    assert not (folder / "metrics.json").exists()
    check_resumes(folder, unbroken)


def test_a_run_killed_before_its_first_checkpoint_resumes_from_the_start(tmp_path: Path, unbroken: Path) -> None:
    folder = tmp_path / "run"
    code, _ = end_when(folder, folder.exists, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (folder / "history.csv").exists()
    check_resumes(folder, unbroken)


def test_ctrl_c_saves_the_best_model_tells_how_to_go_on_and_exits_with_130(tmp_path: Path, unbroken: Path) -> None:
    folder = tmp_path / "run"
    code, err = end_when(folder, some_epochs(folder), signal.SIGINT)
    assert code == 130
    assert err == f"egocnn: stopped; the best model so far is in {folder}, and --resume goes on from there\n"
    assert names_in(folder) == ["checkpoint.safetensors", *COMPLETE]
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["interrupted"] is True
    assert 5 <= metrics["epochs"] < 60
    assert Model.load(folder).probabilities(alcohols()).shape == (len(alcohols()), 2)
    check_resumes(folder, unbroken)


def test_ctrl_c_before_there_is_a_model_says_so_and_leaves_none(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, err = end_when(folder, folder.exists, signal.SIGINT)
    assert (code, err) == (130, "egocnn: stopped\n")
    assert not (folder / "model.safetensors").exists()
