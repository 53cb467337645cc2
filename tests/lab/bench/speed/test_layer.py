"""One ego-convolution beside its peers, on graphs small enough to check by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from egocnn.nn.engines import ego_conv_reference
from lab.bench.speed.layer import LayerProblem, LayerSizes, Passes, bench_layer, ours, peer_layer, reference
from lab.bench.tools.ceilings import CeilingSizes, Precision
from lab.bench.tools.peers import GAT, GIN, GIN_TWO, PNA, Peer
from lab.bench.tools.problems import Density
from tests.lab.bench.samples import HURRY

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
