"""Both backtracking rules once more, in plain loops over nodes, ranks and entries, from the equations alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from torch import nn

from egocnn.graphs import Graphs
from egocnn.nn import AdjacencyVector, Attributes, PatchySan
from egocnn.predictor import Predictor
from tests.critical.questions import Array, array

Edge = tuple[int, int]


@dataclass
class Found:
    """What arrived at the input, and what crossed edges on the way; edges by their ends, the lower first."""

    own: Array
    """by node: labels and attributes"""
    joined: dict[Edge, float] = field(default_factory=lambda: defaultdict(float))
    """by edge: entries of the adjacency"""
    crossed: dict[Edge, float] = field(default_factory=lambda: defaultdict(float))
    entries: dict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))
    """by node and number of the ranked neighbour: the adjacency embedding's input"""

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

    def __init__(self, predictor: Predictor, graphs: Graphs) -> None:
        self.network, self.preparation, self.config = predictor.network, predictor.preparation, predictor.config
        self.graphs = graphs
        widest = max(*self.config.layer_k, self.config.slots)
        self.table = predictor.preparation.ranking.neighbours(graphs, widest, max_hops=self.config.max_hops)
        self.weights = self._weights()
        self.attributes = np.zeros((graphs.n_nodes, 0))
        if graphs.node_attr is not None:
            raw = (graphs.node_attr - predictor.preparation.attr_mean) / predictor.preparation.attr_scale
            self.attributes = raw.astype(np.float32).astype(np.float64)
        self.h = [self._embedded()]
        for number in range(self.config.depth):
            W, b = self.filters(number)
            sums = [
                b + sum(self.h[-1][m] @ W[k] for k, m in enumerate(self.ego(n, number))) for n in range(graphs.n_nodes)
            ]
            self.h.append(np.maximum(np.array(sums).reshape(graphs.n_nodes, W.shape[2]), 0))

    def ego(self, node: int, layer: int) -> list[int]:
        """The node and its ranked neighbours, as far as there are any."""
        return [node, *(int(m) for m in self.table[node, : self.config.layer_k[layer]] if m >= 0)]

    def filters(self, layer: int) -> tuple[Array, Array]:
        conv = self.network.convs[layer]
        return _folded(
            conv.get_submodule("norm"), array(conv.get_parameter("weight")), array(conv.get_parameter("bias"))
        )

    def _weights(self) -> dict[Edge, tuple[float, int]]:
        found = {}
        for entry, (u, v) in enumerate(zip(self.graphs.entry_node.tolist(), self.graphs.indices.tolist(), strict=True)):
            weight = 1.0 if self.graphs.edge_weight is None else float(self.graphs.edge_weight[entry])
            found[u, v] = weight, (0 if self.graphs.edge_label is None else int(self.graphs.edge_label[entry]))
        return found

    # ── the embedding ─────────────────────────────────────────────────────────────────────────────

    def patch(self, node: int) -> list[tuple[int, int, int, float]]:
        """Patchy-San's non-zero entries around a node: both ends (a label: its node twice), table row, value."""
        shape, P = self.preparation.shape(self.config), self.config.slots
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
        last = min(self.config.slots, max(self.config.layer_k) + 1)
        around = [node, *(int(m) for m in self.table[node, : last - 1])]
        return [(slot, m) for slot, m in enumerate(around) if m >= 0] if self.attributes.shape[1] else []

    def patchy_san(self) -> tuple[Array, Array, Array]:
        embed = self.network.embed
        assert isinstance(embed, PatchySan)
        table, bias = _folded(embed.norm, array(embed.table), array(embed.bias))
        return table, _folded(embed.norm, array(embed.attributes), array(embed.bias))[0], bias

    def _embedded(self) -> Array:
        embed, N = self.network.embed, self.graphs.n_nodes
        if isinstance(embed, Attributes):
            return self.attributes
        if isinstance(embed, AdjacencyVector):
            K = max(self.config.layer_k)
            return np.array(
                [[self.weights.get((n, int(m)), (0.0, 0))[0] for m in self.table[n, :K]] for n in range(N)]
            ).reshape(N, K)
        table, of_attributes, bias = self.patchy_san()
        rows = []
        for n in range(N):
            y = bias + sum((value * table[row] for _, _, row, value in self.patch(n)), np.zeros_like(bias))
            rows.append(y + sum((self.attributes[m] @ of_attributes[s] for s, m in self.attribute_slots(n)), 0 * bias))
        embedded: Array = np.maximum(np.array(rows).reshape(N, len(bias)), 0)
        return embedded

    # ── the way back ──────────────────────────────────────────────────────────────────────────────

    def transposed(self, top: Array) -> Found:
        """The supplement: E_hat = sum over d of H_hat[n, d] W^(l, d), and H_hat[m] = sum over nbr(n, k) = m."""
        found, held = Found(np.zeros(self.graphs.n_nodes)), top
        for layer in reversed(range(self.config.depth)):
            W, _ = self.filters(layer)
            below = np.zeros_like(self.h[layer])
            for n in range(self.graphs.n_nodes):
                for k, m in enumerate(self.ego(n, layer)):
                    E_hat = sum(held[n, d] * W[k, :, d] for d in range(W.shape[2]))
                    below[m] += E_hat
                    if k:
                        found.cross(n, m, float(E_hat.sum()))
            held = below
        self._to_entries(found, held)
        return found

    def _to_entries(self, found: Found, held: Array) -> None:
        embed = self.network.embed
        if isinstance(embed, Attributes):
            found.own += held.sum(axis=1)
        elif isinstance(embed, AdjacencyVector):
            for n in range(self.graphs.n_nodes):
                for k, m in enumerate(self.table[n, : held.shape[1]].tolist()):
                    if m >= 0:
                        found.join(n, m, held[n, k])
                        found.entries[n, k] = held[n, k]
        else:
            table, of_attributes, _ = self.patchy_san()
            for n in range(self.graphs.n_nodes):
                for u, v, row, _ in self.patch(n):
                    self._to_patch(found, u, v, row, float(held[n] @ table[row]))
                for slot, m in self.attribute_slots(n):
                    found.own[m] += (of_attributes[slot] @ held[n]).sum()

    def relevance(self, top: Array, gamma: float) -> tuple[Found, list[Array]]:
        """Every unit shares out what it holds in proportion to what it received; also what nodes hold in between."""
        found, held, between = Found(np.zeros(self.graphs.n_nodes)), top, [top]
        for layer in reversed(range(self.config.depth)):
            W, b = (part + gamma * np.maximum(part, 0) for part in self.filters(layer))
            h, below = self.h[layer], np.zeros_like(self.h[layer])
            for n in range(self.graphs.n_nodes):
                ego = self.ego(n, layer)
                z = np.maximum(b, 0) + sum(h[m] @ W[k] for k, m in enumerate(ego))
                share = np.array([R / s if s > 1e-9 else 0.0 for R, s in zip(held[n], z, strict=True)])
                for k, m in enumerate(ego):
                    handed = h[m] * (W[k] @ share)
                    below[m] += handed
                    if k:
                        found.cross(n, m, float(handed.sum()))
            held = below
            between.append(held)
        self._share_entries(found, held, gamma)
        return found, between

    def _share_entries(self, found: Found, held: Array, gamma: float) -> None:
        if not isinstance(self.network.embed, PatchySan):
            return self._to_entries(found, held)
        table, of_attributes, b = (part + gamma * np.maximum(part, 0) for part in self.patchy_san())
        for n in range(self.graphs.n_nodes):
            z = np.maximum(b, 0)
            z = z + sum((value * table[row] for _, _, row, value in self.patch(n)), 0 * b)
            z = z + sum((self.attributes[m] @ of_attributes[s] for s, m in self.attribute_slots(n)), 0 * b)
            share = np.array([R / s if s > 1e-9 else 0.0 for R, s in zip(held[n], z, strict=True)])
            for u, v, row, value in self.patch(n):
                self._to_patch(found, u, v, row, value * float(table[row] @ share))
            for slot, m in self.attribute_slots(n):
                found.own[m] += self.attributes[m] @ of_attributes[slot] @ share
        return None

    def _to_patch(self, found: Found, u: int, v: int, row: int, amount: float) -> None:
        if row < self.preparation.shape(self.config).edge_rows:
            found.join(u, v, amount)
        else:
            found.own[u] += amount


def _folded(norm: nn.Module, weight: Array, bias: Array) -> tuple[Array, Array]:
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = array(norm.weight) / np.sqrt(array(norm.running_var) + norm.eps)
    return weight * scale, (bias - array(norm.running_mean)) * scale + array(norm.bias)
