"""egocnn bench: names, files, refusals, and the tables and pictures that are made of its records."""

import json
from pathlib import Path

import pytest

from egocnn.errors import DataError
from lab.bench.document import EMPTY
from lab.bench.named import BENCHMARKS, default_file
from lab.bench.speed.growth import GrowthSizes, SizePoint, bench_growth
from lab.figures.chart import chart, draw_chart
from tests.lab.bench.samples import HURRY, record
from tests.support.commands import Run, check_refused, printed

PAGE = """# Title

<!-- bench:chart --><!-- /bench:chart -->
<!-- bench:layer -->
old
<!-- /bench:layer -->
between
<!-- bench:step --><!-- /bench:step -->
end
"""


def test_the_list_names_every_benchmark_and_the_chart(run: Run) -> None:
    for words in (["--list"], []):
        out = printed(run, "bench", *words)
        assert [line.split()[0] for line in out.splitlines()] == [*BENCHMARKS, "chart"]
    assert default_file("layer", device="cpu") == Path("results/bench/layer_cpu.json")


def test_a_quick_run_tells_what_it_measured_and_leaves_no_file_unless_asked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("bench", "ceilings", "--quick", "--device", "cpu")
    code, out, err = run(*words)
    assert (code, list(tmp_path.iterdir())) == (0, [])
    assert "| copy, bytes read and written |" in out
    assert "ceilings: copying" in err
    file = tmp_path / "folder" / "ceilings.json"
    found = json.loads(printed(run, *words, "--json", "--quiet", "--seed", 3, "-o", file))
    assert found == json.loads(file.read_text())
    assert found["command"] == "egocnn bench ceilings --device cpu --quick --seed 3"
    assert (found["name"], found["device"], found["quick"], found["seed"]) == ("ceilings", "cpu", True, 3)
    assert {"date", "machine", "versions", "threads", "ceilings", "cases", "missing_peers"} <= found.keys()


def test_unknown_names_and_unfit_files_are_refused_in_one_line(run: Run, tmp_path: Path) -> None:
    wanted = "no benchmark is called 'speed'; there are ceilings, layer"
    check_refused(run, wanted, "bench", "speed", "--quick", "--quiet")
    check_refused(run, "is a folder", "bench", "ceilings", "-o", tmp_path)
    check_refused(run, "holds no records", "bench", "chart", "--results", tmp_path)


def test_the_same_records_give_the_same_picture_with_every_peer_in_it_and_fill_the_page_beside_it(
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib")
    sizes = GrowthSizes(fixed=SizePoint(nodes=32, k=2, width=4), grown={"nodes": [16, 32], "width": [4, 8]})
    records = [record(), record("growth", **bench_growth(HURRY, sizes)), record("ceilings", cases=[])]
    for name in ("one.svg", "two.svg", "one.png"):
        draw_chart(records, tmp_path / name)
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text()
    for words in ("a larger product", "gather + matrix product", "nodes N", "Products of matrices (a machine)"):
        assert f"<!-- {words} -->" in text
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    for some, name, rule in ((records[2:], "chart.svg", "no ratios and no curves"), (records, "chart.pdf", ".svg or")):
        with pytest.raises(DataError, match=rule):
            draw_chart(some, tmp_path / name)
    for name, device in (("a", "cpu"), ("b", "cuda")):
        (tmp_path / f"{name}.json").write_text(json.dumps(record(device=device, machine=f"a machine with {device}")))
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert chart(tmp_path, tmp_path / "alone.svg") == [tmp_path / "alone.svg"]
    for _ in range(2):  # filling again changes nothing
        assert chart(tmp_path, tmp_path / "page.svg") == [tmp_path / "page.svg", page]
        text = page.read_text()
        assert text.startswith("# Title\n")
        assert text.endswith("<!-- /bench:step -->\nend\n")
        parts = ("](page.svg)", "with cuda", "with cpu", "between", EMPTY, "end")  # tables stand between their markers
        assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
        assert "old" not in text
    (tmp_path / "c.json").write_text("[1]")
    with pytest.raises(DataError, match=r"c\.json: is not the record"):
        chart(tmp_path, tmp_path / "page.svg")
