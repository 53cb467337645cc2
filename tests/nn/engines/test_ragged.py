"""The CPU engine: what its plan holds, and how it behaves under torch.compile, torch.func and autocast."""

from collections.abc import Callable
from shutil import which

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from egocnn.errors import ConfigError
from egocnn.nn import EgoConv
from egocnn.nn.engines import Neighbours, ego_conv, ego_conv_ragged, ego_conv_reference
from egocnn.nn.engines.cpu import BLOCK, Plan

Pair = tuple[int, int]  # rank from 1 on, node at that rank

K, D = 3, 4


def random_table(N: int, *, seed: int, ranks: int = K) -> Tensor:
    """Molecule-like: up to all ranks filled, neighbours anywhere."""
    random = torch.Generator().manual_seed(seed)
    table = torch.randint(0, max(N, 1), (N, K), generator=random)
    count = torch.randint(0, ranks + 1, (N, 1), generator=random)
    return torch.where(torch.arange(K) < count, table, -1)


def inputs(N: int, *, seed: int, replicas: tuple[int, ...] = ()) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> Tensor:
        return torch.randn(*replicas, *size, generator=random, dtype=torch.float64)

    return normal(N, D), normal(K + 1, D, 5), normal(5)


sizes, seeds, ranks = st.integers(0, 8), st.integers(0, 999), st.integers(0, K)
tables = st.builds(lambda N, seed, ranks: random_table(N, seed=seed, ranks=ranks), sizes, seeds, ranks)


# ── the plan ──────────────────────────────────────────────────────────────────────────────────────


def pairs(table: Tensor) -> list[list[Pair]]:
    return [[(rank, m) for rank, m in enumerate(row, 1) if m >= 0] for row in table.tolist()]


def bags(rows: Tensor, starts: Tensor) -> list[list[int]]:
    return [part.tolist() for part in torch.tensor_split(rows, starts)[1:]]


@given(tables)
def test_a_node_is_multiplied_once_for_every_rank_and_added_up_where_the_table_says(table: Tensor) -> None:
    products, wanted = Plan.of(table).products, pairs(table)
    N, distinct = len(table), sorted({pair for row in wanted for pair in row})
    ranks = [rank for rank, count in enumerate(products.counts.tolist(), 1) for _ in range(count)]
    assert list(zip(ranks, products.sources.tolist(), strict=True)) == distinct
    number = {pair: N + at for at, pair in enumerate(distinct)}
    received = [[node, *(number[pair] for pair in row)] for node, row in enumerate(wanted)]
    assert bags(products.received, products.received_from) == received
    readers = [[node for node, row in enumerate(wanted) if pair in row] for pair in number]
    assert bags(products.readers, products.readers_from) == readers
    made = [[node, *(at for (_, source), at in number.items() if source == node)] for node in range(N)]
    assert bags(products.made, products.made_from) == made


def test_a_table_of_other_nodes_or_ranks_is_refused_and_a_gradient_spread_out_is_read_right() -> None:
    x, weight, bias = inputs(5, seed=0)
    with pytest.raises(ConfigError, match="a table of 4 nodes and 3 ranks fits neither 5 nodes nor 4 filters"):
        ego_conv_ragged(x, Plan.of(random_table(4, seed=0)), weight, bias)
    with pytest.raises(ConfigError, match="3 filters"):
        ego_conv_ragged(x, Plan.of(random_table(5, seed=0)), weight[:3], bias)
    table, gradients = random_table(20, seed=2), []
    for engine in (lambda x, weight, bias: ego_conv_reference(x, table, weight, bias), conv(table)):
        leaves = [t.requires_grad_() for t in inputs(20, seed=2)]
        gradients.append(torch.autograd.grad(engine(*leaves).sum(), leaves))  # sum() sends an expanded 1 back
    for expected, found in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected)


# ── precision ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once(dtype: torch.dtype) -> None:
    plan = Plan.of(random_table(20, seed=1))
    x, weight, bias = (t.to(dtype) for t in inputs(20, seed=1))
    exact = ego_conv_ragged(x.float(), plan, weight.float(), bias.float())
    assert torch.equal(ego_conv_ragged(x, plan, weight, bias), exact.to(dtype))


# ── torch.func ────────────────────────────────────────────────────────────────────────────────────

Function = Callable[[Tensor, Tensor, Tensor], Tensor]


def conv(table: Tensor) -> Function:
    plan = Neighbours.of(table)
    return lambda x, weight, bias: ego_conv(x, plan, weight, bias)


def loss(function: Function) -> Function:
    return lambda weight, x, bias: function(x, weight, bias).square().sum()


