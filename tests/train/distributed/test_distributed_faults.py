"""Real torchrun, real processes, one of them killed: what is left, what is said, and what comes of going on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from egocnn.cli import main
from egocnn.model import Model
from egocnn.train.engines.distributed.engine import LOST
from tests.support.commands import has_come_to, wait_until
from tests.support.tiny import ALCOHOLS, COMPLETE, FLAGS, PATIENCE, alcohols, check_same_run, names_in

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")


def command(folder: Path, *more: str, restarts: int = 0) -> list[str]:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", f"--max-restarts={restarts}"]
    words = ["train", ALCOHOLS, *FLAGS, "--epochs", "24", "--patience", "24", "--batch-size", "4"]
    return [sys.executable, *launch, "-m", "egocnn", *words, "-o", str(folder), *more]


def run(folder: Path, *more: str) -> tuple[int, str, str]:
    done = subprocess.run(command(folder, *more), capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout, done.stderr


@contextmanager
def started(folder: Path, *more: str, restarts: int = 0) -> Iterator[subprocess.Popen[str]]:
    """A training that is some epochs old."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command(folder, *more, restarts=restarts), stdout=pipe, stderr=pipe, text=True)
    try:
        has_begun = has_come_to(3, folder)
        wait_until(lambda: has_begun() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        if process.poll() is None:  # a test has failed
            for rank in (0, 1):
                with suppress(AssertionError, OSError):
                    os.kill(process_of(process.pid, rank), signal.SIGKILL)
            process.kill()
        process.communicate()


def process_of(launcher: int, rank: int) -> int:
    """The process id of a rank that this torchrun has started."""
    for children in Path(f"/proc/{launcher}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            if f"RANK={rank}" in Path(f"/proc/{child}/environ").read_text().split("\0"):
                return child
    raise AssertionError(f"rank {rank} is not there")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    code, out, err = run(folder)
    assert code == 0, err
    assert out.count("run folder:") == 1, "only rank 0 speaks"
    assert Model.load(folder).probabilities(alcohols()).shape == (len(alcohols()), 2)
    return folder


def said(err: str) -> list[str]:
    """What we say; torchrun says a good deal more."""
    return [line for line in err.splitlines() if line.startswith("egocnn:")]


def test_torchrun_starts_a_killed_training_anew_and_it_ends_as_an_unbroken_one(tmp_path: Path, unbroken: Path) -> None:
    folder = tmp_path / "run"
    with started(folder, restarts=1) as process:
        os.kill(process_of(process.pid, 0), signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert said(err) == [f"egocnn: {LOST}"]
    check_same_run(folder, unbroken)


def test_without_restarts_one_line_says_what_happened_and_one_process_can_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with started(folder) as process:
        os.kill(process_of(process.pid, 1), signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert said(err) == [f"egocnn: {LOST}"]
    assert names_in(folder, hidden=False) == ["checkpoint.safetensors", "history.csv", "settings.toml"]
    assert main(command(folder, "--resume")[8:]) == 0
    assert names_in(folder) == COMPLETE


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_process_started_anew_goes_on_even_where_the_first_was_to_overwrite(
    overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process of torchrun, in this one: an earlier run of other settings is replaced once, and not again."""
    folder = tmp_path / "run"
    names = {"TORCHELASTIC_RUN_ID": "here", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    words = ["train", ALCOHOLS, *FLAGS, "--quiet", "-o", str(folder), *(["--overwrite"] if overwrite else [])]
    epochs = []
    for restart, more in enumerate((["--epochs", "1"], ["--epochs", "2"], ["--epochs", "2"])):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(restart))
        before = (folder / "metrics.json").stat().st_mtime_ns if restart else 0
        code = main([*words, *more])
        assert code == (2 if restart and not overwrite else 0)
        epochs.append((json.loads((folder / "metrics.json").read_text())["epochs"], before))
    assert [number for number, _ in epochs] == ([1, 2, 2] if overwrite else [1, 1, 1])
    assert (folder / "metrics.json").stat().st_mtime_ns == epochs[-1][1], "what is complete is not trained again"


def test_ctrl_c_saves_the_best_model_and_one_line_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with started(folder) as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    wanted = f"egocnn: stopped; the best model so far is in {folder}, and --resume goes on from there"
    assert said(err) == [wanted]
    assert names_in(folder) == ["checkpoint.safetensors", *COMPLETE]
    assert json.loads((folder / "metrics.json").read_text())["interrupted"] is True
