"""The ego-convolution's GPU kernels: gather and matrix product in one pass, the ego networks never stored. A program
computes a tile of nodes: rank by rank it multiplies the neighbours' rows by that rank's filters; the accumulator stays
in registers, in float32. ``columns`` and ``length``, of :class:`egocnn.nn.engines.gpu.tiles.TileRows`, end a tile where
its longest row does. Node numbers are 32-bit, offsets 64-bit."""

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

SIZES = ("nodes", "total", "ranks", "tiles", "windows", "shares", "tiles_out", "first_tile")
"""Numbers that change from batch to batch: a kernel must not be compiled anew for the divisors of each."""


def kernel(function: Callable[..., None]) -> Any:
    return triton.jit(function, do_not_specialize=SIZES)


@kernel
def convolve(
    x: tl.tensor, sums: tl.tensor, span: tl.tensor, weight: tl.tensor, weight_tiles: tl.tensor, bias: tl.tensor,
    y: tl.tensor, columns: tl.tensor, length: tl.tensor, nodes: tl.tensor, total: tl.tensor, ranks: tl.tensor,
    first_tile: tl.tensor, tiles: tl.tensor,
    D: tl.constexpr, D_out: tl.constexpr, IS_BACK: tl.constexpr, HAS_BIAS: tl.constexpr, RELU: tl.constexpr,
    PRECISION: tl.constexpr, EVEN: tl.constexpr, BY_TILES: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_IN: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
) -> None:  # fmt: skip
    """y[n] = act(bias + sum over k of x[columns[k, n]] weight[k]). ``weight_tiles`` is a descriptor for the copy
    engine, used where all tiles are full; ``weight`` the plain pointer. Backward, filters are transposed and a column
    >= total names a sum: ``sums`` holds those from span[0] on."""
    replica = (tl.program_id(0) // tiles).to(tl.int64)
    first = (first_tile + tl.program_id(0) % tiles) * BLOCK_N
    inside = first + tl.arange(0, BLOCK_N) < nodes
    at = replica * nodes + first + tl.arange(0, BLOCK_N)
    # rows are sorted by length within windows, and tiles do not cross them: the first is the longest
    reach = tl.load(length + replica * nodes + first)
    d = tl.arange(0, BLOCK_IN)
    first_out = tl.program_id(1) * BLOCK_OUT
    o = first_out + tl.arange(0, BLOCK_OUT)
    slices: tl.constexpr = (D + BLOCK_IN - 1) // BLOCK_IN
    accumulator = tl.zeros((BLOCK_N, BLOCK_OUT), dtype=tl.float32)
    source = tl.load(columns + at, mask=inside, other=-1)
    if IS_BACK:
        before = total + tl.load(span)
    for step in range(0, reach * slices):
        rank = step // slices
        begin = step % slices * BLOCK_IN
        # read one step ahead: a gather that had to wait for its row numbers could not be started early
        next_rank = tl.minimum((step + 1) // slices, reach - 1).to(tl.int64)
        following = tl.load(columns + next_rank * total + at, mask=inside, other=-1)
        row = source[:, None]
        start = x + row.to(tl.int64) * D
        if IS_BACK:
            start = tl.where(row < total, start, sums + (row - before).to(tl.int64) * D)
        filters = replica * ranks + rank
        known = (row >= 0) if EVEN else (row >= 0) & (begin + d < D)[None, :]
        if EVEN:
            start = tl.multiple_of(start, (16, 16))
        gathered = tl.load(start + (begin + d)[None, :], mask=known, other=0.0)
        if BY_TILES and IS_BACK:
            part = tl.trans(weight_tiles.load([(filters * D_out).to(tl.int32) + first_out, begin]))
        elif BY_TILES:
            part = weight_tiles.load([(filters * D).to(tl.int32) + begin, first_out])
        else:
            bank = weight + filters * D * D_out
            place = (
                bank + (begin + d)[:, None] + o[None, :] * D
                if IS_BACK
                else bank + (begin + d)[:, None] * D_out + o[None, :]
            )
            part = tl.load(place, mask=(begin + d < D)[:, None] & (o < D_out)[None, :], other=0.0)
        accumulator = tl.dot(gathered, part, accumulator, input_precision=PRECISION)
        source = following
    if HAS_BIAS:
        accumulator += tl.load(bias + replica * D_out + o, mask=o < D_out, other=0.0).to(tl.float32)[None, :]
    if RELU:
        accumulator = tl.maximum(accumulator, 0.0)
    start = y + tl.load(columns + at, mask=inside, other=0)[:, None].to(tl.int64) * D_out
    written = inside[:, None] if EVEN else inside[:, None] & (o < D_out)[None, :]
    if EVEN:
        start = tl.multiple_of(start, (16, 16))
    tl.store(start + o[None, :], accumulator.to(y.dtype.element_ty), mask=written)


@kernel
def correlate(
    x: tl.tensor, gradient: tl.tensor, partial: tl.tensor, columns: tl.tensor, active: tl.tensor, nodes: tl.tensor,
    total: tl.tensor, ranks: tl.tensor, windows: tl.tensor, shares: tl.tensor, tiles_out: tl.tensor,
    D: tl.constexpr, D_out: tl.constexpr, WINDOW: tl.constexpr, PRECISION: tl.constexpr, EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_IN: tl.constexpr, BLOCK_OUT: tl.constexpr,
) -> None:  # fmt: skip
    """partial[share, k] = sum over the share's nodes n of x[columns[k, n]]^T gradient[n]: one rank per program."""
    rank = tl.program_id(0).to(tl.int64)
    replica = (tl.program_id(1) // shares).to(tl.int64)
    share = tl.program_id(1) % shares
    d = (tl.program_id(2) // tiles_out) * BLOCK_IN + tl.arange(0, BLOCK_IN)
    o = (tl.program_id(2) % tiles_out) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    accumulator = tl.zeros((BLOCK_IN, BLOCK_OUT), dtype=tl.float32)
    for window in range(share, windows, shares):
        rows = tl.load(active + (replica * windows + window) * ranks + rank)
        begin = replica * nodes + window * WINDOW
        slot = tl.arange(0, BLOCK_N)
        node = tl.load(columns + begin + slot, mask=slot < rows, other=0)
        source = tl.load(columns + rank * total + begin + slot, mask=slot < rows, other=-1)
        for _ in range(0, rows, BLOCK_N):
            slot += BLOCK_N  # row numbers are read one step ahead, as in convolve
            next_node = tl.load(columns + begin + slot, mask=slot < rows, other=0)
            next_source = tl.load(columns + rank * total + begin + slot, mask=slot < rows, other=-1)
            row = source[:, None]
            place = x + row.to(tl.int64) * D + d[None, :]
            arrived = gradient + node[:, None].to(tl.int64) * D_out + o[None, :]
            known = row >= 0
            gathered = tl.load(place, mask=known if EVEN else known & (d < D)[None, :], other=0.0)
            arriving = tl.load(arrived, mask=known if EVEN else known & (o < D_out)[None, :], other=0.0)
            accumulator = tl.dot(tl.trans(gathered), arriving, accumulator, input_precision=PRECISION)
            node = next_node
            source = next_source
    place = partial + (tl.program_id(1).to(tl.int64) * ranks + rank) * D * D_out
    place = place + d[:, None] * D_out + o[None, :]
    tl.store(place, accumulator, mask=(d < D)[:, None] & (o < D_out)[None, :])


@kernel
def add_up(
    gradient: tl.tensor, sums: tl.tensor, span: tl.tensor, sources: tl.tensor, first: tl.tensor, count: tl.tensor,
    numbers: tl.tensor, listed: tl.tensor,
    D: tl.constexpr, LISTED: tl.constexpr, SHORTEST: tl.constexpr, LONGEST: tl.constexpr, BLOCK_S: tl.constexpr,
    BLOCK_A: tl.constexpr, BLOCK_D: tl.constexpr,
) -> None:  # fmt: skip
    """sums[s - span[0]] = the sum of the rows of ``gradient`` that the addends of s name, for all s of the span, or of
    ``listed`` many ``numbers``. How many is known on the device alone, so programs take portion after portion."""
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    lowest, end = tl.load(span), tl.load(span + 1)
    most = tl.load(listed) if LISTED else end - lowest
    for portion in range(tl.program_id(0), tl.cdiv(most, BLOCK_S), tl.num_programs(0)):
        number = portion * BLOCK_S + tl.arange(0, BLOCK_S)
        inside = number < most
        if LISTED:
            number = tl.load(numbers + number, mask=inside, other=0)
            inside = inside & (number >= lowest) & (number < end)
        else:
            number += lowest
        addends = tl.load(count + number, mask=inside, other=0)
        inside = inside & (addends >= SHORTEST) & (addends <= LONGEST)
        addends = tl.where(inside, addends, 0)
        begin = tl.load(first + number, mask=inside, other=0).to(tl.int64)
        accumulator = tl.zeros((BLOCK_S, BLOCK_D), dtype=tl.float32)
        for step in range(0, tl.max(addends), BLOCK_A):
            addend = step + tl.arange(0, BLOCK_A)
            here = addend[None, :] < addends[:, None]
            node = tl.load(sources + begin[:, None] + addend[None, :], mask=here, other=0).to(tl.int64)
            source = gradient + node[:, :, None] * D + d[None, None, :]
            rows = tl.load(source, mask=here[:, :, None] & (d < D)[None, None, :], other=0.0)
            accumulator += tl.sum(rows.to(tl.float32), axis=1)
        place = sums + (number - lowest).to(tl.int64)[:, None] * D + d[None, :]
        tl.store(place, accumulator.to(sums.dtype.element_ty), mask=inside[:, None] & (d < D)[None, :])
