"""Both backtracking rules once more, in plain loops over nodes, ranks and entries, from the equations alone."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from egocnn.data.graphs import Graphs
from egocnn.model import Model
from egocnn.nn import Attributes
from tests.support.networks import Array, NaiveNetwork

Edge = tuple[int, int]


@dataclass
class Found:
    """What arrived at the input, and what crossed edges on the way; edges by their ends, the lower first."""

    own: Array  # by node: labels and attributes
    joined: dict[Edge, float] = field(default_factory=lambda: defaultdict(float))  # by edge: entries of the adjacency
    crossed: dict[Edge, float] = field(default_factory=lambda: defaultdict(float))

    def cross(self, u: int, v: int, amount: float) -> None:
        self.crossed[min(u, v), max(u, v)] += amount

    def join(self, u: int, v: int, amount: float) -> None:
        self.joined[min(u, v), max(u, v)] += amount

    def importances(self, graphs: Graphs) -> tuple[Array, Array]:
        """Of nodes and edges: an edge counts more for the end with fewer edges, a node alike for each of its edges."""
        ends = [(int(u), int(v)) for u, v in graphs.edges]
        degree = np.bincount(graphs.edges.flatten(), minlength=graphs.n_nodes)
        nodes, edges = self.own.copy(), np.zeros(len(ends))
        for number, (u, v) in enumerate(ends):
            amount = self.joined.get((u, v), 0.0)
            nodes[u] += amount * degree[v] / (degree[u] + degree[v])
            nodes[v] += amount * degree[u] / (degree[u] + degree[v])
            edges[number] = amount + self.own[u] / degree[u] + self.own[v] / degree[v]
        return nodes, edges

    def crossings(self, graphs: Graphs) -> Array:
        return np.array([self.crossed.get((int(u), int(v)), 0.0) for u, v in graphs.edges])


class Naive(NaiveNetwork):
    """The network in loops, and the way back."""

    def __init__(self, predictor: Model, graphs: Graphs) -> None:
        super().__init__(predictor.networks[0], predictor.encoder, graphs)

    def backtracked(self, own: Sequence[Array], gamma: float | None) -> tuple[Found, list[Array]]:
        """What arrives at the input, and what nodes hold in between.

        With gamma, every unit shares out what it holds in proportion to what it received. Without (the supplement):
        E_hat = sum over d of H_hat[n, d] W^(l, d), and H_hat[m] = sum over nbr(n, k) = m.
        ``own``: evidence of every layer, or of the deepest alone.
        """
        found, held, between = Found(np.zeros(self.graphs.n_nodes)), own[-1], [own[-1]]
        for layer in reversed(range(self.config.depth)):
            h, below = self.h[layer], np.zeros_like(self.h[layer])
            for n in range(self.graphs.n_nodes):
                z, senders = self.received(n, layer, gamma or 0)
                share = held[n] if gamma is None else _shares(held[n], z)
                for place, (m, W) in enumerate(senders):
                    handed = W @ share if gamma is None else h[m] * (W @ share)
                    below[m] += handed
                    if place:
                        found.cross(n, m, float(handed.sum()))
            held = below + (own[layer] if len(own) > 1 else 0)
            between.append(held)
        self._to_entries(found, held, gamma)
        return found, between

    def received(self, node: int, layer: int, gamma: float) -> tuple[Array, list[tuple[int, Array]]]:
        """z of the node's units, and who sent to them through which filters"""
        weight, bias = self.filters(layer, gamma)
        senders = self.senders(node, weight)
        return np.maximum(bias, 0) + sum(self.h[layer][m] @ W for m, W in senders), senders

    def _to_entries(self, found: Found, held: Array, gamma: float | None) -> None:
        embed, N = self.network.embed, self.graphs.n_nodes
        if isinstance(embed, Attributes):
            found.own += held.sum(axis=1)
        else:
            table, of_attributes, b = (part + (gamma or 0) * np.maximum(part, 0) for part in self.patchy_san())
            for n in range(N):
                z = np.maximum(b, 0) + self.read(n, (table, of_attributes, b))
                share = held[n] if gamma is None else _shares(held[n], z)
                for u, v, row, value in self.patch(n):
                    amount = float(table[row] @ share) * (1 if gamma is None else value)
                    if row < self.encoder.shape(self.config).edge_rows:
                        found.join(u, v, amount)
                    else:
                        found.own[u] += amount
                for slot, m in self.attribute_slots(n):
                    handed = of_attributes[slot] @ share
                    found.own[m] += (handed if gamma is None else self.attributes[m] * handed).sum()


def _shares(held: Array, z: Array) -> Array:
    return np.array([R / s if s > 1e-9 else 0.0 for R, s in zip(held, z, strict=True)])
