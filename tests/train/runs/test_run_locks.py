"""One training at a time writes into a folder; the lock of one that was killed keeps nobody out."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from egocnn.train.run import train_run
from tests.support.commands import runner
from tests.support.samples import sure
from tests.support.tiny import ALCOHOLS, COMPLETE, FLAGS, MODEL, PATIENCE, TRAIN, alcohols, names_in
from tests.train.distributed.test_distributed_faults import command as torchrun
from tests.train.distributed.test_distributed_faults import said

HOLDER = """
import os, sys
from pathlib import Path
from egocnn.train.run import train_run
from tests.support.tiny import MODEL, TRAIN, alcohols

def wait(*_):
    print(os.getpid(), flush=True)
    sys.stdin.read(1)

train_run(alcohols(), Path(sys.argv[1]), MODEL, TRAIN, overwrite=len(sys.argv) > 2, report=wait)
"""


def start_and_hold(folder: Path, *words: str) -> subprocess.Popen[str]:
    """A training that waits after its first epoch."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert sure(process.stdout).readline() == f"{process.pid}\n"
    return process


@contextmanager
def held(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The same, which goes on to its end in the end."""
    with start_and_hold(folder, *words) as process:
        try:
            yield process
        finally:
            process.communicate("\n" * 9, timeout=PATIENCE)


@pytest.mark.parametrize(("first", "second"), [([], "--resume"), (["--overwrite"], "--overwrite")])
def test_a_second_training_is_refused_and_told_who_holds_the_folder(
    first: list[str], second: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    if first:
        train_run(alcohols(), folder, MODEL, replace(TRAIN, seed=1))
    with held(folder, *first) as process:
        code, out, err = runner(capsys)("train", ALCOHOLS, *FLAGS, "--quiet", "-o", folder, second)
        train_run(alcohols(), tmp_path / "another", MODEL, TRAIN)  # is not hindered
    assert (code, out) == (2, "")
    pattern = (
        rf"egocnn: {re.escape(str(folder))}: process {process.pid} on {re.escape(os.uname().nodename)}, "
        r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, is training into this folder; wait for it, or name another folder\n"
    )
    assert re.fullmatch(pattern, err)
    assert process.returncode == 0
    assert names_in(folder) == COMPLETE
    assert names_in(tmp_path) == ["another", "run"]
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("another", "run"))
    assert one == other


def test_two_trainings_that_start_together_end_as_one_run_and_one_refusal(tmp_path: Path) -> None:
    """Both find the folder empty; whichever has the lock first trains."""
    words = ["train", ALCOHOLS, *FLAGS, "--quiet", "--epochs", "4", "-o", str(tmp_path / "run")]
    commands = [[sys.executable, "-m", "egocnn", *words, "--seed", seed] for seed in "01"]
    pipes: dict[str, Any] = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    both = [subprocess.Popen(command, text=True, **pipes) for command in commands]
    told = [process.communicate(timeout=PATIENCE)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], told
    (refusal,) = (line for line in told if line)
    assert refusal.count("\n") == 1
    assert "is training into this folder" in refusal or "holds a run already" in refusal
    assert names_in(tmp_path / "run") == COMPLETE


@pytest.mark.parametrize("words", [[], ["--overwrite"]])
def test_the_lock_of_a_killed_training_keeps_nobody_out(words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with start_and_hold(folder, *words) as process:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert (folder / ".lock").exists()
    train_run(alcohols(), folder, MODEL, TRAIN, resume=not words, overwrite=bool(words))
    assert names_in(folder) == COMPLETE
    assert names_in(tmp_path) == ["run"]


def test_under_torchrun_rank_0_alone_takes_the_lock_and_all_end_where_it_is_held(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with held(folder) as process:
        command = torchrun(folder, "--resume")
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode != 0
    (line,) = said(done.stderr)
    assert f"process {process.pid} on" in line
    assert names_in(folder) == COMPLETE
