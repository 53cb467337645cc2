"""The report as its reader meets it, in a real browser from a file without a network."""

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from egocnn.data.sources.smiles import from_smiles
from egocnn.explain.structure import CriticalStructure, Fidelity
from tests.show.report.made_up import DRUGS, drugs, structure, structures, written
from tests.show.report.reading import drawn, go_on, names, open_card, save
from tests.support.samples import cycle, one_graph, sure

Show = Callable[..., Any]

HOSTILE = ("<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "{{DATA}}", "&lt;b&gt; \u2028 ☃")


def empty(made: CriticalStructure) -> CriticalStructure:
    """The same where nothing stands out."""
    none = np.zeros(0, np.int64)
    return replace(made, critical_nodes=none, critical_edges=none)


def critical(page: Any) -> tuple[int, int]:
    """How many nodes and edges the page says are critical."""
    words = page.inner_text("#count").replace(",", "").split()
    return int(words[0]), int(words[4])


def set_slider(page: Any, value: int) -> None:
    page.locator("#threshold").fill(str(value))


def place_of(page: Any, element: str) -> tuple[float, float]:
    """Where on the screen cytoscape draws a node."""
    box = page.locator("#canvas").bounding_box()
    at = page.evaluate("id => byId('canvas')._cyreg.cy.getElementById(id).renderedPosition()", element)
    return box["x"] + at["x"], box["y"] + at["y"]


def test_the_summary_and_the_cards_say_what_the_structures_hold(show: Show) -> None:
    given = structures(drugs())
    page = show(given)
    right = sum(s.predicted == s.graph.target for s in given)
    assert page.inner_text("#figures dd >> nth=0") == f"{100 * right / len(given):.1f}%"
    recall = {
        name: np.mean([s.predicted == name for s in given if s.graph.target == name]) for name in ("harmless", "toxic")
    }
    told = ", ".join(f"{name} {math.floor(100 * value + 0.5)}%" for name, value in recall.items())
    assert page.inner_text("#recall") == f"Recall: {told}."
    assert "of the evidence alone" in page.inner_text("#sentences")
    assert "of the evidence is kept by the structure alone" in page.inner_text("#figures")
    assert "nothing stands out" in page.inner_text("#figures")
    assert page.locator("#chart svg circle").count() > 0
    card = page.inner_text(".card >> nth=0")
    assert f"Predicted: {given[0].predicted} ({given[0].probability:.0%} ± {sure(given[0].spread):.0%})" in card
    assert "True: toxic" in card
    page.wait_for_selector("canvas[data-drawn]")
    ink = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    assert page.locator("canvas[data-drawn]").first.evaluate(ink) > 10


def test_hostile_names_are_shown_as_they_are_and_run_nothing(show: Show) -> None:
    graphs = drugs(4, names=HOSTILE)
    odd = [structure(graph, predicted=HOSTILE[0], explained=HOSTILE[0], technique=HOSTILE[1]) for graph in graphs]
    page = show(odd)
    assert page.locator(".card strong").all_text_contents() == list(HOSTILE)
    open_card(page, 1)
    assert page.inner_text("#name") == HOSTILE[1]
    assert HOSTILE[0] in page.inner_text("#facts")
    assert page.locator("img").count() == 0


def test_an_injected_script_would_not_run(browser: Any, tmp_path: Path) -> None:
    given = structures(drugs(1))
    page = browser.new_page()
    page.goto(written(given, tmp_path).as_uri())
    refused = page.evaluate(
        """() => new Promise(tell => {
            document.addEventListener("securitypolicyviolation", event => tell(event.effectiveDirective));
            const button = document.createElement("button");
            button.setAttribute("onclick", "document.title = 'run'");
            document.body.append(button);
            button.click();
        })"""
    )
    title = page.title()
    page.close()
    assert refused == "script-src-attr"
    assert title == "Critical structures"


def test_cards_are_found_by_name_class_and_outcome_and_sorted_by_what_they_tell(show: Show) -> None:
    given = structures(drugs(30))
    page = show(given)
    page.fill("#search", "DRUG 1")
    assert names(page) == [s.graph.name for s in given if "drug 1" in s.graph.name]
    page.select_option("#by-predicted", label="toxic")
    page.select_option("#by-outcome", label="Wrong")
    wanted = [s for s in given if "drug 1" in s.graph.name and s.predicted == "toxic" and s.graph.target != "toxic"]
    assert names(page) == [s.graph.name for s in wanted]
    assert page.inner_text("#found") == f"{len(wanted)} of 30 molecules"
    page.select_option("#by-true", label="toxic")
    assert names(page) == []
    page.get_by_role("button", name="Clear the filters").click()
    assert len(names(page)) == 30
    page.select_option("#sort", "name")
    assert names(page) == [f"drug {i}" for i in range(30)]  # 2 before 10
    page.click("#order")
    assert names(page) == [f"drug {i}" for i in reversed(range(30))]
    keys: dict[str, Callable[[CriticalStructure], float]] = {
        "size": lambda s: s.graph.n_nodes,
        "probability": lambda s: -(s.probability or 0),
        "spread": lambda s: -(s.spread or 0),
        "kept": lambda s: -((s.fidelity and s.fidelity.evidence_kept) or 0),
        "lost": lambda s: -((s.fidelity and s.fidelity.evidence_lost) or 0),
    }
    for by, key in keys.items():
        page.select_option("#sort", by)
        assert names(page) == [s.graph.name for s in sorted(given, key=key)], by
    open_card(page, 0)
    for place, name in enumerate([s.graph.name for s in sorted(given, key=keys["lost"])[:3]], 1):
        assert page.inner_text("#name") == name
        go_on(page, f"{place + 1} of 30")


def test_empty_structures_come_last_when_sorted_by_evidence_and_say_that_nothing_stands_out(show: Show) -> None:
    first, second = structures(drugs(2))
    page = show([empty(first), second])
    assert "Nothing stands out" in page.inner_text(".card >> nth=0")
    assert "Nothing stands out" not in page.inner_text(".card >> nth=1")
    page.select_option("#sort", "kept")
    assert names(page) == ["drug 1", "drug 0"]
    page.click("#order")
    assert names(page) == ["drug 1", "drug 0"]


def test_where_nothing_stands_out_the_sentence_is_shown_and_the_colours_are_pale(show: Show) -> None:
    made = structure(drugs(1)[0], explained="harmless")
    fills = "cy.nodes('.decoration').map(n => n.data('fill')).sort()"
    page = show([made, empty(made)], place="#graph=1")
    assert page.inner_text("#evidence").startswith("The structure alone keeps ")
    strong = drawn(page, fills)
    go_on(page, "2 of 2")
    assert page.inner_text("#evidence").startswith("No part of this molecule stands out for harmless")
    assert critical(page) == (0, 0)
    assert drawn(page, fills) != strong
    set_slider(page, 1)  # the reader may still ask what comes first
    assert critical(page)[0] > 0


def test_the_facts_say_base_contributions_and_output_in_one_line(show: Show) -> None:
    graph = from_smiles(["OC#N"], ["toxic"], ["cyanic acid"])[0]
    values: dict[str, Any] = {"node_importance": np.array([3.4, 0.0, -0.6]), "edge_importance": np.zeros(2)}
    made = structure(graph, base=-1.2, output=1.6, **values)
    gradient = structure(graph, base=-1.2, output=5.0, **values)
    page = show([made, gradient], place="#graph=1")
    assert page.inner_text("#balance") == "Base −1.20, for +3.40, against −0.60, output 1.60 log-odds."
    assert page.inner_text("#column") == "Contribution"
    go_on(page, "2 of 2")
    assert page.inner_text("#balance") == "Base −1.20, output 5.00 log-odds."
    assert page.inner_text("#column") == "Importance"


def test_the_slider_grows_and_shrinks_the_structure_and_its_contour_and_leads_back_to_the_models_own(
    show: Show,
) -> None:
    made = structure(drugs(1)[0])
    page = show([made, empty(made)], place="#graph=1")
    own = (len(made.critical_nodes), len(made.critical_edges))

    def inside(kind: str) -> list[int]:
        """Atoms or bonds with such a line of the contour."""
        chosen = f"cy.elements('.decoration').filter(x => x.id()[0] === '{kind}' && x.data('opacity') === 1)"
        found: list[int] = drawn(page, f"{chosen}.map(x => Number(x.id().slice(1)))")
        return found

    assert critical(page) == own
    assert page.is_disabled("#own")
    assert inside("o") == inside("i") == made.critical_nodes.tolist()
    assert inside("p") == inside("q") == made.critical_edges.tolist()
    last = int(page.get_attribute("#threshold", "max"))
    assert last == int((made.node_importance > 0).sum())
    for step in range(1, last + 1):  # one atom at a time, equal ones too
        set_slider(page, step)
        assert critical(page)[0] == len(inside("o")) == step
        assert step > 1 or inside("o") == [int(made.node_importance.argmax())]
    page.click("#own")
    assert critical(page) == own
    go_on(page, "2 of 2")
    assert inside("o") == inside("p") == []


def test_the_layers_show_how_the_evidence_travelled(show: Show) -> None:
    made = structure(drugs(1)[0], seed=1)
    assert made.trace is not None
    page = show([made], place="#graph=1")
    assert page.locator("#layers label").all_inner_texts() == ["Top", "1", "2", "3", "Input"]

    def first_row() -> tuple[int, float]:
        cells = page.locator("#ranking tr >> nth=0").locator("td").all_inner_texts()
        return int(cells[0]), float(cells[2].replace("−", "-").replace("+", ""))

    shown = []
    for layer, label in enumerate(("Top", "1", "2", "3", "Input")):
        page.get_by_role("radio", name=label, exact=True).check(force=True)
        most = int(np.abs(made.trace.nodes[layer]).argmax())
        node, importance = first_row()
        assert node == most
        assert importance == pytest.approx(made.trace.nodes[layer][most], rel=6e-3)
        shown.append(drawn(page, "cy.nodes('#h0,#h1,#h2,#h3').map(n => n.data('fill'))"))
    assert shown[0] != shown[-1]


def test_pointing_at_a_node_or_an_edge_tells_its_label_and_importance(show: Show) -> None:
    graph = from_smiles(["OC#N"], ["toxic"], ["cyanic acid"])[0]
    values: dict[str, Any] = {"node_importance": np.array([0.5, 0.0, -0.25]), "base": 1.0, "output": 1.25}
    made = structure(graph, edge_importance=np.array([0.125, 0.0]), **values)
    page = show([made], place="#graph=1")
    page.mouse.move(*place_of(page, "n0"))
    page.wait_for_function("() => byId('readout').textContent.startsWith('Atom 0')")
    assert page.inner_text("#readout") == f"Atom 0 · O · contribution +0.5 (for {made.predicted})"
    (x0, y0), (x1, y1) = place_of(page, "n0"), place_of(page, "n1")
    page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2)
    page.wait_for_function("() => byId('readout').textContent.startsWith('Bond 0')")
    assert page.inner_text("#readout") == f"Bond 0–1 · single · contribution +0.125 (for {made.predicted})"
    page.fill("#lookup", "2")  # the same without a pointer
    assert page.inner_text("#readout") == f"Atom 2 · N · contribution −0.25 (against {made.predicted})"
    page.get_by_role("button", name="Show atom 0").focus()
    assert page.inner_text("#readout").startswith("Atom 0 · O")


