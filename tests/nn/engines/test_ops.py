from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from egocnn.nn.engines import Neighbours, ego_conv, ego_conv_ragged, ego_conv_reference
from egocnn.nn.engines.cpu import Plan

Engine = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass
class EgoInputs:
    """Everything an ego-convolution reads, in float64."""

    x: Tensor
    table: Tensor
    weight: Tensor
    bias: Tensor

    def to(self, dtype: torch.dtype) -> "EgoInputs":
        return EgoInputs(self.x.to(dtype), self.table, self.weight.to(dtype), self.bias.to(dtype))

    def differentiable(self) -> tuple[Tensor, Tensor, Tensor]:
        x, weight, bias = (t.clone().requires_grad_() for t in (self.x, self.weight, self.bias))
        return x, weight, bias


def build(table: Tensor, D: int, D_out: int, seed: int) -> EgoInputs:
    random = torch.Generator().manual_seed(seed)
    N, K = table.shape

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=random, dtype=torch.float64)

    return EgoInputs(normal(N, D), table, normal(K + 1, D, D_out), normal(D_out))


@st.composite
def ego_problems(draw: st.DrawFn, *, gaps: bool = False) -> EgoInputs:
    """Small random problems; a node's neighbours fill its first ranks, or any ranks where ``gaps``."""
    N, K = draw(st.integers(0, 6)), draw(st.integers(0, 4))
    table = torch.full((N, K), -1)
    for node in range(N):
        present = draw(st.lists(st.booleans(), min_size=K, max_size=K))
        ranks = [rank for rank in range(K) if present[rank]] if gaps else range(sum(present))
        for rank in ranks:
            table[node, rank] = draw(st.integers(0, N - 1))
    return build(table, draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 99)))


def naive(problem: EgoInputs) -> NDArray[np.float64]:
    """The equation of the paper, one product of a node and a filter matrix at a time."""
    x, table, weight = problem.x.numpy(), problem.table.tolist(), problem.weight.numpy()
    y = np.tile(problem.bias.numpy(), (len(x), 1))
    for node, row in enumerate(table):
        for rank, source in enumerate([node, *row]):
            if source >= 0:
                y[node] += x[source] @ weight[rank]
    return y


def ragged(x: Tensor, table: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return ego_conv_ragged(x, Plan.of(table), weight, bias)


@given(st.booleans().flatmap(lambda gaps: ego_problems(gaps=gaps)))
def test_every_engine_equals_the_equation(problem: EgoInputs) -> None:
    expected = naive(problem)
    for engine in (ego_conv_reference, ego_conv, ragged):
        y = engine(problem.x, problem.table, problem.weight, problem.bias)
        assert y.dtype == torch.float64
        np.testing.assert_allclose(y.numpy(), expected, atol=1e-12)


@given(st.booleans().flatmap(lambda gaps: ego_problems(gaps=gaps)))
def test_gradients_of_the_engines_agree(problem: EgoInputs) -> None:
    gradients = []
    for engine in (ego_conv_reference, ragged):
        x, weight, bias = problem.differentiable()
        y = engine(x, problem.table, weight, bias)
        arriving = torch.sin(torch.arange(y.numel(), dtype=torch.float64)).view_as(y)
        gradients.append(torch.autograd.grad(y, (x, weight, bias), arriving))
    for expected, found in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


RAGGED = torch.tensor([[1, 2], [0, -1], [0, 0], [-1, -1]])


def check_single_gradients(convolved: Callable[..., Tensor], inputs: Sequence[Tensor]) -> None:
    """A single gradient is the same as together with the others."""
    together = [t.detach().clone().requires_grad_() for t in inputs]
    gradients = torch.autograd.grad(convolved(*together).square().sum(), together)
    for asked, expected in enumerate(gradients):
        alone = [t.detach().clone().requires_grad_(at == asked) for at, t in enumerate(inputs)]
        torch.autograd.backward(convolved(*alone).square().sum())
        assert [t.grad is not None for t in alone] == [at == asked for at in range(len(alone))]
        torch.testing.assert_close(alone[asked].grad, expected)


def test_a_single_gradient_is_the_same_as_together_with_the_others() -> None:
    problem = build(RAGGED, D=2, D_out=3, seed=0)
    check_single_gradients(
        lambda x, *filters: ragged(x, problem.table, *filters), (problem.x, problem.weight, problem.bias)
    )


def molecule_sized(seed: int = 0) -> EgoInputs:
    random = np.random.default_rng(seed)
    table = np.full((60, 16), -1)
    for node in range(60):
        degree = random.integers(0, 5)
        table[node, :degree] = random.integers(0, 60, degree)
    return build(torch.from_numpy(table), D=32, D_out=24, seed=seed)


def test_single_precision_agrees_with_double_up_to_rounding() -> None:
    problem = molecule_sized()
    expected = naive(problem)
    for engine in (ego_conv_reference, ragged):
        found = []
        for dtype in (torch.float32, torch.float64):
            cast = problem.to(dtype)
            x, weight, bias = cast.differentiable()
            y = engine(x, cast.table, weight, bias)
            assert y.dtype == dtype
            found.append((y, *torch.autograd.grad(y.square().mean(), (x, weight, bias))))
        for single, double in zip(*found, strict=True):
            torch.testing.assert_close(
                single.double(), double, rtol=1e-5, atol=1e-5 * float(double.detach().abs().max())
            )
        np.testing.assert_allclose(found[1][0].detach().numpy(), expected, atol=1e-12 * np.abs(expected).max())


def test_half_precision_has_gradients_too() -> None:
    problem = molecule_sized().to(torch.bfloat16)
    x, weight, bias = problem.differentiable()
    y = ragged(x, problem.table, weight, bias)
    found = torch.autograd.grad(y.float().square().mean(), (x, weight, bias))
    expected = torch.autograd.grad(
        ego_conv_reference(x, problem.table, weight, bias).float().square().mean(), (x, weight, bias)
    )
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.bfloat16
        torch.testing.assert_close(one.float(), other.float(), rtol=0.1, atol=0.05 * float(other.abs().max()))


# ── dispatch ──────────────────────────────────────────────────────────────────────────────────────


def test_a_plan_is_made_only_where_its_engine_runs() -> None:
    assert Neighbours.of(torch.zeros((2, 1), dtype=torch.long, device="meta")).plan is None


@pytest.mark.parametrize("table", [RAGGED, torch.tensor([[-1, 1], [0, -1], [0, -1], [-1, 2]])])
def test_autocast_is_no_obstacle(table: Tensor) -> None:
    problem = build(table, D=2, D_out=3, seed=0).to(torch.float32)
    x, weight, bias = problem.differentiable()
    with torch.autocast("cpu", torch.bfloat16):
        y = ego_conv(x.bfloat16(), table, weight, bias)
    torch.autograd.backward(y.float().sum())
    expected = ego_conv_reference(problem.x, table, problem.weight, problem.bias)
    torch.testing.assert_close(y.float(), expected, rtol=0.05, atol=0.05)
    assert weight.grad is not None


def test_the_same_inputs_give_the_same_bits() -> None:
    problem = molecule_sized().to(torch.float32)
    results = []
    for _ in range(2):
        x, weight, bias = problem.differentiable()
        y = ragged(x, problem.table, weight, bias)
        results.append((y, *torch.autograd.grad(y.square().sum(), (x, weight, bias))))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
