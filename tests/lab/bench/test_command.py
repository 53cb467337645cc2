"""egocnn bench: names, files, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from egocnn.errors import ConfigError
from lab.bench.named import BENCHMARKS, bench, default_file
from tests.lab.bench.samples import record
from tests.support.commands import Run, check_refused


def test_the_list_names_every_benchmark_and_the_chart(run: Run) -> None:
    for words in (["--list"], []):
        code, out, _ = run("bench", *words)
        assert code == 0
        assert [line.split()[0] for line in out.splitlines()] == [*BENCHMARKS, "chart"]


def test_a_quick_run_tells_machines_what_it_measured_and_where(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "folder" / "ceilings.json"
    code, out, err = run(
        "bench", "ceilings", "--quick", "--json", "--quiet", "--device", "cpu", "--seed", 3, "-o", file
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
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


def test_full_runs_of_a_cpu_have_files_of_their_own() -> None:
    assert default_file("layer", device="cpu") == Path("results/bench/layer_cpu.json")


def test_unknown_names_and_unfit_files_are_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    check_refused(
        run, "no benchmark is called 'speed'; there are ceilings, layer", "bench", "speed", "--quick", "--quiet"
    )
    check_refused(run, "is a folder", "bench", "ceilings", "-o", tmp_path)
    check_refused(run, "holds no records", "bench", "chart", "--results", tmp_path)
    with pytest.raises(ConfigError):
        bench("speed")


def test_the_chart_is_drawn_from_the_records_of_a_folder(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "layer.json").write_text(json.dumps(record()))
    code, out, _ = run("bench", "chart", "--results", tmp_path, "-o", tmp_path / "chart.svg")
    assert (code, out) == (0, f"{tmp_path / 'chart.svg'}\n")
    assert "a larger product" in (tmp_path / "chart.svg").read_text()
