"""The pictures of docs/model.md and docs/explanations.md: the run of ``make demo`` -> docs/pictures/*.svg.

python docs/make_pictures.py runs/demo/run

Nothing in them is drawn by hand: ranks, patches, receptive fields and importances are what the program computes for one
molecule of the demo.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import egocnn
from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph, Graphs
from egocnn.encode.patches import find_patches
from egocnn.files import write_text
from egocnn.model import Model
from egocnn.nn import EgoConv
from egocnn.nn.embed import PatchShape
from egocnn.nn.engines import ego_conv
from egocnn.show.drawing import draw
from egocnn.show.drawing.layout import positions
from egocnn.show.drawing.picture import FAINT, INK, WHITE, mix

PICTURES = Path(__file__).resolve().parent / "pictures"
SMALL, LARGE = "C5H11OH #2", "C14H29OH #1"
"""A molecule whose OH group stands on a carbon with four different neighbours, and one of a size never trained on."""
RANK_COLOURS = ("#e69f00", "#d55e00", "#0072b2", "#009e73", "#cc79a7")
"""Of Okabe and Ito, as in :mod:`egocnn.show.drawing.picture`."""
STEPS = ("after layer 3", "after layer 2", "after layer 1", "at the embedding", "at the input")


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One molecule with what the trained model makes of it."""

    model: Model
    graphs: Graphs
    """a collection of this one"""
    neighbours: Ints

    @staticmethod
    def of(model: Model, graphs: Graphs, name: str) -> Subject:
        one = graphs[[graphs.names.index(name)]]
        return Subject(model, one, model.encoder.ranking.neighbours(one, model.config.k))

    @property
    def graph(self) -> Graph:
        return self.graphs[0]

    @property
    def centre(self) -> int:
        """The carbon that holds the oxygen."""
        labels = self.graph.node_label or ()
        return int(self.neighbours[labels.index("O"), 0])

    def slots(self, count: int) -> list[int]:
        """The centre and its ranked neighbours, as many as there are"""
        return [node for node in [self.centre, *self.neighbours[self.centre].tolist()][:count] if node >= 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="the run folder that the demo wrote")
    model = Model.load(parser.parse_args().run)
    graphs = egocnn.read("compounds:alcohols")
    small = Subject.of(model, graphs, SMALL)
    PICTURES.mkdir(exist_ok=True)
    write_text(PICTURES / "way.svg", way(small))
    write_text(PICTURES / "ranks.svg", ranks(small))
    write_text(PICTURES / "patch.svg", patch(small))
    write_text(PICTURES / "fields.svg", fields(Subject.of(model, graphs, LARGE)))
    model = egocnn.load(parser.parse_args().run)
    (found,) = model.explain(graphs[[graphs.names.index(LARGE)]])
    write_text(PICTURES / "alcohol.svg", critical(found))
    (found,) = model.explain(small.graphs)
    write_text(PICTURES / "trace.svg", trace(found))


# ── one picture each ──────────────────────────────────────────────────────────────────────────────


def way(subject: Subject) -> str:
    """The way of the data, with the shapes that this molecule has on it."""
    model = subject.model
    network = model.networks[0].eval()
    batch = model.encode(subject.graphs).batch(torch.arange(1))
    with torch.no_grad():
        reached = [network.embed(batch)]
        for conv in network.convs:
            reached.append(conv(reached[-1], batch.neighbours))
        pooled = network.read_out(reached, batch)
        logits = network.head(pooled)
    up = [
        ("graph", f"{subject.graph.n_nodes} nodes, {len(subject.graph.edges)} edges"),
        ("ranked neighbours", _shape(batch.neighbours.table)),
        ("embedding H⁽⁰⁾", _shape(reached[0])),
        (f"ego layers, {len(network.convs)}", _shape(reached[-1])),
        ("readout", _shape(pooled)),
        ("logits", _shape(logits)),
    ]
    down = [
        ("critical structure", ""),
        ("input entries", ""),
        ("relevance R⁽⁰⁾", ""),
        ("relevance R⁽³⁾", ""),
        ("evidence", ""),
    ]
    shapes: list[str] = []
    for row, (words, colour) in enumerate(((up, "#0072b2"), (down, "#d55e00"))):
        for column, (name, shape) in enumerate(words):
            x, y = 8 + 150 * column, 14 + 92 * row
            shapes.append(_box(x, y, 124, 52, mix(WHITE, colour, 0.12), colour))
            shapes.append(_text(x + 62, y + (18 if shape else 26), name, 13))
            shapes.append(_text(x + 62, y + 37, shape, 11))
            if row == 0 and column:
                shapes.append(_arrow(x - 25, y + 26, x - 2, y + 26))
            elif row and column:
                shapes.append(_arrow(x - 2, y + 26, x - 25, y + 26))
    shapes.append(f'<path d="M820 68V132H736" fill="none" stroke="{INK}" stroke-width="1.3" marker-end="url(#tip)"/>')
    return _svg(890, 172, "The way of the data up to the prediction, and of the evidence down to the input", shapes)


