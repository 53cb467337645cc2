"""Recorded training on parts of graphs: what is missing, and all that follows from it, is as in the plain engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from egocnn.config import Readout, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.nn.predict import predict
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines.recorded import engine
from egocnn.train.engines.recorded.joined import BatchShape, batch_of, join
from egocnn.train.engines.recorded.steps import StackedPresence
from egocnn.train.metrics import evaluate
from egocnn.train.missing import presence_of
from tests.support.strategies import random_trees
from tests.support.tiny import (
    SIZES,
    alcohols,
    fit,
    fit_recorded,
    oxygens,
    plain_model,
    plain_train,
    same,
    state,
    stop_after,
)
from tests.train.recorded.stacks import Replica, alone, assert_close, assert_same_course, replicas, stacked
from tests.train.recorded.test_stacked_fit import CASES
from tests.train.recorded.test_stacked_options import SMALL, compare_with_each_alone, hubs, networks

TRAIN = plain_train(epochs=4, learning_rate=1e-2, batch_size=7, parts=0.7, device="cpu")


def assert_as_in_the_plain_engine(own: list[Replica], config: TrainConfig) -> None:
    seeds = list(range(3, 3 + len(own)))
    found, histories = stacked(own, seeds, config)
    for replica, seed, network, history in zip(own, seeds, found, histories, strict=True):
        wanted, course = alone(replica, seed, config)
        assert_close(network, wanted, 1e-6)
        assert_same_course(history, course, 1e-5)
        outputs = [predict(each, replica[2]) for each in (network, wanted)]
        torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)


# ── which nodes ───────────────────────────────────────────────────────────────────────────────────


def shown(several: list[EncodedGraphs], chosen: list[list[int]], seeds: list[int], epoch: int) -> list[Tensor]:
    """Of every replica, by numbers in its own collection, which nodes of the chosen graphs a recorded step shows."""
    joined, numbers = join([(each, each) for each in several])
    first = torch.tensor([int(own[0]) for own, _ in numbers])
    numbered = torch.tensor(chosen)
    batch = batch_of(joined, torch.where(numbered >= 0, numbered + first[:, None], -1), BatchShape(90, 2048))
    presence = StackedPresence(torch.tensor(seeds), first, joined.node_ptr, TRAIN)
    presence.epoch.fill_(epoch)
    there = presence.of(batch)
    assert not there[~batch.present].any()
    return [each[nodes] for each, nodes in zip(there, batch.present, strict=True)]


@pytest.mark.parametrize("epoch", [1, 2, 30])
def test_the_nodes_that_are_missing_are_those_that_the_plain_engine_leaves_out(epoch: int) -> None:
    """The second replica's graphs lie behind those of the first; the third has the graphs of the first, and its seed is
    another."""
    several = [replicas([graphs], plain_model(**SIZES))[0][1] for graphs in (oxygens(40), oxygens(40)[5:])]
    several.append(several[0])
    chosen, seeds = [[3, 1, 7, 9], [5, 0, -1, -1], [3, 1, 7, 9]], [4, 5, 6]
    found = shown(several, chosen, seeds, epoch)
    for there, data, own, seed in zip(found, several, chosen, seeds, strict=True):
        some = torch.tensor([graph for graph in own if graph >= 0])
        wanted = presence_of(data.batch(some), data, some, seed, epoch, TRAIN)
        assert torch.equal(there, torch.ones_like(there) if wanted is None else wanted > 0)
    assert not torch.equal(found[0], found[2])
    assert any(not there.all() for there in found)


def test_a_replica_that_would_be_left_with_one_node_sees_whole_graphs_and_the_others_do_not() -> None:
    train = replicas([oxygens(40)], plain_model(**SIZES))[0][1]
    one = torch.tensor([0])
    config = replace(TRAIN, parts=1.0)
    left = [presence_of(train.batch(one), train, one, seed=0, epoch=epoch, config=config) for epoch in range(1, 200)]
    whole = next(epoch for epoch, each in enumerate(left, 1) if each is None)
    joined, _ = join([(train, train)] * 2)
    presence = StackedPresence(torch.tensor([0, 1]), torch.tensor([0, 0]), joined.node_ptr, config)
    presence.epoch.fill_(whole)
    batch = batch_of(joined, torch.tensor([[0, -1, -1], [1, 2, 3]]), BatchShape(40, 512))
    there = presence.of(batch)
    assert torch.equal(there[0], batch.present[0])
    assert 2 <= there[1].sum() < batch.present[1].sum()


# ── one step ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("readout", get_args(Readout))
def test_logits_and_gradients_of_parts_are_those_of_every_network_alone(readout: Any) -> None:
    config = plain_model(**SMALL, degrees=True, jump=True, head_norm=True, readout=readout)
    own, prepared = networks(hubs(), config)
    compare_with_each_alone(own, prepared, [[0, 3, 5, 7], [2, 1, 8, -1]], missing=0.6)


@pytest.mark.parametrize(
    "changes",
    [
        {"jump": False},
        {"count_inputs": True, "pool_norm": True},
        {"count_inputs": True, "readout": "mean+max"},
        {"tie": True},
        {"embedding": "attributes"},
    ],
    ids=str,
)
def test_every_other_setting_goes_with_parts(changes: dict[str, Any]) -> None:
    usual: dict[str, Any] = SMALL | {"degrees": True, "jump": True, "head_norm": True}
    own, prepared = networks(hubs(), plain_model(**usual | {"readout": "mean+log+max"} | changes), several=3)
    compare_with_each_alone(own, prepared, [[4, 3, -1], [8, 0, 1], [6, 5, 2]], missing=0.5)


# ── whole trainings ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(f"{k}={v}" for k, v in case[1].items()) or "plain")
def test_training_on_parts_is_that_of_the_plain_engine(
    case: tuple[Graphs, dict[str, Any], dict[str, Any]],
) -> None:
    graphs, model, train = case
    own = replicas([graphs, graphs[: len(graphs) * 3 // 4], graphs], plain_model(**(SIZES | model), dropout=0.0))
    assert_as_in_the_plain_engine(own, replace(TRAIN, **train))


def test_so_it_is_with_all_layers_read_out() -> None:
    model = plain_model(**SMALL | {"k": 1, "slots": 2}, degrees=True, jump=True, head_norm=True, readout="log+max")
    own = replicas([hubs(18, seed=seed) for seed in range(2)], model)
    assert_as_in_the_plain_engine(own, replace(TRAIN, epochs=3, batch_size=5))


def test_so_it_is_where_replicas_know_different_numbers_of_labels() -> None:
    """A row of the table then means another label, or another slot, in every replica."""
    few = alcohols()
    assert few.node_label is not None
    marked = np.where(np.arange(few.n_nodes) % 3 == 0, len(few.node_label_names), few.node_label)
    more = few.replace(node_label=marked.astype(np.int32), node_label_names=(*few.node_label_names, "marked"))
    model = plain_model(**SIZES, dropout=0.0, readout="mean+log+max", jump=True, count_inputs=True, pool_norm=True)
    own = replicas([few, more, few], model)
    assert [network.counted for network, _, _ in own] == [3, 4, 3]
    assert_as_in_the_plain_engine(own, TRAIN)


def test_so_it_is_with_batches_of_one_graph_of_which_often_one_node_is_left() -> None:
    own = replicas([alcohols()] * 2, plain_model(**SIZES, dropout=0.0))
    assert_as_in_the_plain_engine(own, replace(TRAIN, epochs=2, batch_size=1, parts=1.0))


def test_the_same_seed_gives_the_same_bits_and_parts_make_a_difference() -> None:
    own = replicas([oxygens(40)] * 2, plain_model(**SIZES, dropout=0.2), torch.float32)
    first, second, whole, fewer = (
        [state(network) for network in stacked(own, [0, 1], config)[0]]
        for config in (TRAIN, TRAIN, replace(TRAIN, parts=0.0), replace(TRAIN, missing=0.2))
    )
    assert all(same(one, other) for one, other in zip(first, second, strict=True))
    for others in (whole, fewer):
        assert not any(same(one, other) for one, other in zip(first, others, strict=True))


def test_where_nothing_may_be_missing_the_bits_are_those_of_training_on_whole_graphs() -> None:
    own = replicas([oxygens(40)], plain_model(**SIZES, dropout=0.2), torch.float32)
    whole, nothing = (
        state(stacked(own, [0], config)[0][0]) for config in (replace(TRAIN, parts=0.0), replace(TRAIN, missing=0.0))
    )
    assert same(whole, nothing)


def test_a_replica_does_not_notice_what_the_others_miss() -> None:
    graphs = oxygens(40)
    own = replicas([graphs[:25], graphs, graphs[10:40]], plain_model(**SIZES, readout="mean", dropout=0.3))
    together, histories = stacked(own, [5, 6, 7], TRAIN)
    for r, replica in enumerate(own):
        (network,), (history,) = stacked([replica], [5 + r], TRAIN)
        assert_close(network, together[r], 1e-9)
        assert_same_course(history, histories[r], 1e-8)


def test_nor_that_replicas_which_have_stopped_leave_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    own = replicas([alcohols()[r:] for r in range(4)], plain_model(**SIZES, dropout=0.1))
    config = replace(TRAIN, epochs=14, patience=2)
    together, histories = stacked(own, [0, 1, 2, 3], config)
    assert len({len(history.epochs) for history in histories}) > 1
    monkeypatch.setattr(engine, "WORTH_SHRINKING", 0)
    networks, again = stacked(own, [0, 1, 2, 3], config)
    for r in range(4):
        assert_close(together[r], networks[r], 1e-9)
        assert_same_course(histories[r], again[r], 1e-8)


def test_validation_sees_whole_graphs() -> None:
    own = replicas([alcohols()] * 2, plain_model(**SIZES))
    found, histories = stacked(own, [0, 1], replace(TRAIN, parts=1.0))
    for network, history, (_, _, validation) in zip(found, histories, own, strict=True):
        assert history.best is not None
        loss, score = evaluate(network, validation)
        assert loss == pytest.approx(history.best.validation_loss, abs=1e-6)
        assert score == history.best.validation_score


@pytest.mark.parametrize("order", [(fit, fit_recorded), (fit_recorded, fit)], ids=["into the stack", "out of it"])
def test_a_resumed_training_misses_the_nodes_of_the_epochs_to_come(order: Any, tmp_path: Path) -> None:
    model = plain_model(**SIZES, dropout=0.0)
    ((whole, train, validation),) = replicas([oxygens()], model)
    expected = fit(whole, train, validation, TRAIN)
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", "this run")
    ((begun, _, _),), ((ended, _, _),) = (replicas([oxygens()], model) for _ in range(2))
    order[0](begun, train, validation, TRAIN, keep=checkpoint.keep, report=stop_after(2))
    history = order[1](ended, train, validation, TRAIN, resume=checkpoint.resume)
    assert_close(whole, ended, 1e-6)
    assert_same_course(expected, history, 1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("readout", ["max", "mean+max", "log", "sort"])
def test_steps_recorded_on_a_gpu_miss_what_those_called_on_a_cpu_miss(readout: Any) -> None:
    """Four epochs: a recording that kept the epoch in which it was made would show the same parts in all of them."""
    graphs = random_trees(80, nodes=12, seed=1)
    graphs = graphs.replace(
        node_attr=np.random.default_rng(0).normal(size=(graphs.n_nodes, 2)).astype(np.float32),
        target=np.bincount(graphs.graph_of, weights=graphs.node_label == 1).astype(np.int64) % 2,
        class_names=("even", "odd"),
    )
    sizes: dict[str, Any] = SIZES | {"width": 32, "k": 2, "jump": True, "count_inputs": True}
    own = replicas([graphs, graphs[:60], graphs[20:]], plain_model(**sizes, readout=readout), torch.float32)
    config = replace(TRAIN, learning_rate=1e-3, precision="float32")
    _, expected = stacked(own, [0, 1, 2], config)
    first, found = stacked(own, [0, 1, 2], config, "cuda")
    second, _ = stacked(own, [0, 1, 2], config, "cuda")
    _, rounded = stacked(own, [0, 1, 2], replace(config, precision="bfloat16"), "cuda")
    for r in range(3):
        assert same(state(first[r]), state(second[r]))
        for one, other, rough in zip(expected[r].epochs, found[r].epochs, rounded[r].epochs, strict=True):
            assert one.train_loss == pytest.approx(other.train_loss, abs=2e-3)
            assert one.train_loss == pytest.approx(rough.train_loss, abs=1e-1)
