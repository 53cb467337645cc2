"""A graph under construction: a base, shapes attached to it, and which of them count -> an example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.truths.suite.motifs.shapes import Shape
from lab.truths.suite.task import Example, Pair

DIGITS = 4


class Sketch:
    """Nodes are numbered in the order in which they come; :meth:`finish` renumbers them at random."""

    def __init__(self, base: Shape, random: np.random.Generator) -> None:
        self.random = random
        self.n_base = self.n_nodes = base.n_nodes
        self.edges: list[Pair] = list(base.edges)

    def attach(self, shape: Shape, *, at: int | None = None) -> tuple[int, ...]:
        """Join a shape to a random node of the base by one edge, from its node ``at`` or a random one -> its nodes."""
        first = self.n_nodes
        self.edges += [(first + u, first + v) for u, v in shape.edges]
        own = first + (int(self.random.integers(shape.n_nodes)) if at is None else at)
        self.edges.append((int(self.random.integers(self.n_base)), own))
        self.n_nodes += shape.n_nodes
        return tuple(range(first, self.n_nodes))

    def add_noise(self, share: float, fixed: Sequence[int]) -> None:
        """Add edges between random nodes, so many per edge there is, but none between two of the fixed nodes."""
        there, apart = {frozenset(edge) for edge in self.edges}, set(fixed)
        for _ in range(int(share * len(self.edges))):
            while True:
                u, v = (int(end) for end in self.random.integers(self.n_nodes, size=2))
                if u != v and frozenset((u, v)) not in there:
                    break
            if not {u, v} <= apart:
                there.add(frozenset((u, v)))
                self.edges.append((u, v))

    def finish(
        self,
        name: str,
        target: str | float,
        *,
        alternatives: Sequence[Sequence[int]] = (),
        values: Sequence[float] | None = None,
        node_label: Sequence[str] | None = None,
        edge_label: Sequence[str] | None = None,
        **more: Any,
    ) -> Example:
        """The graph with its nodes renumbered at random; edges inside an alternative are critical.

        Alternatives, values and labels are given in the numbers of the sketch.
        """
        new = self.random.permutation(self.n_nodes)  # what is attached last must not be numbered last
        inside = [set(nodes) for nodes in alternatives]
        critical = [any({u, v} <= nodes for nodes in inside) for u, v in self.edges]
        pairs = [tuple(sorted((int(new[u]), int(new[v])))) for u, v in self.edges]
        order = sorted(range(len(pairs)), key=pairs.__getitem__)
        labels = None if edge_label is None else tuple(edge_label[i] for i in order)
        return Example(
            name=name,
            n_nodes=self.n_nodes,
            edges=tuple((pairs[i][0], pairs[i][1]) for i in order),
            target=target,
            node_label=None if node_label is None else tuple(_moved(node_label, new)),
            edge_label=labels,
            alternatives=tuple(tuple(sorted(int(new[node]) for node in nodes)) for nodes in alternatives),
            critical_edges=None
            if values is not None
            else tuple((pairs[i][0], pairs[i][1]) for i in order if critical[i]),
            values=None if values is None else tuple(round(float(v), DIGITS) for v in _moved(values, new)),
            **more,
        )


def _moved(per_node: Sequence[Any], new: Any) -> list[Any]:
    """What node n has goes to node new[n]."""
    moved: list[Any] = [None] * len(per_node)
    for node, value in enumerate(per_node):
        moved[int(new[node])] = value
    return moved
