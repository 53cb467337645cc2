"""Neighbours beyond K, readouts of every layer and the norm in the head, against dense arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from egocnn.config import ModelConfig, Readout
from egocnn.config import Rest as Kind
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.nn import EgoCNN, EgoConv
from egocnn.nn.embed import PatchShape
from egocnn.nn.engines import Neighbours
from egocnn.nn.engines.beyond import Rest
from tests.support.networks import Array, build, doubled, randomise, whole_batch
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model

SMALL: dict[str, Any] = {"slots": 3, "k": 1, "width": 5, "depth": 2, "hidden": 4, "sort_nodes": 3}
RESTS = pytest.mark.parametrize("rest", ["none", "mean", "sum"])
SHAPE = PatchShape(slots=3, node_labels=2, edge_labels=0)


def array(tensor: Tensor) -> Array:
    return tensor.detach().double().numpy()


def normed(y: Array, norm: nn.Module) -> Array:
    if not isinstance(norm, nn.BatchNorm1d):
        return y
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scaled = (y - array(norm.running_mean)) / np.sqrt(array(norm.running_var) + norm.eps)
    result: Array = scaled * array(norm.weight) + array(norm.bias)
    return result


def by_matrices(graphs: Graphs, encoder: Encoder, config: ModelConfig, h: Array, conv: EgoConv) -> Array:
    """One layer: a matrix (N, N) for every rank, and one of what is left of the adjacency."""
    N = graphs.n_nodes
    left = np.zeros((N, N))
    left[graphs.entry_node, graphs.indices] = 1
    np.fill_diagonal(left, 0)
    table = encoder.neighbours(graphs, config, max(config.layer_k)).numpy()
    y = array(conv.bias) + h @ array(conv.weight)[0]
    for rank, column in enumerate(table.T):
        chosen = np.zeros((N, N))
        chosen[np.flatnonzero(column >= 0), column[column >= 0]] = 1
        left *= 1 - chosen
        if rank < conv.k:
            y += chosen @ h @ array(conv.weight)[rank + 1]
    if config.rest == "mean":
        left /= np.maximum(left.sum(axis=1, keepdims=True), 1)
    if conv.rest is not None:
        y += left @ h @ array(conv.rest)
    return np.maximum(normed(y, conv.norm), 0)


def taken(readout: str, h: Array, place: Array, sort_nodes: int) -> Array:
    """What the readout takes of one graph's nodes."""
    if readout == "sort":
        kept = h[np.argsort(place)][:sort_nodes]
        return np.concatenate([kept, np.zeros((sort_nodes - len(kept), h.shape[1]))]).flatten()
    parts = {"max": h.max(axis=0), "mean": h.mean(axis=0), "sum": h.sum(axis=0), "log": np.log1p(np.abs(h.sum(axis=0)))}
    return np.concatenate([parts[kind] for kind in readout.split("+")])


# ── the layer ─────────────────────────────────────────────────────────────────────────────────────


def rest_by_hand(share: list[float]) -> Rest:
    return Rest(torch.tensor([0, 0, 2]), torch.tensor([2, 3, 1]), torch.tensor(share, dtype=torch.float64))


