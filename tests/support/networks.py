"""Networks for tests: random weights, batches in double precision, and the whole network again in plain loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from egocnn.config import ModelConfig
from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.nn import EgoCNN, PatchySan
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


def naive_logits(network: EgoCNN, encoder: Encoder, graphs: Graphs, h: Array | None = None) -> Array:
    """What the network computes in evaluation mode, from its equations; ``h`` are embeddings of the user's own."""
    config = network.config
    ranking = encoder.ranking
    table = ranking.neighbours(graphs, max(config.k, config.slots))
    h = _embed(network, encoder, graphs, table) if h is None else h
    for conv in network.convs:
        weight, bias = _array(conv.get_parameter("weight")), _array(conv.get_parameter("bias"))
        rows = []
        for node in range(graphs.n_nodes):
            ego = [node, *table[node, : config.k]]
            rows.append(bias + sum(h[source] @ weight[rank] for rank, source in enumerate(ego) if source >= 0))
        h = np.maximum(_norm(np.array(rows), conv.get_submodule("norm")), 0)
    return np.array(
        [_head(network, _read_out(config, h, nodes)) for nodes in _nodes_of(graphs, ranking.order(graphs).place)]
    )


def _embed(network: EgoCNN, encoder: Encoder, graphs: Graphs, table: Ints) -> Array:
    config = network.config
    attributes = np.zeros((graphs.n_nodes, 0))
    if graphs.node_attr is not None:
        attributes = (graphs.node_attr - encoder.attr_mean) / encoder.attr_scale
    attributes = attributes.astype(np.float32).astype(np.float64)
    if config.embedding == "attributes":
        return attributes
    edges = _edges(graphs)
    embed = network.embed
    assert isinstance(embed, PatchySan)
    filters, of_attributes = _array(embed.table), _array(embed.attributes)
    shape, P = encoder.shape(config), config.slots
    rows = []
    for node in range(graphs.n_nodes):
        y = _array(embed.bias).copy()
        slots = [node, *(int(m) for m in table[node, : P - 1])]
        pair = 0
        for i in range(P):
            for j in range(i, P):
                weight, label = edges.get((slots[i], slots[j]), (0.0, -1))
                if label >= 0:
                    y += weight * filters[pair * max(shape.edge_labels, 1) + label]
                pair += 1
        for slot, source in enumerate(slots):
            if source >= 0 and graphs.node_label is not None and graphs.node_label[source] >= 0:
                y += filters[shape.edge_rows + slot * shape.node_labels + graphs.node_label[source]]
            if source >= 0 and slot <= config.k:  # a batch brings no more neighbours than that
                y += attributes[source] @ of_attributes[slot]
        rows.append(y)
    return np.maximum(_norm(np.array(rows), embed.norm), 0)


def _edges(graphs: Graphs) -> dict[tuple[int, int], tuple[float, int]]:
    """Weight and label of every edge, in both directions."""
    found = {}
    for entry, (u, v) in enumerate(zip(graphs.entry_node.tolist(), graphs.indices.tolist(), strict=True)):
        weight = 1.0 if graphs.edge_weight is None else float(graphs.edge_weight[entry])
        found[u, v] = (weight, 0 if graphs.edge_label is None else int(graphs.edge_label[entry]))
    return found


def _norm(y: Array, norm: nn.Module) -> Array:
    assert isinstance(norm, nn.BatchNorm1d)
    mean, variance = (_array(norm.get_buffer(f"running_{name}")) for name in ("mean", "var"))
    scaled = (y - mean) / np.sqrt(variance + norm.eps)
    out: Array = scaled * _array(norm.weight) + _array(norm.bias)
    return out


def _nodes_of(graphs: Graphs, place: Ints) -> list[list[int]]:
    """The nodes of every graph, in the order of the ranking."""
    return [
        sorted(range(first, last), key=lambda node: int(place[node]))
        for first, last in pairwise(graphs.node_ptr.tolist())
    ]


def _read_out(config: ModelConfig, h: Array, nodes: list[int]) -> Array:
    rows = [h[node] for node in nodes]
    largest = np.array([max(row[d] for row in rows) for d in range(h.shape[1])])
    total = np.array([sum(row[d] for row in rows) for d in range(h.shape[1])])
    if config.readout == "sort":
        kept = rows[: config.sort_nodes]
        return np.concatenate([*kept, np.zeros((config.sort_nodes - len(kept)) * h.shape[1])])
    parts = {"max": largest, "sum": total, "mean": total / len(rows), "log": np.sign(total) * np.log1p(np.abs(total))}
    return np.concatenate([parts[kind] for kind in config.readout.split("+")])


def _head(network: EgoCNN, vector: Array) -> Array:
    hidden = np.maximum(_array(network.hidden.weight) @ vector + _array(network.hidden.bias), 0)
    logits: Array = _array(network.out.weight) @ hidden + _array(network.out.bias)
    return logits


def _array(tensor: Tensor) -> Array:
    return tensor.detach().double().numpy()
