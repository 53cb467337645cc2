"""Pictures of importances: a graph and what its nodes and edges counted for -> SVG or PNG."""

from __future__ import annotations

from pathlib import Path

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.errors import ConfigError
from egocnn.files import replacing, write_text
from egocnn.show.drawing.layout import depiction, molecule_of, positions
from egocnn.show.drawing.molecules import molecule_svg, write_molecule_png
from egocnn.show.drawing.networks import draw_network
from egocnn.show.drawing.picture import compose
from egocnn.show.drawing.scene import to_svg, write_png

__all__ = ["SUFFIXES", "draw"]

SUFFIXES = (".svg", ".png")


def draw(
    graph: Graph, node_importance: Floats, edge_importance: Floats, *, critical_nodes: Ints | None = None,
    critical_edges: Ints | None = None, path: str | Path | None = None, caption: str = "",
    size: tuple[int, int] = (480, 360), words: tuple[str, str] = ("for", "against"),
) -> str:  # fmt: skip
    """Draw the graph, importances as size and colour; returns SVG and writes a file of the kind that ``path`` ends in.
    Nodes are compared with the largest importance of a node, of either sign, edges with that of an edge. Critical parts
    (edges by their positions in ``graph.edges``) are outlined; where they are given and there are none, all colours are
    pale. ``words`` say in the key what a positive and a negative importance mean."""
    target = None if path is None else Path(path)
    kind = "" if target is None else target.suffix.lower()
    if target is not None and kind not in SUFFIXES:
        raise ConfigError(f"{target}: a picture ends in {' or '.join(SUFFIXES)}")
    parts = (node_importance, edge_importance, critical_nodes, critical_edges)
    molecule = molecule_of(graph)
    picture = compose(graph, *parts, caption=caption, size=size, words=words)
    placed = positions(graph) if molecule is None else depiction(molecule)
    shapes = draw_network(picture, placed) if molecule is None else []
    svg = to_svg(picture, shapes) if molecule is None else molecule_svg(picture, molecule, placed)
    if target is not None and kind == ".png":
        with replacing(target) as temporary:
            if molecule is None:
                write_png(picture, shapes, temporary)
            else:
                write_molecule_png(picture, molecule, placed, temporary)
    elif target is not None:
        write_text(target, svg)
    return svg
