"""Does the fused GPU engine compute what the equation says? Random problems against a float64 reference -> JSON.

    python -m lab measure engine_agreement -o results/engine_agreement.json

Output and all three gradients are compared, for every arithmetic, for widths that fill no tile, for tables with gaps
and hubs, for none and for several replicas; then what only a real GPU can show: the same bits in every run, offsets
beyond 32 bits, torch.compile without a graph break, autocast, and a recorded CUDA graph fed with another table. Needs a
CUDA device; runs from a bare checkout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from egocnn.nn.engines import Neighbours, ego_conv, ego_conv_reference
from egocnn.nn.engines.gpu.fused import ego_conv_fused
from egocnn.nn.engines.gpu.tiles import Tiles
from lab.record import arguments, write_measured

TOLERANCE = {"float32": 2e-6, "tf32": 2e-3, "bfloat16": 6e-3, "float16": 1e-3}
"""Largest relative error ||found - expected|| / ||expected|| that passes."""


@dataclass(frozen=True, slots=True)
class ConvolutionCase:
    """What an ego-convolution is asked for."""

    nodes: int
    K: int
    D: int
    D_out: int
    replicas: int | None = None
    absent: float = 0.5
    hubs: bool = False
    relu: bool = False


CASES = (
    ConvolutionCase(0, 3, 8, 8),
    ConvolutionCase(1, 0, 16, 16),
    ConvolutionCase(1, 1, 1, 1),
    ConvolutionCase(77, 5, 100, 37),
    ConvolutionCase(130, 16, 128, 128, absent=0.9),
    ConvolutionCase(500, 16, 128, 128, absent=0.0),
    ConvolutionCase(300, 4, 64, 256, relu=True),
    ConvolutionCase(300, 3, 7, 65, replicas=1),
    ConvolutionCase(200, 16, 128, 128, replicas=5, absent=0.8),
    ConvolutionCase(90, 2, 33, 16, replicas=3, relu=True),
    ConvolutionCase(3000, 8, 48, 130, hubs=True),
    ConvolutionCase(2000, 4, 128, 64, replicas=2, hubs=True),
    ConvolutionCase(20_000, 16, 128, 128, absent=0.86),
    ConvolutionCase(9000, 20, 512, 32),
)


def build(case: ConvolutionCase, dtype: torch.dtype, device: str, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Embeddings, table, filters and bias, drawn at random."""
    random = torch.Generator(device).manual_seed(seed)
    lead = () if case.replicas is None else (case.replicas,)

    def normal(*size: int) -> Tensor:
        return torch.randn(*lead, *size, generator=random, device=device).to(dtype)

    size = (*lead, case.nodes, case.K)
    table = torch.randint(0, max(case.nodes, 1), size, generator=random, device=device)
    if case.hubs:  # every second neighbour is one of three nodes
        is_hub = torch.rand(size, generator=random, device=device) < 0.5
        table = torch.where(is_hub, table % 3, table)
    table[torch.rand(size, generator=random, device=device) < case.absent] = -1
    return normal(case.nodes, case.D), table, normal(case.K + 1, case.D, case.D_out), normal(case.D_out)


def compare(case: ConvolutionCase, dtype: torch.dtype, device: str, *, seed: int = 0) -> dict[str, float]:
    """Relative error of the output and of every gradient."""
    x, table, weight, bias = build(case, dtype, device, seed)
    ours = [t.clone().requires_grad_() for t in (x, weight, bias)]
    y = ego_conv_fused(ours[0], Tiles.of(table, gradients=True), ours[1], ours[2], relu=case.relu)
    theirs = [t.double().requires_grad_() for t in (x, weight, bias)]
    expected = reference(theirs[0], table, theirs[1], theirs[2])
    if case.relu:
        expected = expected * (y > 0)  # the sign of a number that rounds to zero is nobody's
    arriving = torch.randn(y.shape, generator=torch.Generator(device).manual_seed(seed), device=device).to(dtype)
    found = torch.autograd.grad(y, ours, arriving)
    wanted = torch.autograd.grad(expected, theirs, arriving.double())
    names = ("output", "x", "weight", "bias")
    pairs = zip((y, *found), (expected, *wanted), strict=True)
    return {name: error(*pair) for name, pair in zip(names, pairs, strict=True)}


