"""A command killed at random, and continued to the result of an unbroken run; .ci/run kills all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.bench.limits.kills import check_report, check_run, check_store, run_kills

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def test_training_survives_a_kill() -> None:
    said: list[str] = []
    found = run_kills(1, seed=7, size=0.05, say=said.append)
    assert found["findings"] == []
    assert found["survived"] == found["kills"] >= 1
    assert found["by_command"] == {"train": found["kills"], "crossval": 0, "prepare": 0, "explain": 0}
    assert all(0 <= kill["share"] <= 1 and kill["stage"] for kill in found["every_kill"])


def test_what_is_not_whole_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.safetensors").write_bytes(b"half")
    with pytest.raises(Exception, match="header"):
        check_run(tmp_path)
    with pytest.raises(Exception, match="missing"):
        check_store(tmp_path)
    (tmp_path / "index.html").write_text("<html>")
    with pytest.raises(AssertionError):
        check_report(tmp_path, 0)


def test_every_network_has_all_its_epochs_in_the_history(tmp_path: Path) -> None:
    history = tmp_path / "history.csv"
    history.write_text("network,epoch\n1,1\n1,2\n2,1\n")
    assert check_run(tmp_path) == "3 epochs over"
    history.write_text("network,epoch\n1,1\n2,2\n")
    with pytest.raises(AssertionError, match="network 2"):
        check_run(tmp_path)


def test_the_record_says_that_all_of_50_kills_were_survived() -> None:
    record = json.loads((ROOT / "results" / "kills.json").read_text(encoding="utf-8"))
    assert record["findings"] == []
    assert record["survived"] == record["kills"] == len(record["every_kill"]) >= 50
    assert min(record["by_command"].values()) >= 12
