"""Real processes, killed or stopped while they train, and what --resume makes of what they leave."""

import json
import os
import signal
from pathlib import Path

import pytest

from egocnn.cli import main
from egocnn.model import Model
from egocnn.train import recipe
from tests.support.commands import Run, has_come_to, kill_once, rows
from tests.support.tiny import ALCOHOLS, COMPLETE, FLAGS, alcohols, check_same_run, names_in


def words(folder: Path) -> list[str]:
    """A training of some seconds, most of them spent on writing checkpoints."""
    return ["train", ALCOHOLS, *FLAGS, "--epochs", "30", "--patience", "30", "--quiet", "-o", str(folder)]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    assert main(words(folder)) == 0
    return folder


def check_resumes(folder: Path, unbroken: Path) -> None:
    assert main([*words(folder), "--resume"]) == 0
    check_same_run(folder, unbroken)
    assert len(rows(folder / "history.csv")) == len(rows(unbroken / "history.csv"))


def test_a_run_killed_in_the_middle_resumes_to_the_same_bytes(tmp_path: Path, unbroken: Path) -> None:
    folder = tmp_path / "run"
    code, err = kill_once(has_come_to(5, folder), *words(folder))
    assert (code, err) == (-signal.SIGKILL, "")
    assert (folder / "checkpoint.safetensors").exists()
    assert (folder / ".lock").exists()  # which keeps nobody out
    assert not (folder / "metrics.json").exists()
    check_resumes(folder, unbroken)


def test_ctrl_c_saves_the_best_model_tells_how_to_go_on_and_exits_with_130(tmp_path: Path, unbroken: Path) -> None:
    folder = tmp_path / "run"
    code, err = kill_once(has_come_to(5, folder), *words(folder), how=signal.SIGINT)
    assert code == 130
    assert err == f"egocnn: stopped; the best model so far is in {folder}, and --resume goes on from there\n"
    assert names_in(folder) == ["checkpoint.safetensors", *COMPLETE]
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["interrupted"] is True
    assert 5 <= metrics["epochs"] < 30
    assert Model.load(folder).probabilities(alcohols()).shape == (len(alcohols()), 2)
    check_resumes(folder, unbroken)


def test_ctrl_c_before_there_is_a_model_says_so_and_leaves_none(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process: all is prepared, and no epoch has begun."""
    monkeypatch.setattr(recipe, "fit", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
    assert run(*words(tmp_path / "run")) == (130, "", "egocnn: stopped\n")
    assert names_in(tmp_path) == []
