"""Pictures of molecules: RDKit's drawing over tints of importance, critical parts inside a contour."""

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graph
from egocnn.data.read import read
from egocnn.data.sources.smiles import from_smiles
from egocnn.show.drawing import draw
from egocnn.show.drawing.layout import depiction, molecule_of
from egocnn.show.drawing.molecules import CONTOUR, TENTHS, line_work
from egocnn.show.drawing.picture import AGAINST, FOR, INK, WHITE, channels, mix
from tests.support.samples import one_graph, sure

SVG = "{http://www.w3.org/2000/svg}"
STRONGEST = 0.75
"""Share of the full colour in the tint of the most important atom."""


def hexanol() -> Graph:
    return from_smiles(["CCCCCCO"])[0]


def discs(svg: str) -> list[tuple[str, float, float, float]]:
    """colour, x, y, radius in the order drawn, without the key"""
    root = ElementTree.fromstring(svg)
    found = []
    for group in root.iter():
        for circle in group.findall(f"{SVG}circle"):
            x, y, radius = (float(circle.attrib[name]) for name in ("cx", "cy", "r"))
            found.append((circle.attrib.get("fill") or group.attrib["fill"], x, y, radius))
    return [disc for disc in found if disc[0] not in (FOR, AGAINST)]


def letters(svg: str, atom: int) -> list[ElementTree.Element]:
    """What RDKit draws for an atom with a symbol of its own."""
    return [e for e in ElementTree.fromstring(svg).iter(f"{SVG}path") if e.attrib.get("class") == f"atom-{atom}"]


def middle(path: ElementTree.Element) -> Floats:
    numbers = [float(number) for number in path.attrib["d"].replace(",", " ").split() if number[-1].isdigit()]
    return np.array(numbers).reshape(-1, 2).mean(axis=0)  # type: ignore[no-any-return]


def test_the_most_important_atom_has_the_strongest_and_largest_tint() -> None:
    importance = np.array([0, 0, 0, 0, 0, -0.5, 1.0])
    found = discs(draw(hexanol(), importance, np.zeros(6)))
    assert [disc[0] for disc in found] == [mix(WHITE, AGAINST, 0.435), mix(WHITE, FOR, STRONGEST)]
    assert found[1][3] > 1.3 * found[0][3]


def test_tints_lie_beneath_the_atoms_they_belong_to() -> None:
    svg = draw(hexanol(), np.eye(7)[6], np.zeros(6))
    ((_, x, y, radius),) = discs(svg)
    assert letters(svg, 6)
    assert np.linalg.norm(middle(letters(svg, 6)[0]) - [x, y]) < radius
    assert svg.index(mix(WHITE, FOR, STRONGEST)) < svg.index("class='atom-6'")


def test_a_molecule_with_nodes_in_another_order_tints_the_right_atom() -> None:
    collection = read("compounds:alcohols")
    graph = next(one for one in collection if one.node_label and "O" in one.node_label and one.n_nodes < 40)
    oxygen = sure(graph.node_label).index("O")
    svg = draw(graph, np.eye(graph.n_nodes)[oxygen], np.zeros(len(graph.edges)))
    ((_, x, y, _),) = discs(svg)
    assert np.linalg.norm(middle(letters(svg, oxygen)[0]) - [x, y]) < 5


def test_critical_atoms_and_bonds_lie_inside_one_contour() -> None:
    svg = draw(hexanol(), np.eye(7)[6], np.zeros(6), critical_nodes=np.array([5, 6]), critical_edges=np.array([5]))
    found = discs(svg)
    outer = {disc[1:3]: disc[3] for disc in found if disc[0] == INK}
    inner = {disc[1:3]: disc[3] for disc in found if disc[0] == WHITE}
    assert len(outer) == 2
    assert outer.keys() == inner.keys()
    assert all(0.5 < outer[place] - inner[place] < 3 for place in outer)
    one, other = (np.array(place) for place in outer)
    assert np.linalg.norm(one - other) * CONTOUR == pytest.approx(min(inner.values()), rel=0.05)
    assert not [disc for disc in discs(draw(hexanol(), np.eye(7)[6], np.zeros(6))) if disc[0] == INK]


def test_a_png_shows_what_the_svg_shows(tmp_path: Path) -> None:
    from matplotlib.image import imread

    importance = np.array([-1.0, 0, 0, 0, 0, 0, 1.0])
    svg = draw(hexanol(), importance, np.zeros(6), path=tmp_path / "m.png", caption="hexanol <b>")
    draw(hexanol(), importance, np.zeros(6), path=tmp_path / "again.png", caption="hexanol <b>")
    assert (tmp_path / "m.png").read_bytes() == (tmp_path / "again.png").read_bytes()
    image = imread(tmp_path / "m.png")[..., :3]
    assert image.shape == (360, 480, 3)
    for colour, x, y, radius in discs(svg):
        pixel = image[round(y - 0.8 * radius), round(x)] * 255  # off the centre, where a bond or a letter may be
        assert np.abs(pixel - channels(colour)).max() < 4


