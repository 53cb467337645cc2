"""Steps and preparation on a CPU: they run, and write what they promise."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.read import read
from lab.__main__ import main as lab
from lab.bench.cpu import cpu_step, networks, prepare

# ── the script that measures a training step on a CPU ─────────────────────────────────────────────


def test_a_step_is_measured_beside_every_peer() -> None:
    pytest.importorskip("torch_geometric")
    graphs = read("compounds:isomers")[:24]
    threads = torch.get_num_threads()
    result = cpu_step.measure(graphs, cpu_step.Size(graphs=8, depth=2, width=8), rounds=1)
    assert torch.get_num_threads() == threads
    assert result["graphs"] == 8
    products = result["products_per_node"]
    assert 1 < products["ours"] <= products["present"] < products["dense"] == 17
    times = result["milliseconds"]
    assert all(of["best"] > 0 for of in times.values())
    for goal in result["goals"]:
        ratio = times[goal["peer"]]["best"] / times[goal["ours"]]["best"]
        assert goal["times_faster"] == pytest.approx(ratio, abs=0.01)
        assert goal["met"] == (goal["times_faster"] >= goal["goal"])


# ── the script that measures several networks beside one ──────────────────────────────────────────


def test_several_networks_are_measured_beside_one() -> None:
    threads = torch.get_num_threads()
    model, train = ModelConfig(width=8, depth=1, hidden=8, slots=4, k=4), TrainConfig(networks=2, epochs=3)
    result = networks.measure(read("compounds:isomers")[:24], model, train, rounds=2, at_once=2)
    assert torch.get_num_threads() == threads
    assert result["graphs"] == {"trained": 18, "validated": 2}  # four are for the test
    times = result["seconds"]
    assert {"one network", "one network, one thread", "2 networks"} < times.keys()
    assert all(0 < of["best"] <= of["median"] for of in times.values())
    ratio = times["2 networks"]["best"] / times["one network"]["best"]
    assert result["times_one_network"] == pytest.approx(ratio, abs=0.01)
    is_met = result["times_one_network"] <= result["goal"] == 1.6
    assert result["met"] == (is_met if result["load_average"][0] < networks.QUIET else None)


# ── the scripts that measure ──────────────────────────────────────────────────────────────────────


def test_preparing_is_measured_on_growing_graphs(tmp_path: Path) -> None:
    out = tmp_path / "prepare.json"
    assert lab(["measure", "prepare", "--quick", "-o", str(out)]) == 0
    result = json.loads(out.read_text())
    assert {"what", "sets", "goals", "command", "date", "machine", "versions"} <= result.keys()
    for family in prepare.FAMILIES:
        curve = result["growth"][family]["curve"]
        np.testing.assert_allclose([row["edges"] for row in curve], prepare.EDGES[:2], rtol=0.05)
        assert all(row["prepare_seconds"] > 0 and row["peak_gigabytes"] > 0 for row in curve)
        assert result["exponents"][family] == result["growth"][family]["exponent"]
    with out.with_suffix(".csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2 * len(prepare.FAMILIES)


def curve_of(power: float, *sizes: int) -> list[dict[str, Any]]:
    return [{"edges": size, "processor_seconds": 1e-6 * size**power} for size in sizes]


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_the_exponent_is_that_of_the_growth(power: float) -> None:
    assert prepare.exponent(curve_of(power, 10_000, 30_000)) == pytest.approx(power)
    fixed_costs = [{"edges": 10_000, "processor_seconds": 1e9}]
    assert prepare.exponent(fixed_costs + curve_of(power, 100_000, 1_000_000, 10_000_000)) == pytest.approx(power)


def test_a_goal_is_met_below_its_bound() -> None:
    sets = {"NCI1": {"read_seconds": 0.5, "prepare_seconds": 0.6, "prepared_megabytes": 120.0}}
    assert [(goal["measured"], goal["met"]) for goal in prepare.goals(sets)] == [(1.1, True), (120.0, False)]


def test_the_network_has_hubs_and_the_molecules_have_none() -> None:
    random = np.random.default_rng(0)
    assert prepare.network(20_000, random).degree.max() > 200
    molecules = prepare.molecules(20_000, random)
    assert molecules.degree.max() < 10
    assert molecules.node_counts.tolist() == [30] * len(molecules)
