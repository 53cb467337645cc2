"""What a chemist does with the report: search by SMILES, SMARTS and groups, sort, mark, export; in a real browser."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from egocnn.data.sources.smiles import from_smiles
from egocnn.explain.patterns import names as patterns
from egocnn.explain.structure import CriticalStructure
from tests.show.report.made_up import DRUGS, structure, structures
from tests.show.report.reading import drawn, names, open_card, save

Show = Callable[..., Any]

# what each property asks, alone and together; some hold nowhere
SMARTS = (
    *("[R]", "[R0]", "[r6]", "[r5]", "[x2]", "[!#6;!H0]", "[#6]@[#6]", "C!@C", "[D3]", "[O-]", "[N+]", "[+1]", "[H]"),
    *("C=,#C", "[$(C=O)]N", "*~*~*", "a:a", "A", "c%10ccccc%10", "CC.O", "[Cl,Br;D1]", "[C@H](N)C", "[c;D2]"),
    *("O=C-,:N", "[OX1]", "[NX3;!$(N-C=O)]", "[C:1][O:2]", "[#7;r5,r6]", "[nH]"),
)


def search(page: Any, smarts: str) -> None:
    page.fill("#smarts", smarts)
    page.press("#smarts", "Enter")
    page.wait_for_function("() => !byId('smarts-said').textContent.startsWith('Searching')")


def values(smiles: list[str], predicted: list[float], true: list[float]) -> list[CriticalStructure]:
    """A regressor's structures; every atom contributes 1, oxygen -2."""
    made = []
    for graph, value in zip(from_smiles(smiles, true, smiles), predicted, strict=True):
        own = np.array([-2.0 if label.startswith("O") else 1.0 for label in graph.node_label or ()])
        made.append(structure(graph, predicted=value, probability=None, explained=None, node_importance=own, rows=2))
    return made


def test_smarts_are_found_where_rdkit_finds_them(show: Show) -> None:
    from rdkit import Chem

    smiles = [*DRUGS, "C1CC1C[13CH3]", "[Na+].[Cl-]", "C", "c1ccc2[nH]ccc2c1", "N[C@@H](C)C(=O)O", "C#CC1CCCC2CCCCC12"]
    page = show(structures(from_smiles(smiles, None, None), rows=2))
    with Path(patterns.__file__).with_name("groups.csv").open(encoding="utf-8", newline="") as file:
        asked = [*SMARTS, *(row["smarts"] for row in csv.DictReader(file))]
    found = page.evaluate(
        """asked => asked.map(text => Data.facts.map(
            (_, i) => Smarts.matches(Smarts.molecule(Data.chemistry(i)), Smarts.parse(text)).length))""",
        asked,
    )
    molecules = [Chem.MolFromSmiles(text) for text in smiles]
    for text, counts in zip(asked, found, strict=True):
        query = Chem.MolFromSmarts(text)
        assert counts == [len(molecule.GetSubstructMatches(query)) for molecule in molecules], text


def test_molecules_are_found_by_smiles_smarts_and_group_and_what_these_count_for_is_told(show: Show) -> None:
    page = show(values(["OCC", "CCOCC", "c1ccccc1O", "CCC"], [1, 2, 3, 4], [1, 2, 3, 4]), about={"target": "logS (M)"})
    for text, expected in (("OCC", ["OCC", "CCOCC"]), ("Oc1cc", ["c1ccccc1O"]), ("N", [])):
        page.fill("#search", text)  # in part, and as RDKit writes it
        assert names(page) == expected
    page.fill("#search", "")
    search(page, "C[OX2]")
    assert names(page) == ["OCC", "CCOCC"]
    assert page.inner_text("#group-said") == (
        "C[OX2]: in 2 of 4 molecules; 3 times, with a mean contribution of −1 (lowers logS)."
    )
    page.select_option("#by-group", label="ether group (1)")
    assert names(page) == ["CCOCC"]
    search(page, "[NX3")
    assert page.inner_text("#smarts-said") == "SMARTS: a bracket [ never closes."
    assert names(page) == ["CCOCC"]
    search(page, "[v4]")
    assert "is not understood by this page" in page.inner_text("#smarts-said")
    search(page, "N")
    assert "N: in no molecule." in page.inner_text("#group-said")
    page.get_by_role("button", name="Clear the filters").click()
    assert len(names(page)) == 4
    assert page.inner_text("#group-said") == ""


