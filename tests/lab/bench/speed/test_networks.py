"""Whole training steps, explanations and cross-validations, on a few small compounds."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch
from torch import Tensor

from egocnn.config import TrainConfig
from lab.bench.speed.crossval import CrossvalSizes, bench_crossval
from lab.bench.speed.explain import ExplainSizes, bench_explain
from lab.bench.speed.step import Material, StepSizes, bench_step, collating, peer_inputs, training_steps
from lab.bench.tools.peers import GAT, GIN, Peer
from tests.lab.bench.samples import HURRY
from tests.support.tiny import ALCOHOLS, MODEL, alcohols

SIZES = StepSizes(data=(ALCOHOLS, "no such set"), batch_sizes=(8,), batches=2, model=MODEL)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("EGOCNN_DATA", str(tmp_path))


@pytest.mark.usefixtures("offline")
def test_steps_are_measured_with_the_batch_ready_and_with_its_building_and_a_missing_set_is_said() -> None:
    pytest.importorskip("torch_geometric")
    found = bench_step(HURRY, SIZES)
    json.dumps(found, allow_nan=False)
    ready, built = found["cases"]
    assert [row["system"] for row in ready["systems"]] == [
        "egocnn",
        "egocnn on gather + matrix product",
        "PyG GINConv (one linear layer)",
        "PyG GINConv (MLP of two layers)",
        "PyG GATConv (1 head)",
        "PyG PNAConv",
    ]
    assert all(row["milliseconds"] > 0 for row in (*ready["systems"], *built["systems"]))
    assert (ready["shape"]["batch_built_in_step"], built["shape"]["batch_built_in_step"]) == (False, True)
    assert (ready["shape"]["batch_size"], ready["shape"]["batches"]) == (8, 2)
    assert list(found["missing"]) == ["no such set"]


def material() -> Material:
    return Material.choose(alcohols(), SIZES, 8, HURRY)


def test_the_steps_of_both_sides_learn() -> None:
    pytest.importorskip("torch_geometric")
    given = material()
    network, prepared, numbers = given.ours()
    peer = given.peer(GIN)
    inputs = [peer_inputs(graphs, GIN, torch.device("cpu")) for graphs in given.batches]
    batches = [prepared.batch(chosen) for chosen in numbers]

    def ours(number: int) -> Tensor:
        logits: Tensor = network(batches[number]).output
        return logits

    def theirs(number: int) -> Tensor:
        logits: Tensor = peer(inputs[number])
        return logits

    for module, forward in ((network, ours), (peer, theirs)):
        losses = []
        steps = training_steps(module, [partial(forward, 0), partial(forward, 1)], given.targets, "float32")
        for _ in range(120):
            for work in steps:
                work()
            with torch.no_grad():
                losses.append(float(torch.nn.functional.cross_entropy(forward(0), given.targets[0])))
        assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("peer", [GIN, GAT], ids=lambda peer: peer.name)
def test_a_collated_batch_is_the_batch_built_beforehand(peer: Peer) -> None:
    pytest.importorskip("torch_geometric")
    graphs = material().batches[0]
    ready, built = peer_inputs(graphs, peer, torch.device("cpu")), collating(graphs, peer, torch.device("cpu"))()
    assert torch.equal(ready.x, built.x)
    assert torch.equal(ready.graph_of, built.graph_of)
    assert ready.n_graphs == built.n_graphs
    assert {tuple(edge) for edge in ready.edge_index.T.tolist()} == {tuple(e) for e in built.edge_index.T.tolist()}
    own = sum(int(a == b) for a, b in ready.edge_index.T.tolist())
    assert own == (0 if peer is GIN else len(ready.x))


def test_explaining_is_timed_by_the_graph() -> None:
    pytest.importorskip("torch_geometric")
    found = bench_explain(HURRY, ExplainSizes(data=ALCOHOLS, graphs=6, few=1))
    together, singly = found["cases"]
    assert together["shape"]["graphs_in_one_call"] == 6
    assert singly["shape"]["graphs_in_one_call"] == 1
    for case in (together, singly):
        theirs = case["systems"][1]
        assert theirs["system"] == "PyG GNNExplainer (100 steps)"
        assert theirs["time_ratio"] > 1
    assert together["systems"][0]["milliseconds"] < singly["systems"][0]["milliseconds"]


@pytest.mark.usefixtures("offline")
def test_a_cross_validation_is_timed_whole_beside_trainings_one_by_one() -> None:
    sizes = CrossvalSizes(data=(ALCOHOLS, "no such set"), folds=2, restarts=1, model=MODEL, train=TrainConfig(epochs=2))
    found = bench_crossval(HURRY, sizes)
    json.dumps(found, allow_nan=False)
    (case,) = found["cases"]
    assert [row["system"].partition(" (")[0] for row in case["systems"]] == ["egocnn", "PyG GINConv"]
    shape = case["shape"]
    assert (shape["folds"], shape["restarts"], shape["epochs"], shape["stacked"]) == (2, 1, 2, False)
    assert case["systems"][0]["milliseconds"] >= 1000 * shape["training_seconds"] * 0.9
    assert list(found["missing"]) == ["no such set"]
