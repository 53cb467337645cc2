"""Replicas trained as one: each must end as if it had been trained alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from egocnn.config import TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError
from egocnn.nn import EgoCNN
from egocnn.nn.predict import predict
from egocnn.nn.stacked import StackedNetwork
from egocnn.train import loop
from egocnn.train.engines.common import Member
from egocnn.train.engines.recorded import engine
from tests.support.strategies import random_trees
from tests.support.tiny import SIZES, alcohols, oxygens, plain_model, plain_train
from tests.train.recorded.stacks import alone, assert_close, assert_same_course, replicas, stacked

TRAIN = plain_train(epochs=4, learning_rate=1e-2, batch_size=7)
CPU = torch.device("cpu")


def weighted() -> Graphs:
    """Trees with attributes and weighted edges, and a class that the attributes give away."""
    trees = random_trees(30, nodes=7, seed=3)
    random = np.random.default_rng(0)
    attributes = random.normal(size=(trees.n_nodes, 3)).astype(np.float32)
    weight = (1 + trees.entry_node + trees.indices).astype(np.float32)  # the same from both ends
    total = np.bincount(trees.graph_of, weights=attributes[:, 0])
    return trees.replace(
        node_attr=attributes, edge_weight=weight, target=(total > 0).astype(np.int64), class_names=("no", "yes")
    )


CASES: list[tuple[Graphs, dict[str, Any], dict[str, Any]]] = [
    (oxygens(40), {}, {}),
    (oxygens(40), {"readout": "sum", "k": 4}, {"schedule": "constant"}),
    (alcohols(), {"readout": "mean+max", "tie": True}, {"batch_size": 3, "judgements": 30}),
    (alcohols(), {"readout": "sort", "sort_nodes": 5}, {}),
    (weighted(), {"readout": "mean"}, {"weight_decay": 0.1}),
    (weighted(), {"embedding": "attributes"}, {}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(f"{k}={v}" for k, v in case[1].items()) or "plain")
def test_without_dropout_every_replica_ends_as_in_the_ordinary_loop(
    case: tuple[Graphs, dict[str, Any], dict[str, Any]],
) -> None:
    graphs, model, train = case
    config = replace(TRAIN, **train)
    own = replicas([graphs, graphs[: len(graphs) * 3 // 4], graphs], plain_model(**(SIZES | model), dropout=0.0))
    networks, histories = stacked(own, [0, 1, 2], config)
    for seed, replica in enumerate(own):
        network, history = alone(replica, seed, config)
        assert_close(network, networks[seed], 1e-6)
        assert_same_course(history, histories[seed], 1e-5)
        outputs = [predict(each, replica[2]) for each in (network, networks[seed])]
        torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)


def test_a_stack_that_keeps_no_checkpoint_makes_no_optimiser_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(*_: object, **__: object) -> None:
        raise AssertionError("torch imports its compiler for an optimiser, which takes seconds")

    own = replicas([oxygens(20)], plain_model(**SIZES))
    monkeypatch.setattr(torch.optim, "AdamW", make)
    _, (history,) = stacked(own, [0], TRAIN)
    assert len(history.epochs) == TRAIN.epochs


def test_replicas_that_know_different_numbers_of_labels_count_their_own() -> None:
    few = alcohols()
    assert few.node_label is not None
    marked = np.where(np.arange(few.n_nodes) % 3 == 0, len(few.node_label_names), few.node_label)
    more = few.replace(node_label=marked.astype(np.int32), node_label_names=(*few.node_label_names, "marked"))
    model = plain_model(**SIZES, dropout=0.0, readout="mean+log+max", count_inputs=True, pool_norm=True)
    own = replicas([few, more, few], model)
    assert [network.counted for network, _, _ in own] == [3, 4, 3]
    networks, histories = stacked(own, [0, 1, 2], TRAIN)
    for seed, replica in enumerate(own):
        network, history = alone(replica, seed, TRAIN)
        assert_close(network, networks[seed], 1e-6)
        assert_same_course(history, histories[seed], 1e-5)


def test_in_single_precision_the_losses_in_training_are_those_of_the_ordinary_loop() -> None:
    graphs = weighted()
    own = replicas([graphs, graphs], plain_model(**SIZES, dropout=0.0), torch.float32)
    config = replace(TRAIN, class_weights=True)
    _, histories = stacked(own, [0, 1], config)
    for seed, replica in enumerate(own):
        _, history = alone(replica, seed, config)
        for left, right in zip(history.epochs, histories[seed].epochs, strict=True):
            assert left.train_loss == pytest.approx(right.train_loss, abs=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("readout", ["max", "mean+max", "sort"])
def test_steps_recorded_on_a_gpu_train_as_those_called_on_a_cpu(readout: str) -> None:
    """Dropout included: its choices are the same numbers on every device."""
    graphs = random_trees(80, nodes=12, seed=1)
    random = np.random.default_rng(0)
    graphs = graphs.replace(
        node_attr=random.normal(size=(graphs.n_nodes, 2)).astype(np.float32),
        target=np.bincount(graphs.graph_of, weights=graphs.node_label == 1).astype(np.int64) % 2,
        class_names=("even", "odd"),
    )
    model = plain_model(**(SIZES | {"width": 32, "readout": readout}), dropout=0.2)
    own = replicas([graphs, graphs[:60], graphs[20:]], model, torch.float32)
    config = replace(TRAIN, learning_rate=1e-3, precision="float32")
    _, expected = stacked(own, [0, 1, 2], config)
    networks, found = stacked(own, [0, 1, 2], config, "cuda")
    lowered, rounded = stacked(own, [0, 1, 2], replace(config, precision="bfloat16"), "cuda")
    for r in range(3):
        for one, other, rough in zip(expected[r].epochs, found[r].epochs, rounded[r].epochs, strict=True):
            assert one.train_loss == pytest.approx(other.train_loss, abs=2e-3)
            assert one.train_loss == pytest.approx(rough.train_loss, abs=5e-2)
        for network in (networks[r], lowered[r]):
            assert all(torch.isfinite(value).all() for value in network.state_dict().values())


def test_a_replica_does_not_notice_the_others() -> None:
    """With dropout, and with neighbours in the stack that have other sizes and other numbers of batches."""
    graphs = oxygens(40)
    model = plain_model(**(SIZES | {"readout": "mean"}), dropout=0.3)
    own = replicas([graphs[:25], graphs, graphs[10:40]], model)
    networks, histories = stacked(own, [5, 6, 7], TRAIN)
    for r, replica in enumerate(own):
        (network,), (history,) = stacked([replica], [5 + r], TRAIN)
        assert_close(network, networks[r], 1e-9)
        assert_same_course(history, histories[r], 1e-8)


def test_dropout_and_the_seed_make_a_difference() -> None:
    own = replicas([oxygens(40)], plain_model(**SIZES, dropout=0.3))
    losses = [stacked(own, [seed], TRAIN)[1][0].epochs[-1].train_loss for seed in (0, 0, 1)]
    none = stacked(replicas([oxygens(40)], plain_model(**SIZES, dropout=0.0)), [0], TRAIN)[1][0].epochs[-1].train_loss
    assert losses[0] == losses[1]
    assert len({losses[0], losses[2], none}) == 3


def test_a_replica_that_diverges_or_stops_early_disturbs_nobody() -> None:
    own = replicas([alcohols()] * 3, plain_model(**SIZES, dropout=0.1))
    config = replace(TRAIN, epochs=12, patience=3)
    calm, _ = stacked(own[:1], [0], config)
    with torch.no_grad():
        own[1][0].hidden.weight.fill_(math.nan)
    before = own[1][0].out.weight.clone()
    networks, histories = stacked(own, [0, 1, 2], config)
    assert histories[1].best is None
    assert len(histories[1].epochs) == 1 + 3
    assert torch.equal(networks[1].out.weight, before)  # no epoch was better than the start
    assert_close(calm[0], networks[0], 1e-9)
    for history in (histories[0], histories[2]):
        assert history.best is not None
        assert len(history.epochs) == min(12, len(history.epochs) - history.stale + 3)


def test_when_replicas_that_have_stopped_leave_the_stack_the_others_do_not_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = replicas([alcohols()] * 4, plain_model(**SIZES, dropout=0.1))
    config = replace(TRAIN, epochs=14, patience=2)
    sizes: list[int] = []
    keep_only = StackedNetwork.keep_only

    def spy(network: StackedNetwork, numbers: torch.Tensor) -> None:
        sizes.append(len(numbers))
        keep_only(network, numbers)

    monkeypatch.setattr(StackedNetwork, "keep_only", spy)
    together, histories = stacked(own, [0, 1, 2, 3], config)
    assert sizes == []
    monkeypatch.setattr(engine, "WORTH_SHRINKING", 0)
    networks, again = stacked(own, [0, 1, 2, 3], config)
    assert len({len(history.epochs) for history in histories}) > 1
    assert sizes == sorted(set(sizes), reverse=True) != []
    for r in range(4):
        assert_close(together[r], networks[r], 1e-9)
        assert_same_course(histories[r], again[r], 1e-8)


def test_graphs_of_a_single_node_train_one_at_a_time() -> None:
    atoms = Graphs.from_edges(
        node_counts=[1] * 10,
        edges=np.zeros((0, 2), np.int64),
        node_label=np.arange(10, dtype=np.int32) % 2,
        node_label_names=("C", "O"),
        target=np.arange(10) % 2,
        class_names=("carbon", "oxygen"),
    )
    own = replicas([atoms, atoms], plain_model(**SIZES, dropout=0.0))
    config = replace(TRAIN, batch_size=1)
    networks, _ = stacked(own, [0, 1], config)
    for seed, replica in enumerate(own):
        assert_close(alone(replica, seed, config)[0], networks[seed], 1e-6)


def test_it_learns() -> None:
    own = replicas([oxygens(200)] * 2, plain_model(**(SIZES | {"width": 16, "hidden": 16}), readout="sum", dropout=0.0))
    _, histories = stacked(own, [0, 1], plain_train(epochs=25, learning_rate=1e-2))
    for history in histories:
        assert history.best is not None
        assert history.best.validation_score > 0.85


def test_stopping_by_hand_keeps_the_best_weights_so_far() -> None:
    own = replicas([alcohols()] * 2, plain_model(**SIZES))

    def stop(histories: Any, config: TrainConfig) -> None:  # noqa: ARG001
        if len(histories[0].epochs) == 2:
            raise KeyboardInterrupt

    members = [Member(*each, seed) for seed, each in enumerate(own)]
    histories = loop.fit(members, replace(TRAIN, device="cpu"), engine="recorded", report=stop)
    assert [len(history.epochs) for history in histories] == [2, 2]
    assert all(history.interrupted for history in histories)
    for (network, _, validation), history in zip(own, histories, strict=True):
        assert validation.target is not None
        assert history.best is not None
        right = (predict(network, validation).argmax(1) == validation.target).double().mean()
        assert float(right) == history.best.validation_score


def test_stacking_and_writing_back_changes_nothing() -> None:
    graphs = [alcohols(), random_trees(12, nodes=6, seed=0, target=np.arange(12) % 2, class_names=("a", "b"))]
    own = replicas(graphs, plain_model(**SIZES, tie=True))
    networks: list[EgoCNN] = [network for network, _, _ in own]
    before = [{name: value.clone() for name, value in n.state_dict().items()} for n in networks]
    rows = [n.get_parameter("embed.table").shape[0] for n in networks]
    assert rows[0] != rows[1]
    whole = StackedNetwork(networks, CPU)
    state = [tensor.clone() for tensor in whole.state]
    for network in networks:
        for tensor in (*network.parameters(), *network.buffers()):
            tensor.data.zero_()
    whole.write_back(state)
    for network, values in zip(networks, before, strict=True):
        assert all(torch.equal(value, values[name]) for name, value in network.state_dict().items())
    assert sum(name.startswith("convs") for name in whole.parameters) == 4  # tied layers are stacked once


def test_only_networks_of_one_kind_are_stacked() -> None:
    one = replicas([alcohols()], plain_model(**SIZES))[0][0]
    other = replicas([alcohols()], plain_model(**(SIZES | {"width": 4})))[0][0]
    with pytest.raises(ConfigError, match="same settings"):
        StackedNetwork([one, other], CPU)