def test_replicas_map_over_one_table_with_gradients_of_each_alone_and_weights_can_be_put_in() -> None:
    table = random_table(6, seed=3)
    x, weight, bias = inputs(6, seed=3, replicas=(2,))
    expected = torch.stack([ego_conv_reference(x[r], table, weight[r], bias[r]) for r in range(2)])
    torch.testing.assert_close(torch.func.vmap(conv(table))(x, weight, bias), expected)
    last = torch.func.vmap(conv(table), in_dims=(None, -1, None))(x[0], weight.movedim(0, -1), bias[0])
    torch.testing.assert_close(last[1], ego_conv_reference(x[0], table, weight[1], bias[0]))
    table = random_table(6, seed=4)
    x, weight, bias = inputs(6, seed=4, replicas=(2,))
    found = torch.func.vmap(torch.func.grad(loss(conv(table)), argnums=(0, 1, 2)))(weight, x, bias)
    for r in range(2):
        leaves = [t[r].clone().requires_grad_() for t in (weight, x, bias)]
        y = ego_conv_reference(leaves[1], table, leaves[0], leaves[2])
        for one, expected in zip(found, torch.autograd.grad(y.square().sum(), leaves), strict=True):
            torch.testing.assert_close(one[r], expected)
    layer, table = EgoConv(D, D, k=K, norm=False), random_table(6, seed=6)
    x = torch.randn(6, D, generator=torch.Generator().manual_seed(6))
    others = {name: value.detach() + 1 for name, value in layer.named_parameters()}
    expected = ego_conv_reference(x, table, others["weight"], others["bias"]).relu()
    torch.testing.assert_close(torch.func.functional_call(layer, others, (x, table)), expected)


@pytest.mark.parametrize(
    "wanted", [(True, True, True), (True, False, False), (False, True, False), (False, True, True)]
)
def test_gradients_have_gradients(wanted: tuple[bool, bool, bool]) -> None:
    leaves = [t.requires_grad_(w) for t, w in zip(inputs(4, seed=5), wanted, strict=True)]
    assert torch.autograd.gradgradcheck(conv(random_table(4, seed=5)), leaves)


# ── torch.compile ─────────────────────────────────────────────────────────────────────────────────


class Stack(nn.Module):
    def __init__(self, depth: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convs = nn.ModuleList(EgoConv(D, D, k=K) for _ in range(depth))

    def forward(self, x: Tensor, neighbours: Neighbours | Tensor) -> Tensor:
        for layer in self.convs:
            x = layer(x, neighbours)
        return x


def features(N: int) -> Tensor:
    return torch.randn(N, D, generator=torch.Generator().manual_seed(N))


@pytest.mark.parametrize("planned", [True, False])
def test_the_operator_keeps_every_promise_of_its_registration(planned: bool) -> None:
    table = random_table(6, seed=7)
    plan = [table, *(Plan.of(table).products if planned else ())]
    for asked in (True, False):
        leaves = [t.requires_grad_(asked) for t in inputs(6, seed=7)]
        torch.library.opcheck(torch.ops.egocnn.ragged.default, (*leaves, plan, False))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inductor uses what torch has deprecated
@pytest.mark.parametrize(("backend", "planned"), [("aot_eager", True), ("aot_eager", False), ("inductor", False)])
def test_layers_compile_into_one_graph_for_batches_of_any_size(backend: str, planned: bool) -> None:
    if backend == "inductor" and which("g++") is None:
        pytest.skip("inductor needs a compiler")
    fuses = backend == "inductor"  # which rounds otherwise
    tolerance = 1e-4 if fuses else None  # None: torch's own
    plain, stack = (Stack(1 if fuses else 3) for _ in range(2))
    compiled = torch.compile(stack, fullgraph=True, backend=backend, dynamic=True)  # a graph break would raise
    for N in (6, 9, 14):
        table = random_table(N, seed=N)
        results = []
        for network, called in ((plain, plain), (stack, compiled)):
            network.zero_grad()
            x = features(N).requires_grad_()
            y = called(x, Neighbours.of(table) if planned else table)
            torch.autograd.backward(y.square().sum())
            results.append((y, x.grad, *(p.grad for p in network.parameters())))
        for expected, found in zip(*results, strict=True):
            torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_layers_are_exported_for_graphs_of_any_size_in_operations_that_every_runtime_has() -> None:
    stack, nodes = Stack().eval(), torch.export.Dim("nodes")
    shapes = ({0: nodes}, {0: nodes})
    program = torch.export.export(stack, (features(6), random_table(6, seed=6)), dynamic_shapes=shapes)
    assert "egocnn" not in str(program.graph)
    for N in (2, 9, 14):
        x, table = features(N), random_table(N, seed=N)
        torch.testing.assert_close(program.module()(x, table), stack(x, table))


@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize("planned", [True, False])
def test_under_autocast_layers_return_its_type_rounded_once_after_products_are_added_up(
    compiles: bool, planned: bool
) -> None:
    layer, table, x = EgoConv(D, D, k=K, norm=False), random_table(6, seed=8), features(6)
    called = torch.compile(layer, fullgraph=True, backend="aot_eager") if compiles else layer
    with torch.autocast("cpu", torch.bfloat16):
        found = called(x, Neighbours.of(table) if planned else table)
        kept = called(x.bfloat16(), Neighbours(table, gate=torch.ones(table.shape)))
    assert kept.dtype == torch.bfloat16
    assert torch.equal(found, layer(x, table).bfloat16())


@pytest.mark.parametrize("rows", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3000])
def test_rows_are_multiplied_alike_however_many_there_are(rows: int) -> None:
    """Many by another library than few."""
    torch.manual_seed(0)
    x, weight, bias = torch.randn(rows, 24), torch.randn(3, 24, 40), torch.randn(40)
    table = torch.stack([torch.arange(rows).roll(1), torch.full((rows,), -1)], dim=1)
    found = ego_conv_ragged(x, Plan.of(table), weight, bias)
    exact = bias.double() + x.double() @ weight[0].double() + x.roll(1, 0).double() @ weight[1].double()
    torch.testing.assert_close(found.double(), exact, atol=1e-4, rtol=0)
