"""The ego-convolution as its equation reads: gather every ego network, then one matrix product."""

from __future__ import annotations

import torch
from torch import Tensor


def ego_conv_reference(
    x: Tensor, neighbours: Tensor, weight: Tensor, bias: Tensor, gate: Tensor | None = None
) -> Tensor:
    r"""Every node's ego network times one filter matrix per rank.

    .. math:: y_n = b + \sum_{k=0}^{K} g_{n,k} \, x_{\nu(n,k)} W_k, \qquad \nu(n,0) = n, \quad g_{n,0} = 1

    Absent neighbours (-1) contribute nothing. ``gate`` (N, at least K) is g, what is let through from each neighbour;
    without it everything is.

    Shapes: x (N, D), neighbours (N, K), weight (K + 1, D, D'), bias (D') -> (N, D')
    """
    return gather_egos(x, neighbours, gate).flatten(1) @ weight.flatten(0, 1) + bias


def gather_egos(x: Tensor, neighbours: Tensor, gate: Tensor | None = None) -> Tensor:
    """(N, D), (N, K) -> (N, K + 1, D): every node, then its neighbours; zeros where absent

    Where the table has fewer rows than x, the nodes that come after are only read.
    """
    padded = torch.cat([x, x.new_zeros(1, x.shape[1])])
    named = torch.where(neighbours < 0, x.shape[0], neighbours).long()  # the last row for all that are absent
    near = padded[named]
    if gate is not None:
        near = near * gate[:, : neighbours.shape[1], None].to(x.dtype)
    return torch.cat([x[: neighbours.shape[0], None], near], dim=1)