def test_a_link_opens_its_graph_and_keys_lead_on_and_out(show: Show) -> None:
    page = show(structures(drugs(3)), place="#graph=2")
    assert page.inner_text("#name") == "drug 1"
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => byId('name').textContent === 'drug 2'")
    assert page.is_disabled("#next")
    page.keyboard.press("Escape")
    page.wait_for_selector("#viewer", state="hidden")
    page.locator(".card").nth(0).press("Enter")
    page.wait_for_selector("#viewer[open]")
    assert page.url.endswith("#graph=1")
    page.go_back()
    page.wait_for_selector("#viewer", state="hidden")
    assert page.evaluate("document.activeElement.className") == "card"
    page.evaluate("location.hash = '#graph=99'")  # there is none
    assert not page.is_visible("#viewer")


def test_pictures_and_data_can_be_saved(show: Show, tmp_path: Path) -> None:
    made = structure(drugs(1, names=["a/b <c>"])[0])
    page = show([made], place="#graph=1")
    saved = {kind: tmp_path / f"saved.{kind}" for kind in ("svg", "png", "json")}
    for kind, path in saved.items():
        assert save(page, kind, path) == f"a_b_c_.{kind}"
    drawn = ET.parse(saved["svg"]).getroot()
    assert drawn.findtext("{http://www.w3.org/2000/svg}title") == "a/b <c>"
    letters = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(map(str, letters)) == [*"HOOOO"]  # RDKit's: the acid's hydrogen is written
    assert saved["png"].read_bytes().startswith(b"\x89PNG")
    told = json.loads(saved["json"].read_text(encoding="utf-8"))
    assert told["critical_nodes"] == made.critical_nodes.tolist()
    assert told["critical_edges"] == made.graph.edges[made.critical_edges].tolist()
    np.testing.assert_allclose(told["node_importance"], made.node_importance, atol=1e-4)
    for name in ("base", "for", "against", "output", "spread", "fidelity"):
        assert told[name] == pytest.approx(made.to_plain()[name], rel=1e-3), name
    assert told["base"] + sum(told["node_importance"]) == pytest.approx(told["output"], abs=1e-3)


