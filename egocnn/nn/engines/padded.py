"""What R networks do together with padded rows: norms and readouts, with the dropout that all of them draw.

Batch norm, rectifier and dropout in one: (R, M, D) -> (R, M, D), statistics over each replica's own nodes. The same as
``nn.BatchNorm1d``, ``relu`` and a dropout, with its gradient written out so that only input and output are kept; on a
GPU one kernel forward and one backward, since passes over the nodes are what it costs. Readouts: node embeddings
(R, M, D) -> one vector per graph (R, B, D or more), 0 without nodes. Which activations are dropped is a hash of (seed,
step, layer, node, column), the same however many replicas there are: a generator's numbers would depend on the shape of
the batch, and so on the other replicas and on padding."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.engines.gpu import has_kernels
from egocnn.nn.readout import largest, log_of, sums

MOMENTUM = 0.1
EPSILON = 1e-5
BLOCK_D = 32
NORM_BLOCKS = {"BLOCK_M": 128, "BLOCK_D": BLOCK_D}  # Nodes and columns that a program on the GPU takes at once.
POOL_BLOCKS = {"BLOCK_M": 64, "BLOCK_D": BLOCK_D}
MULTIPLIERS = (-4658895280553007687, -7723592293110705685)  # of the mixing of 64 bits, by Stafford's thirteenth variant
GOLDEN = -7046029254386353131  # 2^64 divided by the golden ratio, odd, as a signed number


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """The choices for one layer: an activation is kept where the product of its row's and its column's number, wrapped
    around at 32 bits, reaches the threshold. One product an activation is all that they cost."""

    rows: Tensor  # (R, rows), 32 bits at random
    columns: Tensor  # (columns), 32 bits at random, odd
    share: float  # of activations that are dropped

    @property
    def threshold(self) -> int:
        return min(round(self.share * 2**32), 2**32 - 1) - 2**31

    @property
    def amplify(self) -> float:
        """What makes up for those dropped."""
        return 1 / (1 - self.share)

    @property
    def kept(self) -> Tensor:
        """(R, rows, columns)"""
        return self.rows[..., None] * self.columns >= self.threshold


@dataclass(frozen=True, slots=True, eq=False)
class Dropout:
    """The choices of one step, for all layers."""

    _rows: Tensor  # (layers, R, rows)
    _columns: Tensor

    @staticmethod
    def of(seeds: Tensor, steps: Tensor, *, layers: int, rows: int, columns: int) -> "Dropout":
        """seeds (R), steps done (R); as many rows and columns as the largest layer has"""
        key = mix(mix(seeds) + steps * GOLDEN)
        key = mix(key + torch.arange(1, layers + 1, device=seeds.device)[:, None])  # (layers, R)
        drawn = mix(key[..., None] + torch.arange(rows, device=seeds.device) * GOLDEN) >> 32
        odd = mix(torch.arange(1, columns + 1, device=seeds.device) * GOLDEN) >> 32 | 1
        return Dropout(drawn.to(torch.int32), odd.to(torch.int32))

    def layer(self, number: int, rows: int, columns: int, share: float) -> Draws:
        return Draws(self._rows[number, :, :rows], self._columns[:columns], share)


def mix(bits: Tensor) -> Tensor:
    """Every bit of the 64 changes about half of the result's; products wrap around."""
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        bits = (bits ^ _shifted(bits, shift)) * multiplier
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, places: int) -> Tensor:
    """To the right, zeros moving in: torch's own shift repeats the sign."""
    return (bits >> places) & ((1 << (64 - places)) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """What evaluation uses in place of a batch's own statistics."""

    mean: Tensor  # (R, D)
    variance: Tensor  # (R, D), unbiased
    batches: Tensor  # (R) how many have been seen


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """How a step treats each replica."""

    count: Tensor  # (R) nodes that are there
    learns: Tensor  # (R) true where there are nodes enough to learn from; else as in evaluation, dropout included
    active: Tensor  # (R) false for replicas that this step must leave as they are
    there: Tensor | None = None  # (R, M) which nodes these are; None: the first of the M

    @staticmethod
    def of(present: Tensor, active: Tensor, *, parts: bool = False) -> "Mode":
        """present (R, M): false for padding, which comes last, and in ``parts`` of graphs for nodes before it, too"""
        count = present.sum(1)
        # a single node has no spread for the norms to learn
        return Mode(count, count > 1, active, present if parts else None)


def norm_relu_dropout(
    y: Tensor, scale: Tensor, shift: Tensor, running: Running, mode: Mode, draws: Draws | None = None
) -> Tensor:
    """Training: by the batch's statistics, the running ones updated; 0 for nodes not there and what is dropped. Shapes:
    y (R, M, D), scale and shift (R, D) -> (R, M, D)"""
    apply: Callable[..., Tensor] = (FusedNorm if has_kernels(y) else PlainNorm).apply
    out = apply(y, scale, shift, running, mode, draws)
    running.batches.add_(mode.learns & mode.active)
    return out


def norm_graphs(y: Tensor, scale: Tensor, shift: Tensor, running: Running, exists: Tensor, mode: Mode | None) -> Tensor:
    """Batch norm alone, of rows too few for kernels of its own; 0 for padding. In training with ``mode``, else in
    evaluation. Shapes: y (R, B, D), scale and shift (R, D), exists (R, B) -> (R, B, D)"""
    mean, variance = running.mean, running.variance
    if mode is not None:
        count, there = mode.count.clamp(min=1)[:, None].to(y.dtype), exists[..., None]
        mean = torch.where(there, y, 0).sum(1) / count
        variance = torch.where(there, y - mean[:, None], 0).square().sum(1) / count
        _learn(running, mean.detach(), variance.detach(), count, mode)
        learns = mode.learns[:, None]
        mean, variance = torch.where(learns, mean, running.mean), torch.where(learns, variance, running.variance)
        running.batches.add_(mode.learns & mode.active)
    slope = scale * torch.rsqrt(variance + EPSILON)
    normed = torch.addcmul(shift[:, None], y - mean[:, None], slope[:, None])
    return torch.where(exists[..., None], normed, 0)


def _learn(running: Running, mean: Tensor, variance: Tensor, count: Tensor, mode: Mode) -> None:
    """The running statistics after a batch with these."""
    changes = (mode.learns & mode.active)[:, None]
    for old, new in ((running.mean, mean), (running.variance, variance * count / (count - 1).clamp(min=1))):
        old.copy_(torch.where(changes, old.lerp(new, MOMENTUM), old))


def full(x: Tensor) -> Tensor:
    """16-bit numbers in float32, in which sums are taken; others as they are."""
    return x if x.dtype == torch.float64 else x.float()


class PlainNorm(torch.autograd.Function):
    """In operations of torch."""

    @staticmethod
    def forward(
        ctx: Any, y: Tensor, scale: Tensor, shift: Tensor, running: Running, mode: Mode, draws: Draws | None
    ) -> Tensor:
        there = torch.arange(y.shape[1], device=y.device) < mode.count[:, None] if mode.there is None else mode.there
        present, first = there[..., None], y[:, :1]
        if mode.there is not None:
            first = torch.take_along_dim(y, there.int().argmax(1)[:, None, None], 1)
        count = mode.count.clamp(min=1)[:, None].to(scale.dtype)
        pivot = full(first)  # near all values, so that squares of differences from it lose nothing
        away = torch.where(present, y - pivot, 0)
        mean = away.sum(1) / count
        variance = (torch.linalg.vector_norm(away, dim=1).square() / count - mean.square()).clamp(min=0)
        mean = pivot[:, 0] + mean
        learns = mode.learns[:, None]
        _learn(running, mean, variance, count, mode)
        mean = torch.where(learns, mean, running.mean)
        inverse = torch.rsqrt(torch.where(learns, variance, running.variance) + EPSILON)
        # a positive factor may go before the rectifier as well as after it
        factor = torch.where(learns, draws.amplify if draws else 1.0, 1.0).to(scale.dtype)
        z = torch.addcmul((shift * factor)[:, None], y - mean[:, None], (scale * inverse * factor)[:, None])
        stays = (z > 0) & present
        if draws is not None:
            stays = stays & (draws.kept | ~learns[..., None])
        out = torch.where(stays, z, 0).to(y.dtype)
        ctx.save_for_backward(y, out, scale, mean, inverse, factor, learns / count, present)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        y, out, scale, mean, inverse, factor, share, present = ctx.saved_tensors
        arriving = full(torch.where(out > 0, gradients[0], 0))
        centred = y - mean[:, None]
        total = arriving.sum(1)
        product = (arriving * centred).sum(1) * inverse
        slope = scale * inverse * factor
        # share is 1 / nodes, and 0 where the statistics did not come from the batch
        back = torch.addcmul((-slope * total * share)[:, None], centred, (-slope * product * share * inverse)[:, None])
        back = torch.addcmul(back, arriving, slope[:, None])
        back = torch.where(present, back, 0).to(y.dtype)
        return back, product * factor, total * factor, None, None, None


class FusedNorm(torch.autograd.Function):
    """By the kernels of :mod:`egocnn.nn.engines.gpu.row_kernels`."""

    @staticmethod
    def forward(
        ctx: Any, y: Tensor, scale: Tensor, shift: Tensor, running: Running, mode: Mode, draws: Draws | None
    ) -> Tensor:
        from egocnn.nn.engines.gpu.row_kernels import norm_forward

        y = y.contiguous()
        R, M, D = y.shape
        out = torch.empty_like(y)
        mean, inverse = torch.empty_like(scale), torch.empty_like(scale)
        ctx.amplify = draws.amplify if draws else 1.0
        statistics = (running.mean, running.variance, mean, inverse, mode.count, mode.learns, mode.active)
        dropped = (draws.rows.contiguous(), draws.columns) if draws else (y, y)
        chosen = (*dropped, y if mode.there is None else mode.there)
        sizes = (M, D, draws.threshold if draws else 0, ctx.amplify)
        known = (y, out, scale, shift, *statistics, *chosen, *sizes)
        settings = {"DROPS": draws is not None, "PARTS": mode.there is not None, **NORM_BLOCKS}
        norm_forward[(R, -(-D // BLOCK_D))](*known, MOMENTUM=MOMENTUM, EPSILON=EPSILON, **settings)
        ctx.save_for_backward(y, out, scale, mean, inverse, mode.count, mode.learns, mode.there)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        from egocnn.nn.engines.gpu.row_kernels import norm_backward

        y, out, scale, mean, inverse, count, learns, there = ctx.saved_tensors
        R, M, D = y.shape
        back = torch.empty_like(y)
        of_scale, of_shift = torch.empty_like(scale), torch.empty_like(scale)
        known = (gradients[0].contiguous(), y, out, scale, mean, inverse, count, learns, y if there is None else there)
        settings = {"PARTS": there is not None, **NORM_BLOCKS}
        norm_backward[(R, -(-D // BLOCK_D))](*known, back, of_scale, of_shift, M, D, ctx.amplify, **settings)
        return back, of_scale, of_shift, None, None, None


def sums_of(x: Tensor) -> tuple[Tensor, int]:
    """x (n, D, ...) -> (2, D) n m and n (v + m²) with m the mean and v the variance, in double precision; and n. Sums
    of several parts are added up. As m is the same rounded number in both, what cancels out in the end cancels to the
    last digit of a double, however far the mean is from zero."""
    rows = x.numel() // x.shape[1] if x.shape[1] else 0
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if rows:
        others = [dim for dim in range(x.ndim) if dim != 1]
        variance, mean = (each.double() for each in torch.var_mean(wide, others, correction=0))
    else:
        variance, mean = wide.new_zeros(2, x.shape[1], dtype=torch.float64)
    return rows * torch.stack([mean, variance + mean.square()]), rows


def statistics(sums: Tensor, rows: Tensor | int) -> tuple[Tensor, Tensor]:
    """Sums of all parts (2, D) and the number of their rows -> mean and biased variance (D)"""
    mean, square = sums / rows
    return mean, (square - mean.square()).clamp(min=0)


@torch.no_grad()
def update_running(
    running: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor, rows: Tensor | int, momentum: float | Tensor
) -> None:
    """Move the running mean and variance of a batch norm towards those of a batch, as torch does."""
    for remembered, seen in zip(running, (mean, variance * rows / (rows - 1)), strict=True):
        remembered += momentum * (seen.to(remembered.dtype) - remembered)


def pool(h: Tensor, counts: Tensor, graph_of: Tensor, kind: str, presence: Tensor | None = None) -> Tensor:
    """(R, M, D) -> (R, B, D for each kind, joined by +), as :func:`egocnn.nn.readout.pool`. counts (R, B): nodes of
    every graph; graph_of (R, M): B for padding; presence (R, M): how far nodes are there, h being multiplied by it."""
    reduce: Callable[..., tuple[Tensor, Tensor]] = FusedPool.apply if has_kernels(h) else plain_pool
    total, most = reduce(h, counts, graph_of, None if presence is None else presence > 0)
    parts: dict[str, Callable[[], Tensor]] = {
        "max": lambda: most,
        "sum": lambda: total,
        "mean": lambda: total / _nodes(counts, graph_of, presence)[..., None],
        "log": lambda: log_of(total),
    }
    return torch.cat([parts[each]() for each in kind.split("+")], dim=2)


def _nodes(counts: Tensor, graph_of: Tensor, presence: Tensor | None) -> Tensor:
    """(R, B) how many nodes a mean is taken over, 1 where there are none"""
    if presence is None:
        return counts.clamp(min=1)
    R, B = counts.shape
    # atomic additions come in any order; of zeros and ones, as training has them, the sum is exact in all of them
    there = presence.new_zeros(R, B + 1).scatter_add(1, graph_of, presence)[:, :-1]
    return torch.where(there > 0, there, 1)


def plain_pool(h: Tensor, counts: Tensor, graph_of: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor]:
    """Sum and maximum over every graph's nodes, in full precision; nodes that share a maximum share its gradient.
    ``there`` (R, M): which nodes are not missing; the others are 0, attain no maximum and have no gradient."""
    (R, M, D), B = h.shape, counts.shape[1]
    lengths = torch.cat([counts, M - counts.sum(1, keepdim=True)], dim=1)  # padding as one more graph
    before = torch.arange(R, device=h.device)[:, None] * (B + 1)
    values, seen = full(h), graph_of
    if there is not None:
        values, seen = torch.where(there[..., None], values, 0), torch.where(there, graph_of, B)
    values = values.flatten(0, 1)
    total = sums(values, (before + graph_of).flatten(), lengths.flatten())
    most = largest(values, (before + seen).flatten(), R * (B + 1))
    return total.view(R, B + 1, D)[:, :-1], most.view(R, B + 1, D)[:, :-1]


class FusedPool(torch.autograd.Function):
    """The same by the kernels of :mod:`egocnn.nn.engines.gpu.row_kernels`."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, counts: Tensor, _: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor]:
        from egocnn.nn.engines.gpu.row_kernels import pool_forward

        h = h.contiguous()
        (R, M, D), B = h.shape, counts.shape[1]
        first = counts.cumsum(1) - counts
        total, most, sharing = (torch.empty(R, B, D, device=h.device) for _ in range(3))
        known = (h, first, counts, h if there is None else there)
        settings = {"PARTS": there is not None, **POOL_BLOCKS}
        pool_forward[(R * B, -(-D // BLOCK_D))](*known, total, most, sharing, M, B, D, **settings)
        ctx.save_for_backward(h, first, counts, there, most, sharing)
        return total, most

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        from egocnn.nn.engines.gpu.row_kernels import pool_backward

        h, first, counts, there, most, sharing = ctx.saved_tensors
        (R, M, D), B = h.shape, counts.shape[1]
        of_total, of_largest = (gradient.float().contiguous() for gradient in gradients)
        back = torch.zeros_like(h)  # as it stays for padding
        known = (h, first, counts, h if there is None else there, most, sharing, of_total, of_largest)
        settings = {"PARTS": there is not None, **POOL_BLOCKS}
        pool_backward[(R * B, -(-D // BLOCK_D))](*known, back, M, B, D, **settings)
        return back, None, None, None
