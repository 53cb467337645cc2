import math
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from egocnn.config import Readout
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.nn import Pool, SortPool
from egocnn.nn.batch import Batch
from egocnn.nn.readout import log_of, pool
from tests.support.invariance import relabel
from tests.support.networks import whole_batch
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model

CONFIG = plain_model(k=2, slots=2)


def batch_of(graphs: Graphs) -> Batch:
    return whole_batch(graphs, Encoder.fit(graphs, CONFIG), CONFIG)


def embeddings(N: int, D: int = 3, seed: int = 0) -> Tensor:
    """Numbers of both signs, one row a node."""
    return torch.randn(N, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rows_of(h: Tensor, batch: Batch, graph: int) -> list[list[float]]:
    return [row for row, owner in zip(h.tolist(), batch.graph_of.tolist(), strict=True) if owner == graph]


def naive_pool(rows: list[list[float]], kind: str) -> list[float]:
    if "+" in kind:
        return [value for part in kind.split("+") for value in naive_pool(rows, part)]
    columns = list(zip(*rows, strict=True))
    if kind == "max":
        return [max(column) for column in columns]
    if kind == "log":
        return [math.copysign(math.log(1 + abs(sum(column))), sum(column)) for column in columns]
    return [sum(column) / (len(column) if kind == "mean" else 1) for column in columns]


@pytest.mark.parametrize("kind", [readout for readout in get_args(Readout) if readout != "sort"])
@settings(max_examples=30)
@given(graphs=random_graphs(max_graphs=5))
def test_pools_reduce_the_nodes_of_every_graph(kind: Readout, graphs: Graphs) -> None:
    batch, h = batch_of(graphs), embeddings(graphs.n_nodes)
    pooled = Pool(kind)(h, batch)
    expected = [naive_pool(rows_of(h, batch, graph), kind) for graph in range(len(graphs))]
    np.testing.assert_allclose(pooled.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("kind", get_args(Readout))
def test_gradients_equal_finite_differences_and_a_graph_without_nodes_reads_zeros(kind: Readout) -> None:
    batch = batch_of(Graphs.from_edges(node_counts=[3, 0, 1, 0], edges=np.array([[0, 1]])))
    readout = SortPool(2) if kind == "sort" else Pool(kind)
    h = embeddings(4).requires_grad_()
    out = readout(h, batch)
    assert (out[[1, 3]] == 0).all()
    assert (out[[0, 2]] != 0).any(dim=1).all()
    assert torch.autograd.gradcheck(lambda h: readout(h, batch), (h,))


@given(random_graphs(max_graphs=5), st.integers(1, 8))
def test_sort_lays_the_first_ranked_nodes_end_to_end(graphs: Graphs, nodes: int) -> None:
    batch, h = batch_of(graphs), embeddings(graphs.n_nodes)
    out = SortPool(nodes)(h, batch)
    assert out.shape == (len(graphs), nodes * 3)
    for graph in range(len(graphs)):
        places = [
            place for place, owner in zip(batch.place.tolist(), batch.graph_of.tolist(), strict=True) if owner == graph
        ]
        ranked = [row for _, row in sorted(zip(places, rows_of(h, batch, graph), strict=True))]
        padded = (ranked + [[0.0] * 3] * nodes)[:nodes]
        assert out[graph].tolist() == [value for row in padded for value in row]


@given(random_graphs(max_graphs=4), st.integers(0, 20))
def test_sort_does_not_depend_on_node_numbers_where_colours_differ(graphs: Graphs, seed: int) -> None:
    encoder = Encoder.fit(graphs, CONFIG)
    order = encoder.ranking.order(graphs)
    apart = [len(set(order.tier[a:b])) == b - a for a, b in zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True)]
    relabelled, new = relabel(graphs, seed)
    h = embeddings(graphs.n_nodes)
    moved = torch.empty_like(h)
    moved[torch.from_numpy(new)] = h
    before = SortPool(4)(h, whole_batch(graphs, encoder, CONFIG))
    after = SortPool(4)(moved, whole_batch(relabelled, encoder, CONFIG))
    assert torch.equal(before[apart], after[apart])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nodes_that_attain_the_maximum_together_share_its_gradient(sign: float) -> None:
    h = torch.tensor([[2.0], [2.0], [1.0], [3.0]], requires_grad=True)
    pooled = pool(h, torch.tensor([0, 0, 0, 1]), torch.tensor([3, 1]), "max")
    (gradient,) = torch.autograd.grad((sign * pooled).sum(), h)
    assert gradient.flatten().tolist() == [sign / 2, sign / 2, 0.0, sign]


def test_the_logarithm_of_a_sum_rises_everywhere_and_as_steeply_as_the_sum_at_0() -> None:
    total = torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    found = log_of(total)
    assert found.tolist() == pytest.approx([-math.log(4), -math.log(2), 0, math.log(2), math.log(4)])
    assert torch.autograd.grad(found.sum(), total)[0].tolist() == pytest.approx([0.25, 0.5, 1, 0.5, 0.25])
