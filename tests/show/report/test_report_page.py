"""The report as a file: it is whole, small, and holds no markup but its own."""

import json
import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from egocnn.data.graphs import Graph
from egocnn.explain.structure import CriticalStructure
from egocnn.show.assets import SCRIPTS
from egocnn.show.report import summarise
from egocnn.show.report.folder import embedded, encode, packed, packed_integers, page
from tests.show.report.made_up import DRUGS, drugs, structure, structures, written
from tests.support.samples import molecules, one_graph, sure

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Elements(HTMLParser):
    """Which elements a browser would make of a page, and what stands in the data's."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.data = self.portions = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.opened and self.opened[-1][1].get("id") == "data":
            self.data += data
        elif self.opened and (self.opened[-1][1].get("id") or "").startswith("portion-"):
            self.portions += data


def text_of(folder: Path, given: Sequence[CriticalStructure]) -> str:
    return written(given, folder).read_text(encoding="utf-8")


def unpacked(values: dict[str, Any]) -> np.ndarray[Any, Any]:
    steps = np.frombuffer(b64decode(values["data"]), "<i2").astype(np.float64)
    if "at" in values:
        steps, listed = np.zeros(values["length"]), steps
        steps[integers(values["at"])] = listed
    return steps * float(values["step"])


def integers(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(b64decode(text[1:]), {"s": "<u2", "l": "<u4"}[text[0]])


@given(st.text())
@example(HOSTILE)
@example("<!--<script>")
@example("\u2028\u2029&amp;")
@example("\ud800 half a pair")
def test_whatever_a_name_is_it_stays_inside_the_data(name: str) -> None:
    text = embedded({"name": name})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text.encode("utf-8")) == {"name": name}


def test_the_page_names_no_address_to_fetch_from_and_forbids_fetching(tmp_path: Path) -> None:
    text = text_of(tmp_path, structures(drugs(3)))
    elements = Elements(text).opened
    assert not re.search(r"""(src|href|action)\s*=\s*["']?\s*(https?:)?//""", text)
    assert not [tag for tag, attributes in elements if "src" in attributes]
    (policy,) = [a["content"] for tag, a in elements if tag == "meta" and "http-equiv" in a]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    assert policy.count("sha256-") == len(SCRIPTS)


def test_the_licence_of_the_drawing_library_comes_with_it(tmp_path: Path) -> None:
    assert "The Cytoscape Consortium" in text_of(tmp_path, structures(drugs(3)))
    folder = Path(page.__code__.co_filename).parent / "assets"
    assert "Permission is hereby granted" in (folder / "LICENSE-cytoscape.txt").read_text(encoding="utf-8")


def test_numbers_keep_four_digits_of_the_largest() -> None:
    values = np.random.default_rng(0).normal(size=1000) * 1e-7
    np.testing.assert_allclose(unpacked(packed(values)), values, atol=2e-5 * np.abs(values).max())
    sparse = np.where(np.arange(1000) % 7 == 0, values, 0)
    np.testing.assert_allclose(unpacked(packed(sparse)), sparse, atol=2e-5 * np.abs(sparse).max())
    assert unpacked(packed(np.zeros(3))).tolist() == [0, 0, 0]
    assert packed(np.zeros(0))["data"] == ""


def test_what_is_not_a_number_never_reaches_the_page(tmp_path: Path) -> None:
    importance = np.array([np.nan, np.inf, -np.inf, *np.ones(10)])
    odd = structure(drugs(1)[0], node_importance=importance, predicted=float("nan"), probability=float("inf"))
    page = Elements(text_of(tmp_path, [odd]))
    facts, (told,) = json.loads(page.data)["facts"], json.loads(page.portions)
    assert facts["predicted"] == facts["probability"] == [None]
    np.testing.assert_allclose(unpacked(told["nodeImportance"]), [0, 0, 0, *np.ones(10)], rtol=1e-4)


@given(st.lists(st.integers(0, 70_000)))
def test_integers_come_back_as_they_were(values: list[int]) -> None:
    assert integers(packed_integers(np.array(values, np.int64))).tolist() == values


def test_everything_a_structure_holds_is_in_the_data() -> None:
    made = structure(drugs(1)[0])
    data = encode([made], summarise([made]), {"drug 0": "test"})
    told = data["structures"][0] | {name: column[0] for name, column in data["facts"].items()}
    assert (told["name"], told["predicted"], told["true"]) == ("drug 0", made.predicted, "toxic")
    assert (told["part"], told["smiles"], told["canonical"]) == ("test", DRUGS[0], DRUGS[0])
    assert [name for name, _ in told["groups"]] == ["benzene ring", "carboxylic acid group", "ester group"]
    assert told["molecule"] is True
    assert made.trace is not None
    assert told["fidelity"] == pytest.approx(asdict(sure(made.fidelity)), rel=1e-3)
    assert told["sums"] == pytest.approx([made.base, made.speaks_for, made.speaks_against, made.output], rel=1e-3)
    assert told["spread"] == pytest.approx(made.spread, rel=1e-3)
    assert told["balance"].startswith("base -0.500, for +")
    assert told["evidence"].startswith("the structure alone keeps ")
    np.testing.assert_allclose(unpacked(told["nodeImportance"]), made.node_importance, atol=1e-4)
    np.testing.assert_allclose(unpacked(told["trace"][1]["edges"]), made.trace.edges[1], atol=1e-4)
    assert len(told["trace"]) == len(made.trace.nodes) - 1


@pytest.mark.parametrize(
    ("graph", "is_molecule"),
    [
        (drugs(1)[0], True),
        (one_graph(2, [(0, 1)], node_label=["C", "O-"], edge_label=["double"])[0], True),
        (one_graph(2, [(0, 1)], node_label=["0", "1"], edge_label=["0"])[0], False),
        (one_graph(2, [(0, 1)], node_label=["C", "O"], edge_label=["friend"])[0], False),
        (one_graph(2, [(0, 1)])[0], False),
    ],
)
def test_atoms_and_bonds_are_told_from_other_labels(graph: Graph, is_molecule: bool) -> None:
    made = structure(graph, trace=None)
    (told,) = encode([made], summarise([made]))["structures"]
    assert told["molecule"] is is_molecule


def test_the_same_structures_of_graphs_with_every_column_give_the_same_page(tmp_path: Path) -> None:
    given = structures(molecules())
    facts = summarise(given, created="2020-02-02")
    one, two = (written(given, tmp_path / name, facts).read_bytes() for name in ("one", "two"))
    assert one == two


def test_two_hundred_molecules_more_cost_less_than_half_a_megabyte(tmp_path: Path) -> None:
    few, many = (len(text_of(tmp_path, structures(drugs(count), rows=7)).encode()) for count in (10, 210))
    assert many - few < 550_000


def test_only_the_structures_of_the_first_screen_stand_before_the_scripts(tmp_path: Path) -> None:
    text = text_of(tmp_path, structures(drugs(120), rows=2))
    places = [text.index(f'id="portion-{number}"') for number in range(3)]
    assert places[0] < text.index("<script>") < places[1] < places[2]
    assert 'id="portion-3"' not in text
