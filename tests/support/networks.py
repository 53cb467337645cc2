"""Networks for tests: random weights, batches in double precision, and the whole network again in plain loops."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.model import Model
from egocnn.nn import Attributes, EgoCNN, PatchySan
from egocnn.nn.batch import Batch

Array = NDArray[np.float64]


def randomise(module: nn.Module, seed: int = 0) -> None:
    """Every parameter and running statistic at random, so that none is hidden by being 0 or 1, or like another."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                size = tensor.shape[-2] ** -0.5 if tensor.ndim > 1 and tensor.numel() else 1.0
                tensor.copy_(size * torch.randn(tensor.shape, generator=random, dtype=tensor.dtype))
        for part in module.modules():
            if isinstance(part, nn.BatchNorm1d) and part.running_var is not None:
                part.running_var.abs_().add_(0.5)


def build(
    graphs: Graphs, config: ModelConfig, *, outputs: int = 2, seed: int = 0, **own: Any
) -> tuple[EgoCNN, Encoder]:
    """A network in evaluation mode that fits the graphs, with random weights; ``own``: ``embed``, ``embed_width``."""
    encoder = Encoder.fit(graphs, config)
    shape, attributes = encoder.shape(config), len(encoder.attr_mean)
    network = EgoCNN(config, shape=shape, attributes=attributes, outputs=outputs, **own)
    randomise(network, seed)
    return network.eval(), encoder


def untrained(graphs: Graphs, config: ModelConfig, *, networks: int = 1, outputs: int = 0, **how: Any) -> Model:
    """A model of such networks, of ``seed``, ``seed + 1`` and so on; with as many outputs as the graphs ask for."""
    outputs, first = outputs or len(graphs.class_names) or 1, how.pop("seed", 0)
    built = [build(graphs, config, outputs=outputs, seed=first + number, **how) for number in range(networks)]
    return Model(config=config, encoder=built[0][1], networks=tuple(network for network, _ in built))


class OwnVectors(nn.Module):
    """A user's own embedding: one vector per node label, of either sign; the first for labels never seen."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.vectors = nn.Embedding(5, width)

    def forward(self, batch: Batch) -> Tensor:
        vectors: Tensor = self.vectors(batch.node_label.long() + 1)
        return vectors


def tensors_of(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """All tensors of a record and their names, those of the records in it included."""
    if isinstance(value, Tensor):
        yield name, value
    elif is_dataclass(value):
        for field in fields(value):
            yield from tensors_of(getattr(value, field.name), f"{name}.{field.name}")


def whole_batch(graphs: Graphs, encoder: Encoder, config: ModelConfig) -> Batch:
    return encoder.apply(graphs, config).batch(torch.arange(len(graphs)))


def doubled(batch: Batch) -> Batch:
    """The same batch for a network in double precision."""
    weight = batch.bags.weight
    return replace(
        batch,
        attributes=batch.attributes.double(),
        bags=replace(batch.bags, weight=None if weight is None else weight.double()),
    )


class NaiveNetwork:
    """The network in evaluation mode, in plain loops from its equations; ``h`` are embeddings of the user's own."""

    def __init__(self, network: EgoCNN, encoder: Encoder, graphs: Graphs, h: Array | None = None) -> None:
        self.network, self.encoder, self.config = network, encoder, network.config
        self.graphs = graphs = encoder.renamed(graphs)
        self.table = encoder.ranking.neighbours(graphs, max(self.config.k, self.config.slots))
        self.weights: dict[tuple[int, int], tuple[float, int]] = {}
        """weight and label of every edge, in both directions"""
        for entry, ends in enumerate(zip(graphs.entry_node.tolist(), graphs.indices.tolist(), strict=True)):
            weight = 1.0 if graphs.edge_weight is None else float(graphs.edge_weight[entry])
            self.weights[ends] = weight, 0 if graphs.edge_label is None else int(graphs.edge_label[entry])
        self.attributes = np.zeros((graphs.n_nodes, 0))
        if graphs.node_attr is not None:
            raw = (graphs.node_attr - encoder.attr_mean) / encoder.attr_scale
            self.attributes = raw.astype(np.float32).astype(np.float64)
        self.h = [self._embedded() if h is None else h]
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

    def logits(self) -> Array:
        """(G, C)"""
        place, inputs = self.encoder.ranking.order(self.graphs).place, self._inputs()
        rows = []
        for first, last in pairwise(self.graphs.node_ptr.tolist()):
            nodes = sorted(range(first, last), key=lambda node: int(place[node]))
            read = [self._read_out(h, nodes) for h in (self.h if self.config.jump else self.h[-1:])]
            counted = self._read_out(inputs, nodes)
            read.append(counted.reshape(-1, max(inputs.shape[1], 1)).T.ravel())
            hidden = array(self.network.hidden.weight) @ _normed(np.concatenate(read), self.network.pool_norm)
            hidden = np.maximum(_normed(hidden + array(self.network.hidden.bias), self.network.norm), 0)
            rows.append(array(self.network.out.weight) @ hidden + array(self.network.out.bias))
        return np.array(rows)

    def _inputs(self) -> Array:
        """(N, columns) what nodes add to the counts of the inputs: the bins of every attribute, then the label"""
        if not self.network.counted:
            return np.zeros((self.graphs.n_nodes, 0))
        bins = [np.interp(values, np.linspace(-3, 3, 16), hat) for values in self.attributes.T for hat in np.eye(16)]
        none = np.full(self.graphs.n_nodes, -1)
        label = none if self.graphs.node_label is None else self.graphs.node_label
        known = np.eye(self.network.counted - len(bins) + 1)[label][:, :-1]  # -1: none of them
        return np.column_stack([*bins, known])

    def _read_out(self, h: Array, nodes: list[int]) -> Array:
        rows, total = h[nodes], h[nodes].sum(axis=0)
        if self.config.readout == "sort":
            missing = self.config.sort_nodes - len(rows)
            return np.concatenate([rows[: self.config.sort_nodes], np.zeros((max(missing, 0), h.shape[1]))]).flatten()
        log = np.sign(total) * np.log1p(np.abs(total))
        parts = {"max": rows.max(axis=0), "sum": total, "mean": total / len(rows), "log": log}
        return np.concatenate([parts[kind] for kind in self.config.readout.split("+")])


def _folded(norm: nn.Module, weight: Array, bias: Array) -> tuple[Array, Array]:
    """Filters that do what they and the norm after them do, and their bias"""
    if not isinstance(norm, nn.BatchNorm1d):
        return weight, bias
    mean, variance = (array(norm.get_buffer(f"running_{name}")) for name in ("mean", "var"))
    scale = array(norm.weight) / np.sqrt(variance + norm.eps)
    return weight * scale, (bias - mean) * scale + array(norm.bias)


def _normed(y: Array, norm: nn.Module) -> Array:
    return _folded(norm, np.ones_like(y), y)[1]


def array(tensor: Tensor) -> Array:
    return tensor.detach().double().numpy()
