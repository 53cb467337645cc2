"""GPU kernels of the stacked training: the norm with what follows it, forward and backward, and the optimiser's update.

A program of the norm takes a few columns of one replica and goes through its nodes once for every sum that it needs
and once to write; only the first time do they come from far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from egocnn.nn.engines.gpu.row_masks import is_there

kernel: Callable[[Callable[..., None]], Any] = triton.jit  # which has no types of its own


@kernel
def norm_forward(
    y: tl.tensor, out: tl.tensor, scale: tl.tensor, shift: tl.tensor, running_mean: tl.tensor,
    running_variance: tl.tensor, used_mean: tl.tensor, used_inverse: tl.tensor, count: tl.tensor, learns: tl.tensor,
    active: tl.tensor, drawn: tl.tensor, odd: tl.tensor, there: tl.tensor, M: tl.tensor, D: tl.tensor,
    threshold: tl.tensor, amplify: tl.tensor,
    MOMENTUM: tl.constexpr, EPSILON: tl.constexpr, DROPS: tl.constexpr, PARTS: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
) -> None:  # fmt: skip
    """:func:`egocnn.nn.engines.norm.norm_relu_dropout`; mean and inverse deviation are kept for the gradient."""
    replica = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    known = d < D
    nodes = tl.load(count + replica)
    end = nodes
    if PARTS:
        end = M
    is_learning = tl.load(learns + replica).to(tl.int32) != 0
    m = tl.arange(0, BLOCK_M)
    begin = replica * M * D
    column = replica * D + d
    pivot = tl.load(y + begin + d, mask=known, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for first in range(0, end, BLOCK_M):
        here = is_there(first + m, end, there, replica * M, PARTS)[:, None] & known[None, :]
        value = tl.load(y + begin + (first + m)[:, None] * D + d[None, :], mask=here, other=0.0).to(tl.float32)
        total += tl.sum(tl.where(here, value - pivot[None, :], 0.0), axis=0)
    many = tl.maximum(nodes, 1).to(tl.float32)
    centre = pivot + total / many
    squares = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for first in range(0, end, BLOCK_M):
        here = is_there(first + m, end, there, replica * M, PARTS)[:, None] & known[None, :]
        value = tl.load(y + begin + (first + m)[:, None] * D + d[None, :], mask=here, other=0.0).to(tl.float32)
        away = tl.where(here, value - centre[None, :], 0.0)
        squares += tl.sum(away * away, axis=0)
    variance = squares / many
    old_mean = tl.load(running_mean + column, mask=known, other=0.0)
    old_variance = tl.load(running_variance + column, mask=known, other=1.0)
    moved = tl.where(is_learning & (tl.load(active + replica).to(tl.int32) != 0), MOMENTUM, 0.0)
    unbiased = squares / tl.maximum(many - 1, 1.0)
    tl.store(running_mean + column, old_mean + (centre - old_mean) * moved, mask=known)
    tl.store(running_variance + column, old_variance + (unbiased - old_variance) * moved, mask=known)
    mean = tl.where(is_learning, centre, old_mean)
    inverse = 1.0 / tl.sqrt(tl.where(is_learning, variance, old_variance) + EPSILON)
    tl.store(used_mean + column, mean, mask=known)
    tl.store(used_inverse + column, inverse, mask=known)
    factor = tl.where(is_learning, amplify, 1.0)
    slope = tl.load(scale + column, mask=known, other=0.0) * inverse * factor
    offset = tl.load(shift + column, mask=known, other=0.0) * factor
    for first in range(0, M, BLOCK_M):
        inside = (first + m < M)[:, None] & known[None, :]
        place = begin + (first + m)[:, None] * D + d[None, :]
        value = tl.load(y + place, mask=inside, other=0.0).to(tl.float32)
        z = (value - mean[None, :]) * slope[None, :] + offset[None, :]
        stays = (z > 0) & is_there(first + m, end, there, replica * M, PARTS)[:, None]
        if DROPS:
            row = tl.load(drawn + replica * M + first + m, mask=first + m < M, other=0)
            number = row[:, None] * tl.load(odd + d, mask=known, other=0)[None, :]
            stays = stays & ((number >= threshold) | (~is_learning))
        tl.store(out + place, tl.where(stays, z, 0.0).to(out.dtype.element_ty), mask=inside)


@kernel
def norm_backward(
    gradient: tl.tensor, y: tl.tensor, out: tl.tensor, scale: tl.tensor, used_mean: tl.tensor, used_inverse: tl.tensor,
    count: tl.tensor, learns: tl.tensor, there: tl.tensor, y_gradient: tl.tensor, scale_gradient: tl.tensor,
    shift_gradient: tl.tensor, M: tl.tensor, D: tl.tensor, amplify: tl.tensor,
    PARTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
) -> None:  # fmt: skip
    """The gradient passes where the output is above 0: neither rectified nor dropped."""
    replica = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    known = d < D
    nodes = tl.load(count + replica)
    end = nodes
    if PARTS:
        end = M
    is_learning = tl.load(learns + replica).to(tl.int32) != 0
    m = tl.arange(0, BLOCK_M)
    begin = replica * M * D
    column = replica * D + d
    mean = tl.load(used_mean + column, mask=known, other=0.0)
    inverse = tl.load(used_inverse + column, mask=known, other=0.0)
    total = tl.zeros((BLOCK_D,), dtype=tl.float32)
    product = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for first in range(0, end, BLOCK_M):
        here = is_there(first + m, end, there, replica * M, PARTS)[:, None] & known[None, :]
        place = begin + (first + m)[:, None] * D + d[None, :]
        passes = tl.load(out + place, mask=here, other=0.0) > 0
        arriving = tl.where(passes, tl.load(gradient + place, mask=here, other=0.0).to(tl.float32), 0.0)
        value = tl.load(y + place, mask=here, other=0.0).to(tl.float32)
        total += tl.sum(arriving, axis=0)
        product += tl.sum(tl.where(here, arriving * (value - mean[None, :]), 0.0), axis=0)
    product = product * inverse
    factor = tl.where(is_learning, amplify, 1.0)
    tl.store(scale_gradient + column, product * factor, mask=known)
    tl.store(shift_gradient + column, total * factor, mask=known)
    slope = tl.load(scale + column, mask=known, other=0.0) * inverse * factor
    share = tl.where(is_learning, 1.0 / tl.maximum(nodes, 1).to(tl.float32), 0.0)
    for first in range(0, M, BLOCK_M):
        inside = (first + m < M)[:, None] & known[None, :]
        here = is_there(first + m, end, there, replica * M, PARTS)[:, None] & known[None, :]
        place = begin + (first + m)[:, None] * D + d[None, :]
        passes = tl.load(out + place, mask=here, other=0.0) > 0
        arriving = tl.where(passes, tl.load(gradient + place, mask=here, other=0.0).to(tl.float32), 0.0)
        value = tl.load(y + place, mask=here, other=0.0).to(tl.float32)
        spread = total[None, :] + (value - mean[None, :]) * inverse[None, :] * product[None, :]
        back = tl.where(here, slope[None, :] * (arriving - share * spread), 0.0)
        tl.store(y_gradient + place, back.to(y_gradient.dtype.element_ty), mask=inside)


@kernel
def adamw(
    parameter: tl.tensor, gradient: tl.tensor, first: tl.tensor, second: tl.tensor, settings: tl.tensor,
    active: tl.tensor, numbers: tl.tensor, replicas: tl.tensor,
    BETA_1: tl.constexpr, BETA_2: tl.constexpr, EPSILON: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """:func:`egocnn.train.engines.recorded.adamw.update_plain`; a program takes BLOCK numbers of one replica."""
    replica = tl.program_id(1)
    if tl.load(active + replica) != 0:
        shorten = tl.load(settings + replica)
        keep = tl.load(settings + replicas + replica)
        size = tl.load(settings + 2 * replicas + replica)
        root = tl.load(settings + 3 * replicas + replica)
        inside = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        here = inside < numbers
        at = replica.to(tl.int64) * numbers + inside
        slope = tl.load(gradient + at, mask=here, other=0.0).to(tl.float32) * shorten
        mean = tl.load(first + at, mask=here, other=0.0)
        mean += (slope - mean) * (1 - BETA_1)
        square = tl.load(second + at, mask=here, other=0.0) * BETA_2 + slope * slope * (1 - BETA_2)
        value = tl.load(parameter + at, mask=here, other=0.0) * keep
        value -= size * mean / (tl.sqrt(square) / root + EPSILON)
        tl.store(parameter + at, value, mask=here)
        tl.store(first + at, mean, mask=here)
        tl.store(second + at, square, mask=here)
