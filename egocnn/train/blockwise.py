"""A trained model and one graph too large for a batch -> outputs, layer by layer over blocks of nodes.

At any time there are the graph, its table of ranked neighbours (N, K), two layers' embeddings (N, D), and what is
computed for one block. The function is the network's own: only sums over nodes are added up in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from egocnn.data.arrays import Ints
from egocnn.encode.batch import Bags, Batch
from egocnn.data.graphs import Graphs
from egocnn.nn.conv import EgoConv
from egocnn.nn.model import EgoCNN
from egocnn.nn.readout import Pool, SortPool, counted, log_of, turned
from egocnn.nn.engines import Neighbours
from egocnn.encode.patches import NODES_AT_ONCE, patch_portions
from egocnn.model import Predictor, check_finite
from egocnn.encode.encoder import edge_weights
from egocnn.encode.ranking import Order
from egocnn.encode.beyond import find_beyond
from egocnn.data.store.portions import cut
from egocnn.train.loop import choose_device

HUGE = 1_000_000
"""Nodes from which on a graph is taken in blocks."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockwisePredictor(Predictor):
    """A predictor that takes huge graphs in blocks, and all others as ever."""

    huge: int = HUGE

    @staticmethod
    def of(predictor: Predictor, *, huge: int = HUGE) -> BlockwisePredictor:
        return BlockwisePredictor(**{f.name: getattr(predictor, f.name) for f in fields(Predictor)}, huge=huge)

    def outputs(self, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float32]:
        """(G, C) logits, or (G, 1) standardised values"""
        is_huge = graphs.node_counts >= self.huge
        if not is_huge.any() or self.network.custom_embedding:
            return Predictor.outputs(self, graphs, device=device)
        found = np.zeros((len(graphs), len(self.class_names) or 1), np.float32)
        found[~is_huge] = Predictor.outputs(self, graphs[~is_huge], device=device)
        for g in np.flatnonzero(is_huge).tolist():
            found[g] = outputs_in_blocks(self, graphs if len(graphs) == 1 else cut(graphs, g, g + 1), device=device)
        check_finite(found, graphs.names)
        return found


@torch.no_grad()
def outputs_in_blocks(predictor: Predictor, graphs: Graphs, *, device: str = "auto") -> NDArray[np.float32]:
    """(1, C) of a collection of one graph"""
    place, config = choose_device(device), predictor.config
    network = predictor.network.to(place).eval()
    graphs = predictor.preparation.renamed(graphs)
    order = predictor.preparation.ranking.order(graphs)
    table = predictor.preparation.ranking.neighbours(
        graphs, max(*config.layer_k, config.slots - 1), max_hops=config.max_hops, order=order
    )
    h = _embed(predictor, graphs, table, place)
    table = np.ascontiguousarray(table[:, : max(config.layer_k)])
    read = [_read_out(network, h.__getitem__, order)] if config.jump else []
    for number, conv in enumerate(network.convs, 1):
        assert isinstance(conv, EgoConv)
        h = _convolve(conv, h, graphs, table, config.rest)
        if config.jump or number == len(network.convs):
            read.append(_read_out(network, h.__getitem__, order))
    if network.counted:
        read.append(turned(_read_out(network, partial(_counted, predictor, graphs, place), order), network.counted))
    return network.head(torch.cat(read, dim=1)).float().cpu().numpy()


def _blocks(n_nodes: int) -> Iterator[slice]:
    return (slice(first, min(first + NODES_AT_ONCE, n_nodes)) for first in range(0, n_nodes, NODES_AT_ONCE))


def _embed(predictor: Predictor, graphs: Graphs, table: Ints, place: torch.device) -> Tensor:
    """(N + 1, D), the last row zeros: what -1, an absent neighbour, names"""
    config, known, network = predictor.config, predictor.preparation, predictor.network
    reach, embedded = max(config.layer_k), torch.zeros(0, device=place)
    patches = patch_portions(graphs, table, known.shape(config))
    one_hop = graphs.edge_weight is None and config.max_hops == 1  # every neighbour in the table is adjacent
    weights = None if one_hop else edge_weights(graphs, table[:, :reach])
    for here, (counts, rows, weight) in zip(_blocks(graphs.n_nodes), patches, strict=True):
        near = table[here, :reach]
        local, numbers = _local(near, here)
        bags = Bags(
            rows=torch.from_numpy(rows).to(place),
            offsets=torch.from_numpy((np.cumsum(counts) - counts).astype(rows.dtype)).to(place),
            weight=None if graphs.edge_weight is None else torch.from_numpy(weight).to(place),
        )
        label = np.full(len(near), -1) if graphs.node_label is None else graphs.node_label[here]
        around = replace(graphs, node_attr=None if graphs.node_attr is None else graphs.node_attr[local])
        adjacency = near >= 0 if weights is None else weights[here]
        batch = Batch(
            neighbours=Neighbours(torch.from_numpy(numbers).to(place)),
            rest=None,
            bags=bags,
            node_label=torch.from_numpy(label.astype(np.int32)).to(place),
            attributes=torch.from_numpy(_standardised(predictor, around, len(local))).to(place),
            adjacency=torch.from_numpy(adjacency.astype(np.float32)).to(place),
            place=torch.zeros(len(near), dtype=torch.int64, device=place),
            graph_of=torch.zeros(len(near), dtype=torch.int64, device=place),
            node_counts=torch.tensor([len(near)], device=place),
            target=None,
        )
        block: Tensor = network.embed(batch)[: len(near)]
        if here.start == 0:
            embedded = block.new_zeros(graphs.n_nodes + 1, block.shape[1])
        embedded[here] = block
    return embedded


