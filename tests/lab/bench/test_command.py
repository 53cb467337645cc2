"""egocnn bench: names, files, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.bench.named import BENCHMARKS, default_file
from tests.support.commands import Run, check_refused, printed


def test_the_list_names_every_benchmark_and_the_chart(run: Run) -> None:
    for words in (["--list"], []):
        out = printed(run, "bench", *words)
        assert [line.split()[0] for line in out.splitlines()] == [*BENCHMARKS, "chart"]
    assert default_file("layer", device="cpu") == Path("results/bench/layer_cpu.json")


def test_a_quick_run_tells_machines_what_it_measured_and_where(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "folder" / "ceilings.json"
    words = ("bench", "ceilings", "--quick", "--json", "--quiet", "--device", "cpu", "--seed", 3, "-o", file)
    found = json.loads(printed(run, *words))
    assert found == json.loads(file.read_text())
    assert found["command"] == "egocnn bench ceilings --device cpu --quick --seed 3"
    assert (found["name"], found["device"], found["quick"], found["seed"]) == ("ceilings", "cpu", True, 3)
    assert {"date", "machine", "versions", "threads", "ceilings", "cases", "missing_peers"} <= found.keys()


def test_a_quick_run_leaves_no_file_unless_asked(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("bench", "ceilings", "--quick", "--device", "cpu")
    assert code == 0
    assert "| copy, bytes read and written |" in out
    assert "ceilings: copying" in err
    assert list(tmp_path.iterdir()) == []


def test_unknown_names_and_unfit_files_are_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    wanted = "no benchmark is called 'speed'; there are ceilings, layer"
    check_refused(run, wanted, "bench", "speed", "--quick", "--quiet")
    check_refused(run, "is a folder", "bench", "ceilings", "-o", tmp_path)
    check_refused(run, "holds no records", "bench", "chart", "--results", tmp_path)
