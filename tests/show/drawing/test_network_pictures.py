"""Pictures of graphs that are no molecules: what matters is large, coloured and on top; any text is harmless."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graph
from egocnn.data.sources.smiles import from_smiles
from egocnn.errors import ConfigError, DataError, MissingExtraError
from egocnn.show.drawing import draw
from egocnn.show.drawing.picture import AGAINST, FAINT, FOR, INK, channels
from tests.support.samples import cycle, one_graph

SVG = "{http://www.w3.org/2000/svg}"
RING = one_graph(5, cycle(0, 1, 2, 3, 4), node_label=["a", "b", "c", "d", "e"])[0]
NODES = np.array([1.0, -0.5, 0.25, 0.0, 0.0])
EDGES = np.array([1.0, 0.5, 0.0, 0.0, -0.5])


def plain(graph: Graph, **options: Any) -> str:
    return draw(graph, np.zeros(graph.n_nodes), np.zeros(len(graph.edges)), **options)


def circles(svg: str) -> dict[int, tuple[float, str, bool]]:
    """node -> radius, colour, whether outlined as critical; nodes name themselves in their titles"""
    found = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        for circle in group.iter(f"{SVG}circle"):
            title = circle.find(f"{SVG}title")
            if title is not None and title.text:
                node = int(title.text.split()[1].rstrip(":"))
                found[node] = float(circle.attrib["r"]), group.attrib["fill"], group.attrib.get("stroke") == INK
    return found


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def shade(path: Path, colour: str) -> int:
    """Pixels of exactly this colour."""
    from matplotlib.image import imread

    wanted = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return int((np.abs(imread(path)[..., :3] - wanted) < 1 / 500).all(axis=-1).sum())


def test_a_node_is_the_larger_the_more_important_it_is() -> None:
    found = circles(draw(RING, NODES, EDGES))
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert found[0][1] == FOR
    assert circles(draw(RING, -NODES, EDGES))[0][1] == AGAINST
    assert not any(outlined for _, _, outlined in found.values())
    radii = [found[node][0] for node in range(5)]
    assert radii[0] > radii[1] > radii[2] > radii[3] == radii[4]
    assert radii[0] - radii[3] == pytest.approx(2 * (radii[1] - radii[3]), rel=0.02)


def test_critical_nodes_are_outlined_and_all_are_coloured_by_sign() -> None:
    found = circles(draw(RING, NODES, EDGES, critical_nodes=np.array([0]), critical_edges=np.array([], int)))
    assert found[0][1] == FOR
    assert [found[node][2] for node in range(5)] == [True, False, False, False, False]
    red, green, blue = channels(found[1][1])
    assert blue > green > red  # what speaks against is seen though it is not critical
    red, green, blue = channels(found[2][1])
    assert red > green > blue
    for node in (3, 4):
        assert len(set(channels(found[node][1]))) == 1


def test_blue_is_as_strong_as_orange_at_the_same_importance() -> None:
    one: dict[str, Any] = {"critical_nodes": np.array([4]), "critical_edges": np.array([], int)}
    for size in (1.0, 0.5, 0.25):
        found = circles(draw(RING, np.array([size, -size, 0, 0, 1.0]), EDGES, **one))
        assert found[0][0] == found[1][0]
        grey = np.array(channels(FAINT))
        away = [np.linalg.norm(np.array(channels(found[node][1])) - grey) for node in (0, 1)]
        full = [np.linalg.norm(np.array(channels(colour)) - grey) for colour in (FOR, AGAINST)]
        assert away[0] / full[0] == pytest.approx(away[1] / full[1], abs=0.02) == pytest.approx(size, abs=0.05)


def test_where_nothing_is_critical_all_is_pale() -> None:
    none: dict[str, Any] = {"critical_nodes": np.array([], int), "critical_edges": np.array([], int)}
    strong, pale = circles(draw(RING, NODES, EDGES)), circles(draw(RING, NODES, EDGES, **none))
    grey = np.array(channels(FAINT))
    for node in (0, 1):
        away = [np.abs(np.array(channels(found[node][1])) - grey).max() for found in (strong, pale)]
        assert 0 < away[1] < 0.5 * away[0]
    assert not any(outlined for _, _, outlined in pale.values())


def test_important_things_are_drawn_last() -> None:
    svg = draw(RING, NODES, EDGES, critical_nodes=np.array([0]), critical_edges=np.array([0]))
    order = [svg.index(f"<title>node {node} ") for node in range(5)]
    assert max(order) == order[0]
    assert svg.index(f'stroke="{FOR}"') > order[3]  # a critical edge lies over nodes that recede


def test_the_key_names_the_signs_that_are_there_in_the_words_given() -> None:
    assert texts(draw(RING, NODES, EDGES))[-2:] == ["against", "for"]
    assert "against" not in texts(draw(RING, np.abs(NODES), np.abs(EDGES)))
    assert {"raised", "lowered"} <= set(texts(draw(RING, NODES, EDGES, words=("raised", "lowered"))))
    assert texts(plain(RING)) == ["a", "b", "c", "d", "e"]


def test_small_graphs_show_labels_and_large_ones_do_not() -> None:
    assert texts(plain(one_graph(60, [], node_label=["x"] * 60)[0])) == ["x"] * 60
    assert texts(plain(one_graph(61, [], node_label=["x"] * 61)[0])) == []


@pytest.mark.parametrize(
    ("n_nodes", "edges"),
    [(0, []), (1, []), (1, [(0, 0)]), (2, []), (2, [(0, 1), (1, 1)]), (30, [])],
    ids=["empty", "one node", "one loop", "two apart", "a pair and a loop", "no edges"],
)
def test_the_simplest_graphs_have_pictures_of_every_kind(
    tmp_path: Path, n_nodes: int, edges: list[tuple[int, int]]
) -> None:
    graph = one_graph(n_nodes, edges)[0]
    for kind in ("svg", "png"):
        svg = plain(graph, path=tmp_path / f"g.{kind}", critical_nodes=np.arange(n_nodes))
        assert "nan" not in svg
        assert len(circles(svg)) == n_nodes
    assert (tmp_path / "g.svg").read_text() == svg
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")


def test_a_png_has_the_size_asked_for_and_the_colours_of_the_signs(tmp_path: Path) -> None:
    from matplotlib.image import imread

    draw(RING, np.array([1.0, -1, 0, 0, 0]), EDGES, critical_nodes=np.array([0, 1]), path=tmp_path / "r.png")
    assert imread(tmp_path / "r.png").shape[:2] == (360, 480)
    assert min(shade(tmp_path / "r.png", FOR), shade(tmp_path / "r.png", AGAINST)) > 200
    plain(RING, path=tmp_path / "plain.PNG", size=(600, 300))
    assert imread(tmp_path / "plain.PNG", format="png").shape[:2] == (300, 600)
    assert shade(tmp_path / "plain.PNG", FOR) == 0


HOSTILE = [
    *("<script>alert(1)</script>", '"><svg onload="x">', "]]>&amp;&#0;", "\x00\x01\x1b[31m\x7f", "\ud800\uffff"),
    *("$x_1^{$", "日本 العربية 🧪 ₂", "a\nb", "<sub>", "x" * 500),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_can_stand_in_a_png(tmp_path: Path, text: str) -> None:
    """What it becomes in an SVG is asked of all that is drawn and written, in tests/project/test_fuzzing.py."""
    pytest.importorskip("rdkit")
    label = text.replace("\ud800", "")  # half a surrogate pair can stand in a caption, not in graphs
    network = one_graph(2, [(0, 1)], node_label=[label, "ok"], edge_label=[label], names=[label])
    for number, graph in enumerate((*network, *from_smiles(["CO"], names=[label]))):
        plain(graph, path=tmp_path / f"{number}.png", caption=text)
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")


@given(st.text(max_size=40))
@settings(max_examples=60)
def test_captions_of_any_characters_leave_xml_that_parses(text: str) -> None:
    ElementTree.fromstring(plain(RING, caption=text).encode())


def test_a_long_caption_is_cut_and_kept_whole_in_the_title() -> None:
    caption = "word " * 100
    svg = plain(RING, caption=caption)
    shown = [line for line in texts(svg) if "word" in line]
    assert len(shown) == 2
    assert shown[1].endswith("…")
    assert ElementTree.fromstring(svg).findtext(f"{SVG}title") == caption


def test_pictures_hold_no_reference_to_anything_outside() -> None:
    svg = draw(RING, NODES, EDGES, caption="a ring")
    assert svg.replace("http://www.w3.org/2000/svg", "").count("://") == 0
    assert not [part for part in ("href", "src", "url(", "<!", "<style") if part in svg]


def test_a_picture_is_the_same_in_every_run(tmp_path: Path) -> None:
    script = """
