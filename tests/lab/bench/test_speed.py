"""The layer, whole networks and growth beside their peers, on graphs small enough to check by hand."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from egocnn.nn.engines import ego_conv_reference
from lab.bench.speed.crossval import CrossvalSizes, bench_crossval
from lab.bench.speed.explain import ExplainSizes, bench_explain
from lab.bench.speed.growth import GrowthSizes, SizePoint, bench_growth, curve, exponents
from lab.bench.speed.layer import LayerProblem, LayerSizes, Passes, bench_layer, ours, peer_layer, reference
from lab.bench.speed.step import Material, StepSizes, bench_step, collating, peer_inputs, training_steps
from lab.bench.tools.ceilings import CeilingSizes, Precision
from lab.bench.tools.peers import GAT, GIN, GIN_TWO, PNA, Peer
from lab.bench.tools.problems import Density
from tests.lab.bench.samples import HURRY
from tests.support.tiny import ALCOHOLS, MODEL, alcohols, plain_train

# ── one ego-convolution beside its peers, on graphs small enough to check by hand ─────────────────


CEILINGS = CeilingSizes(copied_bytes=1 << 16, square=64, tall=(256, 64, 16))
PASSES: tuple[Passes, ...] = ("forward", "forward + backward")


def problem(density: Density = "molecules", precision: Precision = "float32") -> LayerProblem:
    return LayerProblem(nodes=100, k=5, width=8, density=density, precision=precision, setting=HURRY)


def tensors(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("density", ["full", "molecules"])
def test_ours_and_the_reference_are_given_the_same_problem(passes: Passes, density: Density) -> None:
    (mine,), (theirs,) = ours(problem(density), passes), reference(problem(density), passes, ego_conv_reference)
    found, wanted = tensors(mine()), tensors(theirs())
    assert len(found) == (1 if passes == "forward" else 3)
    assert not found[0].requires_grad
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_the_peers_read_the_same_graph() -> None:
    """A sum over neighbours, written out from the table."""
    pytest.importorskip("torch_geometric")
    given = problem()
    (work,) = peer_layer(given, "forward", GIN)
    torch.manual_seed(HURRY.seed)
    layer: Any = GIN.layer(given.width, torch.ones(1))
    x, table = given.random(given.nodes, given.width), given.table().long()
    padded = torch.cat([x, torch.zeros(1, given.width)])
    torch.testing.assert_close(tensors(work())[0], layer.nn(x + padded[table].sum(1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("peer", [GIN, GIN_TWO, GAT, PNA], ids=lambda peer: peer.name)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_peer_gives_the_gradients_of_inputs_and_weights(peer: Peer, precision: Precision) -> None:
    pytest.importorskip("torch_geometric")
    given = problem(precision=precision)
    gradients = tensors(peer_layer(given, "forward + backward", peer)[0]())
    assert gradients[0].shape == (given.nodes, given.width)
    assert gradients[0].dtype == (torch.bfloat16 if precision == "bfloat16" else torch.float32)
    assert len(gradients) >= 3
    assert all(float(gradient.abs().sum()) > 0 for gradient in gradients[:2])


def test_the_least_work_counts_present_neighbours_and_every_tensor_once() -> None:
    given = problem("full")
    (operations, size), (back_operations, back_size) = given.parts
    assert operations == 2 * 100 * (5 + 1) * 8 * 8
    assert size == 4 * (2 * 100 * 8 + 100 * 5)
    assert (back_operations, back_size) == (2 * operations, size + 4 * 100 * 8)
    present = int((problem("molecules").table() >= 0).sum())
    assert problem("molecules").parts[0][0] == 2 * (100 + present) * 8 * 8


def test_a_run_tells_times_ratios_floors_and_planning() -> None:
    sizes = LayerSizes(nodes=200, k=4, width=8, graphs=(("molecules", "float32"),), compiled=False, ceilings=CEILINGS)
    found = bench_layer(HURRY, sizes)
    json.dumps(found, allow_nan=False)
    assert [case["shape"]["passes"] for case in found["cases"]] == [
        "forward",
        "planning for forward",
        "forward + backward",
        "planning for forward + backward",
    ]
    for case in found["cases"][::2]:
        assert [row["system"] for row in case["systems"]][:2] == ["egocnn", "gather + matrix product"]
        assert len(case["systems"]) == 5
        assert case["floor"]["milliseconds"] > 0
        for row in case["systems"][:2]:
            assert row["useful_teraflops"] > 0
            assert row["time_ratio"] > 0
    assert 1 <= found["cases"][0]["shape"]["present_neighbours"] <= 4


# ── whole training steps, explanations and cross-validations, on a few small compounds ────────────


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
    sizes = CrossvalSizes(data=(ALCOHOLS, "no such set"), folds=2, restarts=1, model=MODEL, train=plain_train(epochs=2))
    found = bench_crossval(HURRY, sizes)
    json.dumps(found, allow_nan=False)
    (case,) = found["cases"]
    assert [row["system"].partition(" (")[0] for row in case["systems"]] == ["egocnn", "PyG GINConv"]
    shape = case["shape"]
    assert (shape["folds"], shape["restarts"], shape["epochs"], shape["stacked"]) == (2, 1, 2, False)
    assert case["systems"][0]["milliseconds"] >= 1000 * shape["training_seconds"] * 0.9
    assert list(found["missing"]) == ["no such set"]


# ── curves of time and memory against one size ────────────────────────────────────────────────────


def made_up(power: float) -> list[dict[str, Any]]:
    """Fixed costs at first, then a power law."""
    return [
        {
            "shape": {"nodes": n, "varied": "nodes"},
            "systems": [{"system": "egocnn", "milliseconds": max(50.0, n**power)}, {"system": "gone"}],
        }
        for n in (1, 2, 4, 1000, 2000, 4000)
    ]


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_the_exponent_is_that_of_the_larger_half(power: float) -> None:
    assert exponents(made_up(power)) == {"N": {"egocnn": pytest.approx(power, abs=0.01)}}


def test_a_curve_leaves_out_what_could_not_be_measured() -> None:
    cases = made_up(1.0)
    assert curve(cases, "nodes", "egocnn", "milliseconds")[-1] == (4000, 4000.0)
    assert curve(cases, "nodes", "gone", "milliseconds") == []
    assert curve(cases, "width", "egocnn", "milliseconds") == []


def test_one_size_is_varied_at_a_time() -> None:
    fixed = SizePoint(nodes=64, k=2, width=4, layers=2)
    found = bench_growth(HURRY, GrowthSizes(fixed=fixed, grown={"nodes": [32, 128], "layers": [1, 3]}))
    shapes = [tuple(case["shape"][name] for name in ("nodes", "k", "width", "layers")) for case in found["cases"]]
    assert shapes == [(32, 2, 4, 2), (128, 2, 4, 2), (64, 2, 4, 1), (64, 2, 4, 3)]
    assert [case["case"] for case in found["cases"]] == ["N = 32", "N = 128", "L = 1", "L = 3"]
    assert found["exponents"].keys() == {"N", "L"}
    assert all(row["milliseconds"] > 0 for case in found["cases"] for row in case["systems"])
