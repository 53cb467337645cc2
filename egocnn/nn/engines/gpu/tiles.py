"""Neighbour table -> the order in which a GPU works through it, forward and backward. Rows with equally many neighbours
come together, so that a tile of nodes ends where its longest row does. Only rows of one window are reordered: nodes
near each other mostly share neighbours, and what is read twice is then still in the cache. Backward, the gradient of x
is an ego-convolution too, of the transposed table with transposed filters: the row of node m names, for every rank k,
the node at which m is ranked k-th. Where several nodes rank m k-th, it names a row that holds the sum of their
gradients (:class:`Transposed`). Nothing is scattered: the result is the same in every run. All is fixed-shape tensor
arithmetic without a look at the numbers, as CUDA graphs require."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

WINDOW = 8192  # Nodes among which rows are reordered: their embeddings fit the cache with room to spare.
LONG = 32  # Sums of more rows than this get a program of their own: one hub must not hold up its neighbours.
ROOM = 1 << 20  # Sums that are held at once, about, backward: a quarter of a gigabyte at 128 columns of 16 bits.
SPARE = 4096  # Cells for what is to be thrown away.


class TileRows(NamedTuple):
    """A table's rows by falling length, within every window of every replica."""

    columns: Tensor  # (K + 1, R N) in that order: node, then neighbours; counted through all replicas, -1: absent
    length: Tensor  # (R N) in that order: columns up to the last neighbour

    @staticmethod
    def of(table: Tensor, nodes: int) -> "TileRows":
        """table (R N, K), counted through all replicas, each of ``nodes`` nodes"""
        total, K = table.shape
        position = torch.arange(total, device=table.device, dtype=torch.int32)
        rank = torch.arange(2, K + 2, device=table.device, dtype=torch.int32)
        length = torch.where(table >= 0, rank, 1).amax(1) if K else torch.ones_like(position)
        window = position // max(nodes, 1) * windows_of(nodes) + position % max(nodes, 1) // WINDOW
        order = torch.argsort(window * (K + 2) - length, stable=True)
        columns = table.new_empty((K + 1, total), dtype=torch.int32)
        columns[0] = order
        columns[1:] = table[order].t()
        return TileRows(columns, length[order].to(torch.int32))


