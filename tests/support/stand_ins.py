"""Generated graphs in the form of a public data set, for pages that read one: a seed -> a TU archive of its name.

They share labels, attributes, classes and the kind of structure with the set whose name they bear, and nothing else.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Random = np.random.Generator


@dataclass(frozen=True, slots=True)
class Drawn:
    """One graph, nodes counted from 0."""

    n_nodes: int
    edges: list[tuple[int, int]]
    labels: list[int]
    """of the nodes; empty where the set has none"""
    attributes: list[float]


def protein(random: Random, *, first: bool) -> Drawn:
    """A chain that folds back onto itself; the first class is rich in helices (0), the other in sheets (1)."""
    n_nodes = int(random.integers(12, 40))
    labels = random.choice(3, n_nodes, p=[0.7, 0.2, 0.1] if first else [0.3, 0.6, 0.1]).tolist()
    edges = [(node, node + 1) for node in range(n_nodes - 1)]
    edges += [(node, node + 3) for node in range(n_nodes - 3) if random.random() < 0.4]
    return Drawn(n_nodes, edges, labels, np.round(random.uniform(2, 30, n_nodes), 1).tolist())


def thread(random: Random, *, first: bool) -> Drawn:
    """Answers to whoever has many already; in the first class one user starts with most, in the other five do."""
    n_nodes = int(random.integers(60, 200))
    starters = 1 if first else 5
    edges = [(node, node + 1) for node in range(starters)]
    heard = [end for edge in edges for end in edge]
    for node in range(starters + 1, n_nodes):
        other = int(heard[int(random.integers(len(heard)))])
        edges.append((other, node))
        heard += [other, node] + [int(random.integers(starters))] * 2
    return Drawn(n_nodes, edges, [], [])


KINDS: dict[str, tuple[Callable[..., Drawn], tuple[int, int]]] = {
    "PROTEINS": (protein, (1, 2)),
    "REDDIT-BINARY": (thread, (-1, 1)),
}


def write_stand_in(folder: Path, name: str, *, graphs: int, seed: int = 0) -> Path:
    """``folder/tu/NAME.zip``, where ``EGOCNN_DATA=folder`` finds it."""
    draw, classes = KINDS[name]
    random = np.random.default_rng(seed)
    drawn = [draw(random, first=number % 2 == 0) for number in range(graphs)]
    first = np.cumsum([1, *(each.n_nodes for each in drawn)]).tolist()  # the format counts nodes from 1
    files = {
        "A": [
            f"{start + a}, {start + b}"
            for start, each in zip(first, drawn, strict=False)
            for u, v in each.edges
            for a, b in ((u, v), (v, u))
        ],
        "graph_indicator": [f"{number}" for number, each in enumerate(drawn, 1) for _ in range(each.n_nodes)],
        "graph_labels": [f"{classes[number % 2]}" for number in range(graphs)],
        "node_labels": [f"{label}" for each in drawn for label in each.labels],
        "node_attributes": [f"{value}" for each in drawn for value in each.attributes],
    }
    path = folder / "tu" / f"{name}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, name, files)
    return path


def _write(path: Path, name: str, files: Mapping[str, Sequence[str]]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for kind, lines in files.items():
            if lines:
                archive.writestr(f"{name}/{name}_{kind}.txt", "\n".join(lines) + "\n")
