"""Run the command line in this process: words -> exit code, stdout, stderr."""

import csv
import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from egocnn.cli import main
from tests.support.tiny import FLAGS, PATIENCE

Run = Callable[..., tuple[int, str, str]]

SHORT = [*FLAGS, "--epochs", "2", "--quiet"]  # a small network, trained shortly and silently


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code: Any = main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
        return int(code or 0), *capsys.readouterr()

    return run


def printed(run: Run, *words: object) -> str:
    """What a command prints that succeeds and has nothing to remark."""
    code, out, err = run(*words)
    assert (code, err) == (0, ""), err
    return out


def told(run: Run, *words: object) -> str:
    """What a command that succeeds prints for people, whatever it remarks on the way."""
    code, out, err = run(*words)
    assert code == 0, err
    return out


def answer(run: Run, *words: object) -> Any:
    """What a command that succeeds prints for machines, whatever it remarks on the way."""
    code, out, err = run(*words, "--json")
    assert code == 0, err
    return json.loads(out)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def check_refused(run: Run, wanted: str, *words: object) -> None:
    """Exit code 2, nothing on stdout, and exactly one line on stderr."""
    code, out, err = run(*words)
    assert code == 2, (out, err)
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("egocnn")
    assert wanted in err


def wait_until(happens: Callable[[], object]) -> None:
    started = time.monotonic()
    while not happens():
        assert time.monotonic() - started < PATIENCE
        time.sleep(0.005)


def has_come_to(epochs: int, folder: Path) -> Callable[[], bool]:
    """Whether the run that is trained in the folder has so many epochs."""
    history = folder / "history.csv"
    return lambda: history.exists() and history.read_text().count("\n") > epochs


def kill_once(happens: Callable[[], object], *words: object, how: signal.Signals = signal.SIGKILL) -> tuple[int, str]:
    """Start the command in a process of its own, and send it the signal once this happens: its exit code and stderr."""
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-m", "egocnn", *map(str, words)], text=True, **pipes) as process:
        wait_until(lambda: happens() or process.poll() is not None)
        assert process.poll() is None, "it ended before it could be killed"
        process.send_signal(how)
        _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
