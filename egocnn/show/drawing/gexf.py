"""A picture -> GEXF 1.3, which Gephi opens with positions, sizes and colours as drawn."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from egocnn.data.arrays import Floats
from egocnn.show.drawing.palette import FAINT, GREY, channels, mix, signed
from egocnn.show.drawing.picture import Part, Picture
from egocnn.show.drawing.scene import clean

GEXF = "http://gexf.net/1.3"
VIZ = "http://gexf.net/1.3/viz"
SPREAD = 50.0
"""Gephi's units to an edge length."""
COLUMNS = (("importance", "double"), ("critical", "boolean"))


def to_gexf(picture: Picture, placed: Floats) -> str:
    root = ElementTree.Element("gexf", {"xmlns": GEXF, "xmlns:viz": VIZ, "version": "1.3"})
    meta = ElementTree.SubElement(root, "meta")
    ElementTree.SubElement(meta, "creator").text = "egocnn"
    ElementTree.SubElement(meta, "description").text = clean(picture.caption or picture.graph.name)
    graph = ElementTree.SubElement(root, "graph", {"defaultedgetype": "undirected", "mode": "static"})
    for kind in ("node", "edge"):
        columns = ElementTree.SubElement(graph, "attributes", {"class": kind})
        for number, (title, values) in enumerate((*COLUMNS, ("label", "string"))):
            ElementTree.SubElement(columns, "attribute", {"id": str(number), "title": title, "type": values})
    _add_nodes(picture, placed, graph)
    _add_edges(picture, graph)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_nodes(picture: Picture, placed: Floats, graph: ElementTree.Element) -> None:
    labels = picture.graph.node_label
    nodes = ElementTree.SubElement(graph, "nodes")
    for node in range(picture.graph.n_nodes):
        label = None if labels is None else clean(labels[node])
        element = ElementTree.SubElement(nodes, "node", {"id": str(node), "label": label or str(node)})
        _add_values(element, picture.nodes, node, label)
        _add_colour(element, picture.nodes, node)
        size = 4.0 + 16.0 * float(picture.nodes.strength[node])
        x, y = (SPREAD * placed[node]).tolist()
        ElementTree.SubElement(element, "viz:position", {"x": f"{x:.3f}", "y": f"{y:.3f}", "z": "0.0"})
        ElementTree.SubElement(element, "viz:size", {"value": f"{size:.3f}"})


def _add_edges(picture: Picture, graph: ElementTree.Element) -> None:
    labels, weights = picture.graph.edge_label, picture.graph.edge_weight
    edges = ElementTree.SubElement(graph, "edges")
    for edge, (u, v) in enumerate(picture.graph.edges.tolist()):
        ends = {"id": str(edge), "source": str(u), "target": str(v)}
        # Gephi has no use for a weight that is zero or less
        weight = 1.0 if weights is None else float(weights[edge])
        if np.isfinite(weight) and weight > 0:
            ends["weight"] = repr(weight)
        element = ElementTree.SubElement(edges, "edge", ends)
        _add_values(element, picture.edges, edge, None if labels is None else clean(labels[edge]))
        _add_colour(element, picture.edges, edge)
        thickness = 1.0 + 5.0 * float(picture.edges.strength[edge])
        ElementTree.SubElement(element, "viz:thickness", {"value": f"{thickness:.3f}"})


def _add_values(element: ElementTree.Element, part: Part, which: int, label: str | None) -> None:
    values = ElementTree.SubElement(element, "attvalues")
    texts = (repr(float(part.importance[which])), "true" if part.critical[which] else "false", label)
    for column, text in enumerate(texts):
        if text is not None:
            ElementTree.SubElement(values, "attvalue", {"for": str(column), "value": text})


def _add_colour(element: ElementTree.Element, part: Part, which: int) -> None:
    strength, importance = float(part.strength[which]), float(part.importance[which])
    coloured = part.critical[which] or (not part.is_marked and importance != 0)
    colour = mix(FAINT, signed(importance), 0.45 + 0.55 * strength) if coloured else mix(FAINT, GREY, strength)
    red, green, blue = channels(colour)
    ElementTree.SubElement(element, "viz:color", {"r": str(red), "g": str(green), "b": str(blue)})