import sys, numpy as np
from egocnn.show.drawing import draw
from tests.show.drawing.test_layout import thread
graph = thread(500)
for kind in ("svg", "png"):
    draw(graph, np.linspace(-1, 1, 500), np.linspace(0, 1, 499), path=f"{sys.argv[1]}.{kind}", caption="thread")
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "there")], env=environment, check=True)
    exec(script.replace("sys.argv[1]", "place"), {"place": str(tmp_path / "here")})
    for kind in ("svg", "png"):
        assert (tmp_path / f"here.{kind}").read_bytes() == (tmp_path / f"there.{kind}").read_bytes()


def test_a_discussion_of_thousands_fits_in_a_small_file(tmp_path: Path) -> None:
    from tests.show.drawing.test_layout import thread

    graph = thread(2500)
    importance = np.random.default_rng(0).standard_normal(graph.n_nodes)
    svg = draw(graph, importance, importance[1:], critical_nodes=np.arange(20), path=tmp_path / "t.png")
    assert len(svg) < 330_000
    assert svg.count("<circle") >= graph.n_nodes


@pytest.mark.parametrize("name", ["picture.jpg", "picture", "picture.svg.gz"])
def test_another_ending_is_refused_and_both_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"a picture ends in \.svg or \.png"):
        plain(RING, path=tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="size must be 40 to 10000 pixels a side, got 480 x 0"):
        plain(RING, size=(480, 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node_importance": np.zeros(4)}, "graph 0: 4 importances for 5 nodes"),
        ({"edge_importance": np.zeros((5, 1)).repeat(2, 1)}, "graph 0: 10 importances for 5 edges"),
        ({"node_importance": np.array([0, 1, np.nan, 0, 0])}, "importance of node 2 is nan, not a finite number"),
        ({"edge_importance": np.array([0, np.inf, 0, 0, 0])}, "importance of edge 1 is inf"),
        ({"critical_nodes": np.array([5])}, "critical node 5 of 5 nodes"),
        ({"critical_edges": np.array([-1])}, "critical edge -1 of 5 edges"),
    ],
)
def test_importances_that_do_not_fit_the_graph_are_refused(change: dict[str, Any], message: str) -> None:
    given = {"node_importance": NODES, "edge_importance": EDGES} | change
    with pytest.raises(DataError, match=message):
        draw(RING, **given)


def test_importances_of_any_magnitude_are_drawn_alike() -> None:
    assert circles(draw(RING, NODES * 1e-300, EDGES))[0][0] == circles(draw(RING, NODES * 1e300, EDGES))[0][0]


def test_a_missing_matplotlib_names_the_extra_and_leaves_the_old_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.png").write_bytes(b"old")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        MissingExtraError, match=r"matplotlib is not installed; type: pip install \"egocnn\[networks\]\""
    ):
        plain(RING, path=tmp_path / "old.png")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("old.png", b"old")]
    assert plain(RING).startswith("<svg")