def test_a_thousand_graphs_are_searched_and_paged_through(show: Show) -> None:
    page = show(structures(from_smiles(["CO"] * 1000, None, [f"drug {i}" for i in range(1000)]), rows=2))
    assert page.inner_text("#found") == "1,000 molecules"
    assert page.locator(".card").count() < 100
    page.wait_for_selector("canvas[data-drawn]")
    assert page.locator("canvas[data-drawn]").count() < page.locator("canvas").count()
    page.click("#page-on")
    assert names(page)[0] == "drug 48"
    page.fill("#search", "drug 999")
    assert names(page) == ["drug 999"]
    open_card(page, 0)
    assert page.inner_text("#name") == "drug 999"


def test_a_large_network_opens_and_answers(show: Show) -> None:
    generator = np.random.default_rng(0)
    tree = one_graph(3782, [(int(generator.integers(n)), n) for n in range(1, 3782)])[0]
    page = show([structure(tree, rows=6)], place="#graph=1")
    before = critical(page)
    set_slider(page, 5)
    assert critical(page) != before
    assert "300 of 3,782 nodes" in page.inner_text("#facts")
    name = page.inner_text("#ranking button >> nth=2")  # its number in the whole graph
    page.fill("#lookup", name)
    assert page.inner_text("#readout").startswith(f"Node {name} ")


