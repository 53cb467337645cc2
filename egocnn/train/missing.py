"""Which nodes a training step leaves out: numbers of graphs and nodes -> presence, 0 or 1.

A network that sees parts of graphs while it learns can be asked what a graph would be without one of its parts.

A share of the graphs is shown in part: of each a share of the nodes, drawn between nothing and ``missing``, is absent.
The choice is a hash of seed, epoch and number, so it does not depend on batches, engines or processes."""

import torch
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.nn.batch import Batch, Batchable
from egocnn.nn.engines.dropout import GOLDEN, mix

IS_PART, SHARE, NODE = range(1, 4)
"""Independent draws: whether a graph is shown in part, how much of it is missing, and which nodes."""


def present_nodes(seed: Tensor, epoch: Tensor, graph: Tensor, node: Tensor, config: TrainConfig) -> Tensor:
    """(...) whether each node is there, given the numbers of the node and of its graph in their collection"""
    key = mix(mix(seed) + epoch * GOLDEN)
    is_part = _uniform(key, IS_PART, graph) < config.parts
    share = _uniform(key, SHARE, graph) * config.missing
    return ~is_part | (_uniform(key, NODE, node) >= share)


def presence_of(
    batch: Batch, data: Batchable, chosen: Tensor, seed: int, epoch: int, config: TrainConfig
) -> Tensor | None:
    """(N) of the nodes of a batch that holds the chosen graphs; None where all are there, or hardly any would be"""
    if config.parts == 0 or config.missing == 0:
        return None
    first = batch.node_counts.cumsum(0) - batch.node_counts
    shift = (data.node_ptr[chosen] - first)[batch.graph_of]
    node = torch.arange(len(batch.place), device=shift.device) + shift
    of_epoch = [torch.tensor(number, device=shift.device) for number in (seed, epoch)]
    there = present_nodes(of_epoch[0], of_epoch[1], chosen[batch.graph_of], node, config)
    if there.all() or int(there.sum()) < 2:  # a single node has no spread for the norms to learn
        return None
    return there.to(batch.attributes.dtype)


def _uniform(key: Tensor, stream: int, number: Tensor) -> Tensor:
    """(...) between 0 and 1, independent for every stream and number"""
    bits = mix(mix(key + stream) + number * GOLDEN)
    return ((bits >> 40) & 0xFFFFFF).float() / (1 << 24)
