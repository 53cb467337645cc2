"""Tables and pictures of records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from egocnn.errors import DataError
from lab.bench.document import EMPTY, fill_document, markdown, read_records
from lab.bench.speed.growth import GrowthSizes, SizePoint, bench_growth
from lab.figures.chart import chart, draw_chart
from tests.lab.bench.samples import HURRY, record

PAGE = """# Title

<!-- bench:chart --><!-- /bench:chart -->
<!-- bench:layer -->
old
<!-- /bench:layer -->
between
<!-- bench:step --><!-- /bench:step -->
end
"""


def growth_record() -> dict[str, Any]:
    sizes = GrowthSizes(fixed=SizePoint(nodes=32, k=2, width=4), grown={"nodes": [16, 32], "width": [4, 8]})
    return record("growth", **bench_growth(HURRY, sizes))


def test_a_table_has_a_row_for_every_system_and_no_empty_column() -> None:
    text = markdown(record())
    lines = text.splitlines()
    assert lines[0].startswith("**Products of matrices**: a machine, 2020-01-02.")
    assert "| case | system | time | time / ours | useful TFLOP/s | remark |" in lines
    assert "peak memory" not in text
    assert any(line.startswith("| product | egocnn | ") and "| 1× |" in line for line in lines)
    assert any(line.startswith("|  | a library |") and line.endswith("nothing is not installed |") for line in lines)
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert len(widths) == 1
    assert "`egocnn bench layer`, torch 2.0." in text


def test_ceilings_exponents_and_missing_sets_are_told() -> None:
    ceilings = {
        "copy_gigabytes_per_second": 4321.0,
        "matrix_teraflops": {"bfloat16": 790.0},
        "tall_matrix_teraflops": {"bfloat16": 600.5},
    }
    more: dict[str, Any] = {"exponents": {"N": {"egocnn": 1.01}}, "missing": {"NCI1": "not there"}}
    text = markdown(record(quick=True, ceilings=ceilings, **more))
    told = ("4,321 GB/s", "790 TFLOP/s", "600 TFLOP/s", "N: egocnn 1.01", "NCI1 is missing: not there", "--quick")
    assert [words for words in told if words not in text] == []


def test_tables_stand_between_their_markers_and_filling_again_changes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    records = [record(), record(machine="another machine"), record("other")]
    fill_document(page, records)
    text = page.read_text()
    assert "old" not in text
    assert text.index("a machine") < text.index("another machine") < text.index("between") < text.rindex(EMPTY)
    assert text.startswith("# Title\n")
    assert text.endswith("<!-- /bench:step -->\nend\n")
    fill_document(page, records)
    assert page.read_text() == text
    page.write_text("nothing here")
    with pytest.raises(DataError, match="has no markers"):
        fill_document(page, records)


def test_records_are_read_gpu_first_and_other_files_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no records"):
        read_records(tmp_path)
    for name, device in (("a", "cpu"), ("b", "cuda")):
        (tmp_path / f"{name}.json").write_text(json.dumps(record(device=device)))
    assert [found["device"] for found in read_records(tmp_path)] == ["cuda", "cpu"]
    (tmp_path / "c.json").write_text("[1]")
    with pytest.raises(DataError, match=r"c\.json: is not the record"):
        read_records(tmp_path)
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(DataError, match=r"c\.json: Expecting"):
        read_records(tmp_path)


def test_the_same_records_give_the_same_picture_with_every_peer_in_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    records = [record(), growth_record(), record("ceilings", cases=[])]
    for name in ("one.svg", "two.svg", "one.png"):
        draw_chart(records, tmp_path / name)
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text()
    for words in ("a larger product", "gather + matrix product", "nodes N", "Products of matrices (a machine)"):
        assert f"<!-- {words} -->" in text
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(DataError, match="no ratios and no curves"):
        draw_chart(records[2:], tmp_path / "chart.svg")
    with pytest.raises(DataError, match=r"\.svg or \.png"):
        draw_chart(records, tmp_path / "chart.pdf")


def test_the_chart_command_fills_the_page_beside_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = tmp_path / "results"
    results.mkdir()
    (results / "layer.json").write_text(json.dumps(record()))
    assert chart(results, tmp_path / "alone.svg") == [tmp_path / "alone.svg"]
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert chart(results, tmp_path / "page.svg") == [tmp_path / "page.svg", page]
    assert "a larger product" in page.read_text()
    assert "](page.svg)" in page.read_text()