def _shape(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape))


def ranks(subject: Subject) -> str:
    """A molecule, one atom's ranked neighbours in colour, and the filter matrix that each of them meets."""
    graph, slots = subject.graph, subject.slots(5)
    at = _fit(positions(graph), 20, 20, 330, 300)
    colour = {node: RANK_COLOURS[rank] for rank, node in enumerate(slots)}
    shapes = [*_bonds(graph, at), *_atoms(graph, at, colour)]
    for rank, node in enumerate(slots):
        shapes.append(_text(at[node, 0] + 17, at[node, 1] - 13, f"{rank}", 13, weight="bold"))
    labels = graph.node_label or ()
    for rank, node in enumerate(slots):
        y = 44 + 54 * rank
        name = "n itself" if rank == 0 else f"ν(n, {rank})"
        shapes.append(_disc(400, y, 15, colour[node]))
        shapes.append(_text(400, y, labels[node], 14, fill=WHITE))
        shapes.append(_text(428, y, name, 13, anchor="start"))
        shapes.append(_arrow(505, y, 552, y))
        shapes.append(_box(556, y - 16, 62, 32, mix(WHITE, colour[node], 0.25), colour[node]))
        shapes.append(_text(587, y, f"W{_low(rank)}", 15))
        shapes.append(_arrow(622, y, 676, 152 + 12 * (rank - 2)))
    shapes.append(_disc(694, 152, 17, WHITE, INK))
    shapes.append(_text(694, 152, "Σ", 16))
    shapes.append(_arrow(713, 152, 748, 152))
    shapes.append(_text(753, 152, "h′ₙ", 17, anchor="start"))
    return _svg(800, 320, f"The ranked neighbours of one carbon of {graph.name}", shapes)


def patch(subject: Subject) -> str:
    """The entries that Patchy-San reads around the same atom, found by the program and put back into their places."""
    slots = subject.slots(5)
    graphs, P = subject.graphs, len(slots)
    shape = PatchShape(slots=P, node_labels=len(graphs.node_label_names), edge_labels=len(graphs.edge_label_names))
    found = find_patches(graphs, subject.neighbours, shape)
    rows = found.rows[found.ptr[subject.centre] : found.ptr[subject.centre + 1]]
    first, second = shape.pairs
    side, left, top = 44, 90, 56
    labels = subject.graph.node_label or ()
    shapes: list[str] = []
    for slot, node in enumerate(slots):
        for x, y in ((left + side * (slot + 0.5), top - 20), (left - 22, top + side * (slot + 0.5))):
            shapes += [_disc(x, y, 14, RANK_COLOURS[slot]), _text(x, y, labels[node], 13, fill=WHITE)]
        shapes += [
            _box(left + side * j, top + side * slot, side, side, WHITE if j >= slot else "#f3f3f3", FAINT)
            for j in range(P)
        ]
    for row in rows[rows < shape.edge_rows].tolist():
        pair = row // max(shape.edge_labels, 1)
        kind = graphs.edge_label_names[row % shape.edge_labels] if shape.edge_labels else "edge"
        i, j = int(first[pair]), int(second[pair])
        x, y = left + side * j, top + side * i
        shapes += [
            _box(x, y, side, side, mix(WHITE, "#56b4e9", 0.5), FAINT),
            _text(x + side / 2, y + side / 2, kind, 11),
        ]
    start = left + side * P + 70
    for number, name in enumerate(graphs.node_label_names):
        shapes.append(_text(start + side * (number + 0.5), top - 20, name, 13, weight="bold"))
        shapes += [_box(start + side * number, top + side * slot, side, side, WHITE, FAINT) for slot in range(P)]
    for row in (rows[rows >= shape.edge_rows] - shape.edge_rows).tolist():
        slot, label = divmod(row, shape.node_labels)
        x, y = start + side * label, top + side * slot
        shapes += [
            _box(x, y, side, side, mix(WHITE, "#f0e442", 0.7), FAINT),
            _text(x + side / 2, y + side / 2, "1", 13),
        ]
    under = top + side * P + 24
    shapes.append(_text(left + side * P / 2, under, "edges between slots", 13))
    shapes.append(_text(start + side * shape.node_labels / 2, under, "labels of slots", 13))
    return _svg(start + side * shape.node_labels + 40, under + 20, "What Patchy-San reads around one carbon", shapes)


