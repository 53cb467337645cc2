"""Patchy-San with fields that cover several hops: graphs -> one field of P nodes around each -> logits (B, C).

A single layer sees as far as its fields reach. To see what a stack of L layers sees, they must hold every node within
L edges. This is how the paper argues that it does not scale, and what is measured here.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.data.graphs import Graphs
from egocnn.encode.patches import find_patches
from egocnn.errors import DataError
from egocnn.nn.embed import PatchShape
from lab.rivals.networks.canonical import canonical_order
from lab.rivals.networks.encoding import Shape
from lab.rivals.networks.layers import Network, dense_head
from lab.rivals.networks.patchy import FieldBatch, Fields
from lab.rivals.networks.reach import nearest_nodes

FILTERS = 16  # as many as the published network has


def read_wide_fields(encoded: Graphs, shape: Shape, *, slots: int, hops: int) -> Fields:
    """Every node has a field of its own: the nodes nearest to it, by the canonical order of the graph."""
    order = canonical_order(encoded)
    neighbours = nearest_nodes(encoded, order, slots - 1, hops=hops)
    sequence = order.nodes.reshape(len(encoded), -1)
    patches = find_patches(encoded, neighbours, _patch_shape(shape, slots))
    return Fields(sequence, patches, np.zeros((encoded.n_nodes + 1, 0), np.float32))


def _patch_shape(shape: Shape, slots: int) -> PatchShape:
    return PatchShape(slots=slots, node_labels=shape.node_labels, edge_labels=shape.edge_labels)


class WideFields(Network):
    """One bank of filters over all fields, the mean over nodes, two dense layers."""

    def __init__(self, shape: Shape, *, slots: int) -> None:
        super().__init__()
        if slots > shape.most_nodes:
            raise DataError(f"fields of {slots:,} nodes would be larger than the graph of {shape.most_nodes:,}")
        self.table = nn.Parameter(torch.randn(_patch_shape(shape, slots).rows, FILTERS) * 0.1)
        self.bias = nn.Parameter(torch.zeros(FILTERS))
        self.head = dense_head(FILTERS, 128, shape.classes, 0.5)

    def forward(self, batch: FieldBatch) -> Tensor:
        h = F.embedding_bag(batch.rows, self.table, batch.offsets, mode="sum") + self.bias
        logits: Tensor = self.head(F.relu(h).view(*batch.present.shape, -1).mean(1))
        return logits
