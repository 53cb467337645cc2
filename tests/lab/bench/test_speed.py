"""The layer, whole networks, growth and preparation beside their peers, on graphs small enough to check by hand."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.read import read
from egocnn.nn.engines import ego_conv_reference
from lab.__main__ import main as lab
from lab.bench.cpu import cpu_step, networks, prepare
from lab.bench.speed.crossval import CrossvalSizes, bench_crossval
from lab.bench.speed.explain import ExplainSizes, bench_explain
from lab.bench.speed.growth import GrowthSizes, SizePoint, bench_growth, curve, exponents
from lab.bench.speed.layer import LayerProblem, LayerSizes, Passes, bench_layer, ours, peer_layer, reference
from lab.bench.speed.step import Material, StepSizes, bench_step, collating, peer_inputs, training_steps
from lab.bench.tools.ceilings import CeilingSizes, Precision
from lab.bench.tools.peers import GAT, GIN, Peer
from lab.bench.tools.problems import Density
from lab.rivals import gnn_explainer
from tests.lab.bench.samples import HURRY
from tests.support.commands import rows
from tests.support.tiny import ALCOHOLS, MODEL, alcohols, plain_train

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


def test_the_peers_read_the_same_graph_least_work_counts_what_is_there_and_one_size_varies_at_a_time() -> None:
    # A sum over neighbours, written out from the table.
    pytest.importorskip("torch_geometric")
    given = problem()
    (work,) = peer_layer(given, "forward", GIN)
    torch.manual_seed(HURRY.seed)
    layer: Any = GIN.layer(given.width, torch.ones(1))
    x, table = given.random(given.nodes, given.width), given.table().long()
    padded = torch.cat([x, torch.zeros(1, given.width)])
    torch.testing.assert_close(tensors(work())[0], layer.nn(x + padded[table].sum(1)), rtol=1e-4, atol=1e-5)
    given = problem("full")
    (operations, size), (back_operations, back_size) = given.parts
    assert operations == 2 * 100 * (5 + 1) * 8 * 8
    assert size == 4 * (2 * 100 * 8 + 100 * 5)
    assert (back_operations, back_size) == (2 * operations, size + 4 * 100 * 8)
    present = int((problem("molecules").table() >= 0).sum())
    assert problem("molecules").parts[0][0] == 2 * (100 + present) * 8 * 8
    fixed = SizePoint(nodes=64, k=2, width=4, layers=2)
    found = bench_growth(HURRY, GrowthSizes(fixed=fixed, grown={"nodes": [32, 128], "layers": [1, 3]}))
    shapes = [tuple(case["shape"][name] for name in ("nodes", "k", "width", "layers")) for case in found["cases"]]
    assert shapes == [(32, 2, 4, 2), (128, 2, 4, 2), (64, 2, 4, 1), (64, 2, 4, 3)]
    assert [case["case"] for case in found["cases"]] == ["N = 32", "N = 128", "L = 1", "L = 3"]
    assert found["exponents"].keys() == {"N", "L"}
    assert all(row["milliseconds"] > 0 for case in found["cases"] for row in case["systems"])


def test_a_run_tells_times_ratios_floors_and_planning() -> None:
    sizes = LayerSizes(nodes=200, k=4, width=8, graphs=(("molecules", "float32"),), compiled=False, ceilings=CEILINGS)
    found = bench_layer(HURRY, sizes)
    json.dumps(found, allow_nan=False)
    passes = [case["shape"]["passes"] for case in found["cases"]]
    assert passes == [words + each for each in PASSES for words in ("", "planning for ")]
    for case in found["cases"][::2]:
        assert [row["system"] for row in case["systems"]][:2] == ["egocnn", "gather + matrix product"]
        assert len(case["systems"]) == 5
        assert case["floor"]["milliseconds"] > 0
        for row in case["systems"][:2]:
            assert row["useful_teraflops"] > 0
            assert row["time_ratio"] > 0
    assert 1 <= found["cases"][0]["shape"]["present_neighbours"] <= 4


SIZES = StepSizes(data=(ALCOHOLS, "no such set"), batch_sizes=(8,), batches=2, model=MODEL)


def test_steps_are_measured_with_the_batch_ready_and_with_its_building_and_a_missing_set_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("torch_geometric")
    monkeypatch.setenv("EGOCNN_DATA", str(tmp_path))
    found = bench_step(HURRY, SIZES)
    json.dumps(found, allow_nan=False)
    ready, built = found["cases"]
    systems = [row["system"].partition(" (")[0] for row in ready["systems"]]
    peers = ["PyG GINConv", "PyG GINConv", "PyG GATConv", "PyG PNAConv"]
    assert systems == ["egocnn", "egocnn on gather + matrix product", *peers]
    assert all(row["milliseconds"] > 0 for row in (*ready["systems"], *built["systems"]))
    assert (ready["shape"]["batch_built_in_step"], built["shape"]["batch_built_in_step"]) == (False, True)
    assert (ready["shape"]["batch_size"], ready["shape"]["batches"]) == (8, 2)
    assert list(found["missing"]) == ["no such set"]


def test_the_steps_of_both_sides_learn() -> None:
    pytest.importorskip("torch_geometric")
    given = Material.choose(alcohols(), SIZES, 8, HURRY)
    network, prepared, numbers = given.ours()
    peer = given.peer(GIN)
    inputs = [peer_inputs(graphs, GIN, torch.device("cpu")) for graphs in given.batches]
    batches = [prepared.batch(chosen) for chosen in numbers]
    forwards: dict[Any, Callable[[int], Tensor]] = {
        network: lambda number: network(batches[number]).output,
        peer: lambda number: peer(inputs[number]),
    }
    for module, forward in forwards.items():
        losses: list[float] = []
        steps = training_steps(module, [partial(forward, 0), partial(forward, 1)], given.targets, "float32")
        while len(losses) < 120 and (len(losses) < 2 or losses[-1] >= 0.5 * losses[0]):
            for work in steps:
                work()
            with torch.no_grad():
                losses.append(float(torch.nn.functional.cross_entropy(forward(0), given.targets[0])))
        assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("peer", [GIN, GAT], ids=lambda peer: peer.name)
def test_a_collated_batch_is_the_batch_built_beforehand(peer: Peer) -> None:
    pytest.importorskip("torch_geometric")
    graphs = Material.choose(alcohols(), SIZES, 8, HURRY).batches[0]
    ready, built = peer_inputs(graphs, peer, torch.device("cpu")), collating(graphs, peer, torch.device("cpu"))()
    assert torch.equal(ready.x, built.x)
    assert torch.equal(ready.graph_of, built.graph_of)
    assert ready.n_graphs == built.n_graphs
    assert {tuple(edge) for edge in ready.edge_index.T.tolist()} == {tuple(e) for e in built.edge_index.T.tolist()}
    own = sum(int(a == b) for a, b in ready.edge_index.T.tolist())
    assert own == (0 if peer is GIN else len(ready.x))


def test_explaining_is_timed_by_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch_geometric")
    monkeypatch.setattr("lab.bench.speed.explain.ModelConfig", lambda: MODEL)
    monkeypatch.setattr("lab.bench.speed.explain.gnn_explainer", partial(gnn_explainer, epochs=2))
    found = bench_explain(HURRY, ExplainSizes(data=ALCOHOLS, graphs=6, few=1))
    together, singly = found["cases"]
    assert together["shape"]["graphs_in_one_call"] == 6
    assert singly["shape"]["graphs_in_one_call"] == 1
    for case in (together, singly):
        ours, theirs = case["systems"][:2]
        assert theirs["system"] == "PyG GNNExplainer (100 steps)"
        assert theirs["time_ratio"] == pytest.approx(theirs["milliseconds"] / ours["milliseconds"], rel=0.05)


def test_a_cross_validation_is_timed_whole_beside_trainings_one_by_one() -> None:
    sizes = CrossvalSizes(data=(ALCOHOLS,), folds=2, restarts=1, model=MODEL, train=plain_train(epochs=2))
    found = bench_crossval(HURRY, sizes)
    json.dumps(found, allow_nan=False)
    (case,) = found["cases"]
    assert [row["system"].partition(" (")[0] for row in case["systems"]] == ["egocnn", "PyG GINConv"]
    shape = case["shape"]
    assert (shape["folds"], shape["restarts"], shape["epochs"], shape["stacked"]) == (2, 1, 2, False)
    assert case["systems"][0]["milliseconds"] >= 1000 * shape["training_seconds"] * 0.9


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_the_exponent_is_that_of_the_larger_half_and_a_curve_leaves_out_what_was_not_measured(power: float) -> None:
    cases: list[dict[str, Any]] = [  # fixed costs at first, then a power law
        {
            "shape": {"nodes": n, "varied": "nodes"},
            "systems": [{"system": "egocnn", "milliseconds": max(50.0, n**power)}, {"system": "gone"}],
        }
        for n in (1, 2, 4, 1000, 2000, 4000)
    ]
    assert exponents(cases) == {"N": {"egocnn": pytest.approx(power, abs=0.01)}}
    assert curve(cases, "nodes", "egocnn", "milliseconds")[-1] == (4000, 4000.0**power)
    assert curve(cases, "nodes", "gone", "milliseconds") == curve(cases, "width", "egocnn", "milliseconds") == []


def test_a_step_is_measured_beside_every_peer() -> None:
    pytest.importorskip("torch_geometric")
    threads = torch.get_num_threads()
    result = cpu_step.measure(read("compounds:alcohols")[:24], cpu_step.Size(graphs=8, depth=2, width=8), rounds=1)
    assert (torch.get_num_threads(), result["graphs"]) == (threads, 8)
    products = result["products_per_node"]
    assert 1 < products["ours"] <= products["present"] < products["dense"] == 17
    times = result["milliseconds"]
    assert all(of["best"] > 0 for of in times.values())
    for goal in result["goals"]:
        ratio = times[goal["peer"]]["best"] / times[goal["ours"]]["best"]
        assert goal["times_faster"] == pytest.approx(ratio, abs=0.01)
        assert goal["met"] == (goal["times_faster"] >= goal["goal"])


def test_several_networks_are_measured_beside_one() -> None:
    model, train = ModelConfig(width=8, depth=1, hidden=8, slots=4, k=4), TrainConfig(networks=2, epochs=3)
    result = networks.measure(read("compounds:alcohols")[:24], model, train, rounds=2, at_once=2)
    assert result["graphs"] == {"trained": 18, "validated": 2}  # four are for the test
    times = result["seconds"]
    assert {"one network", "one network, one thread", "2 networks"} < times.keys()
    assert all(0 < of["best"] <= of["median"] for of in times.values())
    ratio = times["2 networks"]["best"] / times["one network"]["best"]
    assert result["times_one_network"] == pytest.approx(ratio, abs=0.01)
    is_met = result["times_one_network"] <= result["goal"] == 1.6
    assert result["met"] == (is_met if result["load_average"][0] < networks.QUIET else None)


def test_preparing_is_measured_on_growing_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "prepare.json"
    fresh = prepare.in_fresh_processes("compounds:alcohols", 1)
    assert fresh.keys() == prepare.measure("compounds:alcohols").keys()
    monkeypatch.setattr(prepare, "in_fresh_processes", lambda source, _: prepare.measure(source))  # processes take time
    assert lab(["measure", "prepare", "--quick", "-o", str(out)]) == 0
    result = json.loads(out.read_text())
    assert {"what", "sets", "goals", "command", "date", "machine", "versions"} <= result.keys()
    for family in prepare.FAMILIES:
        curve = result["growth"][family]["curve"]
        np.testing.assert_allclose([row["edges"] for row in curve], prepare.EDGES[:2], rtol=0.05)
        assert all(row["prepare_seconds"] > 0 and row["peak_gigabytes"] > 0 for row in curve)
        assert result["exponents"][family] == result["growth"][family]["exponent"]
    assert len(rows(out.with_suffix(".csv"))) == 2 * len(prepare.FAMILIES)
    random = np.random.default_rng(0)
    assert prepare.network(20_000, random).degree.max() > 200  # hubs, which molecules do not have
    molecules = prepare.molecules(20_000, random)
    assert molecules.degree.max() < 10
    assert set(molecules.node_counts.tolist()) == {30}


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_the_exponent_is_that_of_the_growth_and_a_goal_is_met_below_its_bound(power: float) -> None:
    few, many = (
        [{"edges": size, "processor_seconds": 1e-6 * size**power} for size in sizes]
        for sizes in ((10_000, 30_000), (100_000, 1_000_000, 10_000_000))
    )
    assert prepare.exponent(few) == pytest.approx(power)
    fixed_costs = [{"edges": 10_000, "processor_seconds": 1e9}]
    assert prepare.exponent(fixed_costs + many) == pytest.approx(power)
    sets = {"NCI1": {"read_seconds": 0.5, "prepare_seconds": 0.6, "prepared_megabytes": 120.0}}
    assert [(goal["measured"], goal["met"]) for goal in prepare.goals(sets)] == [(1.1, True), (120.0, False)]