def _local(near: Ints, here: slice) -> tuple[Ints, Ints]:
    """Neighbours (n, K) of a block -> the nodes concerned, the block's own first, and the neighbours' places in them"""
    outside = np.unique(near[(near >= 0) & ((near < here.start) | (near >= here.stop))])
    local = np.concatenate([np.arange(here.start, here.stop), outside])
    is_own = (near >= here.start) & (near < here.stop)
    numbers = np.where(is_own, near - here.start, len(near) + np.searchsorted(outside, near))
    return local, np.where(near >= 0, numbers, -1)


def _standardised(predictor: Predictor, graphs: Graphs, n_nodes: int) -> NDArray[np.float32]:
    """Attributes of the nodes that ``graphs`` has some of"""
    if graphs.node_attr is None:
        graphs = replace(graphs, node_attr=np.zeros((n_nodes, 0), np.float32))
    return predictor.preparation.standardised(graphs)


def _convolve(conv: EgoConv, h: Tensor, graphs: Graphs, table: Ints, rest: str) -> Tensor:
    """(N + 1, D) -> (N + 1, D'), as :class:`EgoConv` says, the last row zeros again"""
    found = h.new_zeros(len(h), conv.weight.shape[2])
    for here in _blocks(graphs.n_nodes):
        itself = np.arange(here.start, here.stop)[:, None]
        nodes = torch.from_numpy(np.concatenate([itself, table[here, : conv.k]], axis=1)).to(h.device)
        y = h[nodes].flatten(1) @ conv.weight.flatten(0, 1) + conv.bias
        if conv.rest is not None and rest != "none":
            owner, beyond = find_beyond(graphs, table[here], here.start)
            if len(owner):
                sums = h.new_zeros(len(y), h.shape[1])
                sums.index_add_(0, torch.from_numpy(owner).to(h.device), h[torch.from_numpy(beyond).to(h.device)])
                share = np.maximum(np.bincount(owner, minlength=len(y)), 1) if rest == "mean" else np.ones(len(y))
                y = y + (sums / torch.from_numpy(share).to(sums)[:, None]) @ conv.rest
        y = conv.norm(y)
        found[here] = F.relu(y) if conv.activation else y
    return found


def _counted(predictor: Predictor, graphs: Graphs, place: torch.device, nodes: slice | Ints) -> Tensor:
    """(n, columns) what each of these nodes adds to the counts of the inputs"""
    known = np.broadcast_to(np.int32(-1), graphs.n_nodes) if graphs.node_label is None else graphs.node_label
    label = np.array(known[nodes])
    here = replace(graphs, node_attr=None if graphs.node_attr is None else graphs.node_attr[nodes])
    attributes = torch.from_numpy(_standardised(predictor, here, len(label))).to(place)
    return counted(torch.from_numpy(label).to(place), attributes, predictor.network.counted)


def _read_out(network: EgoCNN, rows: Callable[[slice | Ints], Tensor], order: Order) -> Tensor:
    """What any nodes (n) hold (n, D) -> what the readout makes of all N nodes of the one graph (1, ...)"""
    n_nodes, readout = len(order.nodes), network.readout
    if isinstance(readout, SortPool):
        first = rows(order.nodes[: readout.nodes].astype(np.int64))
        return F.pad(first, (0, 0, 0, readout.nodes - len(first))).reshape(1, -1)
    assert isinstance(readout, Pool)
    h = rows(slice(0, 0))
    total, largest = h.sum(dim=0, dtype=torch.float64), h.new_full(h.shape[1:], -torch.inf)
    for here in _blocks(n_nodes):
        h = rows(here)
        total += h.sum(dim=0, dtype=torch.float64)
        largest = torch.maximum(largest, h.amax(dim=0))
    found = {"max": largest, "sum": total.to(h), "mean": (total / n_nodes).to(h), "log": log_of(total.to(h))}
    return torch.cat([found[kind] for kind in readout.kind.split("+")])[None]
