"""The ego-convolution: one definition, several engines, one dispatch."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from egocnn.ops.ragged import Plan, ego_conv_ragged
from egocnn.ops.reference import ego_conv_reference

__all__ = ["Neighbours", "ego_conv", "ego_conv_ragged", "ego_conv_reference"]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """A neighbour table with what the engines work out from it once for all layers."""

    table: Tensor
    """(N, K) node ids, -1 where absent"""
    plan: Plan | None

    @staticmethod
    def of(table: Tensor) -> Neighbours:
        return Neighbours(table, Plan.of(table) if table.device.type == "cpu" else None)


def ego_conv(x: Tensor, neighbours: Tensor | Neighbours, weight: Tensor, bias: Tensor) -> Tensor:
    """:func:`ego_conv_reference` by the fastest engine for this device and table."""
    if isinstance(neighbours, Tensor):
        neighbours = Neighbours.of(neighbours)
    if neighbours.plan is not None:
        return ego_conv_ragged(x, neighbours.plan, weight, bias)
    return ego_conv_reference(x, neighbours.table, weight, bias)
