"""Run the command line in this process: words -> exit code, stdout, stderr."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from egocnn.cli import main
from tests.support.tiny import FLAGS

Run = Callable[..., tuple[int, str, str]]

SHORT = [*FLAGS, "--epochs", "2", "--quiet"]
"""a small network, trained shortly and silently"""


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code: Any = main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
        return int(code or 0), *capsys.readouterr()

    return run


def check_refused(run: Run, wanted: str, *words: object) -> None:
    """Exit code 2, nothing on stdout, and exactly one line on stderr."""
    code, out, err = run(*words)
    assert code == 2, (out, err)
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("egocnn")
    assert wanted in err


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
