"""The ego-convolution on a GPU: one operator that torch can differentiate, compile and record in CUDA graphs."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.device import warn
from egocnn.nn.engines.gpu import HAS_TRITON
from egocnn.nn.engines.gpu.tiles import LONG, WINDOW, Tiles, Transposed, chunk_nodes, table_of, windows_of
from egocnn.nn.engines.operator import differentiable, factor_type

SHARES = 64  # parts that a replica's nodes are cut into for the gradient of the filters: enough to keep a GPU busy
PROGRAMS = 8192  # At most so many programs share sums among themselves: several rounds of a large GPU.


def is_available(device: torch.device) -> bool:
    """Whether the fused engine runs here; one line in the log where it could but Triton is missing."""
    if device.type != "cuda":
        return False
    if not HAS_TRITON:
        warn("triton is not installed: ego-convolutions on the GPU run by the slower reference")
        return False
    return bool(torch.cuda.get_device_properties(device).major >= 8)  # which torch's compiler knows


def ego_conv_fused(x: Tensor, tiles: Tiles | Tensor, weight: Tensor, bias: Tensor, *, relu: bool = False) -> Tensor:
    """As :func:`~egocnn.nn.engines.reference.ego_conv_reference`, and a rectifier after it if asked for. In float32,
    bfloat16 or float16, always summed up in float32. float32 products are rounded to TF32 where torch is allowed to,
    else split in three so that nothing is lost. Under autocast, in its type. From a table in place of its tiles, these
    are worked out in each pass."""
    x = x.to(factor_type(x))
    plan = [tiles] if isinstance(tiles, Tensor) else tiles.tensors()
    return _fused(x, weight.to(x.dtype), bias.to(x.dtype), plan, relu)


def _forward(x: Tensor, weight: Tensor, bias: Tensor, plan: Sequence[Tensor], relu: bool) -> Tensor:
    """x (N, D) or (R, N, D) and so on -> (..., N, D')"""
    columns, length, *_ = plan if len(plan) > 1 else Tiles.of(plan[0], gradients=False).tensors()
    y = x.new_empty(*x.shape[:-1], weight.shape[-1])
    _convolve(x.contiguous(), weight, bias.contiguous(), columns, length, y, relu=relu)
    return y


def _backward(
    gradient: Tensor, x: Tensor, weight: Tensor, plan: Sequence[Tensor], for_x: bool, for_weight: bool
) -> tuple[Tensor, Tensor]:
    """Gradients with respect to x and weight; an empty tensor for one that is not asked for."""
    columns, _, active, *back = plan if len(plan) > 1 else Tiles.of(plan[0], gradients=for_x).tensors()
    of_x, of_weight = gradient.new_empty(0), gradient.new_empty(0)
    if for_x:
        # where no gradient was expected, it is prepared only now
        back = back or Transposed.of(table_of(columns), x.shape[-2]).tensors()
        of_x = convolve_back(gradient, weight, back)
    if for_weight:
        of_weight = correlate(x.contiguous(), gradient, columns, active)
    return of_x, of_weight


_fused = differentiable("fused", _forward, _backward)


def _options(D: int, D_out: int, dtype: torch.dtype, *, correlates: bool) -> dict[str, Any]:
    """The kernels' constants: how much a program computes at once, and how. Measured best on an H200;
    lab/bench/NOTES.md has the others. EVEN: tiles of both widths are full."""
    most_in, most_out, stages = (128, 128, 3) if correlates else (64, 128, 3)
    precision = "ieee"  # without effect on 16-bit numbers
    if dtype == torch.float32:
        most_in, most_out, stages = (64, 64, 1) if correlates else (32, 64, 3)
        precision = "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"
    width_in, width_out = min(_power_of_two(D), most_in), min(_power_of_two(D_out), most_out)
    blocks = {"BLOCK_N": 64 if correlates else 128, "BLOCK_IN": width_in, "BLOCK_OUT": width_out}
    sizes = {"D": D, "D_out": D_out, "EVEN": D % width_in == 0 and D_out % width_out == 0}
    return {**sizes, **blocks, "PRECISION": precision, "num_warps": 4, "num_stages": stages}


def convolve_back(gradient: Tensor, weight: Tensor, back: Sequence[Tensor]) -> Tensor:
    """The gradient of x: the ego-convolution of the transposed table, a chunk of nodes after the other. The sums of a
    chunk are used up before those of the next one take their place."""
    columns, length, *addends, starts, room = back
    x_gradient = gradient.new_empty(*gradient.shape[:-1], weight.shape[-2])
    sums = gradient.new_empty(len(room), gradient.shape[-1])
    chunks = len(starts) - 1
    together = chunk_nodes(gradient.shape[-2], chunks)
    for chunk in range(chunks):
        span = starts[chunk : chunk + 2]
        _add_up(gradient, sums, span, *addends)
        nodes = slice(chunk * together, (chunk + 1) * together)
        _convolve(gradient, weight, None, columns, length, x_gradient, summed=(sums, span), nodes=nodes)
    return x_gradient


def _convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, columns: Tensor, length: Tensor, y: Tensor, *,
    summed: tuple[Tensor, Tensor] | None = None, nodes: slice | None = None, relu: bool = False,
) -> None:  # fmt: skip
    """Backward where ``summed`` names the sums and which of them they are."""
    from egocnn.nn.engines.gpu import conv_kernels as kernels

    if y.numel() == 0:
        return
    weight = weight.contiguous()
    N, D, D_out = x.shape[-2], x.shape[-1], y.shape[-1]
    is_back = summed is not None
    sums, span = summed or (x, length)
    first, last, _ = (nodes or slice(0, N)).indices(N)
    options = _options(D, D_out, x.dtype, correlates=False)
    size, width_in, width_out = (options[f"BLOCK_{name}"] for name in ("N", "IN", "OUT"))
    tiles = -(-(last - first) // size)
    by_tiles = options["EVEN"] and _has_copy_engine(x.device)
    block = [width_out, width_in] if is_back else [width_in, width_out]
    descriptor = None
    if by_tiles:
        from triton.tools.tensor_descriptor import TensorDescriptor

        descriptor = TensorDescriptor.from_tensor(weight.view(-1, weight.shape[-1]), block)
    filters = (weight, descriptor, x if bias is None else bias)
    sizes = (N, len(length), len(columns), first // size, tiles)
    kernels.convolve[(tiles * (len(length) // N), -(-D_out // width_out))](
        *(x, sums, span, *filters, y, columns, length, *sizes),
        **{"IS_BACK": is_back, "HAS_BIAS": bias is not None, "RELU": relu, "BY_TILES": by_tiles},
        **options,
    )


@cache
def _has_copy_engine(device: torch.device) -> bool:
    """Hopper and later move whole tiles by themselves."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def _add_up(gradient: Tensor, sums: Tensor, span: Tensor, *addends: Tensor) -> None:
    """The sums of the span; addends: sources, first, count, long and longs of :class:`Transposed`"""
    from egocnn.nn.engines.gpu import conv_kernels as kernels

    D, long = gradient.shape[-1], addends[3]
    width = min(_power_of_two(D), 128)
    kinds = ((len(sums), 0, LONG, 16, 2), (len(long), LONG + 1, 2**31 - 1, 1, 32))
    for kind, (places, shortest, longest, together, at_once) in enumerate(kinds):
        if places:
            kernels.add_up[(min(-(-places // together), PROGRAMS), -(-D // width))](
                *(gradient, sums, span, *addends),
                **{"D": D, "LISTED": kind == 1, "SHORTEST": shortest, "LONGEST": longest},
                **{"BLOCK_S": together, "BLOCK_A": at_once, "BLOCK_D": width, "num_warps": 4},
            )


def correlate(x: Tensor, gradient: Tensor, columns: Tensor, active: Tensor) -> Tensor:
    """The gradient of the filters."""
    from egocnn.nn.engines.gpu import conv_kernels as kernels

    nodes, D, D_out = x.shape[-2], x.shape[-1], gradient.shape[-1]
    ranks, total = columns.shape
    windows = windows_of(nodes)
    replicas, shares = len(active) // windows, min(windows, SHARES)
    options = _options(D, D_out, x.dtype, correlates=True)
    tiles_in, tiles_out = -(-D // options["BLOCK_IN"]), -(-D_out // options["BLOCK_OUT"])
    partial = torch.empty(replicas * shares, ranks, D, D_out, dtype=torch.float32, device=x.device)
    if partial.numel():
        sizes = (nodes, total, ranks, windows, shares, tiles_out)
        kernels.correlate[(ranks, replicas * shares, tiles_in * tiles_out)](
            *(x, gradient, partial, columns, active, *sizes), WINDOW=WINDOW, **options
        )
    summed = partial.view(replicas, shares, ranks, D, D_out).sum(1) if shares > 1 else partial
    return (summed if x.dim() == 3 else summed[0]).to(x.dtype)


def _power_of_two(width: int) -> int:
    """The smallest the matrix units take, or the next larger one."""
    return max(16, 1 << (width - 1).bit_length())
