"""Neighbours that did not fit into the K places: found, and cut into batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.beyond import find_rest
from egocnn.encode.encoder import Encoder
from egocnn.encode.ranking import rank_neighbours
from egocnn.nn.engines.beyond import Rest
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs

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


def prepare(graphs: Graphs, **changes: Any) -> EncodedGraphs:
    usual: dict[str, Any] = {"k": 1, "slots": 2, "rest": "sum"}
    config = ModelConfig(**(usual | changes))
    return Encoder.fit(graphs, config).apply(graphs, config)


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


def test_a_loop_is_no_neighbour_and_takes_no_place() -> None:
    graphs = one_graph(4, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1)])
    ptr, neighbours = find_rest(graphs, rank_neighbours(graphs, 3))
    assert ptr.tolist() == [0] * 5
    ptr, neighbours = find_rest(graphs, rank_neighbours(graphs, 2))
    assert ptr.tolist() == [0, 1, 1, 1, 1]
    assert neighbours[0] in (1, 2, 3)


def test_with_more_places_than_any_node_has_neighbours_there_is_no_rest() -> None:
    graphs = one_graph(6, [(0, leaf) for leaf in range(1, 6)])
    for k in (5, 6, 40):
        ptr, neighbours = find_rest(graphs, rank_neighbours(graphs, k))
        assert ptr.tolist() == [0] * 7
        assert len(neighbours) == 0


def test_the_rest_begins_after_the_widest_layer() -> None:
    star = one_graph(8, [(0, leaf) for leaf in range(1, 8)])
    rest = prepare(star, k=(2, 4), depth=2).batch(torch.tensor([0])).rest
    assert rest is not None
    assert pairs_of(rest) == naive_rest(star, 4)


# ── batches ───────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=40)
@given(graphs=random_graphs(min_graphs=2, max_graphs=4, max_nodes=8), data=st.data())
def test_a_batch_brings_the_rest_of_its_graphs_in_its_own_numbers(graphs: Graphs, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=5))
    rest = prepare(graphs).batch(torch.tensor(chosen)).rest
    assert rest is not None
    wanted, first = [], 0
    for number in chosen:
        start, stop = (int(at) for at in graphs.node_ptr[number : number + 2])
        inside = [(u, v) for u, v in naive_rest(graphs, 1) if start <= u < stop]
        wanted += [(u - start + first, v - start + first) for u, v in inside]
        first += stop - start
    assert pairs_of(rest) == sorted(wanted)
    assert (torch.diff(rest.owner) >= 0).all()
    assert rest.share.shape == (first,)


def test_the_share_is_one_for_a_sum_and_one_over_the_number_for_a_mean() -> None:
    star = one_graph(5, [(0, leaf) for leaf in range(1, 5)])
    for kind, share in (("sum", 1.0), ("mean", 1 / 3)):
        rest = prepare(star, rest=kind).batch(torch.tensor([0])).rest
        assert rest is not None
        assert rest.share.tolist() == pytest.approx([share, 1, 1, 1, 1])


def test_where_the_network_does_not_read_the_rest_no_batch_brings_it() -> None:
    star = one_graph(5, [(0, leaf) for leaf in range(1, 5)])
    prepared = prepare(star, rest="none")
    assert prepared.rest is None
    assert prepared.batch(torch.tensor([0])).rest is None
    assert prepared.megabytes < prepare(star).megabytes


def test_a_prepared_collection_moves_with_its_rest() -> None:
    star = one_graph(5, [(0, leaf) for leaf in range(1, 5)])
    moved = prepare(star).to(torch.device("meta"))
    assert moved.rest is not None
    assert {part.device.type for part in (moved.rest.ptr, moved.rest.steps, moved.rest.share)} == {"meta"}


# ── adding up ─────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=40)
@given(graphs=random_graphs(max_nodes=8), kind=st.sampled_from(["sum", "mean"]), seed=st.integers(0, 99))
def test_what_is_gathered_is_the_sum_or_mean_of_every_nodes_rest(graphs: Graphs, kind: str, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(graphs.n_nodes, 3, generator=random)
    y, filters = torch.randn(graphs.n_nodes, 2, generator=random), torch.randn(3, 2, generator=random)
    rest = prepare(graphs, rest=kind).batch(torch.arange(len(graphs))).rest
    assert rest is not None
    wanted = torch.zeros_like(x)
    for node in range(graphs.n_nodes):
        sources = [v for u, v in naive_rest(graphs, 1) if u == node]
        if sources:
            wanted[node] = x[sources].sum(0) if kind == "sum" else x[sources].mean(0)
    torch.testing.assert_close(rest.gather(x), wanted)
    torch.testing.assert_close(rest.add(y, x, filters), y + wanted @ filters)
