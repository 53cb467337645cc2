"""A picture -> GEXF 1.3, which Gephi opens with positions, sizes and colours as drawn."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from egocnn.data.arrays import Floats
from egocnn.show.drawing.palette import channels
from egocnn.show.drawing.picture import Picture, PictureItems
from egocnn.show.drawing.scene import clean

GEXF = "http://gexf.net/1.3"
VIZ = "http://gexf.net/1.3/viz"
SPREAD = 50.0
"""Gephi's units to an edge length."""
COLUMNS = (("importance", "double"), ("critical", "boolean"), ("label", "string"))


def to_gexf(picture: Picture, placed: Floats) -> str:
    """The picture as GEXF, its nodes at ``placed`` (N, 2)."""
    graph = picture.graph
    root = ElementTree.Element("gexf", {"xmlns": GEXF, "xmlns:viz": VIZ, "version": "1.3"})
    meta = ElementTree.SubElement(root, "meta")
    ElementTree.SubElement(meta, "creator").text = "egocnn"
    ElementTree.SubElement(meta, "description").text = clean(picture.title)
    drawn = ElementTree.SubElement(root, "graph", {"defaultedgetype": "undirected", "mode": "static"})
    for kind in ("node", "edge"):
        columns = ElementTree.SubElement(drawn, "attributes", {"class": kind})
        for number, (title, values) in enumerate(COLUMNS):
            ElementTree.SubElement(columns, "attribute", {"id": str(number), "title": title, "type": values})
    nodes = ElementTree.SubElement(drawn, "nodes")
    for node, (x, y) in enumerate((SPREAD * placed).tolist()):
        label = None if graph.node_label is None else clean(graph.node_label[node])
        element = ElementTree.SubElement(nodes, "node", {"id": str(node), "label": label or str(node)})
        _add_values(element, picture.nodes, node, label)
        size = 4.0 + 16.0 * float(picture.nodes.strength[node])
        ElementTree.SubElement(element, "viz:position", {"x": f"{x:.3f}", "y": f"{y:.3f}", "z": "0.0"})
        ElementTree.SubElement(element, "viz:size", {"value": f"{size:.3f}"})
    edges = ElementTree.SubElement(drawn, "edges")
    for edge, (u, v) in enumerate(graph.edges.tolist()):
        ends = {"id": str(edge), "source": str(u), "target": str(v)}
        weight = 1.0 if graph.edge_weight is None else float(graph.edge_weight[edge])
        if np.isfinite(weight) and weight > 0:  # Gephi takes no other weights
            ends["weight"] = repr(weight)
        element = ElementTree.SubElement(edges, "edge", ends)
        _add_values(element, picture.edges, edge, None if graph.edge_label is None else clean(graph.edge_label[edge]))
        thickness = 1.0 + 5.0 * float(picture.edges.strength[edge])
        ElementTree.SubElement(element, "viz:thickness", {"value": f"{thickness:.3f}"})
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_values(element: ElementTree.Element, items: PictureItems, which: int, label: str | None) -> None:
    """The columns of a node or an edge, and its colour."""
    values = ElementTree.SubElement(element, "attvalues")
    strength, importance = float(items.strength[which]), float(items.importance[which])
    texts = (repr(importance), "true" if items.critical[which] else "false", label)
    for column, text in enumerate(texts):
        if text is not None:
            ElementTree.SubElement(values, "attvalue", {"for": str(column), "value": text})
    red, green, blue = channels(items.colour(importance, strength, bool(items.critical[which])))
    ElementTree.SubElement(element, "viz:color", {"r": str(red), "g": str(green), "b": str(blue)})
