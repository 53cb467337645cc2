"""Batch norm over the nodes of all processes: (n, D) on each -> (n, D) on each, as one process would norm them all.
torch's own SyncBatchNorm is for GPUs alone."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.nn.engines.norm import statistics, sums_of, update_running


class SharedNorm(nn.BatchNorm1d):
    """An ``nn.BatchNorm1d`` whose mean and variance in training are those of the rows of all processes together."""

    is_shared: bool = True  # false while every process is shown the same rows

    def forward(self, input: Tensor) -> Tensor:
        """Rows (n, D) of this process -> the same, normed with all rows"""
        if not self.training or not self.is_shared:
            return super().forward(input)
        sums, rows = sums_of(input.detach())
        sums = torch.cat([sums.flatten(), sums.new_tensor([rows])])
        dist.all_reduce(sums)
        count = sums[-1]
        mean, variance = statistics(sums[:-1].view(2, -1), count)
        weight = input.new_ones(input.shape[1]) if self.weight is None else self.weight
        bias = input.new_zeros(input.shape[1]) if self.bias is None else self.bias
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
            share = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
            update_running((self.running_mean, self.running_var), mean, variance, count, share)
        apply: Callable[..., Tensor] = _Norm.apply
        return apply(input, weight, bias, mean, variance, count, self.eps)


class _Norm(torch.autograd.Function):
    r"""y = γ (x - μ) / √(v + ε) + β with μ and v of all n rows, and its gradient in terms of x, γ and β:

    .. math:: \partial x = \frac{\gamma}{\sqrt{v + \varepsilon}}
              \Big(\partial y - \frac1n \sum \partial y - \hat x \, \frac1n \sum \partial y \, \hat x\Big)

    The sums run over the rows of all processes; those of γ and β stay with their process until they are averaged."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, count: Tensor, eps: float
    ) -> Tensor:
        mean, variance = mean.to(weight.dtype), variance.to(weight.dtype)
        ctx.save_for_backward(x, weight, mean, variance, count)
        ctx.eps = eps
        return F.batch_norm(x, mean, variance, weight, bias, training=False, eps=eps)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, variance, count = ctx.saved_tensors
        deviation = torch.sqrt(variance + ctx.eps)
        if len(x):  # as if the statistics were constants: torch has one fused pass for that
            dx, d_weight, d_bias = torch.ops.aten.native_batch_norm_backward(
                dy.contiguous(), x, weight, mean, variance, None, None, False, ctx.eps, [True, True, True]
            )
        else:  # which divides by the number of rows
            dx, d_weight, d_bias = dy, torch.zeros_like(weight), torch.zeros_like(weight)
        sums = torch.cat([d_bias, d_weight]).double()
        dist.all_reduce(sums)
        of_dy, of_dy_x = sums.div(count).to(weight.dtype).chunk(2)
        slope = weight / deviation
        along = slope * of_dy_x / deviation
        dx = dx.sub((slope * of_dy - along * mean).to(dx.dtype)).addcmul_(x, along.to(dx.dtype), value=-1)
        return dx, d_weight, d_bias, None, None, None, None


def share_norms(network: nn.Module, *, shared: bool = True) -> list[SharedNorm]:
    """Make every batch norm a shared one, or a plain one again; the list of the shared ones. They stay the same modules
    under another class: an optimiser goes on with their parameters, and so do tied layers."""
    for norm in network.modules():
        if type(norm) in (nn.BatchNorm1d, SharedNorm):
            norm.__class__ = SharedNorm if shared else nn.BatchNorm1d
    return [norm for norm in network.modules() if isinstance(norm, SharedNorm)]
