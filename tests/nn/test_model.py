from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from egocnn.config import Readout
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError
from egocnn.nn import EgoCNN, PatchySan
from egocnn.nn.embed import PatchShape
from tests.support.networks import NaiveNetwork, OwnVectors, build, doubled, randomise, whole_batch
from tests.support.samples import cycle, one_graph, sure
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model

SMALL: dict[str, Any] = {"slots": 4, "k": 3, "width": 5, "depth": 2, "hidden": 4, "sort_nodes": 3}


def some_graphs() -> Graphs:
    """Three graphs with every kind of column, a triangle, a loop and a node without neighbours."""
    return Graphs.from_edges(
        node_counts=[4, 1, 5],
        edges=np.array([*cycle(0, 1, 2), (2, 3), (5, 6), (6, 7), (7, 8), (8, 8), (5, 9), (6, 9)]),
        node_label=np.array([0, 1, 0, 2, 1, 0, 0, 1, 2, -1]),
        node_label_names=("C", "N", "O"),
        edge_label=np.array([0, 1, 0, 1, 0, 0, 1, -1, 0, 1]),
        edge_label_names=("single", "double"),
        edge_weight=np.array([1, 2, 2, 0.5, 1, 1, 3, 2, 1, 1]),
        node_attr=np.random.default_rng(0).standard_normal((10, 2)).astype(np.float32),
    )


# ── forward ───────────────────────────────────────────────────────────────────────────────────────

CHANGES: list[dict[str, Any]] = [
    {},
    {"depth": 3, "tie": True, "head_norm": True},
    {"slots": 1, "count_inputs": True},
    {"slots": 6, "k": 2, "jump": True},
    {"depth": 1, "dropout": 0.5, "pool_norm": True},
    {"embedding": "attributes", "jump": True},
    {"jump": True, "head_norm": True, "pool_norm": True, "count_inputs": True},
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("readout", get_args(Readout))
@settings(max_examples=8)
@given(graphs=random_graphs(unseen=True), seed=st.integers(0, 99))
def test_the_network_computes_its_equations(
    readout: Readout, changes: dict[str, Any], graphs: Graphs, seed: int
) -> None:
    """Whatever columns the graphs have or lack; loops, and nodes without neighbours or with unseen labels included."""
    assume("embedding" not in changes or graphs.node_attr is not None)
    config = plain_model(**SMALL | changes, readout=readout)
    network, encoder = build(graphs, config, outputs=3, seed=seed)
    network.double()
    output = network(doubled(whole_batch(graphs, encoder, config)))
    naive = NaiveNetwork(network, encoder, graphs)
    for found, expected in ((output.output, naive.logits()), *zip(output.layers, naive.h, strict=True)):
        np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-6 * max(1, np.abs(expected).max()))


def test_a_module_of_the_users_own_takes_the_place_of_the_embedding_and_is_trained() -> None:
    graphs, config = some_graphs(), plain_model(**SMALL)
    embed = OwnVectors(7)
    network, encoder = build(graphs, config, embed=embed, embed_width=7)
    network.double()
    assert network.custom_embedding
    h = embed.vectors.weight.detach().numpy()[sure(graphs.node_label) + 1]
    logits = network(doubled(whole_batch(graphs, encoder, config))).output
    np.testing.assert_allclose(logits.detach(), NaiveNetwork(network, encoder, graphs, h).logits(), atol=1e-9)
    torch.autograd.backward(logits.sum())
    assert (sure(embed.vectors.weight.grad) != 0).any()


# ── what a prediction depends on ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("settings", [*({"readout": readout} for readout in get_args(Readout)), CHANGES[-1]], ids=str)
def test_in_evaluation_a_prediction_does_not_depend_on_the_rest_of_the_batch(settings: dict[str, Any]) -> None:
    graphs, config = some_graphs(), plain_model(**SMALL | settings)
    network, encoder = build(graphs, config)
    prepared = encoder.apply(graphs, config)
    network.train()
    network(prepared.batch(torch.arange(3)))  # a training step moves the running statistics
    network.eval()
    together = network(prepared.batch(torch.tensor([2, 0, 1, 0]))).output
    for position, number in enumerate([2, 0, 1, 0]):
        alone = network(prepared.batch(torch.tensor([number]))).output[0]
        torch.testing.assert_close(together[position], alone)


def test_dropout_acts_in_training_alone() -> None:
    graphs, config = some_graphs(), plain_model(**SMALL, dropout=0.5)
    network, encoder = build(graphs, config)
    batch = whole_batch(graphs, encoder, config)
    assert torch.equal(network(batch).output, network(batch).output)
    network.train()
    assert not torch.equal(network(batch).output, network(batch).output)


# ── parameters ────────────────────────────────────────────────────────────────────────────────────

SHAPE = PatchShape(slots=4, node_labels=2, edge_labels=0)
PAPER: dict[str, Any] = {"slots": 10, "k": 16, "width": 128, "hidden": 128, "readout": "sort", "sort_nodes": 64}


def made(shape: PatchShape = SHAPE, attributes: int = 0, **settings: Any) -> EgoCNN:
    return EgoCNN(plain_model(**settings), shape=shape, attributes=attributes, outputs=2)


def count(**settings: Any) -> int:
    return made(**SMALL | settings).n_parameters


