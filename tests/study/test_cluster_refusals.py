"""Addresses at which no Ray cluster answers, and machines without Ray: one line, in good time."""

import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from egocnn.study import cluster
from tests.support.commands import SHORT, Run, check_refused
from tests.support.tiny import ALCOHOLS, names_in

WORDS = ["crossval", ALCOHOLS, *SHORT, "--folds", "2", "--ray"]
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")


@needs_ray
def test_an_address_that_nobody_answers_at_is_refused_after_the_stated_time_or_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes calls and never says a word
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        for each in (address, f"ray://{address}"):
            check_refused(run, f"no Ray cluster answers at {each} within 1 s", *WORDS, each)
    monkeypatch.undo()
    check_refused(run, "no Ray cluster answers at nonsense: Invalid address", *WORDS, "nonsense")


def test_without_ray_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    check_refused(run, 'ray is not installed; type: pip install "egocnn[cluster]"', *WORDS, "local")


def test_a_table_that_cannot_run_on_ray_is_not_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ["reproduce", "table2", "--quick", "--quiet", "-o", tmp_path, "--ray", "local"]
    check_refused(run, "egocnn[cluster]", *words)
    check_refused(run, "on CPUs", *words, "--device", "cuda")
    check_refused(run, "--ray is for tables", "reproduce", "explain", "-o", tmp_path, "--ray", "local")
    assert names_in(tmp_path) == []
