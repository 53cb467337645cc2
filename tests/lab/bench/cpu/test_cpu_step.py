"""The script that measures a training step on a CPU: every peer is run, and goals are judged by the ratios."""

from __future__ import annotations

import pytest
import torch

from egocnn.data.read import read
from lab.bench.cpu import cpu_step

pytest.importorskip("torch_geometric")


def test_a_step_is_measured_beside_every_peer() -> None:
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


def test_a_step_changes_the_weights() -> None:
    network = torch.nn.Linear(2, 2)
    before = network.weight.detach().clone()
    cpu_step.stepper(network, lambda: network(torch.ones(3, 2)), torch.tensor([0, 1, 1]))()
    assert not torch.equal(network.weight, before)
