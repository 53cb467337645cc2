"""Nodes that a layer cannot tell apart are computed once: a batch -> the same batch with one row for each kind of node.

Molecules repeat themselves: of the atoms of two thousand, Patchy-San sees one in ten differently, and three layers two
in three. Kinds are told apart by hashes of 64 bits, as colours are in :mod:`egocnn.encode.colours`."""

from dataclasses import replace

import numpy as np
import torch

from egocnn.data.arrays import bits, mix, pointers, ranges, sum_rows
from egocnn.nn.batch import Batch
from egocnn.nn.engines import Neighbours
from egocnn.nn.engines.cpu import Plan, products_of

FEWEST = 1 << 12  # nodes of a batch, or 16 times its kinds: below, the number of rows changes the rounding of products


def distinct(batch: Batch, k: int, depth: int) -> Batch:
    """The batch for networks of ``depth`` layers that read ``k`` neighbours; as it is where nothing is gained."""
    bags, near = batch.bags, batch.neighbours.table[:, :k].numpy()
    ranks = int((near >= 0).any(axis=0).sum())
    pointer = np.append(bags.offsets.numpy().astype(np.int64), len(bags.rows))
    key = sum_rows(mix(bits(bags.rows.numpy())), pointer)
    first, kind = np.unique(key, return_index=True, return_inverse=True)[1:]  # where each kind stands first, and (N)
    if len(near) < FEWEST or 16 * len(first) < FEWEST or batch.attributes.shape[1] or bags.weight is not None:
        return batch
    starts = pointer[first], pointer[first + 1]
    rows, offsets = bags.rows[ranges(*starts)], pointers(starts[1] - starts[0])[:-1]
    kinds, between = [kind], []
    for _ in range(depth):
        code = np.append(kind, -1)[near[:, :ranks]]  # (N, ranks) what stands at each rank
        key = mix(mix(bits(kind)))  # mixed once more: else a neighbour of the same kind would cancel it
        for column in code.T:
            key = mix(key ^ mix(bits(column)))
        first, after = np.unique(key, return_index=True, return_inverse=True)[1:]
        table, own, code = torch.from_numpy(near[first]), torch.from_numpy(kind[first]), code[first]
        node, rank = map(torch.from_numpy, np.nonzero(code >= 0))
        products = products_of(node, rank, torch.from_numpy(code[code >= 0]), own, ranks, int(kind.max()) + 1)
        between.append(Neighbours(table, plan=Plan(table, products.received_from, products)))
        kinds.append(kind := after)
    few = replace(bags, rows=rows, offsets=torch.from_numpy(offsets).to(rows.dtype))
    return replace(batch, bags=few, kinds=tuple(map(torch.from_numpy, kinds)), between=tuple(between))