class Transposed(NamedTuple):
    """Which gradients flow into which node."""

    rows: TileRows  # of the transposed table; R N + s stands for the s-th sum
    sources: Tensor  # nodes whose gradients are summed, the addends of one sum next to each other
    first: Tensor  # where the addends of each sum start in ``sources``; as many places as there may be sums
    counts: Tensor  # how many addends each sum has, 0 for places that are not taken
    long: Tensor  # numbers of the sums with more than ``LONG`` addends
    longs: Tensor  # how many long ones there are; places may be more
    starts: Tensor  # which sum is the first of every chunk of nodes, and how many there are; replicas make one chunk
    room: Tensor  # (sums that a chunk may have, 0): a number that operators can take, as they take the others

    @staticmethod
    def of(table: Tensor, nodes: int) -> "Transposed":
        total, K = table.shape
        key, sources = _by_target(table)
        position = torch.arange(len(key), device=key.device)
        is_known = key < total * K
        is_first, is_last = torch.ones_like(is_known), torch.ones_like(is_known)
        is_first[1:] = is_last[:-1] = key[1:] != key[:-1]
        is_sum = is_known & is_first & ~is_last
        number = is_sum.cumsum(0) - 1
        places = _read(is_sum.sum(), bound=len(key) // 2)
        chunks = max(1, -(-places // ROOM)) if nodes == total else 1
        reach = chunk_nodes(total, chunks)
        chunks = max(1, -(-total // max(reach, 1)))
        ends = torch.arange(chunks + 1, device=key.device, dtype=key.dtype) * (reach * K)
        before = torch.cat([number.new_zeros(1), number + 1])
        starts = before[torch.searchsorted(key, ends.clamp(max=total * K))].to(torch.int32)
        room = key.new_empty(_read(starts.diff().amax(), bound=reach * K // 2), 0)
        is_addend = is_known & ~(is_first & is_last)
        first = _scattered(places, torch.where(is_sum, number, -1), position)
        count = torch.zeros(max(places, 1), dtype=torch.int32, device=key.device)
        spread = torch.where(is_addend, number, position % max(places, 1))  # zeros anywhere, but not all in one place
        count = count.scatter_add_(0, spread, is_addend.to(torch.int32))[:places]
        is_long = count > LONG
        longs = is_long.sum().to(torch.int32)
        long_places = _read(longs, bound=len(key) // (LONG + 1))
        at = torch.where(is_long, is_long.cumsum(0) - 1, -1)
        long = _scattered(long_places, at, torch.arange(len(count), device=key.device))
        named = torch.where(is_sum, total + number, sources)
        back = _scattered(total * K, torch.where(is_known & is_first, key, -1), named, empty=-1)
        return Transposed(TileRows.of(back.view(total, K), nodes), sources, first, count, long, longs, starts, room)

    def tensors(self) -> list[Any]:
        return [*self.rows, *self[1:]]


class Tiles(NamedTuple):
    """What the fused engine reads beside embeddings and filters."""

    rows: TileRows
    active: Tensor  # (windows, K + 1) rows of each window that are longer than k
    transposed: Transposed | None

    @staticmethod
    def of(table: Tensor, *, gradients: bool) -> "Tiles":
        """table (N, K), or (R, N, K) with ids counted in every replica by itself"""
        stacked = table if table.dim() == 3 else table[None]
        replicas, nodes, K = stacked.shape
        before = torch.arange(replicas, device=table.device, dtype=torch.int32)[:, None, None] * nodes
        flat = torch.where(stacked >= 0, stacked.to(torch.int32) + before, -1).view(replicas * nodes, K)
        rows = TileRows.of(flat, nodes)
        return Tiles(rows, _active(rows.length, replicas, K), Transposed.of(flat, nodes) if gradients else None)

    def tensors(self) -> list[Tensor]:
        """What an operator can take as an argument."""
        back = [] if self.transposed is None else self.transposed.tensors()
        return [*self.rows, self.active, *back]


def chunk_nodes(nodes: int, chunks: int) -> int:
    """Nodes per chunk: whole windows, or all of them"""
    return nodes if chunks == 1 else -(-nodes // (chunks * WINDOW)) * WINDOW


def table_of(columns: Tensor) -> Tensor:
    """(K + 1, R N) as in :class:`TileRows` -> the table (R N, K) they came from"""
    table = columns.new_empty(columns.shape[1], len(columns) - 1)
    table[columns[0].long()] = columns[1:].t()
    return table


def windows_of(nodes: int) -> int:
    """Windows per replica."""
    return max(1, -(-nodes // WINDOW))


def _active(length: Tensor, replicas: int, K: int) -> Tensor:
    nodes = len(length) // max(replicas, 1)
    position = torch.arange(len(length), device=length.device)
    window = position // max(nodes, 1) * windows_of(nodes) + position % max(nodes, 1) // WINDOW
    of_length = torch.zeros(replicas * windows_of(nodes) * (K + 2), dtype=torch.int32, device=length.device)
    of_length.scatter_add_(0, window * (K + 2) + length, torch.ones_like(length))
    longer = of_length.view(-1, K + 2).flip(1).cumsum(1).flip(1)  # (windows, K + 2): rows at least so long
    return longer[:, 1:].to(torch.int32).contiguous()


def _by_target(table: Tensor) -> tuple[Tensor, Tensor]:
    """Every entry (n, k) of the table, sorted by (the node it names, k) -> these as one number, and n. Absent ones come
    last, as the largest number there is, or are left out."""
    total, K = table.shape
    flat, everything = table.flatten(), torch.arange(total * K, device=table.device)
    entry = everything if _is_captured(table) else torch.nonzero(flat >= 0).flatten()
    named = flat[entry].to(torch.int32 if total * K < 2**31 else torch.int64)  # short numbers are sorted sooner
    rank = (entry % max(K, 1)).to(named.dtype)
    key, by = torch.sort(torch.where(named >= 0, named * K + rank, total * K), stable=True)
    return key, torch.div(entry[by], max(K, 1), rounding_mode="floor").to(torch.int32)


def _read(number: Tensor, *, bound: int) -> int:
    """Read a number back from the device; while a CUDA graph is recorded that cannot be: a bound takes its place."""
    return bound if _is_captured(number) else int(number)


def _scattered(places: int, index: Tensor, values: Tensor, *, empty: int = 0) -> Tensor:
    """values, each in its place; those with index -1 nowhere"""
    out = torch.full((places + SPARE,), empty, dtype=torch.int32, device=index.device)
    nowhere = places + torch.arange(len(index), device=index.device) % SPARE  # a single cell would become a bottleneck
    return out.scatter_(0, torch.where(index >= 0, index, nowhere), values.to(torch.int32))[:places]


def _is_captured(tensor: Tensor) -> bool:
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()
