"""A model -> small random graphs that it can read, on which an exported copy has to say the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from egocnn.data.graphs import Graphs
from egocnn.encode.degrees import PROFILE
from egocnn.model import Model

SIZES = (0, 1, 2, 5, 9, 14, 22)  # Nodes of the graphs; one more has a hub with more neighbours than the model ranks.
EDGES_PER_NODE = 2


def trial_graphs(predictor: Model, *, weights: bool, seed: int) -> Graphs:
    """Graphs with the labels and attributes that the model knows, and some it does not; edges with weights if asked"""
    random, known = np.random.default_rng(seed), predictor.encoder
    counts = np.array([*SIZES, predictor.config.k + 4])
    n_nodes, hub = int(counts.sum()), int(counts[:-1].sum())
    graph_of = np.repeat(np.arange(len(counts)), counts * EDGES_PER_NODE)
    within = (random.random((len(graph_of), 2)) * counts[graph_of, None]).astype(np.int64)
    star = np.stack([np.full(n_nodes - hub - 1, hub), np.arange(hub + 1, n_nodes)], axis=1)
    pairs = np.concatenate([(np.cumsum(counts) - counts)[graph_of, None] + within, star])
    edges = np.unique(np.sort(pairs, axis=1), axis=0)
    columns: dict[str, Any] = {}
    node_labels = () if known.by_degree else known.node_label_names
    for kind, names, size in (
        ("node_label", node_labels, n_nodes),
        ("edge_label", known.edge_label_names, len(edges)),
    ):
        if names:
            columns |= {kind: random.integers(-1, len(names), size, np.int32), f"{kind}_names": names}
    own = len(known.attr_mean) - (PROFILE if known.by_degree else 0)
    if own:
        drawn = known.attr_mean[:own] + known.attr_scale[:own] * random.standard_normal((n_nodes, own))
        columns["node_attr"] = drawn.astype(np.float32)
    if weights:
        columns["edge_weight"] = random.uniform(0.5, 2, len(edges)).astype(np.float32)
    return Graphs.from_edges(node_counts=counts, edges=edges, **columns)