def test_the_spread_of_a_probability_is_told_in_whole_per_cent_and_a_class_that_is_a_number_as_a_class(
    show: Show,
) -> None:
    graphs = from_smiles(DRUGS[:2], ["0", "1"], None)
    page = show([structure(graph, predicted="1", explained="1", spread=0.147) for graph in graphs])
    assert " ± 15%)" in page.inner_text(".card >> nth=0")
    page.fill("#smarts", "C")
    page.press("#smarts", "Enter")
    page.get_by_text("where class 1 is explained").wait_for()


def test_in_a_narrow_window_the_picture_stays_in_view_while_the_slider_is_moved(show: Show) -> None:
    page = show(structures(drugs(3)), viewport={"width": 800, "height": 700})
    open_card(page, 0)
    page.locator("#threshold").scroll_into_view_if_needed()
    page.focus("#threshold")
    bar, stage, slider = (page.locator(name).bounding_box() for name in (".bar", ".stage", "#threshold"))
    assert stage["y"] >= bar["y"] + bar["height"] - 1
    assert stage["y"] + stage["height"] <= slider["y"] + 1


def test_values_are_told_as_raised_and_lowered(show: Show) -> None:
    graphs = from_smiles(DRUGS[:3], [1.0, 2.0, 3.0], None)
    known: dict[str, Any] = {"probability": None, "explained": None, "spread": 0.25}
    known["fidelity"] = Fidelity(removed=0.5, kept=2.25, evidence_lost=0.75, evidence_kept=0.9)
    page = show([structure(graph, predicted=float(i) + 1.5, **known) for i, graph in enumerate(graphs)])
    assert "MAE" in page.inner_text("#figures")
    assert not page.is_visible("#by-predicted")
    assert "raises the value" in page.inner_text("#gallery .legend")
    assert page.locator("#chart svg circle").count() == 3
    open_card(page, 0)
    assert "1.5 ± 0.25" in page.inner_text("#facts")
    assert page.inner_text("#balance").startswith("Base −0.500, raised +")
    assert page.inner_text("#evidence") == (
        "The structure alone keeps 90% of the evidence (value 2.25); 75% goes with it (value 0.5 without it)."
    )


