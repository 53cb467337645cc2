"""The page as its visitor meets it, in a real browser."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from egocnn.explain import explain
from egocnn.explain.structure import Fidelity
from tests.show.serve.models import classifier, of_networks, of_several_targets, of_two_networks, regressor

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
    with visit(classifier()) as page:
        assert page.inner_text("#model") == "small"
        assert "molecules.csv" in page.inner_text("#about")
        assert page.is_disabled("#report")
        page.fill("#smiles", "CCO ethanol")
        answered(page)
        assert page.inner_text("article h2") == "ethanol"
        assert page.inner_text(".said strong") in ("alcohol", "other")
        assert page.inner_text(".probability").endswith("%")
        assert page.locator(".classes li").count() == 2
        said = page.inner_text(".critical-nodes")
        assert said.startswith(("Critical: ", "No part of this molecule stands out for "))
        assert page.inner_text(".balance").startswith("Base ")
        assert page.inner_text(".balance").endswith(" log-odds.")
        until(page, "document.querySelector('article img').naturalWidth > 100")
        page.fill("#smiles", "CCO\nCC")
        answered(page, 2)
        page.fill("#smiles", "")
        answered(page, 0)


def test_a_mistake_is_told_in_one_line_and_is_gone_once_mended(visit: Visit) -> None:
    with visit(classifier()) as page:
        page.fill("#smiles", "c1cc")
        page.wait_for_selector("#problem:not([hidden])")
        assert "does not parse (unclosed ring)" in page.inner_text("#problem")
        assert page.is_disabled("#report")
        page.fill("#smiles", "C[Si](C)C\nc1cc bad")
        answered(page)
        assert page.inner_text("#problem") == "line 2: SMILES 'c1cc' does not parse (unclosed ring)"
        page.fill("#smiles", "C[Si](C)C")
        page.wait_for_selector("#problem", state="hidden")
        answered(page)
        assert "No training molecule has Si" in page.inner_text(".unseen")


def test_another_class_is_explained_when_asked_for(visit: Visit) -> None:
    with visit(classifier()) as page:
        page.get_by_role("button", name="aspirin").click()
        answered(page)
        other = page.locator('.classes button[aria-pressed="false"]')
        name = other.locator(".name").inner_text()
        before = page.inner_text(".balance")
        other.click()
        page.locator('.classes button[aria-pressed="true"]', has_text=name).wait_for()
        assert page.inner_text(".balance") != before


def test_an_empty_structure_says_so_and_one_that_is_there_says_what_it_keeps(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen(nodes: list[int]) -> Callable[..., Any]:
        def with_nodes(*given: Any, **settings: Any) -> list[Any]:
            part: dict[str, Any] = {"critical_nodes": np.array(nodes, int), "critical_edges": np.zeros(0, int)}
            fidelity = Fidelity(removed=0.25, kept=0.75, evidence_lost=0.5, evidence_kept=0.9)
            return [replace(s, **part, fidelity=fidelity) for s in explain(*given, **settings)]

        return with_nodes

    with visit(classifier()) as page:
        for nodes in ([], [2]):
            monkeypatch.setattr("egocnn.show.serve.model.explain", chosen(nodes))
            page.fill("#smiles", f"CCO {len(nodes)}")
            until(page, f"document.querySelector('article:only-child h2')?.textContent === '{len(nodes)}'")
            said, evidence = page.inner_text(".critical-nodes"), page.locator(".evidence").text_content()
            if nodes:
                assert said == "Critical: O2."
                assert evidence == (
                    "The structure alone keeps 90% of the evidence (probability 75%); "
                    "50% goes with it (probability 25% without it)."
                )
            else:
                assert ", or what would have spoken against it is absent." in said
                assert evidence == ""


def test_a_chosen_or_dropped_file_is_explained_and_the_report_opens_with_its_graphs(
    visit: Visit, tmp_path: Path
) -> None:
    table = tmp_path / "some.csv"
    table.write_text(f'smiles,name\nCCO,ethanol\nCC,"{HOSTILE}"\n', encoding="utf-8")

    with visit(classifier()) as page:
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
        page.evaluate("""() => {
            const moved = new DataTransfer();
            moved.items.add(new File(['smiles,name\\nCCO,dropped\\n'], 'm.csv'));
            document.dispatchEvent(new DragEvent('drop', {dataTransfer: moved, cancelable: true, bubbles: true}));
        }""")
        answered(page)
        assert page.inner_text("article h2") == "dropped"


def test_values_are_told_without_classes_and_other_graphs_without_smiles(visit: Visit, tmp_path: Path) -> None:
    with visit(regressor()) as page:
        page.fill("#smiles", "CCO")
        answered(page)
        float(page.inner_text(".said strong").replace("−", "-"))
        assert ", value " in page.inner_text(".balance")
        assert page.locator(".classes li").count() == 0
        assert "raises the value" in page.inner_text("#legend")
    graphs = tmp_path / "rings.jsonl"
    graphs.write_text('{"nodes": 3, "edges": [[0, 1], [1, 2], [2, 0]]}\n{"nodes": 1500, "edges": [[0, 1]]}\n')

    with visit(of_networks()) as page:
        assert not page.is_visible("#smiles")
        assert ".csv" not in page.inner_text("#formats")
        page.set_input_files("#file", str(graphs))
        answered(page, 2)
        assert page.locator("article img:visible").count() == 1
        assert page.locator(".large:visible").count() == 1


def test_of_several_targets_all_are_shown_and_the_chosen_one_is_explained(visit: Visit) -> None:
    with visit(of_several_targets()) as page:
        assert "Predicts alcohol, size" in page.inner_text("#about")
        page.fill("#smiles", "CCO")
        answered(page)
        assert page.inner_text(".targets button[aria-pressed=true] .name") == "alcohol"
        assert page.locator(".classes li").count() == 2
        page.locator(".targets button", has_text="size").click()
        page.locator(".targets button[aria-pressed=true]", has_text="size").wait_for()
        assert page.input_value("#target") == "size"
        assert page.locator(".classes li").count() == 0
        assert "raises size" in page.inner_text("#legend")
        page.select_option("#target", "alcohol")
        page.locator(".targets button[aria-pressed=true]", has_text="alcohol").wait_for()
        assert "speaks for the class" in page.inner_text("#legend")
    with visit(classifier()) as page:
        assert not page.is_visible("#target")


def test_an_injected_script_would_not_run(visit: Visit) -> None:
    refused = """() => new Promise(tell => {
        document.addEventListener("securitypolicyviolation", event => tell(event.effectiveDirective));
        const script = document.createElement("script");
        script.textContent = "document.title = 'run'";
        document.body.append(script);
    })"""
    # the page complains, as it should
    with pytest.raises(AssertionError, match="Content Security Policy"), visit(classifier()) as page:
        told = page.evaluate(refused), page.title()
    assert told == ("script-src-elem", "small")


@pytest.mark.parametrize(("scheme", "colour"), [("light", "rgb(246, 245, 242)"), ("dark", "rgb(20, 23, 28)")])
def test_a_narrow_screen_needs_no_sideways_scrolling(visit: Visit, scheme: str, colour: str) -> None:
    with visit(classifier(), viewport={"width": 360, "height": 700}, color_scheme=scheme) as page:
        page.fill("#smiles", f"CCO {'long' * 40}\nCC")
        answered(page, 2)
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == colour
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize(("model", "form"), [(classifier, r".*% ± [0-9.e-]+%"), (regressor, r"± [0-9.e-]+")])
def test_the_doubt_of_several_networks_stands_beside_the_prediction(visit: Visit, model: Any, form: str) -> None:
    with visit(of_two_networks(model())) as page:
        page.fill("#smiles", "CCO")
        answered(page)
        assert re.fullmatch(form, page.inner_text(".probability"))
