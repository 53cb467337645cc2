"""Readouts of every layer and the norm in the head, against dense arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from egocnn.config import Readout
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.nn import EgoCNN, EgoConv
from egocnn.nn.embed import PatchShape
from tests.support.networks import Array, build, doubled, whole_batch
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model

SMALL: dict[str, Any] = {"slots": 3, "k": 1, "width": 5, "depth": 2, "hidden": 4, "sort_nodes": 3}
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


def by_matrices(graphs: Graphs, encoder: Encoder, h: Array, conv: EgoConv) -> Array:
    """One layer: a matrix (N, N) for every rank."""
    N = graphs.n_nodes
    table = encoder.ranking.neighbours(encoder.renamed(graphs), conv.k)
    y = array(conv.bias) + h @ array(conv.weight)[0]
    for rank, column in enumerate(table.T):
        chosen = np.zeros((N, N))
        chosen[np.flatnonzero(column >= 0), column[column >= 0]] = 1
        y += chosen @ h @ array(conv.weight)[rank + 1]
    return np.maximum(normed(y, conv.norm), 0)


def taken(readout: str, h: Array, place: Array, sort_nodes: int) -> Array:
    """What the readout takes of one graph's nodes."""
    if readout == "sort":
        kept = h[np.argsort(place)][:sort_nodes]
        return np.concatenate([kept, np.zeros((sort_nodes - len(kept), h.shape[1]))]).flatten()
    parts = {"max": h.max(axis=0), "mean": h.mean(axis=0), "sum": h.sum(axis=0), "log": np.log1p(np.abs(h.sum(axis=0)))}
    return np.concatenate([parts[kind] for kind in readout.split("+")])


# ── the network ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("jump", [False, True])
@pytest.mark.parametrize("readout", get_args(Readout))
@settings(max_examples=12)
@given(graphs=random_graphs(max_graphs=3, max_nodes=7), seed=st.integers(0, 99))
def test_logits_are_those_of_dense_matrices(jump: bool, readout: Any, graphs: Graphs, seed: int) -> None:
    more: dict[str, Any] = {"k": 2} if seed % 3 == 0 else {}
    head_norm = bool(seed % 2)
    config = plain_model(**(SMALL | more), jump=jump, readout=readout, head_norm=head_norm, pool_norm=seed % 3 > 0)
    config = replace(config, count_inputs=seed % 4 < 2)
    network, encoder = build(graphs, config, outputs=3, seed=seed)
    network.double()
    batch = doubled(whole_batch(graphs, encoder, config))
    output = network(batch)
    reached = [array(network.embed(batch))]
    for conv in network.convs:
        assert isinstance(conv, EgoConv)
        reached.append(by_matrices(graphs, encoder, reached[-1], conv))
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


def test_the_settings_add_the_parameters_that_they_need_and_no_others() -> None:
    def count(**settings: Any) -> int:
        return EgoCNN(plain_model(**SMALL, **settings), shape=SHAPE, attributes=0, outputs=2).n_parameters

    D, hidden = 5, 4
    plain = count()
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
    assert not any(name.startswith(("norm.", "pool_norm.")) for name in names)
