"""The GPU engine, on the GPU where there is one, else by Triton's interpreter: the very same kernels, on small shapes.

The interpreter cannot multiply bfloat16; python -m lab measure engine_agreement does, on a GPU.
"""

import logging
from importlib.util import find_spec

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from egocnn.nn.device import warn
from egocnn.nn.engines.gpu import fused as engine
from egocnn.nn.engines.gpu import tiles
from egocnn.nn.engines.gpu.fused import ego_conv_fused, is_available
from egocnn.nn.engines.gpu.tiles import LONG, WINDOW, TileRows, Tiles, Transposed, windows_of
from lab.bench.agreement.engine_agreement import TOLERANCE, ConvolutionCase, build, compare
from tests.nn.engines.test_ops import check_single_gradients

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton runs on Linux only")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@st.composite
def cases(draw: st.DrawFn) -> ConvolutionCase:
    return ConvolutionCase(
        nodes=draw(st.integers(0, 40)),
        K=draw(st.integers(0, 5)),
        D=draw(st.integers(1, 40)),
        D_out=draw(st.integers(1, 40)),
        replicas=draw(st.sampled_from([None, 1, 3])),
        absent=draw(st.sampled_from([0.0, 0.3, 0.9, 1.0])),
        hubs=draw(st.booleans()),
        relu=draw(st.booleans()),
    )


def check(case: ConvolutionCase, kind: str = "float32", **settings: int) -> None:
    errors = compare(case, getattr(torch, kind), DEVICE, **settings)
    assert max(errors.values()) <= TOLERANCE[kind], errors


@given(cases(), st.integers(0, 99))
def test_output_and_gradients_equal_the_float64_reference(case: ConvolutionCase, seed: int) -> None:
    check(case, seed=seed)


@pytest.mark.parametrize(
    "case",
    [
        ConvolutionCase(40, 3, 130, 20),
        ConvolutionCase(40, 3, 20, 130),
        ConvolutionCase(150, 2, 16, 16, replicas=2),
        ConvolutionCase(3 * LONG, 2, 16, 16, absent=0.0, hubs=True),
    ],
    ids=["wider than a slice in", "wider than a tile out", "several tiles", "sums of many addends"],
)
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_shapes_that_need_several_tiles_are_right_too(case: ConvolutionCase, kind: str) -> None:
    check(case, kind)


def test_whole_tiles_of_filters_may_be_fetched_by_the_copy_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_has_copy_engine", lambda _: True)
    for case in (ConvolutionCase(70, 3, 32, 64), ConvolutionCase(30, 2, 64, 16, replicas=2)):
        check(case)


def test_large_graphs_are_differentiated_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tiles, engine):
        monkeypatch.setattr(module, "WINDOW", 128)
    monkeypatch.setattr(tiles, "ROOM", 50)
    for case in (
        ConvolutionCase(400, 3, 16, 16, absent=0.2),
        ConvolutionCase(128, 3, 16, 16),
        ConvolutionCase(257, 2, 16, 16, hubs=True),
    ):
        check(case)
    table = build(ConvolutionCase(400, 3, 16, 16, absent=0.2), torch.float32, DEVICE, 0)[1].int()
    back = Transposed.of(table, 400)
    assert len(back.starts) == 5
    assert len(back.room) == int(back.starts.diff().max()) < len(back.first)


def test_a_single_gradient_is_the_same_as_together_with_the_others() -> None:
    x, table, *filters = build(ConvolutionCase(20, 3, 8, 8), torch.float32, DEVICE, 0)
    planned = Tiles.of(table, gradients=True)
    check_single_gradients(lambda x, *filters: ego_conv_fused(x, planned, *filters), (x, *filters))


def test_a_replica_that_diverged_does_not_disturb_the_others() -> None:
    x, table, weight, bias = build(ConvolutionCase(30, 3, 16, 16, replicas=3), torch.float32, DEVICE, 0)
    spoiled = x.clone()
    spoiled[0] = float("nan")

    def gradients(x: Tensor) -> list[Tensor]:
        leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
        y = ego_conv_fused(leaves[0], Tiles.of(table, gradients=True), *leaves[1:])
        return [y.detach(), *torch.autograd.grad(y.square().sum(), leaves)]

    for calm, disturbed in zip(gradients(x), gradients(spoiled), strict=True):
        assert torch.equal(calm[1:], disturbed[1:])


def test_neighbours_prepared_without_gradients_can_be_differentiated_all_the_same() -> None:
    x, table, weight, bias = build(ConvolutionCase(25, 3, 8, 8), torch.float32, DEVICE, 0)
    gradients: list[Tensor] = []
    for expected in (True, False):
        leaf = x.clone().requires_grad_()
        y = ego_conv_fused(leaf, Tiles.of(table, gradients=expected), weight, bias)
        gradients += torch.autograd.grad(y.square().sum(), leaf)
    assert torch.equal(*gradients)


@pytest.mark.parametrize("planned", [True, False])
def test_torch_can_check_the_operator_and_compile_it(planned: bool) -> None:
    x, table, weight, bias = build(ConvolutionCase(12, 2, 16, 16), torch.float32, DEVICE, 0)
    plan = Tiles.of(table, gradients=True) if planned else table

    def network(x: Tensor, weight: Tensor) -> Tensor:
        return torch.relu(ego_conv_fused(ego_conv_fused(x, plan, weight, bias, relu=True), plan, weight, bias))

    compiled = torch.compile(network, backend="aot_eager", fullgraph=True)
    leaves = [x.requires_grad_(), weight.requires_grad_()]
    eager = torch.autograd.grad(network(*leaves).square().sum(), leaves)
    traced = torch.autograd.grad(compiled(*leaves).square().sum(), leaves)
    for one, other in zip(eager, traced, strict=True):
        torch.testing.assert_close(one, other)
    torch.library.opcheck(torch.ops.egocnn.fused.default, (*leaves, bias, [table], True))


def test_rows_come_by_falling_length_within_windows_and_never_leave_their_replica() -> None:
    nodes, K = WINDOW + 100, 3
    table = torch.randint(0, nodes, (2 * nodes, K), dtype=torch.int32)
    table[torch.arange(K)[None] >= torch.randint(0, K + 1, (2 * nodes, 1))] = -1
    rows = TileRows.of(table, nodes)
    order = rows.columns[0].long()
    assert torch.equal(order.sort().values, torch.arange(2 * nodes))
    assert torch.equal(rows.length.long(), 1 + (table[order] >= 0).sum(1))
    assert windows_of(nodes) == 2
    for first, last in ((0, WINDOW), (WINDOW, nodes), (nodes, nodes + WINDOW), (nodes + WINDOW, 2 * nodes)):
        assert set(order[first:last].tolist()) == set(range(first, last))
        assert bool((rows.length[first:last].diff() <= 0).all())


def test_where_triton_is_missing_the_reference_takes_over_with_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine, "HAS_TRITON", False)
    warn.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert not is_available(torch.device("cuda"))
        assert not is_available(torch.device("cuda"))
    assert not is_available(torch.device("cpu"))
    assert [record.message for record in caplog.records] == [
        "triton is not installed: ego-convolutions on the GPU run by the slower reference"
    ]
