"""GPU kernels over runs of nodes: sums and maxima over every graph.

torch's own segment_reduce adds up one node after the other, and a graph may have thousands. A program here
takes a tile of nodes at a time, always the same in the same order: all runs give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from egocnn.nn.engines.gpu.row_masks import is_there

kernel: Callable[[Callable[..., None]], Any] = triton.jit  # which has no types of its own


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
