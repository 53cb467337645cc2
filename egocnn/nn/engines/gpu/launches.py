"""Tensors -> kernel launches: how the work of an ego-convolution is cut into programs, forward and backward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.engines.gpu.tiles import LONG, WINDOW, chunk_nodes, windows_of

SHARES = 64
"""Parts that the nodes of a replica are cut into for the gradient of the filters: enough to keep a GPU busy."""

PROGRAMS = 8192  # At most so many programs share sums among themselves: several rounds of a large GPU.


@dataclass(frozen=True, slots=True)
class TileShape:
    """How much a program computes at once."""

    nodes: int
    width_in: int
    width_out: int
    warps: int
    stages: int

    def options(self, D: int, D_out: int, dtype: torch.dtype) -> dict[str, Any]:
        """The kernels' constants, for widths D to D_out."""
        sizes = {"D": D, "D_out": D_out, "EVEN": self.fits(D, D_out), "PRECISION": _precision(dtype)}
        blocks = {"BLOCK_N": self.nodes, "BLOCK_IN": self.width_in, "BLOCK_OUT": self.width_out}
        return sizes | blocks | {"num_warps": self.warps, "num_stages": self.stages}

    def fits(self, D: int, D_out: int) -> bool:
        """Whether tiles of both widths are full."""
        return D % self.width_in == 0 and D_out % self.width_out == 0


def convolve(x: Tensor, weight: Tensor, bias: Tensor, columns: Tensor, length: Tensor, *, relu: bool = False) -> Tensor:
    """The ego-convolution itself."""
    y = x.new_empty(*x.shape[:-1], weight.shape[-1])
    _convolve(x, weight, bias, columns, length, y, relu=relu)
    return y


def convolve_back(gradient: Tensor, weight: Tensor, room: int, back: list[Tensor]) -> Tensor:
    """The gradient of x: the ego-convolution of the transposed table, a chunk of nodes after the other.

    The sums of a chunk are used up before those of the next one take their place.
    """
    columns, length, *addends, starts = back
    x_gradient = gradient.new_empty(*gradient.shape[:-1], weight.shape[-2])
    sums = gradient.new_empty(room, gradient.shape[-1])
    chunks = len(starts) - 1
    together = chunk_nodes(gradient.shape[-2], chunks)
    for chunk in range(chunks):
        span = starts[chunk : chunk + 2]
        _add_up(gradient, sums, span, *addends)
        nodes = slice(chunk * together, (chunk + 1) * together)
        _convolve(gradient, weight, None, columns, length, x_gradient, summed=(sums, span), nodes=nodes)
    return x_gradient


def _convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    columns: Tensor,
    length: Tensor,
    y: Tensor,
    *,
    summed: tuple[Tensor, Tensor] | None = None,
    nodes: slice | None = None,
    relu: bool = False,
) -> None:
    """Backward where ``summed`` names the sums and which of them they are."""
    from egocnn.nn.engines.gpu import conv_kernels as kernels

    if y.numel() == 0:
        return
    weight = weight.contiguous()
    N, D, D_out = x.shape[-2], x.shape[-1], y.shape[-1]
    is_back = summed is not None
    sums, span = summed or (x, length)
    first, last, _ = (nodes or slice(0, N)).indices(N)
    shape = forward_shape(D, D_out, x.dtype)
    tiles = -(-(last - first) // shape.nodes)
    by_tiles = shape.fits(D, D_out) and _has_copy_engine(x.device)
    block = [shape.width_out, shape.width_in] if is_back else [shape.width_in, shape.width_out]
    filters = (weight, _descriptor(weight, block) if by_tiles else None, x if bias is None else bias)
    sizes = (N, len(length), len(columns), first // shape.nodes, tiles)
    kernels.convolve[(tiles * (len(length) // N), -(-D_out // shape.width_out))](
        *(x, sums, span, *filters, y, columns, length, *sizes),
        **{"IS_BACK": is_back, "HAS_BIAS": bias is not None, "RELU": relu, "BY_TILES": by_tiles},
        **shape.options(D, D_out, x.dtype),
    )


def _descriptor(weight: Tensor, block: list[int]) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(weight.view(-1, weight.shape[-1]), block)


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
    shape = correlation_shape(D, D_out, x.dtype)
    tiles_in, tiles_out = -(-D // shape.width_in), -(-D_out // shape.width_out)
    partial = torch.empty(replicas * shares, ranks, D, D_out, dtype=torch.float32, device=x.device)
    if partial.numel():
        sizes = (nodes, total, ranks, windows, shares, tiles_out)
        kernels.correlate[(ranks, replicas * shares, tiles_in * tiles_out)](
            *(x, gradient, partial, columns, active, *sizes), WINDOW=WINDOW, **shape.options(D, D_out, x.dtype)
        )
    summed = partial.view(replicas, shares, ranks, D, D_out).sum(1) if shares > 1 else partial
    return (summed if x.dim() == 3 else summed[0]).to(x.dtype)


def forward_shape(D: int, D_out: int, dtype: torch.dtype) -> TileShape:
    """Measured best on an H200; lab/bench/NOTES.md has the others."""
    width_in, width_out = min(_power_of_two(D), 64), min(_power_of_two(D_out), 128)
    if dtype == torch.float32:
        return TileShape(128, min(width_in, 32), min(width_out, 64), warps=4, stages=3)
    return TileShape(128, width_in, width_out, warps=4, stages=3)


def correlation_shape(D: int, D_out: int, dtype: torch.dtype) -> TileShape:
    width_in, width_out = min(_power_of_two(D), 128), min(_power_of_two(D_out), 128)
    if dtype == torch.float32:
        return TileShape(64, min(width_in, 64), min(width_out, 64), warps=4, stages=1)
    return TileShape(64, width_in, width_out, warps=4, stages=3)


def _power_of_two(width: int) -> int:
    """The smallest the matrix units take, or the next larger one."""
    return max(16, 1 << (width - 1).bit_length())


def _precision(dtype: torch.dtype) -> str:
    if dtype != torch.float32:
        return "ieee"  # without effect on 16-bit numbers
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"
