"""The folder that tells people and machines about matched pairs."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from egocnn.explain.patterns.compare import Comparison, compare, summary_of
from egocnn.show.pairs.page import draw_both, sentences, write_pairs
from tests.explain.patterns.test_matched_pairs import several
from tests.show.report.test_report_page import Elements
from tests.support.commands import rows

pytest.importorskip("rdkit")


def written(folder: Path, found: list[Comparison], shown: int = 2, title: str = "Pairs") -> str:
    page = write_pairs(found, folder, summary_of(found), title=title, shown=shown, suffix=".csv")
    return page.read_text(encoding="utf-8")


def test_the_folder_holds_all_pairs_and_the_page_those_with_the_largest_change(tmp_path: Path) -> None:
    found = several()
    text = written(tmp_path, found)
    assert len(rows(tmp_path / "pairs.csv")) == 6
    assert [row["pairs"] for row in rows(tmp_path / "transformations.csv")] == ["6"]
    assert json.loads((tmp_path / "pairs.json").read_text())["cliffs"] == 1
    assert [tag for tag, _ in Elements(text).opened].count("svg") == 4
    assert "2 of 6" in text
    assert text.count('class="cliff"') == 1
    assert "+5.00" in text


def test_of_pairs_that_change_nothing_in_truth_the_largest_predicted_change_comes_first_and_no_change_has_no_sign(
    tmp_path: Path,
) -> None:
    found = [replace(one, true_change=0.0) for one in several()]
    largest = max(found, key=lambda one: abs(one.predicted_change))
    text = written(tmp_path, found, shown=1)
    assert largest.first.name in text.split("<figcaption>")[1]
    assert largest.second.name in text.split("<figcaption>")[2]
    assert "<td>0.00</td>" in text
    assert not re.search(r"[-+]0\.00<", text)


def test_the_page_says_what_is_predicted_of_a_class(tmp_path: Path) -> None:
    found = several()
    about = {**summary_of(found), "class": "1"}
    page = write_pairs(found, tmp_path, about, title="Pairs", shown=1, suffix=".csv")
    assert "Predicted: the probability of class 1." in page.read_text()


def test_the_page_escapes_what_comes_from_data_and_loads_nothing(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    one = several()[0]
    first = replace(one.first, graph=replace(one.first.graph, name=evil))
    text = written(tmp_path, [replace(one, first=first)], title=evil)
    opened = Elements(text).opened
    assert {"img", "script"}.isdisjoint(tag for tag, _ in opened)
    assert all((a.get("href") or a.get("src") or "#").startswith("#") for _, a in opened)


def strongest(svg: str) -> int:
    """How little blue there is in the strongest tint of orange, the key left out."""
    tints = set(re.findall(r"#([0-9a-f]{6})", svg)) - {"d55e00"}
    return min(int(tint[4:], 16) for tint in tints if int(tint[:2], 16) > int(tint[4:], 16))


def test_both_molecules_are_coloured_on_one_scale() -> None:
    one = several()[0]
    loud, quiet = map(strongest, draw_both(one))
    alone = strongest(draw_both(compare(one.second, one.second))[0])
    assert loud == alone < quiet


def test_sentences_leave_out_what_is_not_known() -> None:
    bare = {"pairs": 1, "transformations": 1, "pairs_with_truth": 0, "correlation": None, "cliffs": 0}
    bare |= {"rank_in_cliffs": None, "rank_in_all": None}
    assert sentences(bare) == ["1 pairs of molecules that differ by one group, 1 transformations."]
