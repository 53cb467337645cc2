"""The ego-convolution as its equation reads: gather every ego network, then one matrix product."""

from collections.abc import Iterator

import torch
from torch import Tensor


def ego_conv_reference(
    x: Tensor, neighbours: Tensor, weight: Tensor, bias: Tensor, gate: Tensor | None = None
) -> Tensor:
    r"""Every node's ego network times one filter matrix per rank.

    .. math:: y_n = b + \sum_{k=0}^{K} g_{n,k} \, x_{\nu(n,k)} W_k, \qquad \nu(n,0) = n, \quad g_{n,0} = 1

    Absent neighbours (-1) contribute nothing. ``gate`` (N, at least K) is g, what is let through from each neighbour;
    without it everything is.

    Shapes: x (N, D), neighbours (N, K), weight (K + 1, D, D'), bias (D') -> (N, D')"""
    return gather_egos(x, neighbours, gate).flatten(1) @ weight.flatten(0, 1) + bias


def gather_egos(x: Tensor, neighbours: Tensor, gate: Tensor | None = None) -> Tensor:
    """(N, D), (N, K) -> (N, K + 1, D): every node, then its neighbours; zeros where absent. Where the table has fewer
    rows than x, the nodes that come after are only read."""
    padded = torch.cat([x, x.new_zeros(1, x.shape[1])])
    named = torch.where(neighbours < 0, x.shape[0], neighbours).long()  # the last row for all that are absent
    near = padded[named]
    if gate is not None:
        near = near * gate[:, : neighbours.shape[1], None].to(x.dtype)
    return torch.cat([x[: neighbours.shape[0], None], near], dim=1)


def blocks(n_nodes: int, size: int) -> Iterator[slice]:
    """All nodes in order, so many at a time."""
    return (slice(first, min(first + size, n_nodes)) for first in range(0, n_nodes, size))


def ego_conv_blocks(x: Tensor, table: Tensor, weight: Tensor, bias: Tensor, *, nodes: int) -> Tensor:
    """:func:`ego_conv_reference` for some nodes after the other, absent neighbours skipped; the table (N, K) may lie on
    another device than x."""
    y = x.new_empty(len(x), weight.shape[2])
    for here in blocks(len(x), nodes):
        near = table[here].to(x.device).long()
        y[here] = torch.addmm(bias, x[here], weight[0])
        for neighbour, filters in zip(near.unbind(dim=1), weight[1:], strict=True):
            there = torch.nonzero(neighbour >= 0).flatten()
            if len(there):  # index_select gathers rows five times as fast as brackets do
                y[here].index_add_(0, there, x.index_select(0, neighbour[there]) @ filters)
    return y
