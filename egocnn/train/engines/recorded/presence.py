"""Which nodes a recorded step leaves out: a batch of R replicas -> whether each node is there (R, M)."""

from __future__ import annotations

import torch
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.nn.stacked import StackedBatch
from egocnn.train.missing import present_nodes


class StackedPresence:
    """:func:`egocnn.train.missing.presence_of` for R replicas: the same nodes, found without waiting for the device.

    Replicas count graphs and nodes in their own collections, which begin somewhere in the tensors of all.
    """

    def __init__(self, seeds: Tensor, first_graph: Tensor, node_ptr: Tensor, config: TrainConfig) -> None:
        """seeds (R), first_graph (R): where the graphs that each replica learns from begin; node_ptr of all graphs"""
        self._seeds, self._config = seeds[:, None], config
        self._first_graph, self._first_node = first_graph[:, None], node_ptr[first_graph][:, None]
        self.epoch = torch.zeros((), dtype=torch.int64, device=seeds.device)
        """on the device, since a step that was recorded in one epoch is replayed in all"""

    def of(self, batch: StackedBatch) -> Tensor:
        """False for padding, too; all nodes of a replica that would be left with one or none"""
        graph = batch.graph.gather(1, batch.graph_of.clamp(max=len(batch) - 1)) - self._first_graph
        node = batch.node - self._first_node
        there = present_nodes(self._seeds, self.epoch, graph, node, self._config) & batch.present
        return torch.where(there.sum(1, keepdim=True) < 2, batch.present, there)