def test_a_click_on_a_group_or_its_atom_marks_it_and_tells_its_mean_over_the_set(show: Show) -> None:
    page = show(values(["OC(=O)CC", "CC(=O)OC", "CC(=O)O"], [1, 2, 3], [1, 2, 3]), place="#graph=1")
    held = "cy.nodes('.held').map(n => n.id())"
    assert page.locator("#groups li").all_inner_texts() == ["carboxylic acid group\n−3"]
    page.click("#groups button")
    assert drawn(page, held) == ["n0", "n1", "n2"]
    mean = "in 2 of 3 molecules; 2 times, with a mean contribution of −3 (lowers the value)."
    assert page.inner_text("#group-mean") == f"Here −3. carboxylic acid group: {mean}"
    page.click("#groups button")
    assert drawn(page, held) == []
    drawn(page, "void cy.getElementById('n1').emit('tap')")  # what emit returns is the whole graph
    assert drawn(page, held) == ["n0", "n1", "n2"]
    page.click("#close")
    search(page, "CC")
    open_card(page, 0)
    assert page.locator("#groups li >> nth=0").inner_text().startswith("CC\n+2")


def test_rdkits_lines_wedges_and_letters_are_drawn_and_numbers_of_atoms_on_demand(show: Show, tmp_path: Path) -> None:
    page = show(structures(from_smiles(["C[C@@H](N)C(=O)[O-]"], None, ["alanine"])), place="#graph=1")
    # a double bond has two
    assert drawn(page, "cy.edges().filter(e => e.id()[0] === 'e' && !e.id().startsWith('e0')).length") >= 5
    texts = "cy.nodes().filter(n => n.id()[0] === '{}' && n.data('shown') !== 'none').map(n => n.data('text'))".format
    assert sorted(drawn(page, texts("t"))) == sorted("NH2OO-")
    assert drawn(page, texts("m")) == []
    page.check("#numbers")
    assert drawn(page, texts("m")) == ["0", "1", "2", "3", "4", "5"]
    save(page, "svg", tmp_path / "saved.svg")
    saved = (tmp_path / "saved.svg").read_text(encoding="utf-8")
    assert "<polygon" in saved
    assert ">5</text>" in saved


def test_the_number_of_an_atom_stands_clear_of_its_letters(show: Show) -> None:
    page = show(structures(from_smiles(["Cc1ccc(C(=O)O)cc1C(=O)O", "OCC(N)O"], None, ["acid", "amine"])))
    apart = """() => Data.facts.flatMap(({ index }) => {
      const scene = Scene.of(Data.graph(index));
      return scene.letters.map((letter) => {
        const number = Picture.number(scene, letter.n);
        const wide = 0.25 * number.size * number.text.length + 0.3 * letter.size;
        const high = 0.35 * number.size + 0.35 * letter.size;
        return Math.abs(number.x - letter.x) > wide || Math.abs(number.y - letter.y) > high;
      });
    })"""
    assert all(page.evaluate(apart))
    assert len(page.evaluate(apart)) > 10


def test_molecules_are_sorted_by_predicted_true_and_error(show: Show) -> None:
    page = show(values(["C", "CC", "CCC"], [1, 3, 2], [5, 3, 4]))
    for by, order in (("predicted", "CC CCC C"), ("true", "C CCC CC"), ("error", "C CCC CC")):
        page.select_option("#sort", by)
        assert names(page) == order.split(), by


