"""Pictures of importances: a graph and what its nodes and edges counted for -> SVG or PNG."""

from functools import partial
from pathlib import Path

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph
from egocnn.errors import ConfigError
from egocnn.files import replacing, write_text
from egocnn.show.drawing.layout import depiction, molecule_of, positions
from egocnn.show.drawing.molecules import molecule_svg, write_molecule_png
from egocnn.show.drawing.networks import draw_network
from egocnn.show.drawing.picture import QUIET, Picture, items
from egocnn.show.drawing.scene import to_svg, write_png

__all__ = ["SUFFIXES", "draw"]

SUFFIXES = (".svg", ".png")


def draw(
    graph: Graph, node_importance: Floats, edge_importance: Floats, *, critical_nodes: Ints | None = None,
    critical_edges: Ints | None = None, path: str | Path | None = None, caption: str = "",
    size: tuple[int, int] = (480, 360), words: tuple[str, str] = ("for", "against"),
    strength: tuple[float, float] | None = None, placed: Floats | None = None,
) -> str:  # fmt: skip
    """Draw the graph, importances as size and colour; returns SVG and writes a file of the kind that ``path`` ends in.
    Nodes are compared with the largest importance of a node, of either sign, edges with that of an edge. Critical parts
    (edges by their positions in ``graph.edges``) are outlined; where they are given and there are none, all colours are
    pale. ``words`` say in the key what a positive and a negative importance mean, ``strength`` how strong the largest
    importance of a node and of an edge is shown (0 to 1), ``placed`` (N, 2) where the nodes lie."""
    target = None if path is None else Path(path)
    if target is not None and target.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"{target}: a picture ends in {' or '.join(SUFFIXES)}")
    # where nothing stands out, colours at full strength would say that something does
    most = QUIET if critical_nodes is not None and not len(critical_nodes) else 1.0
    of_node, of_edge = strength or (most, most)
    nodes = items(node_importance, critical_nodes, graph.n_nodes, "node", graph.name, of_node)
    edges = items(edge_importance, critical_edges, len(graph.edges), "edge", graph.name, of_edge)
    picture = Picture(graph=graph, nodes=nodes, edges=edges, caption=caption, size=size, words=words)
    if (molecule := molecule_of(graph)) is None:
        shapes = draw_network(picture, positions(graph) if placed is None else placed)
        svg, write = to_svg(picture, shapes), partial(write_png, picture, shapes)
    else:
        placed = depiction(molecule) if placed is None else placed
        svg, write = molecule_svg(picture, molecule, placed), partial(write_molecule_png, picture, molecule, placed)
    if target is not None and target.suffix.lower() == ".png":
        with replacing(target) as temporary:
            write(temporary)
    elif target is not None:
        write_text(target, svg)
    return svg