@pytest.mark.parametrize("share", [[1.0, 1.0, 1.0, 1.0], [0.5, 1.0, 1.0, 1.0]], ids=["sum", "mean"])
def test_a_layer_adds_its_rest_through_a_filter_of_its_own(share: list[float]) -> None:
    table = torch.tensor([[1], [0], [0], [0]])
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    conv = EgoConv(3, 2, k=1, rest=True).double().eval()
    randomise(conv)
    assert conv.rest is not None
    W, b, V, h = array(conv.weight), array(conv.bias), array(conv.rest), array(x)
    y = np.stack(
        [
            b + h[0] @ W[0] + h[1] @ W[1] + share[0] * (h[2] + h[3]) @ V,
            b + h[1] @ W[0] + h[0] @ W[1],
            b + h[2] @ W[0] + h[0] @ W[1] + h[1] @ V,
            b + h[3] @ W[0] + h[0] @ W[1],
        ]
    )
    wanted = torch.from_numpy(np.maximum(normed(y, conv.norm), 0))
    for neighbours in (table, Neighbours.of(table)):
        torch.testing.assert_close(conv(x, neighbours, rest_by_hand(share)), wanted, rtol=1e-12, atol=1e-12)
    conv.activation = False
    conv.train()
    y = (y - y.mean(axis=0)) / np.sqrt(y.var(axis=0) + 1e-5) * array(conv.norm.get_parameter("weight"))
    wanted = torch.from_numpy(y + array(conv.norm.get_parameter("bias")))
    torch.testing.assert_close(conv(x, table, rest_by_hand(share)), wanted, rtol=1e-12, atol=1e-12)


def test_gradients_reach_the_rest_and_its_filter() -> None:
    conv = EgoConv(3, 2, k=1, rest=True, norm=False, activation=False).double()
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    table = torch.tensor([[1], [0], [0], [0]])
    assert conv.rest is not None

    def layer(x: Tensor, filters: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(conv, {"rest": filters}, (x, table, rest_by_hand([0.5, 1, 1, 1])))
        return out

    assert torch.autograd.gradcheck(layer, (x, conv.rest.detach().clone().requires_grad_()))


def test_a_layer_without_a_filter_for_the_rest_leaves_it_unread() -> None:
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    table = torch.tensor([[1], [0], [0], [0]])
    conv = EgoConv(3, 2, k=1).double().eval()
    assert torch.equal(conv(x, table, rest_by_hand([1.0] * 4)), conv(x, table))
    conv = EgoConv(3, 2, k=1, rest=True).double().eval()
    nobody = Rest(torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long), torch.ones(4))
    assert torch.equal(conv(x, table, nobody), conv(x, table))


def test_fresh_filters_treat_the_rest_as_every_ranked_neighbour() -> None:
    conv = EgoConv(3, 4, k=5, rest=True)
    assert conv.rest is not None
    assert all(torch.equal(conv.rest, filters) for filters in conv.weight[1:])


# ── the network ───────────────────────────────────────────────────────────────────────────────────


@RESTS
@pytest.mark.parametrize("jump", [False, True])
@pytest.mark.parametrize("readout", get_args(Readout))
@settings(max_examples=12)
@given(graphs=random_graphs(max_graphs=3, max_nodes=7), seed=st.integers(0, 99))
def test_logits_are_those_of_dense_matrices(rest: Any, jump: bool, readout: Any, graphs: Graphs, seed: int) -> None:
    more: dict[str, Any] = {"k": (1, 2)} if seed % 3 == 0 else {"max_hops": 1 + seed % 2}
    more |= {"embedding": "adjacency"} if seed % 5 == 0 else {}
    head_norm = bool(seed % 2)
    config = plain_model(
        **(SMALL | more), rest=rest, jump=jump, readout=readout, head_norm=head_norm, pool_norm=seed % 3 > 0
    )
    config = replace(config, count_inputs=seed % 4 < 2)
    network, encoder = build(graphs, config, outputs=3, seed=seed)
    network.double()
    batch = doubled(whole_batch(graphs, encoder, config))
    output = network(batch)
    reached = [array(network.embed(batch))]
    for conv in network.convs:
        assert isinstance(conv, EgoConv)
        reached.append(by_matrices(graphs, encoder, config, reached[-1], conv))
    np.testing.assert_allclose(array(output.layers[-1]), reached[-1], atol=1e-6 * max(1, np.abs(reached[-1]).max()))
    read = reached if jump else reached[-1:]
    rows = []
    for first, last in zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True):
        nodes = slice(int(first), int(last))
        parts = [taken(readout, h[nodes], array(batch.place[nodes]), config.sort_nodes) for h in read]
        if network.counted:
            label, centres = array(batch.node_label[nodes]).astype(int), np.linspace(-3, 3, 16)
            labels = network.counted - 16 * batch.attributes.shape[1]
            bins = [
                np.interp(values, centres, hat) for values in array(batch.attributes[nodes]).T for hat in np.eye(16)
            ]
            known = np.eye(labels + 1)[label][:, :-1]  # -1: none of them
            own = np.column_stack([*bins, known])
            counted = taken(readout, own, array(batch.place[nodes]), config.sort_nodes)
            parts.append(counted.reshape(-1, network.counted).T.ravel())
        hidden = array(network.hidden.weight) @ normed(np.concatenate(parts), network.pool_norm)
        hidden = hidden + array(network.hidden.bias)
        hidden = np.maximum(normed(hidden, network.norm), 0)
        rows.append(array(network.out.weight) @ hidden + array(network.out.bias))
    assert isinstance(network.norm, nn.BatchNorm1d) == head_norm
    assert isinstance(network.pool_norm, nn.BatchNorm1d) == config.pool_norm
    np.testing.assert_allclose(array(output.output), rows, atol=1e-6 * max(1, np.abs(rows).max()))


