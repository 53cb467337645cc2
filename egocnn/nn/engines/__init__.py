"""The ego-convolution: one definition, several engines, one dispatch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from egocnn.nn.engines.gpu.fused import ego_conv_fused, is_available
from egocnn.nn.engines.cpu import Plan, ego_conv_ragged
from egocnn.nn.engines.reference import ego_conv_reference
from egocnn.nn.engines.gpu.tiles import Tiles

__all__ = ["Neighbours", "ego_conv", "ego_conv_fused", "ego_conv_ragged", "ego_conv_reference"]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """A neighbour table with what the engines work out from it once for all layers."""

    table: Tensor
    """(N, K) node ids, -1 where absent; or (R, N, K), the ids counted in every replica by itself"""
    plan: Plan | None = None
    tiles: Tiles | None = None
    replicas: tuple[Neighbours, ...] = ()
    """of R replicas on a device that works through them one by one"""

    @staticmethod
    def of(table: Tensor) -> Neighbours:
        if is_available(table.device):
            return Neighbours(table, tiles=Tiles.of(table, gradients=torch.is_grad_enabled()))
        if table.dim() == 3:
            return Neighbours(table, replicas=tuple(map(Neighbours.of, table)))
        return Neighbours(table, plan=Plan.of(table) if table.device.type == "cpu" else None)


def ego_conv(x: Tensor, neighbours: Tensor | Neighbours, weight: Tensor, bias: Tensor, *, relu: bool = False) -> Tensor:
    """:func:`ego_conv_reference` by the fastest engine for this device and table, and a rectifier if asked for.

    R replicas, each with its own nodes and filters, are computed together: x (R, N, D), neighbours (R, N, K),
    weight (R, K + 1, D, D'), bias (R, D') -> (R, N, D').
    """
    if isinstance(neighbours, Tensor):
        neighbours = Neighbours.of(neighbours)
    if neighbours.tiles is not None and x.dtype != torch.float64:
        return ego_conv_fused(x, neighbours.tiles, weight, bias, relu=relu)
    if relu:
        return torch.relu(ego_conv(x, neighbours, weight, bias))
    if x.dim() == 3:
        replicas = neighbours.replicas or tuple(map(Neighbours, neighbours.table))
        return torch.stack([ego_conv(*each) for each in zip(x, replicas, weight, bias, strict=True)])
    if neighbours.plan is not None:
        return ego_conv_ragged(x, neighbours.plan, weight, bias)
    return ego_conv_reference(x, neighbours.table, weight, bias)
