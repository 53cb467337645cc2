"""Vector operations on flat tensors: ranges, runs, orders, hashes; the same numbers as :mod:`egocnn.data.arrays`.

torch does not compute with unsigned 64-bit numbers. A word is therefore held as the int64 of the same bits: sums and
products wrap around alike, a logical shift is an arithmetic one with its copies of the sign masked out, and flipping
the highest bit turns the order of one kind into the order of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import ENTRIES_AT_ONCE, MIX_LAST, MIX_START, MIX_STEPS, Words

ENTRIES_AT_ONCE_ON_GPU = 1 << 23
"""Entries of adjacency rows worked on together: enough to keep all threads busy, few enough to spare memory."""

NARROWEST = 4
"""Shorter rows than this are padded to it: less to sort would not pay for one more pass over all rows."""

HIGHEST_BIT = -(1 << 63)


def entries_at_once(device: torch.device) -> int:
    return ENTRIES_AT_ONCE if device.type == "cpu" else ENTRIES_AT_ONCE_ON_GPU


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────


def pointers(lengths: Tensor) -> Tensor:
    """Lengths of consecutive rows (n) -> where each row starts, and the end of the last (n + 1)."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def repeat(values: Tensor, lengths: Tensor, total: int) -> Tensor:
    """Every value as often as its length says; ``total``, the sum of the lengths, spares asking the device for it."""
    return values.repeat_interleave(lengths, output_size=total)


def ranges(first: Tensor, lengths: Tensor, total: int) -> Tensor:
    """``lengths[0]`` integers from ``first[0]`` on, then ``lengths[1]`` from ``first[1]`` on, and so on, end to end."""
    shift = first - (lengths.cumsum(0) - lengths)
    return repeat(shift, lengths, total) + torch.arange(total, device=first.device)


def row_portions(pointer: Tensor) -> Iterator[tuple[slice, slice]]:
    """Consecutive rows, cut where their entries reach a bound: the rows and their entries, as slices."""
    at_once, total = entries_at_once(pointer.device), int(pointer[-1])
    bounds = at_once * torch.arange(1, max(1, -(-total // at_once)), device=pointer.device)
    cuts = [0, *torch.searchsorted(pointer, bounds).tolist(), len(pointer) - 1]
    ends: list[int] = pointer[torch.tensor(cuts, device=pointer.device)].tolist()
    for (first, last), (start, stop) in zip(pairwise(cuts), pairwise(ends), strict=True):
        if first < last:
            yield slice(first, last), slice(start, stop)


def padded_rows(pointer: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Rows of similar length together: their numbers (n), their entries (n, width), and which of these exist.

    Widths double, so at most half of a matrix is padding and even a graph with thousands of degrees has a dozen
    widths. An entry that does not exist has the number of another. Empty rows are passed over.
    """
    lengths, last = pointer.diff(), int(pointer[-1]) - 1
    longest = int(lengths.max()) if len(lengths) else 0
    shorter, width = 0, NARROWEST
    while shorter < longest:
        alike = ((lengths > shorter) & (lengths <= width)).nonzero().flatten()
        column = torch.arange(width, device=pointer.device)
        at_once = max(1, entries_at_once(pointer.device) // width)
        for first in range(0, len(alike), at_once):
            rows = alike[first : first + at_once]
            entries = (pointer[rows][:, None] + column).clamp_(max=last)
            yield rows, entries, column < lengths[rows][:, None]
        shorter, width = width, 2 * width


def sum_rows(values: Tensor, pointer: Tensor) -> Tensor:
    """Sum of every row, modulo 2^64; differences of running sums also serve empty rows."""
    running = values.new_zeros(len(values) + 1)
    torch.cumsum(values, 0, out=running[1:])
    return running[pointer].diff()


# ── orders ────────────────────────────────────────────────────────────────────────────────────────


def pick(values: Tensor, at: Tensor) -> Tensor:
    """``values[at]`` for 32-bit positions of any shape, without a 64-bit copy of them."""
    return values.index_select(0, at.reshape(-1)).view(at.shape)


def starts(values: Tensor) -> Tensor:
    """Where every run of equal values starts."""
    return _fresh(values).nonzero().flatten()


def order_by(*keys: Tensor) -> Tensor:
    """Positions in ascending order of the first key, then of the second, and so on; equals keep their order."""
    by = keys[-1].sort(stable=True).indices
    for key in reversed(keys[:-1]):
        by = by[key[by].sort(stable=True).indices]
    return by


def differs_from_previous(*keys: Tensor) -> Tensor:
    """Whether any of the keys is another than at the position before; nothing equals what comes before the first."""
    fresh = _fresh(keys[0])
    for key in keys[1:]:
        fresh |= _fresh(key)
    return fresh


def _fresh(values: Tensor) -> Tensor:
    fresh = torch.ones(len(values), dtype=torch.bool, device=values.device)
    torch.ne(values[1:], values[:-1], out=fresh[1:])
    return fresh


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


def as_signed(word: int | np.uint64) -> int:
    """The int64 with the bits of a word."""
    return int(np.uint64(word).astype(np.int64))


def mix(values: Tensor) -> Tensor:
    """Scatter 64-bit numbers so that sums of the results look random (the finaliser of splitmix64)."""
    mixed = values + as_signed(MIX_START)
    for shift, factor in MIX_STEPS:
        mixed ^= _shifted_right(mixed, int(shift))
        mixed *= as_signed(factor)
    mixed ^= _shifted_right(mixed, int(MIX_LAST))
    return mixed


def _shifted_right(words: Tensor, by: int) -> Tensor:
    return (words >> by).bitwise_and_((1 << (64 - by)) - 1)


def bits(values: Tensor) -> Tensor:
    """Numbers of any kind as 64-bit words, equal words for equal numbers."""
    if values.is_floating_point():
        return (values.double() + 0.0).view(torch.int64)  # + 0.0: -0 is 0
    return values.long()


def ascending(words: Tensor) -> Tensor:
    """Numbers whose order as int64 is the order of the words; applied twice, the words again."""
    return words ^ HIGHEST_BIT


def to_words(values: Tensor) -> Words:
    """Words as an unsigned array in the processor's memory."""
    array: Words = values.cpu().numpy().view(np.uint64)
    return array


def from_words(words: Words, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(words).view(np.int64)).to(device)
