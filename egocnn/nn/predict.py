"""Networks + encoded graphs -> their outputs (R, G, C) for all of them, in batches of bounded size, in which nodes that
a layer cannot tell apart are computed once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import bits, mix, pointers, ranges, sum_rows
from egocnn.nn.batch import Batch, Batchable
from egocnn.nn.device import by_halves
from egocnn.nn.engines import Neighbours
from egocnn.nn.engines.cpu import Plan, products_of
from egocnn.nn.model import EgoCNN

NODES_AT_ONCE = 1 << 15  # Nodes per batch where nothing is learned: bounds the memory.
FITS_THE_CACHE = 1 << 12  # Nodes that a CPU explains at once.
FEWEST = 1 << 12  # nodes of a batch, or 16 times its kinds: below, the number of rows changes the rounding of products


@torch.no_grad()
def predict_each(networks: Sequence[EgoCNN], data: Batchable) -> Tensor:
    """The outputs (R, G, C) of every network for all graphs, in order, in full precision and evaluation mode; each
    batch is cut once for all of them."""
    for network in networks:
        network.eval()

    def run(chosen: Tensor) -> Tensor:
        batch = data.batch(chosen)
        if batch.place.device.type == "cpu" and not networks[0].custom_embedding:
            batch = distinct(batch, networks[0].config.k, networks[0].config.depth)
        return torch.stack([network(batch).output for network in networks])

    return torch.cat([outputs for chosen in portions(data) for outputs in by_halves(run, chosen)], dim=1)


def portions(data: Batchable, *, gradients: bool = False) -> Iterator[Tensor]:
    """All graphs in order, cut so that no portion has many more than ``NODES_AT_ONCE`` nodes; where gradients are
    wanted, and all layers kept for them, a CPU takes fewer."""
    at_once = FITS_THE_CACHE if gradients and data.node_ptr.device.type == "cpu" else NODES_AT_ONCE
    cut = torch.div(data.node_ptr[1:] - 1, at_once, rounding_mode="floor")
    _, counts = torch.unique_consecutive(cut, return_counts=True)
    yield from torch.split(torch.arange(len(data), device=data.node_ptr.device), counts.tolist())


def distinct(batch: Batch, k: int, depth: int, fewest: int = FEWEST) -> Batch:
    """The batch with a row for each kind of node that ``depth`` layers that read ``k`` neighbours tell apart, by hashes
    of 64 bits; as it is where nothing is gained. Molecules repeat themselves: of the atoms of two thousand, Patchy-San
    sees one in ten differently, and three layers two in three."""
    bags, near = batch.bags, batch.neighbours.table[:, :k].numpy()
    if len(near) < fewest or batch.attributes.shape[1] or bags.weight is not None:
        return batch
    ranks = int((near >= 0).any(axis=0).sum())
    pointer = np.append(bags.offsets.numpy().astype(np.int64), len(bags.rows))
    key = sum_rows(mix(bits(bags.rows.numpy())), pointer)
    first, kind = np.unique(key, return_index=True, return_inverse=True)[1:]  # where each kind stands first, and (N)
    if 16 * len(first) < fewest:
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
        between.append(Neighbours(table, plan=Plan(table, products)))
        kinds.append(kind := after)
    few = replace(bags, rows=rows, offsets=torch.from_numpy(offsets).to(rows.dtype))
    return replace(batch, bags=few, kinds=tuple(map(torch.from_numpy, kinds)), between=tuple(between))
