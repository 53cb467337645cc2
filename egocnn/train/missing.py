"""Which nodes a training step leaves out: numbers of graphs and nodes -> whether they are there.

A network that sees parts of graphs while it learns can be asked what a graph would be without one of its parts.

A share of the graphs is shown in part: of each a share of the nodes, drawn between nothing and ``missing``, is absent.
The choice is a hash of seed, epoch and number, so it does not depend on batches, engines or processes."""

import torch
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.encode.batch import ranges
from egocnn.nn.batch import Batchable
from egocnn.nn.engines.padded import GOLDEN, mix

IS_PART, SHARE, NODE = range(1, 4)
"""Independent draws: whether a graph is shown in part, how much of it is missing, and which nodes."""


def present_nodes(seed: Tensor, epoch: Tensor, graph: Tensor, node: Tensor, config: TrainConfig) -> Tensor:
    """(...) whether each node is there, given the numbers of the node and of its graph in their collection"""
    key = mix(mix(seed) + epoch * GOLDEN)
    is_part = _uniform(key, IS_PART, graph) < config.parts
    share = _uniform(key, SHARE, graph) * config.missing
    return ~is_part | (_uniform(key, NODE, node) >= share)


def present_in(data: Batchable, chosen: Tensor, seed: int, epoch: int, config: TrainConfig) -> Tensor | None:
    """(N) which nodes of the chosen graphs are there; None where all are, or hardly any would be"""
    if config.parts == 0 or config.missing == 0:
        return None
    first, counts = data.node_ptr[chosen], data.node_ptr[chosen + 1] - data.node_ptr[chosen]
    of_epoch = torch.tensor([seed, epoch], device=chosen.device)
    there = present_nodes(of_epoch[0], of_epoch[1], chosen.repeat_interleave(counts), ranges(first, counts), config)
    # a single node has no spread for the norms to learn
    return None if there.all() or int(there.sum()) < 2 else there


def _uniform(key: Tensor, stream: int, number: Tensor) -> Tensor:
    """(...) between 0 and 1, independent for every stream and number"""
    bits = mix(mix(key + stream) + number * GOLDEN)
    return ((bits >> 40) & 0xFFFFFF).float() / (1 << 24)