def reference(x: Tensor, table: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if x.dim() == 2:
        return ego_conv_reference(x, table, weight, bias)
    return torch.stack([ego_conv_reference(*each) for each in zip(x, table, weight, bias, strict=True)])


def error(found: Tensor, expected: Tensor) -> float:
    """Relative to the expected numbers, or to numbers around 1, as the inputs are, where they cancel each other out."""
    found, expected = found.detach().double(), expected.detach()
    if found.numel() == 0:
        return 0.0
    return float((found - expected).norm() / expected.norm().clamp(min=found.numel() ** 0.5))


# ── what only a GPU shows ─────────────────────────────────────────────────────────────────────────


def same_bits() -> bool:
    case = ConvolutionCase(50_000, 16, 128, 128, hubs=True)
    x, table, weight, bias = (t.cuda() for t in build(case, torch.bfloat16, "cpu", 1))

    def run() -> list[Tensor]:
        leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
        y = ego_conv(leaves[0], table, leaves[1], leaves[2])
        return [y, *torch.autograd.grad(y.float().square().sum(), leaves)]

    return all(torch.equal(*pair) for pair in zip(run(), run(), strict=True))


def beyond_32_bits() -> float:
    """The last nodes of 20 million of width 128: their offsets are larger than 2^31."""
    N, D = 20_000_000, 128
    x = torch.randn(N, D, device="cuda", dtype=torch.bfloat16)
    table = torch.stack([torch.arange(N, device="cuda").flip(0), torch.arange(N, device="cuda") - 1], dim=1).int()
    weight, bias = torch.randn(3, D, D, device="cuda").bfloat16(), torch.randn(D, device="cuda").bfloat16()
    with torch.no_grad():
        y = ego_conv(x, table, weight, bias)
        last = torch.arange(N - 1000, N, device="cuda")
        rows = torch.cat([last[:, None], table[last].long()], dim=1)
        expected = torch.einsum("nkd,kde->ne", x[rows].double(), weight.double()) + bias.double()
        return error(y[last], expected)


def compiled() -> dict[str, float]:
    """Two layers under torch.compile(fullgraph=True): how far output and gradients are from eager ones at most."""
    x, table, weight, bias = build(ConvolutionCase(5000, 8, 64, 64), torch.float32, "cuda", 2)
    neighbours = Neighbours.of(table)

    def network(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        hidden = torch.relu(ego_conv(x, neighbours, weight, bias))
        return torch.relu(ego_conv(hidden, neighbours, weight, bias)) * 0.1

    def run(function: Callable[..., Tensor]) -> list[Tensor]:
        leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
        y = function(*leaves)
        return [y.detach(), *torch.autograd.grad(y.square().mean(), leaves)]

    pairs = zip(run(torch.compile(network, fullgraph=True)), run(network), strict=True)
    names = ("output", "x", "weight", "bias")
    return {name: float((fast - eager).abs().max()) for name, (fast, eager) in zip(names, pairs, strict=True)}


def under_autocast() -> str:
    x, table, weight, bias = build(ConvolutionCase(100, 4, 32, 32), torch.float32, "cuda", 3)
    with torch.autocast("cuda", torch.bfloat16):
        return str(ego_conv(x, table, weight, bias).dtype)


def recorded() -> float:
    """A CUDA graph of forward and backward, recorded with one table and replayed with another."""
    case = ConvolutionCase(700, 6, 64, 64, replicas=3)
    x, table, weight, bias = build(case, torch.bfloat16, "cuda", 4)
    leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]

    def step() -> list[Tensor]:
        y = ego_conv(leaves[0], Neighbours.of(table), leaves[1], leaves[2])
        return [y, *torch.autograd.grad(y.float().square().sum(), leaves)]

    cuda: Any = torch.cuda  # parts of it have no types
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        step()  # compiles what it needs, which must not happen while recording
    cuda.current_stream().wait_stream(side)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        results = step()
    table.copy_(build(case, torch.bfloat16, "cuda", 5)[1])
    graph.replay()
    torch.cuda.synchronize()
    return max(error(*pair) for pair in zip(results, [t.double() for t in step()], strict=True))


def main(words: Sequence[str]) -> None:
    options = arguments("engine_agreement", __doc__).parse_args(words)
    rows: list[dict[str, Any]] = []
    kinds = (("float32", False), ("tf32", True), ("bfloat16", False), ("float16", False))
    for kind, tf32 in kinds:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        dtype = torch.float32 if tf32 else getattr(torch, kind)
        for seed, case in enumerate(CASES if kind in ("float32", "bfloat16") else CASES[3:14:3]):
            errors = compare(case, dtype, "cuda", seed=seed)
            row = {"arithmetic": kind, "case": repr(case), **{name: float(f"{e:.1e}") for name, e in errors.items()}}
            rows.append(row | {"passed": max(errors.values()) <= TOLERANCE[kind]})
            print(row, flush=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    facts = {
        "same_bits_in_every_run": same_bits(),
        "error_beyond_32_bit_offsets": beyond_32_bits(),
        "compiled_against_eager": compiled(),
        "type_under_autocast": under_autocast(),
        "cuda_graph_against_eager": recorded(),
    }
    measured = {
        "what": "fused engine against a float64 reference: relative errors of the output and of every gradient",
        "tolerance": TOLERANCE,
        "all_passed": all(row["passed"] for row in rows),
        **facts,
        "cases": rows,
    }
    write_measured("engine_agreement", words, options.out, measured, device="cuda", hidden=["cases"])
