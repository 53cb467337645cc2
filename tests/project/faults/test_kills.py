"""Commands killed at random, and clocks that jump: the result is that of an unbroken run; .ci/run kills all."""

import csv
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from egocnn.train.run import train_run
from lab.bench.limits.kills import check_report, check_run, check_store, run_kills
from tests.project.faults.processes import commands, egocnn
from tests.support.tiny import MODEL, TRAIN, alcohols, contents, stop_after

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def test_training_survives_a_kill() -> None:
    said: list[str] = []
    found = run_kills(1, seed=7, size=0.05, say=said.append)
    assert found["findings"] == []
    assert found["survived"] == found["kills"] >= 1
    assert found["by_command"] == {"train": found["kills"], "crossval": 0, "prepare": 0, "explain": 0}
    assert all(0 <= kill["share"] <= 1 and kill["stage"] for kill in found["every_kill"])


def test_what_is_not_whole_is_noticed(tmp_path: Path) -> None:
    history = tmp_path / "history.csv"
    history.write_text("network,epoch\n1,1\n1,2\n2,1\n")
    assert check_run(tmp_path) == "3 epochs over"
    history.write_text("network,epoch\n1,1\n2,2\n")
    with pytest.raises(AssertionError, match="network 2"):
        check_run(tmp_path)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"half")
    with pytest.raises(Exception, match="header"):
        check_run(tmp_path)
    with pytest.raises(Exception, match="missing"):
        check_store(tmp_path)
    (tmp_path / "index.html").write_text("<html>")
    with pytest.raises(AssertionError):
        check_report(tmp_path, 0)


def test_the_record_says_that_all_of_50_kills_were_survived() -> None:
    record = json.loads((ROOT / "results" / "kills.json").read_text(encoding="utf-8"))
    assert record["findings"] == []
    assert record["survived"] == record["kills"] == len(record["every_kill"]) >= 50
    assert min(record["by_command"].values()) >= 12


DATE = re.compile(rb"\b\d{4}-\d\d-\d\d\b")
JUMPING = """
import itertools, time
real, jumps = time.time, itertools.cycle([0, -1e8, 3e8, -5e8, 1])
time.time = lambda: real() + next(jumps)
time.time_ns = lambda: int(time.time() * 1e9)
"""


def test_every_command_gives_the_same_results_while_the_clock_jumps(run: Path, earlier: Path, tmp_path: Path) -> None:
    words = commands(run, tmp_path)
    del words["export"]
    for done in egocnn(*words.values(), script=JUMPING):
        assert (done.code, done.said) == (0, "")
    expected, found = contents(earlier), contents(tmp_path)
    assert found.keys() == expected.keys()
    for name in found.keys() - {"run/metrics.json", "run/history.csv", "crossval.json"}:
        one, other = (DATE.sub(b"today", each[name]) for each in (found, expected))  # a report has the clock's date
        assert one == other, name
    jumped, steady = (json.loads(each["crossval.json"]) for each in (found, expected))
    assert jumped["mean"] == steady["mean"]
    assert jumped["seconds"] >= max(jumped["training_seconds"], jumped["testing_seconds"]) >= 0
    epochs = list(csv.DictReader(found["run/history.csv"].decode().splitlines()))
    assert all(0 < float(epoch["seconds"]) < 100 for epoch in epochs)


@pytest.mark.parametrize("then", [0, 1 << 31])
def test_a_run_resumes_whatever_the_ages_of_its_files(then: int, tmp_path: Path) -> None:
    config = replace(TRAIN, epochs=4, patience=4)
    train_run(alcohols(), tmp_path / "whole", MODEL, config)
    train_run(alcohols(), tmp_path / "broken", MODEL, config, report=stop_after(2))
    for file in (tmp_path / "broken").iterdir():
        os.utime(file, (then, then))
    train_run(alcohols(), tmp_path / "broken", MODEL, config, resume=True)
    assert contents(tmp_path / "broken")["model.safetensors"] == contents(tmp_path / "whole")["model.safetensors"]
