"""The norm, dropout, readouts, pools and the optimiser of stacked networks, each beside its ordinary counterpart."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from egocnn.nn.engines.padded import (
    Draws,
    Dropout,
    FusedNorm,
    FusedPool,
    Mode,
    PlainNorm,
    Running,
    norm_graphs,
    norm_relu_dropout,
    plain_pool,
)
from egocnn.train.engines.common import STEEPEST
from egocnn.train.engines.recorded.adamw import StackedAdamW, update_fused, update_plain
from tests.support.samples import sure

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

kernels = pytest.mark.skipif(find_spec("triton") is None, reason="Triton runs on Linux only")


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _draws(seeds: list[int], step: int, layer: int, rows: int, columns: int, share: float = 0.2) -> Draws:
    seed = torch.tensor(seeds)
    dropout = Dropout.of(seed, torch.full_like(seed, step), layers=layer + 2, rows=rows + 3, columns=columns + 5)
    return dropout.layer(layer, rows, columns, share)


# ── norm ──────────────────────────────────────────────────────────────────────────────────────────


def _norms(replicas: int, width: int) -> tuple[list[nn.BatchNorm1d], Tensor, Tensor, Running]:
    norms = [nn.BatchNorm1d(width).double() for _ in range(replicas)]
    for r, norm in enumerate(norms):
        norm.weight.data = random(width, seed=r)
        norm.bias.data = random(width, seed=r + 10)
        sure(norm.running_mean).copy_(random(width, seed=r + 20))
        sure(norm.running_var).copy_(random(width, seed=r + 30).abs() + 0.1)

    def stack(name: str) -> Tensor:
        return torch.stack([getattr(norm, name).detach().clone() for norm in norms])

    running = Running(stack("running_mean"), stack("running_var"), stack("num_batches_tracked"))
    return norms, stack("weight").requires_grad_(), stack("bias").requires_grad_(), running


SEVEN = st.lists(st.booleans(), min_size=7, max_size=7)


@given(st.lists(SEVEN, min_size=1, max_size=3), st.booleans(), st.integers(0, 99))
def test_the_norm_of_every_replica_is_that_of_its_own_nodes(places: list[list[bool]], parts: bool, seed: int) -> None:
    """They stand in front, or where nodes are missing, anywhere. A replica with a single node goes by its running
    statistics and leaves them alone, as the ordinary loop does."""
    there, R, D = torch.tensor(places if parts else [sorted(own, reverse=True) for own in places]), len(places), 3
    norms, scale, shift, running = _norms(R, D)
    # a node that is not there may be anything: were it read, the others would lose their digits
    y = torch.where(there[..., None], 100 + random(R, 7, D, seed=seed), 1e9 if parts else 90.0).requires_grad_()
    weight = random(R, 7, D, seed=seed + 1)
    mode = Mode.of(there, torch.ones(R, dtype=torch.bool), parts=parts)
    out = norm_relu_dropout(y, scale, shift, running, mode)
    found = torch.autograd.grad((out * weight).sum(), (y, scale, shift))
    assert not out[~there].any()
    assert not found[0][~there].any()
    evaluated = norm_graphs(y.detach(), scale.detach(), shift.detach(), running, there, None)
    for r, norm in enumerate(norms):
        own = y[r, there[r]].detach().requires_grad_()
        if len(own) == 0:
            continue
        expected = torch.relu(norm.train(len(own) > 1)(own))
        torch.testing.assert_close(out[r, there[r]], expected)
        wanted = torch.autograd.grad((expected * weight[r, there[r]]).sum(), (own, norm.weight, norm.bias))
        for one, other in zip((found[0][r, there[r]], found[1][r], found[2][r]), wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(running.mean[r], norm.running_mean)
        torch.testing.assert_close(running.variance[r], norm.running_var)
        assert running.batches[r] == norm.num_batches_tracked
        torch.testing.assert_close(evaluated[r, there[r]], norm.eval()(own.detach()))


def test_the_gradient_passes_through_what_dropout_keeps() -> None:
    _, scale, shift, running = _norms(2, 3)
    y = random(2, 5, 3).requires_grad_()
    draws = _draws([3, 4], 0, 1, 5, 3)
    assert 0 < (~draws.kept).sum() < 15
    mode = Mode.of(torch.ones(2, 5, dtype=torch.bool), torch.zeros(2, dtype=torch.bool))

    def apply(y: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        return norm_relu_dropout(y, scale, shift, running, mode, draws)

    out, whole = apply(y, scale, shift), norm_relu_dropout(y, scale, shift, running, mode)
    torch.testing.assert_close(out, torch.where(draws.kept, 1.25 * whole, 0))
    assert torch.autograd.gradcheck(apply, (y, scale, shift))


def test_a_column_that_never_varies_has_no_variance_however_large_it_is() -> None:
    _, scale, shift, running = _norms(1, 2)
    y = torch.full((1, 9, 2), 12345.678, dtype=torch.float32)
    running = Running(running.mean.float(), running.variance.float(), running.batches)
    mode = Mode.of(torch.arange(9)[None] < 7, torch.ones(1, dtype=torch.bool))
    out = norm_relu_dropout(y, scale.detach().float(), shift.detach().float(), running, mode)
    torch.testing.assert_close(out[0, 0], torch.relu(shift[0].detach().float()))


@kernels
@pytest.mark.parametrize("kind", [torch.float32, torch.float16])
@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("parts", [False, True])
def test_the_fused_norm_is_the_plain_one(kind: torch.dtype, drops: bool, parts: bool) -> None:
    """Several tiles of nodes and of columns, replicas without nodes, with one, and with all places taken."""
    counts, M, D = torch.tensor([0, 1, 150, 90]), 150, 45
    there = torch.arange(M) < counts[:, None]
    if parts:  # the same numbers of nodes, not in front; the last replica misses the whole first tile
        there = torch.stack([each[torch.randperm(M, generator=torch.Generator().manual_seed(7))] for each in there])
        there[3] = torch.arange(M) >= 130
    _, scale, shift, _ = _norms(4, D)
    active = torch.tensor([True, True, True, False])
    draws = _draws([0, 1, 2, 3], 1, 2, M, D) if drops else None
    results = []
    for norm in (PlainNorm, FusedNorm):
        _, _, _, running = _norms(4, D)
        running = Running(running.mean.float(), running.variance.float(), running.batches)
        y = (3 + random(4, M, D)).to(kind).to(DEVICE).requires_grad_()
        own = [t.detach().float().to(DEVICE).requires_grad_() for t in (scale, shift)]
        apply: Any = norm.apply
        place = Mode.of(there.to(DEVICE), active.to(DEVICE), parts=parts)
        moved = Running(running.mean.to(DEVICE), running.variance.to(DEVICE), running.batches.to(DEVICE))
        chosen = None if draws is None else Draws(draws.rows.to(DEVICE), draws.columns.to(DEVICE), draws.share)
        out = apply(y, *own, moved, place, chosen)
        weight = random(4, M, D, seed=5).to(DEVICE)
        results.append((out, *torch.autograd.grad((out * weight).sum(), (y, *own)), moved.mean, moved.variance))
    tolerance = 1e-4 if kind == torch.float32 else 2e-2
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    assert results[1][0][2].any()
    assert not results[1][0][~there.to(DEVICE)].any()


# ── dropout ───────────────────────────────────────────────────────────────────────────────────────


def test_a_choice_depends_on_seed_step_layer_row_and_column_alone() -> None:
    whole = _draws([1, 2, 3], 4, 5, 60, 50).kept
    assert torch.equal(_draws([2], 4, 5, 40, 30).kept[0], whole[1, :40, :30])
    assert torch.equal(_draws([3, 1], 4, 5, 60, 50).kept, whole[[2, 0]])
    for other in (_draws([7], 4, 5, 60, 50).kept, _draws([1], 5, 5, 60, 50).kept, _draws([1], 4, 6, 60, 50).kept):
        assert 0.6 < (other == whole[:1]).double().mean() < 0.76  # as if drawn anew: 0.8² + 0.2² = 0.68


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_share_is_dropped_everywhere_and_no_two_columns_or_rows_agree(share: float) -> None:
    dropped = (~_draws([0, 1], 3, 1, 2000, 128, share).kept).double()
    assert float(dropped.mean()) == pytest.approx(share, abs=0.003)
    assert (dropped.mean(1) - share).abs().max() < 0.06
    for axis in (dropped[0], dropped[0, :128].t()):
        related = (torch.corrcoef(axis.t()) - torch.eye(axis.shape[1])).nan_to_num(0)  # a row may drop none
        assert related.abs().max() < 8 / len(axis) ** 0.5
        assert related.square().mean().sqrt() < 1.5 / len(axis) ** 0.5
    _, together = np.unique(dropped[0].numpy(), axis=0, return_counts=True)
    assert together.max() < 0.02 * 2000


# ── the optimiser ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("steepness", [0.01, 10.0])
def test_every_replica_is_optimised_as_if_alone_and_only_when_it_is_its_turn(steepness: float) -> None:
    R, shapes = 3, [(4, 5), (6,)]
    start = [random(R, *shape, seed=i) for i, shape in enumerate(shapes)]
    together = [p.clone() for p in start]
    stacked = StackedAdamW(together, weight_decay=0.1)
    each = [[nn.Parameter(p[r].clone()) for p in start] for r in range(R)]
    optimizers = [torch.optim.AdamW(own, weight_decay=0.1) for own in each]
    for step in range(6):
        active = torch.tensor([True, step % 2 == 0, step < 3])
        rates = torch.tensor([1e-2, 2e-2, 3e-2], dtype=torch.float64) / (step + 1)
        gradients = [steepness * random(R, *shape, seed=9 * step + i) for i, shape in enumerate(shapes)]
        stacked.step(gradients, rates, active)
        for r in np.flatnonzero(active.numpy()).tolist():
            for own, gradient in zip(each[r], gradients, strict=True):
                own.grad = gradient[r].clone()
            nn.utils.clip_grad_norm_(each[r], STEEPEST)
            optimizers[r].param_groups[0]["lr"] = float(rates[r])
            optimizers[r].step()
    for r in range(R):
        for parameter, alone in zip(together, each[r], strict=True):
            torch.testing.assert_close(parameter[r], alone.detach())
    assert stacked.steps.tolist() == [6, 3, 3]


@kernels
def test_the_fused_update_is_the_plain_one() -> None:
    R, numbers = 3, (7, 211)
    first, second = 0.1 * random(R, *numbers, seed=2).float(), random(R, *numbers, seed=3).float().square()
    tensors = random(R, *numbers, seed=0).float(), random(R, *numbers, seed=1).float(), first, second
    settings = torch.stack([random(R, seed=i).float().abs() + 0.1 for i in range(4)])
    active = torch.tensor([True, False, True])
    plain, fused = ([t.clone().to(DEVICE) for t in tensors] for _ in range(2))
    settings, active = settings.to(DEVICE), active.to(DEVICE)
    update_plain(plain[0], plain[1], plain[2], plain[3], settings, active)
    update_fused(fused[0], fused[1], fused[2], fused[3], settings, active)
    for one, other in zip(plain, fused, strict=True):
        torch.testing.assert_close(one, other)
    assert torch.equal(fused[0][1].cpu(), tensors[0][1])
    assert not torch.equal(fused[0][0].cpu(), tensors[0][0])


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
    h = (sign * (random(2, M, D).float().relu() * 2).round() - int(sign < 0)).to(kind).to(DEVICE)
    there = (graph_of < 4) & (random(2, M, seed=3).to(DEVICE) > 0) & (graph_of != 2) if parts else None
    h = h if there is None else h * there[..., None]
    weights = [random(2, 4, D, seed=seed).float().to(DEVICE) for seed in (1, 2)]
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