def fields(subject: Subject) -> str:
    """How far each layer sees from the oxygen: the embeddings with which the node's own changes, asked of autograd."""
    graph = subject.graph
    convs = [conv for conv in subject.model.networks[0].convs if isinstance(conv, EgoConv)]
    width = subject.model.config.width
    start = torch.ones(graph.n_nodes, width, dtype=torch.float64, requires_grad=True)
    table = torch.from_numpy(subject.neighbours)
    labels = graph.node_label or ()
    oxygen = labels.index("O")
    reached = np.full(graph.n_nodes, len(convs) + 1)
    h: Tensor = start
    for layer in range(len(convs) + 1):
        if layer:
            weight, bias = convs[layer - 1].weight.detach().double(), convs[layer - 1].bias.detach().double()
            h = ego_conv(h, table, weight.abs(), bias)  # absolute values: no two ways may cancel each other
        (steep,) = torch.autograd.grad(h[oxygen].sum(), start, retain_graph=True)
        seen = (steep.abs().sum(dim=1) > 0).numpy()
        reached[seen] = np.minimum(reached[seen], layer)
    at = _fit(positions(graph), 5, 10, 560, 180)
    shades = ["#0072b2", *(mix("#0072b2", WHITE, share) for share in (0.35, 0.6, 0.8)), "#f4f4f4"]
    shapes = [
        *_bonds(graph, at),
        *_atoms(graph, at, {node: shades[r] for node, r in enumerate(reached.tolist())}, radius=10),
    ]
    words = ("itself", "in reach of layer 1", "of layer 2", "of layer 3", "of none")
    for row, (word, shade) in enumerate(zip(words, shades, strict=True)):
        count = int((reached == row).sum()) if row == len(shades) - 1 else int((reached <= row).sum())
        shapes += [
            _disc(600, 40 + 27 * row, 9, shade, INK),
            _text(618, 40 + 27 * row, f"{word}: {count}", 13, anchor="start"),
        ]
    return _svg(800, 190, f"What the oxygen of {graph.name} sees, layer by layer", shapes)


def critical(found: egocnn.CriticalStructure) -> str:
    """The critical structure as ``structure.draw`` shows it, with a caption that can be read at any width."""
    width, height = 760, 170
    caption = _text(12, height + 12, found.caption, 14, anchor="start")
    return _svg(width, height + 28, found.caption, [found.draw(size=(width, height)), caption])


def trace(found: egocnn.CriticalStructure) -> str:
    """Where the evidence stood after every step of the backtracking, as the report's layer switch shows it."""
    assert found.trace is not None
    width, height = 300, 250
    panels = []
    for number, (nodes, edges) in enumerate(zip(found.trace.nodes, found.trace.edges, strict=True)):
        x, y = number % 3 * width, number // 3 * (height + 24)
        picture = draw(found.graph, nodes, edges, size=(width, height))
        panels.append(picture.replace("<svg ", f'<svg x="{x}" y="{y + 24}" ', 1))
        panels.append(_text(x + 12, y + 18, STEPS[number], 14, anchor="start"))
    return _svg(3 * width, 2 * (height + 24), f"Evidence in {found.name} on its way down", panels)


# ── shapes ────────────────────────────────────────────────────────────────────────────────────────


def _fit(placed: Floats, x: float, y: float, width: float, height: float) -> Floats:
    low, high = placed.min(axis=0), placed.max(axis=0)
    scale = float(np.min(np.array([width - 40, height - 40]) / np.maximum(high - low, 1e-9)))
    middle = np.array([x + width / 2, y + height / 2 - 10])
    at: Floats = middle + (placed - (low + high) / 2) * np.array([scale, -scale])
    return at


def _bonds(graph: Graph, at: Floats) -> Iterator[str]:
    for u, v in graph.edges.tolist():
        (a, b), (c, d) = at[u], at[v]
        yield f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}" stroke="#8c8c8c" stroke-width="2"/>'


def _atoms(graph: Graph, at: Floats, colour: dict[int, str], radius: float = 13) -> Iterator[str]:
    labels = graph.node_label or ()
    for node, (x, y) in enumerate(at.tolist()):
        fill = colour.get(node, WHITE)
        is_dark = sum(int(fill[i : i + 2], 16) for i in (1, 3, 5)) < 480
        yield _disc(x, y, radius, fill, "#8c8c8c")
        yield _text(x, y, labels[node], 1.05 * radius, fill=WHITE if is_dark else INK)


def _disc(x: float, y: float, radius: float, fill: str, outline: str = WHITE) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" stroke="{outline}"/>'


def _box(x: float, y: float, width: float, height: float, fill: str, outline: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="{outline}"/>'


def _arrow(a: float, b: float, c: float, d: float) -> str:
    return f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" stroke="{INK}" stroke-width="1.3" marker-end="url(#tip)"/>'


def _text(
    x: float, y: float, text: str, size: float, *, anchor: str = "middle", fill: str = INK, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y + 0.35 * size:.1f}" font-family="sans-serif" font-size="{size:g}" '
        f'font-weight="{weight}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
    )


def _low(number: int) -> str:
    return "₀₁₂₃₄₅₆₇₈₉"[number]


def _svg(width: float, height: float, title: str, shapes: list[str]) -> str:
    tip = (
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 8 4 0 8z" fill="{INK}"/></marker></defs>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            tip,
            f'<rect width="{width:g}" height="{height:g}" fill="{WHITE}"/>',
            *shapes,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    main()