def test_a_hub_reads_a_leaf_beyond_k_only_through_the_rest() -> None:
    graphs = Graphs.from_edges(
        node_counts=[5],
        edges=np.array([(0, leaf) for leaf in range(1, 5)]),
        node_attr=np.arange(5, dtype=np.float32)[:, None],
    )
    kinds: dict[Kind, bool] = {"none": False, "mean": True, "sum": True}
    for rest, reads in kinds.items():
        config = plain_model(**(SMALL | {"depth": 1, "embedding": "attributes"}), rest=rest)
        network, encoder = build(graphs, config)
        batch = whole_batch(graphs, encoder, config)
        attributes = batch.attributes.requires_grad_()
        first = int(batch.neighbours.table[0, 0])
        assert isinstance(network.convs[0], EgoConv)
        network.convs[0].activation = False
        (gradient,) = torch.autograd.grad(network(batch).layers[-1][0].sum(), attributes)
        beyond = [leaf for leaf in range(1, 5) if leaf != first]
        assert bool((gradient[beyond] != 0).all()) == reads


def test_tied_layers_share_the_filter_of_the_rest() -> None:
    network = EgoCNN(plain_model(**(SMALL | {"depth": 3}), rest="mean", tie=True), shape=SHAPE, attributes=0, outputs=2)
    filters = {id(conv.get_parameter("rest")) for conv in network.convs}
    assert len(filters) == 1


def test_the_settings_add_the_parameters_that_they_need_and_no_others() -> None:
    def count(**settings: Any) -> int:
        return EgoCNN(plain_model(**SMALL, **settings), shape=SHAPE, attributes=0, outputs=2).n_parameters

    D, hidden = 5, 4
    plain = count()
    assert count(rest="mean") == count(rest="sum") == plain + 2 * D * D
    assert count(jump=True) == plain + 2 * D * hidden
    assert count(jump=True, readout="mean+max") == count(readout="mean+max") + 2 * 2 * D * hidden
    assert count(head_norm=True) == plain + 2 * hidden
    assert count(pool_norm=True) == plain + 2 * D
    assert count(count_inputs=True) == plain + SHAPE.node_labels * hidden
    network = EgoCNN(plain_model(**SMALL, count_inputs=True), shape=SHAPE, attributes=2, outputs=2)
    assert network.hidden.in_features == D + SHAPE.node_labels + 2 * 16


def test_without_the_settings_a_network_has_the_weights_it_always_had() -> None:
    network = EgoCNN(plain_model(**SMALL), shape=SHAPE, attributes=0, outputs=2)
    names = set(network.state_dict())
    assert not any("rest" in name or name.startswith(("norm.", "pool_norm.")) for name in names)
