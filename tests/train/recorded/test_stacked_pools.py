"""Sums and maxima over graphs: the kernels against torch's own operations."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from egocnn.nn.engines.pool import FusedPool, plain_pool

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

kernels = pytest.mark.skipif(find_spec("triton") is None, reason="Triton runs on Linux only")


def _numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@kernels
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("parts", [False, True])
def test_the_kernel_pools_as_torch_does_with_ties_empty_graphs_and_padding(
    kind: torch.dtype, sign: int, parts: bool
) -> None:
    """Attributes that are read out may all be below 0, and all nodes of a graph may be missing."""
    counts = torch.tensor([[3, 0, 130, 1], [70, 2, 2, 0]], device=DEVICE)
    M, D = 140, 40
    graph_of = torch.full((2, M), 4, device=DEVICE)
    for r in range(2):
        graph_of[r, : int(counts[r].sum())] = torch.repeat_interleave(torch.arange(4, device=DEVICE), counts[r])
    # few different values, so that several nodes attain a maximum
    h = (sign * (_numbers(2, M, D).relu() * 2).round() - int(sign < 0)).to(kind).to(DEVICE)
    there = (graph_of < 4) & (_numbers(2, M, seed=3).to(DEVICE) > 0) & (graph_of != 2) if parts else None
    h = h if there is None else h * there[..., None]
    weights = [_numbers(2, 4, D, seed=seed).to(DEVICE) for seed in (1, 2)]
    results = []
    fused_pool: Any = FusedPool.apply
    for pool in (plain_pool, fused_pool):
        asked = h.clone().requires_grad_()
        pooled = pool(asked, counts, graph_of, there)
        loss = sum((weight * each).sum() for weight, each in zip(weights, pooled, strict=True))
        results.append((*pooled, *torch.autograd.grad(loss, asked)))
    tolerance = 1e-5 if kind == torch.float32 else 2e-2
    for plain, fused in zip(*results, strict=True):
        torch.testing.assert_close(fused.float(), plain.float(), rtol=tolerance, atol=tolerance)
    assert (results[1][2][graph_of == 4] == 0).all()
    assert there is None or not results[1][2][~there].any()


@pytest.mark.parametrize("taken", [0, 1])
def test_a_readout_that_takes_one_of_the_two_has_a_gradient_all_the_same(taken: int) -> None:
    h = _numbers(1, 4, 3).relu().requires_grad_()
    pooled = plain_pool(h, torch.tensor([[2, 2]]), torch.tensor([[0, 0, 1, 1]]), None)
    (gradient,) = torch.autograd.grad(pooled[taken].sum(), h)
    assert float(gradient.sum()) == pytest.approx(12 if taken == 0 else 6)
