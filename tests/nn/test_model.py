from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn

from egocnn.config import ModelConfig, Readout
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError
from egocnn.nn import EgoCNN
from egocnn.nn.batch import Batch
from egocnn.nn.embed import PatchShape
from tests.support.networks import build, doubled, naive_logits, randomise, whole_batch
from tests.support.samples import cycle
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


def without(graphs: Graphs, *columns: str) -> Graphs:
    names = {f"{column}_names": () for column in columns if column.endswith("label")}
    return graphs.replace(**(dict.fromkeys(columns) | names))


def check_forward(graphs: Graphs, config: ModelConfig) -> None:
    network, encoder = build(graphs, config, outputs=3)
    network.double()
    output = network(doubled(whole_batch(graphs, encoder, config)))
    np.testing.assert_allclose(output.output.detach().numpy(), naive_logits(network, encoder, graphs), atol=1e-9)
    assert output.layers[-1].shape == (graphs.n_nodes, config.width)


# ── forward ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("readout", get_args(Readout))
@pytest.mark.parametrize("embedding", ["patchy-san", "attributes"])
def test_the_network_computes_its_equations(embedding: Any, readout: Readout) -> None:
    check_forward(some_graphs(), plain_model(**SMALL, embedding=embedding, readout=readout))


@pytest.mark.parametrize(
    "missing",
    [
        ("node_label",),
        ("edge_label",),
        ("edge_weight",),
        ("node_attr",),
        ("node_label", "edge_label", "edge_weight", "node_attr"),
    ],
    ids="+".join,
)
def test_columns_may_be_missing(missing: tuple[str, ...]) -> None:
    check_forward(without(some_graphs(), *missing), plain_model(**SMALL))


@pytest.mark.parametrize(
    "settings",
    [
        {"depth": 3, "tie": True},
        {"slots": 1},
        {"slots": 6, "k": 2},
        {"depth": 1},
        {"dropout": 0.5},
    ],
    ids=str,
)
def test_other_settings_compute_their_equations_too(settings: dict[str, Any]) -> None:
    check_forward(some_graphs(), plain_model(**(SMALL | settings)))
    check_forward(without(some_graphs(), "edge_weight"), plain_model(**(SMALL | settings)))


@settings(max_examples=30)
@given(random_graphs(unseen=True))
def test_any_graphs_are_computed_as_their_equations_say(graphs: Graphs) -> None:
    check_forward(graphs, plain_model(**SMALL))


class LabelTable(nn.Module):
    """A user's own embedding: one row for every label, the first for unseen ones."""

    def __init__(self, labels: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(labels + 1, width))

    def forward(self, batch: Batch) -> Tensor:
        return self.rows[batch.node_label.long() + 1]


def test_a_module_of_the_users_own_takes_the_place_of_the_embedding() -> None:
    graphs, config = some_graphs(), plain_model(**SMALL)
    embed = LabelTable(3, 7)
    network, encoder = build(graphs, config, embed=embed, embed_width=7)
    network.double()
    assert network.custom_embedding
    assert graphs.node_label is not None
    h = embed.rows.detach().numpy()[graphs.node_label + 1]
    logits = network(doubled(whole_batch(graphs, encoder, config))).output
    np.testing.assert_allclose(logits.detach().numpy(), naive_logits(network, encoder, graphs, h), atol=1e-9)


def test_a_module_of_the_users_own_is_trained_with_the_rest() -> None:
    graphs, config = some_graphs(), plain_model(**SMALL)
    embed = LabelTable(3, 7)
    network, encoder = build(graphs, config, embed=embed, embed_width=7)
    torch.autograd.backward(network(whole_batch(graphs, encoder, config)).output.sum())
    assert embed.rows.grad is not None
    assert (embed.rows.grad != 0).any()


# ── what a prediction depends on ──────────────────────────────────────────────────────────────────


NORMS: dict[str, Any] = {"k": 1, "jump": True, "head_norm": True, "pool_norm": True}


@pytest.mark.parametrize(
    "settings",
    [*({"readout": readout} for readout in get_args(Readout)), NORMS],
    ids=str,
)
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


def count(**settings: Any) -> int:
    config = plain_model(**settings)
    shape = PatchShape(slots=config.slots, node_labels=0, edge_labels=0)
    return EgoCNN(config, shape=shape, attributes=0, outputs=2).n_parameters


PAPER: dict[str, Any] = {"slots": 10, "k": 16, "width": 128, "hidden": 128, "readout": "sort", "sort_nodes": 64}


def test_tied_layers_add_no_parameters_and_untied_ones_add_their_own() -> None:
    K, D = 16, 128
    shallow, tied, untied = (count(**PAPER, depth=depth, tie=tie) for depth, tie in ((1, False), (5, True), (5, False)))
    assert tied == shallow
    assert untied == shallow + 4 * ((K + 1) * D * D + 3 * D)


def test_parameters_are_about_as_many_as_in_the_papers_fourth_table() -> None:
    """1.3M with one layer or five tied ones, 2.3M with five of their own."""
    assert count(**PAPER, depth=1) == 1_335_298
    assert count(**PAPER, depth=5, tie=True) == 1_335_298
    assert count(**PAPER, depth=5) == 2_450_946


def test_parameters_are_counted_by_layers_widths_and_neighbours() -> None:
    config = plain_model(depth=3, k=4, width=8, hidden=5)
    network = EgoCNN(config, shape=PatchShape(slots=10, node_labels=2, edge_labels=3), attributes=4, outputs=2)
    shapes = [tuple(conv.get_parameter("weight").shape) for conv in network.convs]
    assert shapes == [(5, 8, 8)] * 3
    table = (55 * 3 + 10 * 2) * 8
    embedding = table + 5 * 4 * 8 + 3 * 8  # five slots of attributes: a batch brings four neighbours
    convs = sum(K1 * i * o + 3 * o for K1, i, o in shapes)
    assert network.n_parameters == embedding + convs + (8 * 5 + 5) + (5 * 2 + 2)


@pytest.mark.parametrize(("readout", "inputs"), [("max", 8), ("mean+max", 16), ("sort", 24)])
def test_the_head_fits_the_readout(readout: Any, inputs: int) -> None:
    config = plain_model(depth=1, width=8, readout=readout, sort_nodes=3)
    network = EgoCNN(config, shape=PatchShape(slots=2, node_labels=0, edge_labels=0), attributes=0, outputs=2)
    assert network.hidden.in_features == inputs


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────

SHAPE = PatchShape(slots=4, node_labels=0, edge_labels=0)


def test_tied_layers_of_unequal_widths_are_refused() -> None:
    config = plain_model(depth=2, width=8, k=3, tie=True, embedding="attributes")
    with pytest.raises(ConfigError, match="the embedding gives 3, not 8"):
        EgoCNN(config, shape=SHAPE, attributes=3, outputs=2)
    with pytest.raises(ConfigError, match="the embedding gives 5, not 8"):
        EgoCNN(plain_model(width=8, tie=True), shape=SHAPE, attributes=0, outputs=2, embed=nn.Identity(), embed_width=5)


def test_an_embedding_that_lacks_what_it_needs_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs graphs whose nodes have attributes"):
        EgoCNN(plain_model(embedding="attributes"), shape=SHAPE, attributes=0, outputs=2)
    with pytest.raises(ConfigError, match="needs embed_width"):
        EgoCNN(plain_model(), shape=SHAPE, attributes=0, outputs=2, embed=nn.Identity())


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