@pytest.mark.parametrize(
    "smiles",
    ["C", "[H][H]", "[Na+].[Cl-]", "C[C@H](N)C(=O)O", "c1ccc2[nH]ccc2c1", "O=[N+]([O-])c1ccccc1", "*CC", "C" * 300],
)
def test_molecules_of_all_kinds_have_pictures(tmp_path: Path, smiles: str) -> None:
    graph = from_smiles([smiles])[0]
    importance = np.linspace(-1, 1, graph.n_nodes)
    for kind in ("svg", "png"):
        svg = draw(graph, importance, np.zeros(len(graph.edges)), path=tmp_path / f"m.{kind}", caption=smiles[:30])
    assert "nan" not in svg
    assert "class='" in svg  # as RDKit writes
    ElementTree.fromstring(svg)
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("bonds", [["single", "double"], ["aromatic", "triple"]], ids=["chemistry", "nonsense"])
def test_atoms_and_bonds_are_drawn_as_a_molecule_without_a_smiles(tmp_path: Path, bonds: list[str]) -> None:
    graph = one_graph(3, [(0, 1), (1, 2)], node_label=["C", "N", "O"], edge_label=bonds)[0]
    assert letters(draw(graph, np.eye(3)[2], np.zeros(2), path=tmp_path / "m.png"), 2)


def test_molecules_are_drawn_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    draw(hexanol(), np.zeros(7), np.zeros(6), path=tmp_path / "m.png")
    assert (tmp_path / "m.png").exists()


def test_the_key_explains_the_colour_of_atoms_that_are_not_critical() -> None:
    graph = from_smiles(["CCO"])[0]
    critical: dict[str, Any] = {"critical_nodes": np.array([2]), "critical_edges": np.array([], int)}
    svg = draw(graph, np.array([-1.0, 0.0, 1.0]), np.array([0.0, 0.5]), **critical)
    assert ">for<" in svg
    assert ">against<" in svg


def test_atoms_that_speak_against_are_tinted_as_strongly_as_those_that_speak_for() -> None:
    importance = np.array([-1.0, 0, 0, 0, 0, 0, 1.0])
    found = discs(draw(hexanol(), importance, np.zeros(6), critical_nodes=np.array([6])))
    tints = {colour: radius for colour, _, _, radius in found if colour not in (INK, WHITE)}
    assert set(tints) == {mix(WHITE, AGAINST, STRONGEST), mix(WHITE, FOR, STRONGEST)}
    assert len(set(tints.values())) == 1


def test_a_molecule_in_which_nothing_stands_out_is_pale_and_has_no_contour() -> None:
    importance = np.array([-0.5, 0, 0, 0, 0, 0, 1.0])
    none: dict[str, Any] = {"critical_nodes": np.array([], int), "critical_edges": np.array([], int)}
    for colour, _, _, _ in discs(draw(hexanol(), importance, np.zeros(6), **none)):
        assert min(channels(colour)) > 150
        assert colour != INK


@pytest.mark.parametrize(
    ("smiles", "kinds", "text"),
    [
        ("c1ccccc1", [0] * 9, ""),  # every second bond of the ring is double
        ("C[C@H](F)Cl", [0, 0, 3], "FCl"),  # a solid wedge is a triangle
        ("CC(=O)[O-]", [0, 0, 0, 0], "OO-"),
        ("[Na+]", [], "Na+"),
    ],
)
def test_the_line_work_for_pages_is_rdkits_drawing(smiles: str, kinds: list[int], text: str) -> None:
    graph = from_smiles([smiles])[0]
    molecule = molecule_of(graph)
    at, strokes, letters, found = line_work(molecule, graph.edges, depiction(molecule))
    seen, bonds = [], set()
    while len(strokes):
        bond, kind = divmod(int(strokes[0]), 8)
        ends, points = at[graph.edges[bond]], strokes[1 : 1 + 2 * max(kind, 2)].reshape(-1, 2)
        assert np.linalg.norm(points.mean(axis=0) - ends.mean(axis=0)) < 0.3 * TENTHS
        seen.append(kind)
        bonds.add(bond)
        strokes = strokes[1 + points.size :]
    assert sorted(seen) == kinds
    assert bonds == set(range(len(graph.edges)))
    assert sorted(found) == sorted(text)
    assert len(letters) == 4 * len(found)
    for atom, x, y, _ in letters.reshape(-1, 4):
        assert np.linalg.norm(at[atom] - (x, y)) < TENTHS