def test_parameters_are_counted_by_layers_widths_and_settings_about_as_in_the_papers_fourth_table() -> None:
    # 1.3M with one layer or five tied ones, 2.3M with five of their own.
    shape, (K, D) = PatchShape(slots=10, node_labels=0, edge_labels=0), (16, 128)
    one, tied, own = (made(shape, **PAPER, depth=d, tie=tie) for d, tie in ((1, False), (5, True), (5, False)))
    assert one.n_parameters == tied.n_parameters == 1_335_298
    assert own.n_parameters == 1_335_298 + 4 * ((K + 1) * D * D + 3 * D) == 2_450_946
    shape = PatchShape(slots=10, node_labels=2, edge_labels=3)
    network = made(shape, attributes=4, depth=3, k=4, width=8, hidden=5)
    shapes = [tuple(conv.get_parameter("weight").shape) for conv in network.convs]
    assert shapes == [(5, 8, 8)] * 3
    table = (55 * 3 + 10 * 2) * 8
    embedding = table + 5 * 4 * 8 + 3 * 8  # five slots of attributes: a batch brings four neighbours
    convs = sum(K1 * i * o + 3 * o for K1, i, o in shapes)
    assert network.n_parameters == embedding + convs + (8 * 5 + 5) + (5 * 2 + 2)
    D, hidden, plain = 5, 4, count()
    assert count(jump=True) == plain + 2 * D * hidden
    assert count(jump=True, readout="mean+max") == count(readout="mean+max") + 2 * 2 * D * hidden
    assert count(head_norm=True) == plain + 2 * hidden
    assert count(pool_norm=True) == plain + 2 * D
    assert count(count_inputs=True) == plain + SHAPE.node_labels * hidden
    assert made(**SMALL, attributes=2, count_inputs=True).hidden.in_features == D + SHAPE.node_labels + 2 * 16
    assert not any(name.startswith(("norm.", "pool_norm.")) for name in made(**SMALL).state_dict())


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────

OWN: dict[str, Any] = {"embed": nn.Identity(), "embed_width": 5}


@pytest.mark.parametrize(
    ("settings", "more", "rule"),
    [
        ({"tie": True, "embedding": "attributes"}, {"attributes": 3}, "the embedding gives 3, not 8"),
        ({"tie": True}, {"attributes": 0, **OWN}, "the embedding gives 5, not 8"),
        ({"embedding": "attributes"}, {"attributes": 0}, "needs graphs whose nodes have attributes"),
        ({}, {"attributes": 0, "embed": nn.Identity()}, "needs embed_width"),
    ],
)
def test_an_embedding_of_another_width_or_that_lacks_what_it_needs_is_refused(
    settings: dict[str, Any], more: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ConfigError, match=rule):
        EgoCNN(plain_model(depth=2, width=8, k=3, **settings), shape=SHAPE, outputs=2, **more)


# ── gradients ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("readout", get_args(Readout))
def test_gradients_of_the_whole_network_equal_finite_differences(readout: Readout, tie: bool) -> None:
    """In training mode, so that they also flow through the statistics of the batch."""
    graphs, config = some_graphs(), plain_model(**SMALL, readout=readout, tie=tie, dropout=0.0)
    network, encoder = build(graphs, config)
    randomise(network, seed=3)
    network.double().train()
    batch = doubled(whole_batch(graphs, encoder, config))
    mixture = torch.randn(3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def loss() -> Tensor:
        logits: Tensor = network(batch).output
        return (logits * mixture).sum()

    parameters = dict(network.named_parameters())
    gradients = torch.autograd.grad(loss(), list(parameters.values()))
    step, random = 1e-6, np.random.default_rng(0)
    for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True):
        flat = parameter.data.view(-1)
        for at in random.choice(len(flat), size=min(len(flat), 6), replace=False):
            before = float(flat[at])
            flat[at] = before + step
            above = loss().item()
            flat[at] = before - step
            below = loss().item()
            flat[at] = before
            expected = (above - below) / (2 * step)
            assert gradient.view(-1)[at].item() == pytest.approx(expected, rel=1e-4, abs=1e-6), name


# ── the embedding ─────────────────────────────────────────────────────────────────────────────────


def test_only_the_rows_of_entries_that_exist_are_trained_and_attributes_reach_no_farther_than_neighbours() -> None:
    graphs, config = one_graph(4, cycle(0, 1, 2, 3)), plain_model(slots=4, k=3)
    network, encoder = build(graphs, config)
    layer = network.embed
    assert isinstance(layer, PatchySan)
    (gradient,) = torch.autograd.grad(layer(whole_batch(graphs, encoder, config)).sum(), layer.table)
    touched = set(torch.nonzero(gradient.abs().sum(1)).flatten().tolist())
    # of the pairs (0,0) (0,1) (0,2) (0,3) (1,1) (1,2) ... only (0,1) and (0,2) are edges in a ring of four
    assert touched <= {1, 2}
    shape = PatchShape(slots=10, node_labels=0, edge_labels=0)
    assert PatchySan(shape, attributes=2, width=3, k=4).attributes.shape == (5, 2, 3)
    assert PatchySan(shape, attributes=2, width=3, k=16).attributes.shape == (10, 2, 3)