def test_parts_are_marked_and_the_headline_is_of_the_test_part(show: Show) -> None:
    given = values(["C", "CC", "CCC", "CCCC", "N"], [1, 2, 3, 4, 0], [1, 2, 3.5, 5.5, 9])
    parts = {"C": "train", "CC": "validation", "CCC": "test", "CCCC": "test"}
    page = show(given, parts=parts, about={"model": "run"})
    assert page.inner_text("#figures div:has-text('MAE') dd") == "1"
    assert "of the 2 molecules of the test part" in page.inner_text("#scored")
    assert page.locator("#chart svg circle").count() == 2
    assert page.locator(".card .part").all_inner_texts() == ["trained on", "validation", "test", "test"]
    page.select_option("#by-part", "test")
    assert names(page) == ["CCC", "CCCC"]
    page = show(given, parts=dict.fromkeys(names(show(given)), "test"), about={"model": "run"})
    wanted = "All 5 molecules are of the test part, which the model was not trained on."
    assert page.inner_text("#scored") == wanted
    page = show(given, parts={"C": "train"}, about={"model": "run"})
    assert (
        page.inner_text("#scored") == "The model was trained on 1 of these 5 molecules: its scores on them flatter it."
    )
    page = show(given, about={"model": "run"})
    assert page.inner_text("#scored").startswith("No molecule is marked as trained on")


def test_the_table_that_is_shown_is_saved_as_csv_which_runs_nothing_in_a_spreadsheet(
    show: Show, tmp_path: Path
) -> None:
    given = values(["CO", "CC", "CCC"], [1, 2, -3], [1.5, 2, 3])
    given[0] = replace(given[0], graph=replace(given[0].graph, name='=1+"1", x'))
    page = show(given, parts={"CCC": "test"})
    page.select_option("#sort", "error")
    search(page, "CC")
    search(page, "")
    page.fill("#search", "C")
    assert save(page, "csv", tmp_path / "saved.csv") == "molecules.csv"
    rows = list(csv.DictReader(io.StringIO((tmp_path / "saved.csv").read_text(encoding="utf-8"))))
    assert [row["name"] for row in rows] == ["CCC", '\'=1+"1", x', "CC"]
    assert [(row["predicted"], row["true"], row["error"], row["part"]) for row in rows] == [
        ("-3", "3", "6", "test"),
        ("1", "1.5", "0.5", ""),
        ("2", "2", "0", ""),
    ]
    assert rows[0]["smiles"] == "CCC"
    assert rows[0]["atoms"] == "3"


def test_the_target_its_unit_and_the_words_of_chemists_are_used(show: Show) -> None:
    page = show(values(["CCO", "CC"], [1, 2], [1.5, 2.5]), about={"target": "logS (mol/L)"})
    assert "Target logS (mol/L)" in page.inner_text("#origin")
    assert "0.5 mol/L" in page.inner_text("#figures")
    assert "raises logS" in page.inner_text("#gallery .legend")
    assert "1 ± " in page.inner_text(".card >> nth=0")
    open_card(page, 0)
    assert "3 atoms, 2 bonds" in page.inner_text("#facts")
    whole = page.inner_text("body") + page.inner_text("#viewer")
    assert not {"graph", "graphs", "node", "nodes", "edge", "edges"} & set(whole.lower().replace(".", " ").split())


@pytest.mark.parametrize("span", [1e-4, 3.0, 25_000.0])
def test_nothing_written_on_the_chart_touches(show: Show, span: float) -> None:
    page = show(
        values(["CCO", "CC", "C"], [0, -span, span / 3], [-span, span / 2, 0]), about={"target": "a long target"}
    )
    boxes = page.evaluate(
        """() => [...document.querySelectorAll("#chart text")].map(text => {
            const { left, right, top, bottom } = text.getBoundingClientRect();
            return [left, right, top, bottom];
        })"""
    )
    assert len(boxes) >= 8
    for i, (left, right, top, bottom) in enumerate(boxes):
        for other in boxes[:i]:
            assert other[1] <= left or right <= other[0] or other[3] <= top or bottom <= other[2]


def test_a_molecule_far_down_a_long_page_opens_by_its_link_and_is_drawn_when_it_comes_up(show: Show) -> None:
    page = show(
        structures(from_smiles(["CO"] * 200, None, [f"drug {i}" for i in range(200)]), rows=2), place="#graph=180"
    )
    page.wait_for_selector("#viewer[open]")
    assert page.inner_text("#name") == "drug 179"
    page.click("#close")
    page.select_option("#sort", "name")
    page.click("#order")
    page.wait_for_selector("canvas[data-index='199'][data-drawn]")
