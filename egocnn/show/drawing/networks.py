"""A graph of any kind as shapes: grey where it does not matter, large and coloured by sign where it does."""

from collections.abc import Iterator

import numpy as np

from egocnn.data.arrays import Bools, Floats
from egocnn.show.drawing.picture import FAINT, GREY, INK, WHITE, Picture, PictureItems, mix, signed
from egocnn.show.drawing.scene import Discs, Lines, Shape, Text, clean, strip

LEVELS = 16  # Steps of strength drawn differently: finer ones cannot be seen, and each is one element of the file.
MOST_LABELLED = 60
MOST_TITLED = 500  # Nodes up to which each shows its label and importance when the mouse rests on it.
LONGEST_LABEL = 4
MOST_BROAD = 200  # Edges up to which they are drawn as broad as they are important; more are drawn finer.


def draw_network(picture: Picture, placed: Floats) -> list[Shape]:
    """The shapes of a graph with its nodes at ``placed`` (N, 2), with caption and key."""
    unit, (below, strip_height) = picture.unit, strip(picture)
    room = np.array(picture.size) - [0, strip_height]  # width and height that caption and key leave
    if picture.graph.n_nodes == 0:
        x, y = (room / 2).tolist()
        return [Text(x, y, "no nodes", 12 * unit, GREY), *below]
    low, high = placed.min(axis=0), placed.max(axis=0)
    inside = np.maximum(room - 2 * 20 * unit, 1.0)
    scale = min(float((inside / np.maximum(high - low, 1e-9)).min()), 70 * unit)  # pixels of a unit of length
    at = room / 2 + (placed - (low + high) / 2) * np.array([scale, -scale])
    # radii of the least and of the most important node, which shrink as nodes crowd
    crowd = float(np.sqrt(picture.size[0] * picture.size[1] / picture.graph.n_nodes))
    smallest = float(np.clip(min(0.22 * scale, 0.12 * crowd), 0.7 * unit, 7 * unit))
    largest = max(float(np.clip(min(0.42 * scale, 0.3 * crowd), 6 * unit, 13 * unit)), 1.6 * smallest)
    smallest = max(smallest, 5 * unit) if _is_labelled(picture) else smallest
    radii = smallest + (largest - smallest) * picture.nodes.strength
    # edges and nodes that lie over all others: an edge that matters is not hidden by a crowd of nodes
    has_critical = picture.nodes.critical.any() or picture.edges.critical.any()
    above_edges, above = (p.critical if has_critical else p.strength > 0.25 for p in (picture.edges, picture.nodes))
    above_nodes = above.copy()
    above_nodes[picture.graph.edges[above_edges]] = True
    shapes: list[Shape] = []
    for edges, nodes in ((~above_edges, ~above_nodes), (above_edges, above_nodes)):
        shapes += _edges(picture, at, edges, smallest, largest)
        shapes += _nodes(picture, at, nodes, radii)
    return shapes + below


def _is_labelled(picture: Picture) -> bool:
    return picture.graph.node_label is not None and picture.graph.n_nodes <= MOST_LABELLED


def _layers(items: PictureItems, wanted: Bools) -> Iterator[tuple[Bools, float, str, bool]]:
    """Which ones, how strong, their colour, whether critical: from what recedes to what must be seen."""
    level = np.ceil(items.strength * LEVELS - 1e-9).astype(np.int64)
    for critical in (False, True):
        for step in range(LEVELS + 1):
            for sign in (-1, 0, 1):
                chosen = wanted & (items.critical == critical) & (level == step) & (np.sign(items.importance) == sign)
                if chosen.any():
                    strength = step / LEVELS
                    share = 0.45 + 0.55 * strength if critical else strength  # the critical ones stand out
                    yield chosen, strength, mix(FAINT, signed(sign), share), critical


def _edges(picture: Picture, at: Floats, wanted: Bools, smallest: float, largest: float) -> Iterator[Shape]:
    ends = at[picture.graph.edges]
    loops = picture.graph.edges[:, 0] == picture.graph.edges[:, 1]
    crowd = float(np.clip(np.sqrt(MOST_BROAD / max(len(ends), 1)), 0.4, 1.0))
    thin, thick = crowd * min(0.35 * smallest, 1.2 * picture.unit), crowd * 0.55 * largest
    for chosen, strength, colour, critical in _layers(picture.edges, wanted):
        width = thin + (thick - thin) * strength
        if critical:
            width = max(width, 2.2 * thin, 1.5 * picture.unit)
        yield Lines(ends[chosen & ~loops], width, colour)
        # a loop beside its node, so that the ring touches it
        radius = 0.7 * max(largest, 2 * smallest)
        centres = ends[chosen & loops, 0] - np.array([0.0, 1.3 * radius])
        yield Discs(centres, np.full(len(centres), radius), None, colour, max(width, 0.8))


def _nodes(picture: Picture, at: Floats, wanted: Bools, radii: Floats) -> Iterator[Shape]:
    unit, graph = picture.unit, picture.graph
    labels = graph.node_label or ("",) * graph.n_nodes
    for chosen, strength, colour, critical in _layers(picture.nodes, wanted):
        which = np.flatnonzero(chosen).tolist()
        outline, width = (INK, 1.2 * unit) if critical else (WHITE, 0.5 * unit)
        if not critical and radii[which[0]] < 2 * unit:
            outline, width = colour, 0.0
        titled = which if graph.n_nodes <= MOST_TITLED else ()
        called = graph.node_names or range(graph.n_nodes)
        names = (f"node {called[node]}" + (f" ({labels[node]})" if labels[node] else "") for node in titled)
        titles = [f"{name}: {x:.3g}" for name, x in zip(names, picture.nodes.importance[which].tolist(), strict=False)]
        yield Discs(at[which], radii[which], colour, outline, width, titles)
        if _is_labelled(picture):
            ink = WHITE if strength > 0.5 else INK
            for node in which:
                label = clean(labels[node]).strip()
                short = label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"
                size = max(min(1.25, 2.4 / max(len(short), 1)) * float(radii[node]), 6 * unit)
                yield Text(float(at[node, 0]), float(at[node, 1]), short, size, ink)
