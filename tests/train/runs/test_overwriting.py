"""train --overwrite: the earlier run stays what it is until the new one is complete, and then goes as a whole."""

import errno
import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from egocnn.cli import main
from egocnn.cli.arguments import build_parser
from egocnn.cli.commands.demo import demo
from egocnn.errors import DivergedError, RunError
from egocnn.model import Model
from egocnn.train import run as runs
from egocnn.train.run import train_run
from tests.support.commands import has_come_to, kill_once
from tests.support.tiny import (
    ALCOHOLS,
    COMPLETE,
    FLAGS,
    MODEL,
    TRAIN,
    alcohols,
    check_same_run,
    contents,
    names_in,
    stop_after,
)

OTHER = replace(TRAIN, seed=1)
LONG = ("--epochs", "30", "--patience", "30")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Complete runs of both seeds, trained without a break."""
    folders = {config.seed: tmp_path_factory.mktemp("trained") / "run" for config in (TRAIN, OTHER)}
    for seed, folder in folders.items():
        train_run(alcohols(), folder, MODEL, replace(TRAIN, seed=seed))
        assert names_in(folder.parent) == ["run"]
    return folders


@pytest.fixture
def run(trained: dict[int, Path], tmp_path: Path) -> Path:
    """A complete run, alone in its folder."""
    return Path(shutil.copytree(trained[TRAIN.seed], tmp_path / "run"))


@pytest.fixture(scope="module")
def other(trained: dict[int, Path]) -> bytes:
    """The model that is to replace it."""
    return (trained[OTHER.seed] / "model.safetensors").read_bytes()


def check_replaced(run: Path, other: bytes) -> None:
    """The other run has taken the place of the first, and nothing else is left."""
    assert (run / "model.safetensors").read_bytes() == other
    assert names_in(run) == COMPLETE
    assert names_in(run.parent) == ["run"]


def test_a_training_that_diverges_leaves_the_run_that_was_there(run: Path) -> None:
    before = contents(run)
    with pytest.raises(DivergedError):
        train_run(alcohols(), run, MODEL, replace(TRAIN, learning_rate=1e30), overwrite=True)
    assert contents(run) == before
    assert names_in(run.parent) == ["run"]


def test_while_the_new_run_grows_the_earlier_one_can_be_used(run: Path, other: bytes) -> None:
    before, seen = contents(run), []

    def look(*_: object) -> None:
        assert {name: text for name, text in contents(run).items() if name != ".lock"} == before
        seen.append(Model.load(run).probabilities(alcohols()))

    train_run(alcohols(), run, MODEL, OTHER, overwrite=True, report=look)
    assert len(seen) == TRAIN.epochs
    check_replaced(run, other)


def test_a_training_that_is_killed_leaves_the_run_and_the_same_command_goes_on(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(run)
    words, history = ["train", ALCOHOLS, *FLAGS, *LONG], run.with_name(".run.new") / "history.csv"
    code, _ = kill_once(has_come_to(3, history.parent), *words, "--quiet", "-o", run, "--overwrite")
    assert code == -signal.SIGKILL
    assert {name: text for name, text in contents(run).items() if name != ".lock"} == before
    epochs = history.read_text().count("\n") - 1
    assert main([*words, "-o", str(run), "--overwrite"]) == 0
    told = capsys.readouterr().err
    assert int(told.split("/")[0].removeprefix("epoch ")) > epochs - 2, "it goes on from the last checkpoint"
    assert names_in(tmp_path) == ["run"]
    assert main([*words, "--quiet", "-o", str(tmp_path / "unbroken")]) == 0
    check_same_run(run, tmp_path / "unbroken")


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_a_killed_training_left_is_removed_by_one_of_other_settings(
    overwrite: bool, run: Path, other: bytes
) -> None:
    report = stop_after(2, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        train_run(alcohols(), run, MODEL, replace(TRAIN, seed=2), overwrite=True, report=report)
    assert names_in(run.with_name(".run.new")) == ["checkpoint.safetensors", "history.csv", "settings.toml"]
    for name in () if overwrite else names_in(run):
        (run / name).unlink()
    train_run(alcohols(), run, MODEL, OTHER, overwrite=overwrite)
    check_replaced(run, other)


def test_what_is_stopped_waits_beside_the_run_until_it_is_complete(run: Path, other: bytes) -> None:
    before = contents(run)
    metrics = train_run(alcohols(), run, MODEL, OTHER, overwrite=True, report=stop_after(2))
    assert metrics["interrupted"]
    assert contents(run) == before
    beside = run.with_name(".run.new")
    assert names_in(beside) == ["checkpoint.safetensors", *COMPLETE]
    assert Model.load(beside).class_names
    epochs: list[int] = []
    train_run(
        alcohols(), run, MODEL, OTHER, overwrite=True, report=lambda history, _: epochs.append(len(history.epochs))
    )
    assert epochs == [3, 4]
    check_replaced(run, other)


def test_ctrl_c_says_where_the_new_model_is_and_that_the_old_one_is_as_it_was(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = runs.train_run
    monkeypatch.setattr("egocnn.train.run.train_run", lambda *a, **k: fit(*a, **{**k, "report": stop_after(1)}))
    assert main(["train", ALCOHOLS, *FLAGS, "--quiet", "-o", str(run), "--overwrite", "--seed", "1"]) == 130
    wanted = f"egocnn: stopped; the best model so far is in {run.with_name('.run.new')}, and {run} is as it was, "
    assert capsys.readouterr().err == f"{wanted}the same command goes on\n"


def test_what_others_keep_in_the_folder_stays_there(run: Path, tmp_path: Path) -> None:
    (run / "notes.txt").write_text("mine")
    (run / "figures" / "deep").mkdir(parents=True)
    (run / "figures" / "deep" / "one.svg").write_text("<svg/>")
    (run / "attention.safetensors").write_bytes(b"of the model before")
    (run / "link").symlink_to("notes.txt")
    (run / "nowhere").symlink_to("gone.txt")
    (run / "tensorboard").mkdir()
    (run / "tensorboard" / "events.out.tfevents.1").write_text("of the run before")
    (run / "tensorboard" / "layout.json").write_text("mine too")
    (run / ".model.safetensors.abcdefgh.tmp").write_text("half")
    run.chmod(0o750)
    train_run(alcohols(), run, MODEL, OTHER, overwrite=True)
    kept = contents(run)
    for name in COMPLETE:
        kept.pop(name)
    assert kept == {
        "notes.txt": b"mine",
        "link": b"mine",
        "figures/deep/one.svg": b"<svg/>",
        "attention.safetensors": b"of the model before",
        "tensorboard/layout.json": b"mine too",
    }
    assert (run / "link").is_symlink()
    assert str((run / "nowhere").readlink()) == "gone.txt"
    assert run.stat().st_mode & 0o777 == 0o750
    assert names_in(tmp_path) == ["run"]


def test_a_run_that_could_not_take_its_place_is_not_trained_again(
    run: Path, other: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(run)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr("egocnn.train.run_folder.put_folder", fail)
        with pytest.raises(OSError, match="No space"):
            train_run(alcohols(), run, MODEL, OTHER, overwrite=True)
    assert contents(run) == before
    report = stop_after(1, AssertionError("nothing must be trained"))
    assert train_run(alcohols(), run, MODEL, OTHER, overwrite=True, report=report)["epochs"] == 4
    check_replaced(run, other)


def test_where_folders_cannot_change_names_in_one_step_a_kill_is_made_good(
    run: Path, other: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("egocnn.files._exchange", lambda *_: False)
    before = contents(run)
    run.rename(run.with_name(".run.old"))  # killed between the two renames
    with pytest.raises(RunError, match="holds a run already"):
        train_run(alcohols(), run, MODEL, TRAIN)
    assert contents(run) == before
    train_run(alcohols(), run, MODEL, OTHER, overwrite=True)
    check_replaced(run, other)


def test_a_link_stays_a_link_what_is_not_there_trains_as_usual_and_the_top_of_a_disk_is_refused(
    run: Path, other: bytes, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(run)
    train_run(alcohols(), tmp_path / "elsewhere" / "link", MODEL, OTHER, overwrite=True)
    assert (tmp_path / "elsewhere" / "link").is_symlink()
    assert (run / "model.safetensors").read_bytes() == other
    assert names_in(tmp_path / "elsewhere") == ["link"]
    train_run(alcohols(), tmp_path / "a" / "run", MODEL, OTHER, overwrite=True)
    check_replaced(tmp_path / "a" / "run", other)
    with pytest.raises(RunError, match="/: is the top of a disk, which no other folder can replace; name a folder in"):
        train_run(alcohols(), Path("/"), MODEL, TRAIN, overwrite=True)


def test_the_folder_that_the_user_stands_in_is_not_replaced_under_his_feet(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "deep").mkdir()
    before = contents(run)
    for place in (run, run / "deep"):
        monkeypatch.chdir(place)
        with pytest.raises(RunError, match="run: is the working folder, which cannot be replaced under your feet"):
            train_run(alcohols(), run, MODEL, OTHER, overwrite=True)
        assert Path.cwd().samefile(place)
    assert contents(run) == before


def test_the_demo_replaces_the_run_of_an_earlier_one(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("egocnn.data.read.read", lambda _: alcohols())  # fewer of the same molecules
    (run / "notes.txt").write_text("mine")
    before = contents(run)
    options = build_parser().parse_args(["demo", "-o", str(run.parent), "--quiet", "--json"])
    options.epochs, options.depth, options.width = 1, 1, 8
    demo(options)
    assert json.loads((run / "metrics.json").read_text()) == json.loads(capsys.readouterr().out)
    assert contents(run).keys() == before.keys()
    assert contents(run)["model.safetensors"] != before["model.safetensors"]
    assert names_in(run.parent) == ["predictions.csv", "report", "run"]
