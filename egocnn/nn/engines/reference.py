"""The ego-convolution as its equation reads: gather every ego network, then one matrix product."""

from __future__ import annotations

import torch
from torch import Tensor


def ego_conv_reference(x: Tensor, neighbours: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    r"""Every node's ego network times one filter matrix per rank.

    .. math:: y_n = b + \sum_{k=0}^{K} x_{\nu(n,k)} W_k, \qquad \nu(n,0) = n

    Absent neighbours (-1) contribute nothing.

    Shapes: x (N, D), neighbours (N, K), weight (K + 1, D, D'), bias (D') -> (N, D')
    """
    padded = torch.cat([x, x.new_zeros(1, x.shape[1])])  # -1 names the last row: zeros
    itself = torch.arange(len(x), device=x.device)[:, None]
    ego = padded[torch.cat([itself, neighbours.long()], dim=1)]  # (N, K + 1, D)
    return ego.flatten(1) @ weight.flatten(0, 1) + bias
