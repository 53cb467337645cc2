"""The ego-convolution on a GPU: one operator that torch can differentiate, compile and record in CUDA graphs."""

from __future__ import annotations

import logging
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.engines.gpu.launches import convolve, convolve_back, correlate
from egocnn.nn.engines.gpu.tiles import Tiles, Transposed, table_of

log = logging.getLogger(__name__)


@cache
def is_available(device: torch.device) -> bool:
    """Whether the fused engine runs here; one line in the log where it could but Triton is missing."""
    if device.type != "cuda":
        return False
    if find_spec("triton") is None:
        log.warning("triton is not installed: ego-convolutions on the GPU run by the slower reference")
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def ego_conv_fused(x: Tensor, tiles: Tiles, weight: Tensor, bias: Tensor, *, relu: bool = False) -> Tensor:
    """As :func:`~egocnn.nn.engines.reference.ego_conv_reference`, and a rectifier after it if asked for.

    In float32, bfloat16 or float16, always summed up in float32. float32 products are rounded to TF32 where torch is
    allowed to, else split in three so that nothing is lost. Under autocast, in its type.
    """
    if torch.is_autocast_enabled("cuda") and x.is_cuda:
        x = x.to(torch.get_autocast_dtype("cuda"))
    # the registered operator is for torch's compiler; a plain call has less to carry
    operator: Any = torch.ops.egocnn.fused if torch.compiler.is_compiling() else _Fused.apply
    y: Tensor = operator(x, weight.to(x.dtype), bias.to(x.dtype), tiles.tensors(), tiles.room, relu)
    return y


def _fused(x: Tensor, weight: Tensor, bias: Tensor, tiles: list[Tensor], room: int, relu: bool) -> Tensor:  # noqa: ARG001
    """x (N, D) or (R, N, D) and so on -> (..., N, D')"""
    columns, length = tiles[:2]
    return convolve(x.contiguous(), weight, bias.contiguous(), columns, length, relu=relu)


def _fused_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, tiles: list[Tensor], room: int, for_x: bool, for_weight: bool
) -> tuple[Tensor, Tensor]:
    """Gradients with respect to x and weight; an empty tensor for one that is not asked for."""
    columns, _, active, *back = tiles
    gradient = gradient.contiguous()
    x_gradient, weight_gradient = gradient.new_empty(0), gradient.new_empty(0)
    if for_x:
        if not back:  # prepared where no gradient was expected
            transposed = Transposed.of(table_of(columns), x.shape[-2])
            back, room = transposed.tensors(), transposed.room
        x_gradient = convolve_back(gradient, weight, room, back)
    if for_weight:
        weight_gradient = correlate(x.contiguous(), gradient, columns, active)
    return x_gradient, weight_gradient


def _shape_of_fused(x: Tensor, weight: Tensor, *_: Any) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[-1])


def _shapes_of_fused_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, tiles: list[Tensor], room: int, for_x: bool, for_weight: bool
) -> tuple[Tensor, Tensor]:
    del tiles, room
    return (
        torch.empty_like(x) if for_x else gradient.new_empty(0),
        torch.empty_like(weight) if for_weight else gradient.new_empty(0),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, _, tiles, room, relu = inputs
    ctx.relu, ctx.room, ctx.n_tiles = relu, room, len(tiles)
    ctx.save_for_backward(x, weight, *((output,) if relu else ()), *tiles)


def _backward(ctx: Any, gradient: Tensor, operator: Any) -> list[Any]:
    """Gradients with respect to x, weight and bias."""
    x, weight, *rest = ctx.saved_tensors
    if ctx.relu:
        gradient = torch.where(rest[0] > 0, gradient, 0)
    asked = ctx.needs_input_grad[:3]
    found = operator(gradient, x, weight, rest[-ctx.n_tiles :], ctx.room, asked[0], asked[1])
    return [
        each if wanted else None
        for each, wanted in zip((*found, gradient.sum(-2) if asked[2] else None), asked, strict=True)
    ]


class _Fused(torch.autograd.Function):
    forward = staticmethod(_fused)
    setup_context = staticmethod(_keep)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return (*_backward(ctx, gradients[0], _fused_backward), None, None, None)


def _backward_of_operator(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    return (*_backward(ctx, gradient, torch.ops.egocnn.fused_backward), [None] * ctx.n_tiles, None, None)


# not torch.library.custom_op: its first call waits seconds for torch's compiler, which mostly is not wanted
library: Any = torch.library  # parts of it have no types
LIBRARY = library.Library("egocnn", "FRAGMENT")
LIBRARY.define("fused(Tensor x, Tensor weight, Tensor bias, Tensor[] tiles, SymInt room, bool relu) -> Tensor")
LIBRARY.define(
    "fused_backward(Tensor gradient, Tensor x, Tensor weight, Tensor[] tiles, SymInt room, "
    "bool for_x, bool for_weight) -> (Tensor, Tensor)"
)
LIBRARY.impl("fused", _fused, "CompositeExplicitAutograd")
LIBRARY.impl("fused_backward", _fused_backward, "CompositeExplicitAutograd")
torch.library.register_fake("egocnn::fused", _shape_of_fused, lib=LIBRARY)
torch.library.register_fake("egocnn::fused_backward", _shapes_of_fused_backward, lib=LIBRARY)
torch.library.register_autograd("egocnn::fused", _backward_of_operator, setup_context=_keep, lib=LIBRARY)
