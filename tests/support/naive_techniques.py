"""Both backtracking rules once more, in plain loops over nodes, ranks and entries, from the equations alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import nn

from egocnn.data.graphs import Graphs
from egocnn.model import Model
from egocnn.nn import Attributes, PatchySan
from tests.explain.random_models import Array, array

Edge = tuple[int, int]


@dataclass
class Found:
    """What arrived at the input, and what crossed edges on the way; edges by their ends, the lower first."""

    own: Array
    """by node: labels and attributes"""
    joined: dict[Edge, float] = field(default_factory=lambda: defaultdict(float))
    """by edge: entries of the adjacency"""
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


class Naive:
    """The network in loops, and the way back."""

    def __init__(self, predictor: Model, graphs: Graphs) -> None:
        self.network, self.encoder, self.config = predictor.networks[0], predictor.encoder, predictor.config
        self.graphs = graphs = predictor.encoder.renamed(graphs)
        widest = max(self.config.k, self.config.slots)
        self.table = predictor.encoder.ranking.neighbours(graphs, widest)
        self.weights = self._weights()
        self.attributes = np.zeros((graphs.n_nodes, 0))
        if graphs.node_attr is not None:
            raw = (graphs.node_attr - predictor.encoder.attr_mean) / predictor.encoder.attr_scale
            self.attributes = raw.astype(np.float32).astype(np.float64)
        self.h = [self._embedded()]
        for number in range(self.config.depth):
            W, b = self.filters(number)
            sums = [b + sum(self.h[-1][m] @ w for m, w in self.senders(n, W)) for n in range(graphs.n_nodes)]
            self.h.append(np.maximum(np.array(sums).reshape(graphs.n_nodes, W.shape[2]), 0))

    def ego(self, node: int) -> list[int]:
        """The node and its ranked neighbours, as far as there are any."""
        return [node, *(int(m) for m in self.table[node, : self.config.k] if m >= 0)]

    def senders(self, node: int, weight: Array) -> list[tuple[int, Array]]:
        """Who sends to the units of a node, the node itself first, and through which filters."""
        return [(m, weight[k]) for k, m in enumerate(self.ego(node))]

    def filters(self, layer: int, gamma: float = 0) -> tuple[Array, Array]:
        """Those of the ranks, and the bias; positive numbers favoured by gamma."""
        conv = self.network.convs[layer]
        norm, parts = conv.get_submodule("norm"), dict(conv.named_parameters())
        weight, bias = _folded(norm, array(parts["weight"]), array(parts["bias"]))
        weight, bias = (part + gamma * np.maximum(part, 0) for part in (weight, bias))
        return weight, bias

    def _weights(self) -> dict[Edge, tuple[float, int]]:
        found = {}
        for entry, (u, v) in enumerate(zip(self.graphs.entry_node.tolist(), self.graphs.indices.tolist(), strict=True)):
            weight = 1.0 if self.graphs.edge_weight is None else float(self.graphs.edge_weight[entry])
            found[u, v] = weight, (0 if self.graphs.edge_label is None else int(self.graphs.edge_label[entry]))
        return found

    # ── the embedding ─────────────────────────────────────────────────────────────────────────────

    def patch(self, node: int) -> list[tuple[int, int, int, float]]:
        """Patchy-San's non-zero entries around a node: both ends (a label: its node twice), table row, value."""
        shape, P = self.encoder.shape(self.config), self.config.slots
        slots = [node, *(int(m) for m in self.table[node, : P - 1])]
        found, pair = [], 0
        for i in range(P):
            for j in range(i, P):
                if slots[i] >= 0 and slots[j] >= 0 and (slots[i], slots[j]) in self.weights:
                    weight, label = self.weights[slots[i], slots[j]]
                    if label >= 0:
                        found.append((slots[i], slots[j], pair * max(shape.edge_labels, 1) + label, weight))
                pair += 1
        for slot, source in enumerate(slots):
            if source >= 0 and self.graphs.node_label is not None and self.graphs.node_label[source] >= 0:
                row = shape.edge_rows + slot * shape.node_labels + int(self.graphs.node_label[source])
                found.append((source, source, row, 1.0))
        return found

    def attribute_slots(self, node: int) -> list[tuple[int, int]]:
        """Slot and node whose attributes are read there; a batch brings no more than K neighbours."""
        last = min(self.config.slots, self.config.k + 1)
        around = [node, *(int(m) for m in self.table[node, : last - 1])]
        return [(slot, m) for slot, m in enumerate(around) if m >= 0] if self.attributes.shape[1] else []

    def patchy_san(self) -> tuple[Array, Array, Array]:
        embed = self.network.embed
        assert isinstance(embed, PatchySan)
        table, bias = _folded(embed.norm, array(embed.table), array(embed.bias))
        return table, _folded(embed.norm, array(embed.attributes), array(embed.bias))[0], bias

    def read(self, node: int, filters: tuple[Array, Array, Array]) -> Array:
        """What Patchy-San's filters find around a node, without the bias."""
        table, of_attributes, bias = filters
        found = sum((value * table[row] for _, _, row, value in self.patch(node)), np.zeros_like(bias))
        return found + sum((self.attributes[m] @ of_attributes[s] for s, m in self.attribute_slots(node)), 0 * bias)

    def _embedded(self) -> Array:
        embed, N = self.network.embed, self.graphs.n_nodes
        if isinstance(embed, Attributes):
            return self.attributes
        filters = self.patchy_san()
        rows = [filters[2] + self.read(n, filters) for n in range(N)]
        embedded: Array = np.maximum(np.array(rows).reshape(N, len(filters[2])), 0)
        return embedded

    # ── the way back ──────────────────────────────────────────────────────────────────────────────

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


def _folded(norm: nn.Module, weight: Array, bias: Array) -> tuple[Array, Array]:
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = array(norm.weight) / np.sqrt(array(norm.running_var) + norm.eps)
    return weight * scale, (bias - array(norm.running_mean)) * scale + array(norm.bias)
