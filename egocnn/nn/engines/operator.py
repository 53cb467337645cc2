"""The two passes of an engine -> one function that eager torch and torch's compiler can each differentiate. Eager
torch gets a plain ``autograd.Function``: a registered operator takes 0.3 ms longer for forward and backward, as much as
a small batch itself. The compiler gets the operator, which it does not look into."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Forward = Callable[[Tensor, Tensor, Tensor, Sequence[Tensor], bool], Tensor]
Backward = Callable[[Tensor, Tensor, Tensor, Sequence[Tensor], bool, bool], tuple[Tensor, Tensor]]


def differentiable(name: str, compute: Forward, back: Backward, again: Backward | None = None) -> Callable[..., Tensor]:
    """A function of x, weight, bias, plan and whether to rectify: ``compute``, its gradients with respect to x and
    weight found by ``back``, which leaves those empty that are not asked for. A plan is what the engine has worked out
    from a table, or the table alone. ``again`` is ``back`` in operations that can be differentiated once more."""

    class Eager(torch.autograd.Function):
        forward = staticmethod(compute)
        setup_context = staticmethod(_keep)

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
            chosen = again if again is not None and torch.is_grad_enabled() else back
            return (*_gradients(ctx, gradients[0], chosen), None, None)

    eager: Callable[..., Tensor] = Eager.apply

    @torch.library.custom_op(f"egocnn::{name}", mutates_args=())
    def operator(x: Tensor, weight: Tensor, bias: Tensor, plan: Sequence[Tensor], relu: bool) -> Tensor:
        return compute(x, weight, bias, plan, relu)

    @torch.library.custom_op(f"egocnn::{name}_backward", mutates_args=())
    def operator_back(
        gradient: Tensor, x: Tensor, weight: Tensor, plan: Sequence[Tensor], for_x: bool, for_weight: bool
    ) -> tuple[Tensor, Tensor]:
        return back(gradient, x, weight, plan, for_x, for_weight)

    @operator.register_fake
    def _(x: Tensor, weight: Tensor, *_: Any) -> Tensor:
        return x.new_empty(*x.shape[:-1], weight.shape[-1])

    @operator_back.register_fake
    def _(_: Tensor, x: Tensor, weight: Tensor, __: Any, for_x: bool, for_weight: bool) -> tuple[Tensor, Tensor]:
        return x.new_empty(x.shape if for_x else 0), weight.new_empty(weight.shape if for_weight else 0)

    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return (*_gradients(ctx, gradient, operator_back), [None] * ctx.n_plan, None)

    operator.register_autograd(backward, setup_context=_keep)

    def call(x: Tensor, weight: Tensor, bias: Tensor, plan: Sequence[Tensor], relu: bool = False) -> Tensor:
        if torch.compiler.is_compiling():
            found: Tensor = operator(x, weight, bias, plan, relu)
            return found
        return (eager if torch.is_grad_enabled() else compute)(x, weight, bias, plan, relu)

    return call


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, _, plan, relu = inputs
    ctx.relu, ctx.n_plan = relu, len(plan)
    ctx.save_for_backward(x, weight, *((output,) if relu else ()), *plan)


def _gradients(ctx: Any, gradient: Tensor, back: Backward) -> list[Tensor | None]:
    """With respect to x, weight and bias; None where not wanted"""
    x, weight, *rest = ctx.saved_tensors
    gradient = (torch.where(rest[0] > 0, gradient, 0) if ctx.relu else gradient).contiguous()
    for_x, for_weight, for_bias = ctx.needs_input_grad[:3]
    of_x, of_weight = back(gradient, x, weight, rest[-ctx.n_plan :], for_x, for_weight)
    return [of_x if for_x else None, of_weight if for_weight else None, gradient.sum(-2) if for_bias else None]


def factor_type(like: Tensor) -> torch.dtype:
    """The type of what goes into matrix products: that of the tensor, or the shorter one under autocast"""
    kind = like.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else like.dtype
