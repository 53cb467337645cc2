"""GPU kernels over rows of R networks: norm with what follows it, pools over every graph, and the optimiser's update. A
program of the norm takes a few columns of one replica, and goes through its nodes once per sum and once to write; only
the first time do they come from far. One of a pool takes tile after tile of nodes in one order, so that all runs give
the same bits; torch's own segment_reduce takes node after node, and a graph may have thousands."""

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

kernel: Callable[[Callable[..., Any]], Any] = triton.jit  # which has no types of its own


@kernel
def is_there(row: tl.tensor, end: tl.tensor, there: tl.tensor, begin: tl.tensor, PARTS: tl.constexpr) -> tl.tensor:
    """Rows before the end; where graphs are shown in part, those of them that ``there``, from ``begin`` on, says."""
    found = row < end
    if PARTS:
        found = tl.load(there + begin + row, mask=found, other=0).to(tl.int32) != 0
    return found


@kernel
def norm_forward(
    y: tl.tensor, out: tl.tensor, scale: tl.tensor, shift: tl.tensor, running_mean: tl.tensor,
    running_variance: tl.tensor, used_mean: tl.tensor, used_inverse: tl.tensor, count: tl.tensor, learns: tl.tensor,
    active: tl.tensor, drawn: tl.tensor, odd: tl.tensor, there: tl.tensor, M: tl.tensor, D: tl.tensor,
    threshold: tl.tensor, amplify: tl.tensor,
    MOMENTUM: tl.constexpr, EPSILON: tl.constexpr, DROPS: tl.constexpr, PARTS: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
) -> None:  # fmt: skip
    """:func:`egocnn.nn.engines.padded.norm_relu_dropout`; mean and inverse deviation are kept for the gradient."""
    replica = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    known = d < D
    nodes = tl.load(count + replica)
    end = M if PARTS else nodes
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
    end = M if PARTS else nodes
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


@kernel
def pool_forward(
    h: tl.tensor, first: tl.tensor, count: tl.tensor, there: tl.tensor, total: tl.tensor, largest: tl.tensor,
    sharing: tl.tensor, M: tl.tensor, B: tl.tensor, D: tl.tensor,
    PARTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
) -> None:  # fmt: skip
    """Sum and maximum over a graph's nodes, and how many of them attain the maximum; 0 for a graph without nodes."""
    graph = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    known = d < D
    m = tl.arange(0, BLOCK_M)
    nodes = tl.load(count + graph)
    begin = (graph // B) * M + tl.load(first + graph)
    added = tl.zeros((BLOCK_D,), dtype=tl.float32)
    most = tl.full((BLOCK_D,), float("-inf"), dtype=tl.float32)
    for start in range(0, nodes, BLOCK_M):
        here = is_there(start + m, nodes, there, begin, PARTS)[:, None] & known[None, :]
        value = tl.load(h + (begin + start + m)[:, None] * D + d[None, :], mask=here, other=0.0).to(tl.float32)
        added += tl.sum(value, axis=0)
        most = tl.maximum(most, tl.max(tl.where(here, value, float("-inf")), axis=0))
    most = tl.where(nodes > 0, most, 0.0)
    if PARTS:
        most = tl.where(most == float("-inf"), 0.0, most)
    many = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for start in range(0, nodes, BLOCK_M):
        here = is_there(start + m, nodes, there, begin, PARTS)[:, None] & known[None, :]
        value = tl.load(h + (begin + start + m)[:, None] * D + d[None, :], mask=here, other=0.0).to(tl.float32)
        many += tl.sum(tl.where(here & (value == most[None, :]), 1.0, 0.0), axis=0)
    place = graph * D + d
    tl.store(total + place, added, mask=known)
    tl.store(largest + place, most, mask=known)
    tl.store(sharing + place, many, mask=known)


@kernel
def pool_backward(
    h: tl.tensor, first: tl.tensor, count: tl.tensor, there: tl.tensor, largest: tl.tensor, sharing: tl.tensor,
    of_total: tl.tensor, of_largest: tl.tensor, back: tl.tensor, M: tl.tensor, B: tl.tensor, D: tl.tensor,
    PARTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
) -> None:  # fmt: skip
    """The gradient of the sum to every node, that of the maximum shared by those that attain it."""
    graph = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    known = d < D
    m = tl.arange(0, BLOCK_M)
    nodes = tl.load(count + graph)
    begin = (graph // B) * M + tl.load(first + graph)
    place = graph * D + d
    most = tl.load(largest + place, mask=known, other=0.0)
    shared = tl.load(of_largest + place, mask=known, other=0.0)
    shared = shared / tl.maximum(tl.load(sharing + place, mask=known, other=1.0), 1.0)
    every = tl.load(of_total + place, mask=known, other=0.0)
    for start in range(0, nodes, BLOCK_M):
        here = is_there(start + m, nodes, there, begin, PARTS)[:, None] & known[None, :]
        at = (begin + start + m)[:, None] * D + d[None, :]
        value = tl.load(h + at, mask=here, other=0.0).to(tl.float32)
        slope = every[None, :] + tl.where(value == most[None, :], shared[None, :], 0.0)
        tl.store(back + at, slope.to(back.dtype.element_ty), mask=here)
