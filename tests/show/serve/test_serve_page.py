"""The page as its visitor meets it, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.show.serve.models import classifier, of_networks, regressor

Visit = Callable[..., Any]

HOSTILE = "<img src=x onerror=alert(1)>"


def until(page: Any, condition: str) -> None:
    """Wait until it holds; Playwright's own way evaluates texts inside the page, which the page forbids."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(25)
    pytest.fail(f"{condition} never came true")


def answered(page: Any, count: int = 1) -> None:
    until(page, f"document.querySelectorAll('#answers:not(.stale) article').length === {count}")


def test_typing_a_molecule_shows_prediction_probability_and_picture_at_once(visit: Visit) -> None:
    def work(page: Any) -> None:
        assert page.inner_text("#model") == "small"
        assert "molecules.csv" in page.inner_text("#about")
        assert page.is_disabled("#report")
        page.fill("#smiles", "CCO ethanol")
        answered(page)
        assert page.inner_text("article h2") == "ethanol"
        assert page.inner_text(".said strong") in ("alcohol", "other")
        assert page.inner_text(".probability").endswith("%")
        assert page.locator(".classes li").count() == 2
        assert page.inner_text(".critical-nodes").startswith("Critical: ")
        until(page, "document.querySelector('article img').naturalWidth > 100")
        page.fill("#smiles", "CCO\nCC")
        answered(page, 2)
        page.fill("#smiles", "")
        answered(page, 0)

    visit(classifier(), work)


def test_a_mistake_is_told_in_one_line_and_is_gone_once_mended(visit: Visit) -> None:
    def work(page: Any) -> None:
        page.fill("#smiles", "c1cc")
        page.wait_for_selector("#problem:not([hidden])")
        assert "does not parse (unclosed ring)" in page.inner_text("#problem")
        assert page.is_disabled("#report")
        page.fill("#smiles", "C[Si](C)C")
        answered(page)
        assert not page.is_visible("#problem")
        assert "No training graph has Si" in page.inner_text(".unseen")

    visit(classifier(), work)


def test_another_class_is_explained_when_asked_for(visit: Visit) -> None:
    def work(page: Any) -> None:
        page.get_by_role("button", name="aspirin").click()
        answered(page)
        other = page.locator('.classes button[aria-pressed="false"]')
        name = other.locator(".name").inner_text()
        other.click()
        page.locator('.classes button[aria-pressed="true"]', has_text=name).wait_for()
        assert f"{name} has" in page.inner_text(".fidelity")

    visit(classifier(), work)


def test_a_file_is_explained_and_the_report_opens_with_its_graphs(visit: Visit, tmp_path: Path) -> None:
    table = tmp_path / "some.csv"
    table.write_text(f'smiles,name\nCCO,ethanol\nCC,"{HOSTILE}"\n', encoding="utf-8")

    def work(page: Any) -> None:
        page.fill("#smiles", "C")
        answered(page)
        page.set_input_files("#file", str(table))
        answered(page, 2)
        assert page.input_value("#smiles") == ""
        assert page.locator("article h2").all_text_contents() == ["ethanol", HOSTILE]
        assert page.locator("article img").count() == 2  # pictures alone: the name made none
        with page.expect_popup() as opened:
            page.click("#report")
        report = opened.value
        report.wait_for_selector("html[data-ready]")
        assert report.locator(".card strong").all_text_contents() == ["ethanol", HOSTILE]
        report.wait_for_selector("canvas[data-drawn]")
        report.close()

    visit(classifier(), work)


def test_a_dropped_file_is_explained(visit: Visit) -> None:
    drop = """() => {
        const moved = new DataTransfer();
        moved.items.add(new File(['smiles,name\\nCCO,dropped\\n'], 'm.csv'));
        document.dispatchEvent(new DragEvent('drop', {dataTransfer: moved, cancelable: true, bubbles: true}));
    }"""

    def work(page: Any) -> None:
        page.evaluate(drop)
        answered(page)
        assert page.inner_text("article h2") == "dropped"

    visit(classifier(), work)


def test_values_are_told_without_classes_and_other_graphs_without_smiles(visit: Visit, tmp_path: Path) -> None:
    def value(page: Any) -> None:
        page.fill("#smiles", "CCO")
        answered(page)
        float(page.inner_text(".said strong"))
        assert page.locator(".classes li").count() == 0
        assert "raises the value" in page.inner_text("#legend")

    visit(regressor(), value)
    graphs = tmp_path / "rings.jsonl"
    graphs.write_text('{"nodes": 3, "edges": [[0, 1], [1, 2], [2, 0]]}\n{"nodes": 1500, "edges": [[0, 1]]}\n')

    def network(page: Any) -> None:
        assert not page.is_visible("#smiles")
        assert ".csv" not in page.inner_text("#formats")
        page.set_input_files("#file", str(graphs))
        answered(page, 2)
        assert page.locator("article img:visible").count() == 1
        assert page.locator(".large:visible").count() == 1

    visit(of_networks(), network)


def test_an_injected_script_would_not_run(visit: Visit) -> None:
    told = []

    def work(page: Any) -> None:
        refused = """() => new Promise(tell => {
            document.addEventListener("securitypolicyviolation", event => tell(event.effectiveDirective));
            const script = document.createElement("script");
            script.textContent = "document.title = 'run'";
            document.body.append(script);
        })"""
        told.append((page.evaluate(refused), page.title()))

    with pytest.raises(AssertionError, match="Content Security Policy"):  # the page complains, as it should
        visit(classifier(), work)
    assert told == [("script-src-elem", "small")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_needs_no_sideways_scrolling(visit: Visit, scheme: str) -> None:
    def work(page: Any) -> Any:
        page.fill("#smiles", f"CCO {'long' * 40}\nCC")
        answered(page, 2)
        colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return page.evaluate("document.documentElement.scrollWidth - innerWidth"), colour

    overflow, colour = visit(classifier(), work, viewport={"width": 360, "height": 700}, color_scheme=scheme)
    assert overflow <= 0
    assert colour == ("rgb(20, 23, 28)" if scheme == "dark" else "rgb(246, 245, 242)")
