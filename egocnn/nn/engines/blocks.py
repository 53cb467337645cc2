"""The ego-convolution of a graph too large for one product: some nodes after the other, the table where it lies."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor


def blocks(n_nodes: int, size: int) -> Iterator[slice]:
    """All nodes in order, so many at a time."""
    return (slice(first, min(first + size, n_nodes)) for first in range(0, n_nodes, size))


def ego_conv_blocks(x: Tensor, table: Tensor, weight: Tensor, bias: Tensor, *, nodes: int) -> Tensor:
    """As :func:`egocnn.nn.engines.ego_conv_reference`; the table (N, K) may lie on another device than x."""
    filters = weight.flatten(0, 1)
    y = x.new_empty(len(x), weight.shape[2])
    for here in blocks(len(x), nodes):
        near = table[here].to(x.device).long()
        itself = torch.arange(here.start, here.stop, device=x.device)[:, None]
        ego = torch.cat([itself, near], dim=1)
        read = x[ego.clamp(min=0)]
        read[ego < 0] = 0
        y[here] = read.flatten(1) @ filters + bias
    return y
