"""GEXF files hold importances, marks, sizes, colours and places, and other programs read them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from egocnn.show.drawing import draw
from egocnn.show.drawing.layout import positions
from egocnn.show.drawing.palette import AGAINST, FOR, channels
from tests.support.samples import one_graph

GRAPH = one_graph(3, [(0, 1), (1, 2)], node_label=["a", "b", "c"], edge_weight=[2.0, 0.5])[0]
IMPORTANCE = np.array([1.0, -1.0, 0.5])
VIZ = "{http://gexf.net/1.3/viz}"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "graph.gexf"
    draw(GRAPH, IMPORTANCE, np.array([0.25, 0.0]), critical_nodes=np.array([0, 1]), path=path, caption="a path")
    return path


def drawn(path: Path, what: str, sign: str) -> list[dict[str, str]]:
    root = ElementTree.parse(path).getroot()
    return [dict(found.attrib) for element in root.iter(what) for found in element.iter(VIZ + sign)]


def test_another_program_reads_labels_importances_and_weights(written: Path) -> None:
    import networkx

    graph = networkx.read_gexf(written)
    assert [graph.nodes[node]["importance"] for node in "012"] == IMPORTANCE.tolist()
    assert [graph.nodes[node]["critical"] for node in "012"] == [True, True, False]
    assert [graph.nodes[node]["label"] for node in "012"] == ["a", "b", "c"]
    assert graph.edges["0", "1"]["weight"] == 2.0
    assert [graph.edges[edge]["importance"] for edge in (("0", "1"), ("1", "2"))] == [0.25, 0.0]
    assert not graph.is_directed()


def test_size_colour_and_place_are_those_of_the_picture(written: Path) -> None:
    node = "{http://gexf.net/1.3}node"
    sizes = [float(size["value"]) for size in drawn(written, node, "size")]
    assert sizes[0] == sizes[1] > sizes[2] > 0
    colours = [tuple(int(colour[channel]) for channel in "rgb") for colour in drawn(written, node, "color")]
    assert colours[:2] == [channels(FOR), channels(AGAINST)]
    red, green, blue = colours[2]
    assert red > green > blue > channels(FOR)[2]  # a paler tint of the same colour: it counts but is not critical
    places = np.array([[float(place[axis]) for axis in "xy"] for place in drawn(written, node, "position")])
    np.testing.assert_allclose(places, 50 * positions(GRAPH), atol=0.001)
    thickness = [float(t["value"]) for t in drawn(written, "{http://gexf.net/1.3}edge", "thickness")]
    assert thickness[0] > thickness[1] > 0


def test_a_weight_that_gephi_does_not_take_is_left_out(tmp_path: Path) -> None:
    graph = one_graph(3, [(0, 1), (1, 2)], edge_weight=[-2.0, 0.5])[0]
    draw(graph, np.zeros(3), np.zeros(2), path=tmp_path / "g.gexf")
    edges = ElementTree.parse(tmp_path / "g.gexf").getroot().iter("{http://gexf.net/1.3}edge")
    assert [edge.attrib.get("weight") for edge in edges] == [None, "0.5"]
