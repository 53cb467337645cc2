"""The ego-convolution without work for absent neighbours: one matrix product per number of neighbours.

Nodes with equally many neighbours are gathered together, so a molecule's atom with two neighbours costs three
small products and not K + 1. The scatter of the backward pass is turned into a gather: which rows flow into
which node is sorted out once per batch, in :class:`Plan`, and serves all layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Who is gathered with whom, for one neighbour table."""

    nodes: tuple[Tensor, ...]
    """per group: the nodes (n)"""
    members: tuple[Tensor, ...]
    """per group: each node and its c neighbours (n, c + 1)"""
    sources: Tensor
    """rows of all groups end to end (S), sorted by the node they were gathered from"""
    offsets: Tensor
    """(N) where the rows of each node start in ``sources``"""

    @staticmethod
    def of(neighbours: Tensor) -> Plan | None:
        """None where an absent neighbour stands before a present one: such tables need the reference."""
        present = neighbours >= 0
        count = present.sum(dim=1)
        widest = int(count.max()) if len(count) else 0
        if bool((~present[:, :-1] & present[:, 1:]).any()):
            return None
        nodes = [torch.nonzero(count == c).flatten() for c in range(widest + 1)]
        nodes = [n for n in nodes if len(n)]
        members = [torch.cat([n[:, None], neighbours[n, : int(count[n[0]])].long()], dim=1) for n in nodes]
        gathered = torch.cat([m.flatten() for m in members]) if members else torch.zeros(0, dtype=torch.long)
        into = torch.bincount(gathered, minlength=len(neighbours))
        return Plan(tuple(nodes), tuple(members), torch.argsort(gathered, stable=True), into.cumsum(0) - into)


def ego_conv_ragged(x: Tensor, plan: Plan, weight: Tensor, bias: Tensor) -> Tensor:
    """The same function as :func:`~egocnn.ops.reference.ego_conv_reference`, absent neighbours skipped."""
    if torch.is_autocast_enabled("cpu"):  # in float32 all the same: a CPU gains nothing from less
        with torch.autocast("cpu", enabled=False):
            return ego_conv_ragged(x.float(), plan, weight.float(), bias.float())
    apply: Callable[..., Tensor] = _Ragged.apply
    return apply(x, weight, bias, plan)


class _Ragged(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, plan: Plan) -> Tensor:
        ctx.plan = plan
        ctx.save_for_backward(x, weight)
        y = x.new_empty(len(x), weight.shape[2])
        for nodes, members in zip(plan.nodes, plan.members, strict=True):
            y.index_copy_(0, nodes, torch.addmm(bias, _gather(x, members), _filters(weight, members)))
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        (gradient,) = gradients
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias, _ = ctx.needs_input_grad
        weight_gradient = torch.zeros_like(weight)
        rows = x.new_empty(len(ctx.plan.sources) if for_x else 0, x.shape[1])  # a gradient for every gathered row
        done = 0
        for nodes, members in zip(ctx.plan.nodes, ctx.plan.members, strict=True):
            arriving = gradient[nodes]  # (n, D')
            if for_weight:
                # gathered again rather than kept: a tenth of the time, and memory for the largest graphs
                product = _gather(x, members).t() @ arriving
                weight_gradient[: members.shape[1]] += product.view(-1, *weight.shape[1:])
            if for_x:
                part = rows[done : done + members.numel()].view(len(members), -1)
                torch.mm(arriving, _filters(weight, members).t(), out=part)
                done += members.numel()
        return (
            _collect(rows, ctx.plan) if for_x else None,
            weight_gradient if for_weight else None,
            gradient.sum(0) if for_bias else None,
            None,
        )


def _gather(x: Tensor, members: Tensor) -> Tensor:
    """x (N, D), members (n, c + 1) -> the ego networks (n, (c + 1) D)"""
    return x.index_select(0, members.flatten()).view(len(members), -1)


def _filters(weight: Tensor, members: Tensor) -> Tensor:
    return weight[: members.shape[1]].flatten(0, 1)


def _collect(rows: Tensor, plan: Plan) -> Tensor:
    """Sum, for every node, the rows that were gathered from it."""
    if rows.dtype in (torch.float32, torch.float64):
        return F.embedding_bag(plan.sources, rows, plan.offsets, mode="sum")
    return F.embedding_bag(plan.sources, rows.float(), plan.offsets, mode="sum").to(rows.dtype)
