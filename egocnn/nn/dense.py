"""Dense layers: (B, D) -> (B, D'), or those of R networks at once: (R, B, D) -> (R, B, D')."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Dense(nn.Linear):
    """``nn.Linear`` whose weight (D', D) and bias (D') may have a leading axis R, of networks computed together."""

    def forward(self, input: Tensor) -> Tensor:
        if self.weight.dim() == 2:
            return super().forward(input)
        return torch.baddbmm(self.bias[:, None], input.to(factor_type(self.bias)), self.weight.transpose(1, 2))


def factor_type(like: Tensor) -> torch.dtype:
    """The type of what goes into matrix products: that of the tensor, or the shorter one under autocast"""
    kind = like.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else like.dtype
