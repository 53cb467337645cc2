"""Neighbours that did not fit into the K places: found, and cut into batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.encode.beyond import find_rest
from egocnn.encode.encoder import Encoder
from egocnn.encode.ranking import rank_neighbours
from egocnn.nn.engines.beyond import Rest
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model

Pairs = list[tuple[int, int]]


def naive_rest(graphs: Graphs, k: int, max_hops: int = 1) -> Pairs:
    """Node by node and neighbour by neighbour."""
    table = rank_neighbours(graphs, k, max_hops=max_hops).tolist()
    found = []
    for node in range(graphs.n_nodes):
        for entry in range(int(graphs.indptr[node]), int(graphs.indptr[node + 1])):
            neighbour = int(graphs.indices[entry])
            if neighbour not in (node, *table[node]):
                found.append((node, neighbour))
    return sorted(found)


def pairs_of(rest: Rest) -> Pairs:
    return sorted(zip(rest.owner.tolist(), rest.source.tolist(), strict=True))


def rest_of(graphs: Graphs, chosen: list[int], **changes: Any) -> Rest:
    """What a batch of these graphs brings."""
    usual: dict[str, Any] = {"k": 1, "slots": 2, "rest": "sum"}
    config = plain_model(**(usual | changes))
    rest = Encoder.fit(graphs, config).apply(graphs, config).batch(torch.tensor(chosen)).rest
    assert rest is not None
    return rest


# ── finding ───────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=80)
@given(graphs=random_graphs(max_nodes=9, min_nodes=0), k=st.integers(1, 10), max_hops=st.integers(1, 2))
def test_the_rest_is_every_neighbour_that_the_table_lacks(graphs: Graphs, k: int, max_hops: int) -> None:
    table = rank_neighbours(graphs, k, max_hops=max_hops)
    ptr, neighbours = find_rest(graphs, table)
    assert len(ptr) == graphs.n_nodes + 1
    assert ptr[-1] == len(neighbours)
    owner = np.repeat(np.arange(graphs.n_nodes), np.diff(ptr))
    assert sorted(zip(owner.tolist(), neighbours.tolist(), strict=True)) == naive_rest(graphs, k, max_hops)
    # whoever has a neighbour beyond K has all K places taken
    assert (table[owner] >= 0).all()


def test_the_rest_begins_after_the_widest_layer() -> None:
    star = one_graph(8, [(0, leaf) for leaf in range(1, 8)])
    assert pairs_of(rest_of(star, [0], k=(2, 4), depth=2)) == naive_rest(star, 4)


# ── batches ───────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=40)
@given(graphs=random_graphs(min_graphs=2, max_graphs=4, max_nodes=8), data=st.data())
def test_a_batch_brings_the_rest_of_its_graphs_in_its_own_numbers(graphs: Graphs, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=5))
    rest = rest_of(graphs, chosen)
    wanted, first = [], 0
    for number in chosen:
        start, stop = (int(at) for at in graphs.node_ptr[number : number + 2])
        inside = [(u, v) for u, v in naive_rest(graphs, 1) if start <= u < stop]
        wanted += [(u - start + first, v - start + first) for u, v in inside]
        first += stop - start
    assert pairs_of(rest) == sorted(wanted)
    assert (torch.diff(rest.owner) >= 0).all()
    assert rest.share.shape == (first,)


# ── adding up ─────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=40)
@given(graphs=random_graphs(max_nodes=8), kind=st.sampled_from(["sum", "mean"]), seed=st.integers(0, 99))
def test_what_is_gathered_is_the_sum_or_mean_of_every_nodes_rest(graphs: Graphs, kind: str, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(graphs.n_nodes, 3, generator=random)
    y, filters = torch.randn(graphs.n_nodes, 2, generator=random), torch.randn(3, 2, generator=random)
    rest = rest_of(graphs, [*range(len(graphs))], rest=kind)
    wanted = torch.zeros_like(x)
    for node in range(graphs.n_nodes):
        sources = [v for u, v in naive_rest(graphs, 1) if u == node]
        if sources:
            wanted[node] = x[sources].sum(0) if kind == "sum" else x[sources].mean(0)
    torch.testing.assert_close(rest.gather(x), wanted)
    torch.testing.assert_close(rest.add(y, x, filters), y + wanted @ filters)
