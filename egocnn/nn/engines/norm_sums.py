"""Batch norm of rows that are not in one place: sums of every part -> mean and variance of all rows together."""

from __future__ import annotations

import torch
from torch import Tensor


def sums_of(x: Tensor) -> tuple[Tensor, int]:
    """x (n, D, ...) -> (2, D) n m and n (v + m²) with m the mean and v the variance, in double precision; and n.

    Sums of several parts are added up. As m is the same rounded number in both, what cancels out in the end cancels to
    the last digit of a double, however far the mean is from zero.
    """
    rows = x.numel() // x.shape[1] if x.shape[1] else 0
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if rows:
        others = [dim for dim in range(x.ndim) if dim != 1]
        variance, mean = (each.double() for each in torch.var_mean(wide, others, correction=0))
    else:
        variance, mean = wide.new_zeros(2, x.shape[1], dtype=torch.float64)
    return rows * torch.stack([mean, variance + mean.square()]), rows


def statistics(sums: Tensor, rows: Tensor | int) -> tuple[Tensor, Tensor]:
    """Sums of all parts (2, D) and the number of their rows -> mean and biased variance (D)"""
    mean, square = sums / rows
    return mean, (square - mean.square()).clamp(min=0)


@torch.no_grad()
def update_running(
    running: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor, rows: Tensor | int, momentum: float | Tensor
) -> None:
    """Move the running mean and variance of a batch norm towards those of a batch, as torch does."""
    for remembered, seen in zip(running, (mean, variance * rows / (rows - 1)), strict=True):
        remembered += momentum * (seen.to(remembered.dtype) - remembered)
