"""Below a layer, tensors -> tensors: :mod:`reference` defines the ego-convolution, :mod:`cpu` and :mod:`gpu` compute it
and :func:`ego_conv` chooses; :mod:`padded` is for padded rows of R networks."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from egocnn.nn.engines.cpu import Plan, ego_conv_ragged
from egocnn.nn.engines.gpu.fused import ego_conv_fused, is_available
from egocnn.nn.engines.gpu.tiles import Tiles
from egocnn.nn.engines.operator import factor_type
from egocnn.nn.engines.reference import ego_conv_blocks, ego_conv_reference

__all__ = ["Neighbours", "ego_conv", "ego_conv_fused", "ego_conv_ragged", "ego_conv_reference"]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """A neighbour table with what the engines work out from it once for all layers."""

    table: Tensor  # (N, K) node ids, -1 where absent; or (R, N, K), the ids counted in every replica by itself
    plan: Plan | None = None
    tiles: Tiles | None = None
    replicas: "tuple[Neighbours, ...]" = ()  # of R replicas on a device that works through them one by one
    gate: Tensor | None = None  # (N, at least K) what is let through from each neighbour; None: everything
    later: bool = False  # engines work out in each pass what they need: while torch compiles, it cannot be known
    block: int | None = None  # nodes to compute at a time, where all together take too much memory; None: all at once

    @staticmethod
    def of(table: Tensor) -> "Neighbours":
        if torch.compiler.is_compiling():
            # exported are plain operations, which every runtime has
            return Neighbours(table, later=not torch.compiler.is_exporting())
        if is_available(table.device):
            return Neighbours(table, tiles=Tiles.of(table, gradients=torch.is_grad_enabled()))
        if table.dim() == 3:
            return Neighbours(table, replicas=tuple(map(Neighbours.of, table)))
        return Neighbours(table, plan=Plan.of(table) if table.device.type == "cpu" else None)

    def first(self, k: int) -> "Neighbours":
        """Of each node the first k neighbours alone."""
        if self.table.shape[-1] == k:
            return self
        table = self.table[..., :k]
        if self.gate is None and self.block is None:
            return Neighbours.of(table)
        return Neighbours(table, gate=self.gate, block=self.block)


def ego_conv(x: Tensor, neighbours: Tensor | Neighbours, weight: Tensor, bias: Tensor, *, relu: bool = False) -> Tensor:
    """:func:`ego_conv_reference` by the fastest engine for this device and table, and a rectifier if asked for. Of R
    replicas together: x (R, N, D), neighbours (R, N, K), weight (R, K + 1, D, D'), bias (R, D') -> (R, N, D')."""
    if isinstance(neighbours, Tensor):
        neighbours = Neighbours.of(neighbours)
    later = neighbours.table if neighbours.later else None
    tiles = neighbours.tiles or (later if is_available(x.device) else None)
    if tiles is not None and x.dtype != torch.float64:
        return ego_conv_fused(x, tiles, weight, bias, relu=relu)
    if relu:
        return torch.relu(ego_conv(x, neighbours, weight, bias))
    if neighbours.block is not None:
        return ego_conv_blocks(x, neighbours.table, weight, bias, nodes=neighbours.block)
    if x.dim() == 3:
        replicas = neighbours.replicas or [replace(neighbours, table=each) for each in neighbours.table]
        return torch.stack([ego_conv(*each) for each in zip(x, replicas, weight, bias, strict=True)])
    plan = neighbours.plan or (later if x.device.type == "cpu" else None)
    if plan is not None:
        return ego_conv_ragged(x, plan, weight, bias)
    y = ego_conv_reference(x, neighbours.table, weight, bias, neighbours.gate)
    return y if x.dtype == torch.float64 else y.to(factor_type(x))
