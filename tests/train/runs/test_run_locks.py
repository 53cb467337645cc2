"""One training at a time writes into a folder; the lock of a killed one keeps nobody out, as test_resume shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from egocnn.train.run import train_run
from tests.support.commands import Run, wait_until
from tests.support.tiny import ALCOHOLS, COMPLETE, FLAGS, MODEL, PATIENCE, TRAIN, alcohols, names_in
from tests.train.distributed.test_distributed_faults import command as torchrun
from tests.train.distributed.test_distributed_faults import said


@contextmanager
def held(folder: Path, *, overwrite: bool = False) -> Iterator[None]:
    """A training of another thread into this folder, which waits after its first epoch and goes on in the end."""
    begun, go_on = Event(), Event()

    def wait(*_: object) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    with ThreadPoolExecutor(1) as other:
        training = other.submit(train_run, alcohols(), folder, MODEL, TRAIN, overwrite=overwrite, report=wait)
        try:
            wait_until(lambda: begun.is_set() or training.done())
            yield
        finally:
            go_on.set()
        assert training.result()["epochs"] == TRAIN.epochs


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_second_training_is_refused_and_told_who_holds_the_folder(overwrite: bool, tmp_path: Path, run: Run) -> None:
    folder, how = tmp_path / "run", "--overwrite" if overwrite else "--resume"
    if overwrite:
        train_run(alcohols(), folder, MODEL, replace(TRAIN, seed=1))
    with held(folder, overwrite=overwrite):
        code, out, err = run("train", ALCOHOLS, *FLAGS, "--quiet", "-o", folder, how)
        train_run(alcohols(), tmp_path / "another", MODEL, TRAIN)  # is not hindered
    assert (code, out) == (2, "")
    pattern = (
        rf"egocnn: {re.escape(str(folder))}: process {os.getpid()} on {re.escape(os.uname().nodename)}, "
        r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, is training into this folder; wait for it, or name another folder\n"
    )
    assert re.fullmatch(pattern, err)
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


def test_under_torchrun_rank_0_alone_takes_the_lock_and_all_end_where_it_is_held(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with held(folder):
        command = torchrun(folder, "--resume")
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode != 0
    (line,) = said(done.stderr)
    assert f"process {os.getpid()} on" in line
    assert names_in(folder) == COMPLETE
