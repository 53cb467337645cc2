"""The folder that tells people and machines about patterns."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from egocnn.explain.patterns import Pattern, find_patterns
from egocnn.explain.patterns.record import RAISES
from egocnn.show.patterns.page import write_patterns
from tests.explain.patterns.made_up_structures import molecules
from tests.show.report.test_report_page import Elements
from tests.support.commands import rows
from tests.support.tiny import contents

pytest.importorskip("rdkit")


def tags(text: str) -> list[str]:
    return [tag for tag, _ in Elements(text).opened]


@pytest.fixture(scope="module")
def patterns() -> list[Pattern]:
    nitro = molecules([f"{'C' * n}Oc1ccc([N+](=O)[O-])cc1" for n in range(1, 13)], "c[N+](=O)[O-]", "<toxic> & bad")
    return find_patterns([*nitro, *molecules(["C" * n for n in range(2, 14)], "CC", "harmless")])


def test_the_folder_holds_the_page_the_tables_and_the_drawings(tmp_path: Path, patterns: list[Pattern]) -> None:
    page = write_patterns(patterns, tmp_path, title="What is toxic")
    assert page == tmp_path / "index.html"
    plain = json.loads((tmp_path / "patterns.json").read_text(encoding="utf-8"))
    assert [p["name"] for p in plain["patterns"]] == [p.name for p in patterns]
    assert [int(row["in_class"]) for row in rows(tmp_path / "patterns.csv")] == [p.in_class for p in patterns]
    figures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert figures == sorted(f"pattern-{n + 1}.svg" for n in range(len(patterns)))


def test_the_page_needs_no_network_and_runs_no_scripts(tmp_path: Path, patterns: list[Pattern]) -> None:
    text = write_patterns(patterns, tmp_path, title="What is toxic").read_text(encoding="utf-8")
    assert "script" not in tags(text)
    addresses = [a.get("href") or a.get("src") or "#" for _, a in Elements(text).opened]
    assert all(address.startswith("#") for address in addresses)
    assert "default-src 'none'" in text
    telling = [p for p in patterns if p.is_significant]
    assert telling
    assert tags(text).count("svg") == sum(1 + min(len(p.examples), 3) for p in telling)


def test_names_are_escaped_earlier_drawings_taken_away_and_no_patterns_make_a_page_that_says_so(
    tmp_path: Path, patterns: list[Pattern]
) -> None:
    evil = replace(patterns[0], name="<img src=x onerror=alert(1)>")
    text = write_patterns([evil], tmp_path, title="</title><script>alert(1)</script>").read_text(encoding="utf-8")
    assert {"script", "img", "toxic"}.isdisjoint(tags(text))
    assert "Class &lt;toxic&gt; &amp; bad" in text
    write_patterns([patterns[0]] * 3, tmp_path, title="More")
    write_patterns([patterns[0]], tmp_path, title="Less")
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["pattern-1.svg"]
    assert "No fragment recurs" in write_patterns([], tmp_path, title="Nothing").read_text(encoding="utf-8")


def test_a_page_speaks_of_molecules_and_of_values_that_are_high_or_low(tmp_path: Path, patterns: list[Pattern]) -> None:
    text = write_patterns(patterns[:1], tmp_path, title="Toxic").read_text(encoding="utf-8")
    assert "12 molecules of this class" in text
    assert "<th>in this class</th>" in text
    high = [replace(patterns[0], class_name=RAISES)]
    text = write_patterns(high, tmp_path, title="Solubility").read_text(encoding="utf-8")
    assert "12 molecules above the median" in text
    assert "<th>here</th>" in text
    assert "<th>in this class</th>" not in text


def test_a_page_that_cannot_be_written_leaves_the_earlier_report_whole(tmp_path: Path, patterns: list[Pattern]) -> None:
    write_patterns([patterns[0]] * 3, tmp_path, title="Whole")
    before = contents(tmp_path)
    with pytest.raises(UnicodeEncodeError):
        write_patterns([patterns[-1]], tmp_path, title="half a pair: \ud800")
    assert contents(tmp_path) == before
