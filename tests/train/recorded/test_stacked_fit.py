"""Replicas trained as one, on whole graphs and on parts: each must end as if it had been trained alone."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError
from egocnn.nn.predict import predict_each
from egocnn.nn.stacked import StackedNetwork
from egocnn.train.engines.recorded import engine
from egocnn.train.metrics import evaluate
from tests.support.samples import sure
from tests.support.strategies import dressed, random_trees
from tests.support.tiny import SIZES, alcohols, oxygens, plain_model, plain_train, same, several_targets, state
from tests.train.recorded.stacks import Replica, alone, assert_close, assert_same_course, replicas, stacked

TRAIN = plain_train(epochs=4, learning_rate=1e-2, batch_size=7)
PARTS = replace(TRAIN, parts=0.7)


def weighted() -> Graphs:
    """Trees with attributes and weighted edges, and a class that the attributes give away."""
    trees = dressed(random_trees(30, nodes=7, seed=3), attributes=3)
    total = np.bincount(trees.graph_of, weights=sure(trees.node_attr)[:, 0])
    return trees.replace(target=(total > 0).astype(np.int64), class_names=("no", "yes"))


CASES: list[tuple[Graphs, dict[str, Any], dict[str, Any]]] = [
    (oxygens(40), {"readout": "sum", "k": 4}, {"schedule": "constant"}),
    (alcohols(), {"readout": "mean+max", "tie": True}, {"batch_size": 3, "judgements": 30}),
    (weighted(), {"readout": "mean"}, {"weight_decay": 0.1}),
    (several_targets(), {"readout": "mean+log+max"}, {"batch_size": 5}),
    (several_targets(), {"readout": "log+max"}, {"class_weights": True}),
]


in_parts = pytest.mark.parametrize("parts", [0.0, 0.7], ids=["whole graphs", "parts"])


def assert_as_in_the_plain_engine(own: list[Replica], config: TrainConfig) -> None:
    networks, histories = stacked(own, range(3, 3 + len(own)), config)
    for seed, replica, network, history in zip(range(3, 9), own, networks, histories, strict=False):
        wanted, course = alone(replica, seed, config)
        assert_close(network, wanted, 1e-6)
        assert_same_course(history, course, 1e-5)
        outputs = [predict_each([each], replica[2])[0] for each in (network, wanted)]
        torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)


@in_parts
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1]["readout"])
def test_without_dropout_every_replica_ends_as_in_the_plain_engine(
    case: tuple[Graphs, dict[str, Any], dict[str, Any]], parts: float
) -> None:
    graphs, model, train = case
    own = replicas([graphs, graphs[: len(graphs) * 3 // 4], graphs], plain_model(**(SIZES | model), dropout=0.0))
    assert_as_in_the_plain_engine(own, replace(TRAIN, parts=parts, **train))


@in_parts
def test_so_it_is_where_replicas_know_different_numbers_of_labels(parts: float) -> None:
    """A row of the table then means another label, or another slot, in every replica."""
    few = alcohols()
    marked = np.where(np.arange(few.n_nodes) % 3 == 0, len(few.node_label_names), sure(few.node_label))
    more = few.replace(node_label=marked.astype(np.int32), node_label_names=(*few.node_label_names, "marked"))
    model = plain_model(**SIZES, dropout=0.0, readout="mean+log+max", jump=True, count_inputs=True, pool_norm=True)
    own = replicas([few, more, few], model)
    assert [network.counted for network, _, _ in own] == [3, 4, 3]
    assert_as_in_the_plain_engine(own, replace(TRAIN, parts=parts))


def test_so_it_is_with_graphs_of_one_node_one_at_a_time_and_with_graphs_of_which_often_one_is_left() -> None:
    nothing, number = np.zeros((0, 2), np.int64), np.arange(10)
    labels: dict[str, Any] = {"node_label": number.astype(np.int32) % 2, "node_label_names": ("C", "O")}
    atoms = Graphs.from_edges(node_counts=[1] * 10, edges=nothing, target=number % 2, class_names=("C", "O"), **labels)
    for graphs, parts in ((atoms, 0.0), (alcohols(), 1.0)):
        own = replicas([graphs] * 2, plain_model(**SIZES, dropout=0.0))
        assert_as_in_the_plain_engine(own, replace(TRAIN, epochs=2, batch_size=1, parts=parts))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@in_parts
@pytest.mark.parametrize("readout", ["max", "mean+max", "log", "sort"])
def test_steps_recorded_on_a_gpu_train_as_those_called_on_a_cpu(readout: str, parts: float) -> None:
    """Dropout included: its choices are the same numbers on every device. Four epochs: a recording that kept the epoch
    in which it was made would show the same parts in all of them."""
    graphs = random_trees(80, nodes=12, seed=1)
    graphs = graphs.replace(
        node_attr=np.random.default_rng(0).normal(size=(graphs.n_nodes, 2)).astype(np.float32),
        target=np.bincount(graphs.graph_of, weights=graphs.node_label == 1).astype(np.int64) % 2,
        class_names=("even", "odd"),
    )
    more: dict[str, Any] = {"k": 2, "jump": True, "count_inputs": True} if parts else {"dropout": 0.2}
    model = plain_model(**(SIZES | {"width": 32, "readout": readout} | more))
    own = replicas([graphs, graphs[:60], graphs[20:]], model, torch.float32)
    config = replace(TRAIN, learning_rate=1e-3, precision="float32", parts=parts)
    _, expected = stacked(own, [0, 1, 2], config)
    networks, found = stacked(own, [0, 1, 2], config, "cuda")
    again, _ = stacked(own, [0, 1, 2], config, "cuda")
    lowered, rounded = stacked(own, [0, 1, 2], replace(config, precision="bfloat16"), "cuda")
    for r in range(3):
        assert same(state(networks[r]), state(again[r]))
        for one, other, rough in zip(expected[r].epochs, found[r].epochs, rounded[r].epochs, strict=True):
            assert one.train_loss == pytest.approx(other.train_loss, abs=2e-3)
            assert one.train_loss == pytest.approx(rough.train_loss, abs=1e-1 if parts else 5e-2)
        for network in (networks[r], lowered[r]):
            assert all(torch.isfinite(value).all() for value in network.state_dict().values())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_so_do_steps_for_several_targets() -> None:
    graphs = several_targets()
    own = replicas([graphs, graphs[:30]], plain_model(**(SIZES | {"width": 32, "dropout": 0.2})), torch.float32)
    config = replace(TRAIN, learning_rate=1e-3, precision="float32", class_weights=True, parts=0.7)
    for one, other in zip(*(stacked(own, [0, 1], config, device)[1] for device in ("cpu", "cuda")), strict=True):
        assert_same_course(one, other, 2e-3)


@in_parts
def test_a_replica_does_not_notice_the_others(parts: float) -> None:
    """With dropout, and with neighbours in the stack that have other sizes and other numbers of batches."""
    graphs, config = oxygens(40), replace(TRAIN, parts=parts)
    own = replicas([graphs[:25], graphs, graphs[10:40]], plain_model(**SIZES, readout="mean", dropout=0.3))
    networks, histories = stacked(own, [5, 6, 7], config)
    for r, replica in enumerate(own):
        (network,), (history,) = stacked([replica], [5 + r], config)
        assert_close(network, networks[r], 1e-9)
        assert_same_course(history, histories[r], 1e-8)


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


@in_parts
def test_when_replicas_that_have_stopped_leave_the_stack_the_others_do_not_notice(
    parts: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = replicas([alcohols()[r if parts else 0 :] for r in range(4)], plain_model(**SIZES, dropout=0.1))
    config = replace(TRAIN, epochs=14, patience=2, parts=parts)
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


def test_only_networks_of_one_kind_are_stacked() -> None:
    one, other = (replicas([alcohols()], plain_model(**SIZES | {"width": width}))[0][0] for width in (8, 4))
    with pytest.raises(ConfigError, match="same settings"):
        StackedNetwork([one, other], torch.device("cpu"))


# ── whole trainings ───────────────────────────────────────────────────────────────────────────────


def test_the_same_seed_gives_the_same_bits_and_another_dropout_and_parts_make_a_difference() -> None:
    """Where nothing may be missing, graphs are whole."""
    own, still = (replicas([oxygens(40)], plain_model(**SIZES, dropout=share), torch.float32) for share in (0.2, 0.0))

    def weights(some: list[Replica] = own, *, seed: int = 0, **changes: Any) -> dict[str, Tensor]:
        return state(stacked(some, [seed], replace(PARTS, **changes))[0][0])

    first, whole = weights(), weights(parts=0.0)
    assert same(first, weights())
    assert same(whole, weights(missing=0.0))
    for other in (whole, weights(missing=0.2), weights(seed=1), weights(still)):
        assert not same(first, other)


def test_in_validation_graphs_are_whole() -> None:
    own = replicas([alcohols()] * 2, plain_model(**SIZES))
    found, histories = stacked(own, [0, 1], replace(PARTS, parts=1.0))
    for network, history, (_, _, validation) in zip(found, histories, own, strict=True):
        assert history.best is not None
        loss, score = evaluate(network, validation)
        assert loss == pytest.approx(history.best.validation_loss, abs=1e-6)
        assert score == history.best.validation_score
