"""A model -> small random graphs that it can read, on which an exported copy has to say the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.degrees import PROFILE
from egocnn.model import Model

SIZES = (0, 1, 2, 5, 9, 14, 22)
"""Nodes of the graphs; one more has a hub with more neighbours than the model ranks."""
EDGES_PER_NODE = 1.5
UNKNOWN = 0.1
"""Share of the labels that are none of the model's."""


def trial_graphs(predictor: Model, *, weights: bool, seed: int) -> Graphs:
    """Graphs with the labels and attributes that the model knows, and some it does not; edges with weights if asked"""
    random = np.random.default_rng(seed)
    names, config = predictor.encoder, predictor.config
    counts = [*SIZES, max(config.layer_k) + 4]
    edges = _edges(counts, random)
    columns: dict[str, Any] = {}
    node_labels = () if names.by_degree else names.node_label_names
    if node_labels:
        columns |= {"node_label": _labels(len(node_labels), sum(counts), random), "node_label_names": node_labels}
    if names.edge_label_names:
        codes = _labels(len(names.edge_label_names), len(edges), random)
        columns |= {"edge_label": codes, "edge_label_names": names.edge_label_names}
    own = len(names.attr_mean) - (PROFILE if names.by_degree else 0)
    if own:
        drawn = random.standard_normal((sum(counts), own))
        columns["node_attr"] = (names.attr_mean[:own] + names.attr_scale[:own] * drawn).astype(np.float32)
    if weights:
        columns["edge_weight"] = random.uniform(0.5, 2, len(edges)).astype(np.float32)
    return Graphs.from_edges(node_counts=counts, edges=edges, **columns)


def _edges(counts: list[int], random: np.random.Generator) -> Ints:
    """Some of the possible pairs of every graph, and all those of the hub, which is the first node of the last graph"""
    found: list[Ints] = []
    for first, count in zip(np.cumsum(counts) - counts, counts, strict=True):
        u, v = np.triu_indices(count, 1)
        chosen = random.permutation(len(u))[: round(EDGES_PER_NODE * count)]
        found.append(np.stack([u[chosen], v[chosen]], axis=1) + first)
    hub, leaves = sum(counts[:-1]), np.arange(1, counts[-1])
    star = np.stack([np.full(len(leaves), hub), hub + leaves], axis=1)
    return np.unique(np.concatenate([*found, star]), axis=0)


def _labels(names: int, size: int, random: np.random.Generator) -> Ints:
    drawn = random.integers(names, size=size)
    return np.where(random.random(size) < UNKNOWN, -1, drawn).astype(np.int32)
