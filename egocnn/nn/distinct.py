"""Nodes that a layer cannot tell apart are computed once: a batch -> the same batch with one row for each kind of node.

Molecules repeat themselves: of the atoms of two thousand, Patchy-San sees one in ten differently, and three layers two
in three. Kinds are told apart by hashes of 64 bits, as colours are in :mod:`egocnn.encode.colours`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import Ints, Words, bits, mix, pointers, ranges, sum_rows
from egocnn.nn.batch import Bags, Batch
from egocnn.nn.engines import Neighbours
from egocnn.nn.engines.cpu import Plan, Products
from egocnn.nn.readout import largest, log_of, sums

FEWEST = 1 << 12  # nodes of a batch from which on it pays; in small products the number of rows changes the rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistinctBatch(Batch):
    """The bags are those of the kinds before the first layer; what describes nodes is as in any batch."""

    kinds: tuple[Tensor, ...]  # (N) the row of each node in every layer, the embedding first
    between: tuple[Neighbours, ...]  # from the rows of every layer to those of the next

    def ranked(self, k: int, layer: int = 1) -> Neighbours:
        assert k == self.between[layer - 1].table.shape[1]
        return self.between[layer - 1]

    def of_nodes(self, h: Tensor, layer: int) -> Tensor:
        return h.index_select(0, self.kinds[layer])

    def pool(self, h: Tensor, kind: str) -> Tensor:
        total = sums(h, self.graph_of, self.node_counts)  # once for all that needs it
        found: dict[str, Callable[[], Tensor]] = {
            "max": lambda: largest(h, self.graph_of, len(self)),
            "mean": lambda: total / self.node_counts.clamp(min=1)[:, None],
            "log": lambda: log_of(total),
            "sum": lambda: total,
        }
        return torch.cat([found[each]() for each in kind.split("+")], dim=1)


def distinct(batch: Batch, k: int, depth: int) -> Batch:
    """The batch for networks of ``depth`` layers that read ``k`` neighbours; as it is where nothing is gained."""
    bags, near = batch.bags, batch.neighbours.table[:, :k].numpy()
    if len(near) < FEWEST or batch.attributes.shape[1] or bags.weight is not None:
        return batch
    ranks = int((near >= 0).any(axis=0).sum())
    pointer = np.append(bags.offsets.numpy().astype(np.int64), len(bags.rows))
    kind, first = _kinds(sum_rows(mix(bits(bags.rows.numpy())), pointer))
    starts = pointer[first], pointer[first + 1]
    rows, offsets = bags.rows[ranges(*starts)], pointers(starts[1] - starts[0])[:-1]
    kinds, between = [kind], []
    for _ in range(depth):
        code = np.append(kind, -1)[near[:, :ranks]]  # (N, ranks) what stands at each rank
        key = mix(mix(bits(kind)))  # mixed once more: else a neighbour of the same kind would cancel it
        for column in code.T:
            key = mix(key ^ mix(bits(column)))
        after, first = _kinds(key)
        table, own = torch.from_numpy(near[first]), torch.from_numpy(kind[first])
        products, count = _products(own, torch.from_numpy(code[first]), int(kind.max()) + 1)
        between.append(Neighbours(table, ready=Plan(table, count, products)))
        kinds.append(kind := after)
    same: dict[str, Any] = {f.name: getattr(batch, f.name) for f in fields(Batch) if f.init}
    same["bags"] = Bags(rows=rows, offsets=torch.from_numpy(offsets).to(rows.dtype), weight=None)
    return DistinctBatch(**same, kinds=tuple(map(torch.from_numpy, kinds)), between=tuple(between))


def _kinds(key: Words) -> tuple[Ints, Ints]:
    """(N) -> a number for each different key (N), and where each stands first"""
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    return kind.reshape(-1), first


def _products(own: Tensor, near: Tensor, rows: int) -> tuple[Products, Tensor]:
    """What each row of the next layer adds up: rows of this layer at rank 0 (n), and at the other ranks (n, ranks)."""
    present = near >= 0
    count, (node, rank) = present.sum(dim=1), torch.nonzero(present, as_tuple=True)
    wanted = near[node, rank] + rank * rows
    used = torch.zeros(near.shape[1] * rows, dtype=torch.bool)
    used[wanted] = True
    start = count.cumsum(0) - count + torch.arange(len(own))
    received = own.new_empty(len(own) + len(node))
    received[start] = own
    received[torch.arange(len(node)) + node + 1] = (used.cumsum(0) + (rows - 1))[wanted]
    none, used = own.new_empty(0), used.view(-1, rows)
    forward = (used.nonzero()[:, 1], used.sum(dim=1), received, start)
    return Products(*forward, none, none, none, own.new_empty(rows)), count
