"""Patchy-San: graphs -> sequences of receptive fields -> convolutions over the sequence -> logits (B, C)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.data.arrays import Floats, Ints, pointers, ranges
from egocnn.data.graphs import Graphs
from egocnn.encode.patches import Patches, find_patches
from egocnn.nn.embed import PatchShape
from lab.rivals.networks.canonical import canonical_order
from lab.rivals.networks.encoding import Shape
from lab.rivals.networks.layers import Network, Norm, dense_head
from lab.rivals.networks.reach import nearest_nodes

FIELD = 10  # Nodes of a receptive field.


def sequence_length(shape: Shape) -> int:
    """As many nodes as a training graph has on average; no fewer than one convolution covers."""
    return max(round(shape.average_nodes), FIELD)


def patch_shape(shape: Shape) -> PatchShape:
    return PatchShape(slots=FIELD, node_labels=shape.node_labels, edge_labels=shape.edge_labels)


@dataclass(frozen=True, slots=True, eq=False)
class FieldBatch:
    """The fields of B graphs, W for each, as rows of a table to sum up."""

    rows: Tensor
    offsets: Tensor  # (B * W) where the rows of each field start
    weight: Tensor | None
    attributes: Tensor  # (B * W, FIELD * A)
    present: Tensor  # (B, W) 1 where there is a node, 0 where the graph has fewer


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """Receptive fields of all nodes, and the nodes that each graph's sequence is made of."""

    sequence: Ints  # (G, W) nodes in canonical order, -1 beyond the last
    patches: Patches
    attributes: Floats  # (N + 1, FIELD * A); the last row is of zeros and serves the absent

    def cut(self, chosen: Ints, device: torch.device) -> FieldBatch:
        nodes = self.sequence[chosen].ravel()
        ptr = self.patches.ptr
        first, last = (np.where(nodes < 0, 0, ptr[nodes + step]) for step in (0, 1))
        entries = ranges(first, last)
        weight = self.patches.weight

        def send(values: Ints | Floats) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(values)).to(device)

        return FieldBatch(
            rows=send(self.patches.rows[entries].astype(np.int64)),
            offsets=send(pointers(last - first)[:-1]),
            weight=None if weight is None else send(weight[entries]),
            attributes=send(self.attributes[nodes]),
            present=send((nodes >= 0).astype(np.float32)).view(len(chosen), -1),
        )


def read_fields(encoded: Graphs, shape: Shape) -> Fields:
    """A field is the node and the nodes nearest to it: fewer hops first, then by the canonical order of the graph."""
    order = canonical_order(encoded)
    plain = encoded.replace(edge_weight=None)  # hops and the order alone decide who is in a field
    neighbours = nearest_nodes(plain, order, FIELD - 1, hops=FIELD - 1)
    sequence = np.full((len(encoded), sequence_length(shape)), -1, np.int64)
    place = order.place - encoded.node_ptr[encoded.graph_of]
    within = place < sequence.shape[1]
    sequence[encoded.graph_of[within], place[within]] = np.flatnonzero(within)
    return Fields(sequence, find_patches(encoded, neighbours, patch_shape(shape)), _attributes(encoded, neighbours))


def _attributes(encoded: Graphs, neighbours: Ints) -> Floats:
    of_nodes = np.zeros((encoded.n_nodes, 0), np.float32) if encoded.node_attr is None else encoded.node_attr
    padded = np.concatenate([of_nodes, np.zeros((1, of_nodes.shape[1]), np.float32)])
    slots = np.concatenate([np.arange(encoded.n_nodes)[:, None], neighbours], axis=1)
    slots = np.concatenate([slots, np.full((1, FIELD), -1)])
    return np.asarray(padded[slots].reshape(len(slots), -1), np.float32)


class FieldFilters(nn.Module):
    """One linear filter bank over every receptive field, adjacency, labels and attributes: -> (B, W, D)."""

    def __init__(self, shape: Shape, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(patch_shape(shape).rows, width) * 0.3)  # a field sums up a dozen or two
        self.attributes = nn.Parameter(torch.randn(FIELD * shape.attributes, width) * 0.1)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, batch: FieldBatch) -> Tensor:
        h = F.embedding_bag(batch.rows, self.table, batch.offsets, mode="sum", per_sample_weights=batch.weight)
        h = h + batch.attributes @ self.attributes + self.bias
        return h.view(*batch.present.shape, -1)


class PatchySanNetwork(Network):
    """The published network: filters over fields, a convolution over the sequence, a dense layer, the output."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.filters = FieldFilters(shape, 16)
        self.conv = nn.Conv1d(16, 8, FIELD)
        self.head = dense_head(8 * (sequence_length(shape) - FIELD + 1), 128, shape.classes, 0.5)

    def forward(self, batch: FieldBatch) -> Tensor:
        h = F.relu(self.filters(batch))
        logits: Tensor = self.head(F.relu(self.conv(h.transpose(1, 2))).flatten(1))
        return logits


class PatchySanConvolutions(Network):
    """The supplement's rival: where the Ego-CNN has ego-convolutions, convolutions over the sequence of nodes.

    Each reads 17 places, as many as an ego-convolution of K = 16 reads nodes, so both have the same weights to learn.
    """

    def __init__(self, shape: Shape, *, layers: int = 5, width: int = 128, places: int = 17) -> None:
        super().__init__()
        self.filters = FieldFilters(shape, width)
        self.convs = nn.ModuleList(nn.Conv1d(width, width, places, padding=places // 2) for _ in range(layers))
        self.norms = nn.ModuleList(Norm(width) for _ in range(layers + 1))
        self.dropout = nn.Dropout(0.5)
        self.head = dense_head(width, 128, shape.classes, 0.5)

    def forward(self, batch: FieldBatch) -> Tensor:
        here = batch.present[:, None]
        h = self.activate(self.filters(batch).transpose(1, 2), self.norms[0], here)
        for conv, norm in zip(self.convs, self.norms[1:], strict=True):
            h = self.activate(conv(h), norm, here)
        logits: Tensor = self.head(h.amax(2))
        return logits

    def activate(self, h: Tensor, norm: nn.Module, here: Tensor) -> Tensor:
        """(B, D, W); places without a node stay dark"""
        active: Tensor = self.dropout(F.relu(norm(h))) * here
        return active
