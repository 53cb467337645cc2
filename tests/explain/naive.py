"""Both backtracking rules once more, in plain loops over nodes, ranks and entries, from the equations alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import nn

from egocnn.data.graphs import Graphs
from egocnn.model import Model
from egocnn.nn import AdjacencyVector, Attributes, PatchySan
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

    def __init__(self, predictor: Model, graphs: Graphs) -> None:
        self.network, self.encoder, self.config = predictor.network, predictor.encoder, predictor.config
        self.graphs = graphs = predictor.encoder.renamed(graphs)
        widest = max(*self.config.layer_k, self.config.slots)
        self.table = predictor.encoder.ranking.neighbours(graphs, widest, max_hops=self.config.max_hops)
        self.weights = self._weights()
        self.attributes = np.zeros((graphs.n_nodes, 0))
        if graphs.node_attr is not None:
            raw = (graphs.node_attr - predictor.encoder.attr_mean) / predictor.encoder.attr_scale
            self.attributes = raw.astype(np.float32).astype(np.float64)
        self.h = [self._embedded()]
        for number in range(self.config.depth):
            W, b, _ = self.filters(number)
            sums = [
                b + sum(self.h[-1][m] @ w for m, w in self.senders(n, number, self.filters(number)))
                for n in range(graphs.n_nodes)
            ]
            self.h.append(np.maximum(np.array(sums).reshape(graphs.n_nodes, W.shape[2]), 0))

    def ego(self, node: int, layer: int) -> list[int]:
        """The node and its ranked neighbours, as far as there are any."""
        return [node, *(int(m) for m in self.table[node, : self.config.layer_k[layer]] if m >= 0)]

    def beyond(self, node: int) -> list[int]:
        """The neighbours that the widest layer leaves out, where the network reads them."""
        ranked = self.table[node, : max(self.config.layer_k)].tolist()
        out = [v for u, v in self.weights if u == node and v != node and v not in ranked]
        return [] if self.config.rest == "none" else out

    def senders(self, node: int, layer: int, filters: tuple[Array, Array, Array]) -> list[tuple[int, Array]]:
        """Whom a unit of the node hears, the node itself first, and through which filters."""
        weight, _, rest = filters
        beyond = self.beyond(node)
        share = float(np.float32(1 / len(beyond))) if beyond and self.config.rest == "mean" else 1.0
        ranked = [(m, weight[k]) for k, m in enumerate(self.ego(node, layer))]
        return [*ranked, *((m, share * rest) for m in beyond)]

    def filters(self, layer: int, gamma: float = 0) -> tuple[Array, Array, Array]:
        """Those of the ranks, the bias and those of the neighbours beyond K; positive numbers favoured by gamma."""
        conv = self.network.convs[layer]
        norm, parts = conv.get_submodule("norm"), dict(conv.named_parameters())
        weight, bias = _folded(norm, array(parts["weight"]), array(parts["bias"]))
        rest = array(parts["rest"]) if "rest" in parts else np.zeros(weight.shape[1:])
        rest, _ = _folded(norm, rest, array(parts["bias"]))
        weight, bias, rest = (part + gamma * np.maximum(part, 0) for part in (weight, bias, rest))
        return weight, bias, rest

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
            below = np.zeros_like(self.h[layer])
            for n in range(self.graphs.n_nodes):
                for place, (m, W) in enumerate(self.senders(n, layer, self.filters(layer))):
                    E_hat = sum(held[n, d] * W[:, d] for d in range(W.shape[1]))
                    below[m] += E_hat
                    if place:
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

    def relevance(self, own: Sequence[Array], gamma: float) -> tuple[Found, list[Array]]:
        """Every unit shares out what it holds in proportion to what it received; also what nodes hold in between.

        ``own``: evidence of every layer, or of the deepest alone.
        """
        found, held, between = Found(np.zeros(self.graphs.n_nodes)), own[-1], [own[-1]]
        for layer in reversed(range(self.config.depth)):
            h, below = self.h[layer], np.zeros_like(self.h[layer])
            for n in range(self.graphs.n_nodes):
                z, senders = self.received(n, layer, gamma)
                share = np.array([R / s if s > 1e-9 else 0.0 for R, s in zip(held[n], z, strict=True)])
                for place, (m, W) in enumerate(senders):
                    handed = h[m] * (W @ share)
                    below[m] += handed
                    if place:
                        found.cross(n, m, float(handed.sum()))
            below += own[layer] if len(own) > 1 else 0
            held = below
            between.append(held)
        self._share_entries(found, held, gamma)
        return found, between

    def received(self, node: int, layer: int, gamma: float) -> tuple[Array, list[tuple[int, Array]]]:
        """z of the node's units, and whom they heard through which filters"""
        filters = self.filters(layer, gamma)
        senders = self.senders(node, layer, filters)
        return np.maximum(filters[1], 0) + sum(self.h[layer][m] @ W for m, W in senders), senders

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
        if row < self.encoder.shape(self.config).edge_rows:
            found.join(u, v, amount)
        else:
            found.own[u] += amount


def _folded(norm: nn.Module, weight: Array, bias: Array) -> tuple[Array, Array]:
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = array(norm.weight) / np.sqrt(array(norm.running_var) + norm.eps)
    return weight * scale, (bias - array(norm.running_mean)) * scale + array(norm.bias)
