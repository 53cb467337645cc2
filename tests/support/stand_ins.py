"""Generated graphs in the form of a public data set, for pages that read one: a seed -> a TU archive of its name.

They share labels, attributes, classes and the kind of structure with the set whose name they bear, and nothing else.
"""

import zipfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator


Drawn = tuple[int, list[tuple[int, int]], list[int], list[float]]
"""One graph: how many nodes, its edges, and labels and attributes of the nodes; empty where the set has none."""


def protein(random: Random, *, first: bool) -> Drawn:
    """A chain that folds back onto itself; the first class is rich in helices (0), the other in sheets (1)."""
    n_nodes = int(random.integers(12, 40))
    labels = random.choice(3, n_nodes, p=[0.7, 0.2, 0.1] if first else [0.3, 0.6, 0.1]).tolist()
    edges = [(node, node + 1) for node in range(n_nodes - 1)]
    edges += [(node, node + 3) for node in range(n_nodes - 3) if random.random() < 0.4]
    return n_nodes, edges, labels, np.round(random.uniform(2, 30, n_nodes), 1).tolist()


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
    return n_nodes, edges, [], []


KINDS: dict[str, tuple[Callable[..., Drawn], tuple[int, int]]] = {
    "PROTEINS": (protein, (1, 2)),
    "REDDIT-BINARY": (thread, (-1, 1)),
}


def write_stand_in(folder: Path, name: str, *, graphs: int, seed: int = 0) -> Path:
    """``folder/tu/NAME.zip``, where ``EGOCNN_DATA=folder`` finds it."""
    draw, classes = KINDS[name]
    random = np.random.default_rng(seed)
    sizes, edges, labels, attributes = zip(*(draw(random, first=n % 2 == 0) for n in range(graphs)), strict=True)
    starts = (1 + np.cumsum(sizes) - sizes).tolist()  # the format counts nodes from 1
    files: dict[str, list[Any]] = {
        "A": [
            f"{start + a}, {start + b}"
            for start, some in zip(starts, edges, strict=True)
            for u, v in some
            for a, b in ((u, v), (v, u))
        ],
        "graph_indicator": np.repeat(np.arange(1, graphs + 1), sizes).tolist(),
        "graph_labels": [classes[n % 2] for n in range(graphs)],
        "node_labels": list(chain(*labels)),
        "node_attributes": list(chain(*attributes)),
    }
    path = folder / "tu" / f"{name}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for kind, lines in files.items():
            if lines:
                archive.writestr(f"{name}/{name}_{kind}.txt", "".join(f"{line}\n" for line in lines))
    return path