def test_the_slider_of_a_value_takes_what_lowers_it_as_well_as_what_raises_it(show: Show) -> None:
    graph = from_smiles(["OC#N"], [1.0], ["cyanic acid"])[0]
    values: dict[str, Any] = {"node_importance": np.array([0.5, 0.1, -0.75]), "edge_importance": np.zeros(2)}
    chosen: dict[str, Any] = {"critical_nodes": np.array([2]), "critical_edges": np.zeros(0, np.int64)}
    made = structure(graph, predicted=1.0, probability=None, explained=None, **values, **chosen)
    page = show([made], place="#graph=1")
    for step, shown in ((1, ["o2"]), (2, ["o0", "o2"]), (3, ["o0", "o1", "o2"])):
        set_slider(page, step)
        lines = "cy.nodes('.decoration').filter(n => n.id()[0] === 'o' && n.data('opacity') === 1)"
        assert drawn(page, f"{lines}.map(n => n.id())") == shown
    page.fill("#lookup", "2")
    assert page.inner_text("#readout").endswith("−0.75 (lowers the value)")


def test_loops_truths_single_atoms_and_graphs_without_importance_are_drawn(show: Show, tmp_path: Path) -> None:
    loops = one_graph(4, [*cycle(0, 1, 2), (3, 3)], node_truth=np.array([1, 1, 0, 0], bool))[0]
    atom = from_smiles(["C"])[0]
    none: dict[str, Any] = dict.fromkeys(("critical_nodes", "critical_edges"), np.zeros(0, np.int64))
    none |= dict.fromkeys(("node_importance", "edge_importance"), np.zeros(4)) | {"trace": None, "fidelity": None}
    nothing = structure(loops, **none)
    page = show([structure(loops), structure(atom), nothing], place="#graph=1")
    page.check("#known")
    assert drawn(page, "cy.nodes('.ring').filter(':visible').length") == 2
    save(page, "svg", tmp_path / "saved.svg")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => byId('place').textContent === '2 of 3'")
    go_on(page, "3 of 3")
    assert critical(page) == (0, 0)
    assert page.is_disabled("#threshold")
    assert not page.is_visible("#layers")


def test_a_report_without_graphs_says_so(show: Show) -> None:
    page = show([])
    assert page.is_visible("text=There are no graphs in this report.")
    assert not page.is_visible("#filters")


def test_a_narrow_dark_screen_needs_no_sideways_scrolling(show: Show) -> None:
    page = show(structures(drugs(5)), viewport={"width": 360, "height": 700}, color_scheme="dark")
    overflow = "() => document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(overflow) <= 0
    open_card(page, 0)
    assert page.evaluate("() => byId('viewer').scrollWidth - innerWidth") <= 0
    assert page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor") == "rgb(20, 23, 28)"
