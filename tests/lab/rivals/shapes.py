"""Rings with tails, told apart by the length of the ring: a task for anything that sees structure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from egocnn.data.graphs import Graphs
from tests.support.samples import cycle


def rings_with_tails(n_graphs: int, *, seed: int, rings: Sequence[int] = (3, 4)) -> Graphs:
    """The nodes of each graph in random order; tails of 2 to 5 nodes, so that counting nodes does not help."""
    random = np.random.default_rng(seed)
    target = np.arange(n_graphs) % len(rings)
    counts: list[int] = []
    edges = []
    for kind in target:
        ring, tail = rings[int(kind)], int(random.integers(2, 6))
        own = cycle(*range(ring)) + [(node - 1, node) for node in range(ring, ring + tail)]
        edges.append(random.permutation(ring + tail)[np.array(own)] + sum(counts))
        counts.append(ring + tail)
    return Graphs.from_edges(
        node_counts=counts,
        edges=np.concatenate(edges),
        target=target.astype(np.int64),
        class_names=tuple(f"ring of {ring}" for ring in rings),
    )
