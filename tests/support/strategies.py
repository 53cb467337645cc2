"""Random graphs for property tests: hypothesis strategies, and larger ones from a seed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs

NODE_NAMES = ("C", "N", "O")
EDGE_NAMES = ("single", "double")
CLASS_NAMES = ("no", "yes")
WEIGHTS = (0.5, 1.0, 2.0)  # few values, so that equal ones are common


@st.composite
def random_graphs(
    draw: st.DrawFn,
    *,
    min_graphs: int = 1,
    max_graphs: int = 4,
    min_nodes: int = 1,
    max_nodes: int = 7,
    node_labels: bool | None = None,
    edge_labels: bool | None = None,
    weights: bool | None = None,
    attributes: bool | None = None,
    loops: bool = True,
    classes: bool | None = None,
    unseen: bool = False,
) -> Graphs:
    """A small collection; each kind of column is there (True), is not (False), or may be (None).

    ``unseen``: some labels may be -1.
    """

    def wanted(choice: bool | None) -> bool:
        return draw(st.booleans()) if choice is None else choice

    def several(values: Sequence[Any], size: int) -> list[Any]:
        return draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

    counts = draw(st.lists(st.integers(min_nodes, max_nodes), min_size=min_graphs, max_size=max_graphs))
    n_nodes, n_graphs = sum(counts), len(counts)
    edges: list[tuple[int, int]] = []
    for first, count in zip(np.cumsum([0, *counts]), counts, strict=False):
        pairs = [(u, v) for u in range(count) for v in range(u if loops else u + 1, count)]
        chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=3 * count)) if pairs else []
        edges += [(u + int(first), v + int(first)) for u, v in chosen]
    columns: dict[str, Any] = {}
    lowest = -1 if unseen else 0
    if wanted(node_labels):
        labels = several(range(lowest, len(NODE_NAMES)), n_nodes)
        columns |= {"node_label": np.array(labels, np.int32), "node_label_names": NODE_NAMES}
    if wanted(edge_labels):
        labels = several(range(lowest, len(EDGE_NAMES)), len(edges))
        columns |= {"edge_label": np.array(labels, np.int32), "edge_label_names": EDGE_NAMES}
    if wanted(weights):
        columns["edge_weight"] = np.array(several(WEIGHTS, len(edges)), np.float32)
    if wanted(attributes):
        columns["node_attr"] = np.array(several(WEIGHTS, 2 * n_nodes), np.float32).reshape(-1, 2)
    if wanted(classes):
        columns |= {"target": np.array(several(range(2), n_graphs), np.int64), "class_names": CLASS_NAMES}
    return Graphs.from_edges(node_counts=counts, edges=np.array(edges, np.int64).reshape(-1, 2), **columns)


def random_trees(n_graphs: int, *, nodes: int, seed: int, most_neighbours: int = 4, **columns: Any) -> Graphs:
    """Molecule-like trees: labelled nodes and edges, few neighbours a node."""
    random = np.random.default_rng(seed)
    counts = random.integers(2, nodes + 1, n_graphs)
    edges: list[tuple[int, int]] = []
    for first, count in zip((np.cumsum(counts) - counts).tolist(), counts, strict=True):
        degree = np.zeros(count, int)
        for node in range(1, count):
            parent = int(random.choice(np.flatnonzero(degree[:node] < most_neighbours)))
            degree[[parent, node]] += 1
            edges.append((parent + first, node + first))
    return _labelled(counts, np.array(edges), random, **columns)


def random_connected(n_graphs: int, *, nodes: int, extra: int, seed: int, **columns: Any) -> Graphs:
    """Connected graphs: a random tree and ``extra`` edges more (fewer where they coincide)."""
    random = np.random.default_rng(seed)
    counts = random.integers(3, nodes + 1, n_graphs)
    edges: list[tuple[int, int]] = []
    for first, count in zip(np.cumsum(counts) - counts, counts, strict=True):
        pairs = {(int(random.integers(node)), node) for node in range(1, count)}
        more = random.integers(count, size=(extra, 2))
        pairs |= {(int(min(u, v)), int(max(u, v))) for u, v in more if u != v}
        edges += [(u + int(first), v + int(first)) for u, v in sorted(pairs)]
    return _labelled(counts, np.array(edges), random, **columns)


def dressed(graphs: Graphs, *, attributes: int = 2, weights: bool = True, seed: int = 0) -> Graphs:
    """The same graphs with random attributes of their nodes and, unless told, weights of their edges."""
    random = np.random.default_rng(seed)
    value = random.uniform(1, 2, graphs.n_nodes).astype(np.float32)
    graphs = graphs.replace(node_attr=random.normal(size=(graphs.n_nodes, attributes)).astype(np.float32))
    return graphs.replace(edge_weight=value[graphs.entry_node] * value[graphs.indices]) if weights else graphs


def _labelled(counts: Ints, edges: Ints, random: np.random.Generator, **columns: Any) -> Graphs:
    return Graphs.from_edges(
        node_counts=counts,
        edges=edges,
        node_label=random.integers(len(NODE_NAMES), size=int(counts.sum())).astype(np.int32),
        node_label_names=NODE_NAMES,
        edge_label=random.integers(len(EDGE_NAMES), size=len(edges)).astype(np.int32),
        edge_label_names=EDGE_NAMES,
        **columns,
    )
