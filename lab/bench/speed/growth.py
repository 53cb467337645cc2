"""Time and peak memory of forward + backward as one size grows, the others fixed: nodes, neighbours, width, layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from egocnn.nn.engines import Neighbours, ego_conv, ego_conv_reference
from lab.bench.speed.layer import REFERENCE, LayerProblem
from lab.bench.tools.ceilings import Precision
from lab.bench.tools.systems import OURS, BenchSettings, TimedCase, TimedSystem, measure_systems, significant
from lab.bench.tools.timing import Work
from lab.tables.growth.curve import slope

Size = Literal["nodes", "k", "width", "layers"]
Layer: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]  # x, weight, bias -> the ego-convolution

LETTERS: dict[Size, str] = {"nodes": "N", "k": "K", "width": "D", "layers": "L"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePoint:
    nodes: int
    k: int = 16
    width: int = 128
    layers: int = 1

    def __getitem__(self, size: Size) -> int:
        value: int = getattr(self, size)
        return value

    def changed(self, size: Size, value: int) -> SizePoint:
        change: dict[str, int] = {size: value}
        return replace(self, **change)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSizes:
    fixed: SizePoint  # the sizes that do not grow
    grown: Mapping[Size, Sequence[int]]
    precision: Precision = field(default="float32")


GPU = GrowthSizes(
    fixed=SizePoint(nodes=1 << 18),
    grown={
        "nodes": [1 << power for power in range(12, 22, 2)],
        "k": [1, 4, 16, 64],
        "width": [16, 64, 128, 256, 512],
        "layers": [1, 3, 6, 12],
    },
    precision="bfloat16",
)
CPU = GrowthSizes(
    fixed=SizePoint(nodes=1 << 13),
    grown={
        "nodes": [1 << power for power in range(9, 17)],
        "k": [1, 2, 4, 8, 16, 32],
        "width": [16, 32, 64, 128, 256],
        "layers": [1, 2, 3, 5, 8],
    },
)
QUICK = GrowthSizes(
    fixed=SizePoint(nodes=1 << 10),
    grown={"nodes": [256, 1024, 4096], "k": [2, 8, 16], "width": [32, 64, 128], "layers": [1, 2, 4]},
)


def bench_growth(setting: BenchSettings, sizes: GrowthSizes | None = None) -> dict[str, Any]:
    sizes = sizes or (QUICK if setting.quick else GPU if setting.device.type == "cuda" else CPU)
    cases: list[dict[str, Any]] = []
    for size, values in sizes.grown.items():
        for value in values:
            point = sizes.fixed.changed(size, value)
            setting.say(f"{LETTERS[size]} = {value}")
            found = measure_systems(
                [
                    TimedSystem(name=OURS, build=_builder(point, sizes.precision, setting, _ours)),
                    TimedSystem(name=REFERENCE, build=_builder(point, sizes.precision, setting, _reference)),
                ],
                setting,
            )
            shape = {name: point[name] for name in LETTERS} | {"precision": sizes.precision, "varied": size}
            cases.append(TimedCase(name=f"{LETTERS[size]} = {value:,}", shape=shape, measurements=found).to_plain())
    return {"cases": cases, "exponents": exponents(cases)}


def _builder(
    point: SizePoint, precision: Precision, setting: BenchSettings, layer_of: Callable[[Tensor], Layer]
) -> Callable[[], list[Work]]:
    """All neighbours are present: what is varied is then all that changes."""
    nodes, k, width = point.nodes, point.k, point.width
    problem = LayerProblem(nodes=nodes, k=k, width=width, density="full", precision=precision, setting=setting)

    def work(number: int) -> Work:
        scale = 1 / math.sqrt((k + 1) * width)
        layer = layer_of(problem.table(number))
        x = problem.random(nodes, width, number=number).requires_grad_()
        weights = [
            problem.random(k + 1, width, width, number=number + 100 * i, scale=scale).requires_grad_()
            for i in range(1, point.layers + 1)
        ]
        bias = problem.random(width, number=number + 50).requires_grad_()
        arriving = problem.random(nodes, width, number=number + 60)

        def both() -> object:
            h = x
            for weight in weights:
                h = torch.relu(layer(h, weight, bias))
            return torch.autograd.grad(h, [x, bias, *weights], arriving)

        return both

    return lambda: [work(number) for number in range(problem.sets)]


def _ours(table: Tensor) -> Layer:
    neighbours = Neighbours.of(table)
    return lambda x, weight, bias: ego_conv(x, neighbours, weight, bias)


def _reference(table: Tensor) -> Layer:
    ids = table.long()
    return lambda x, weight, bias: ego_conv_reference(x, ids, weight, bias)


def exponents(cases: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Per varied size and system: the power of the size that time grows with, fitted to the larger half."""
    found: dict[str, dict[str, float]] = {}
    for size, letter in LETTERS.items():
        for system in (OURS, REFERENCE):
            points = curve(cases, size, system, "milliseconds")
            if (power := slope(points)) is not None:
                found.setdefault(letter, {})[system] = significant(power, 3)
    return found


def curve(cases: Sequence[Mapping[str, Any]], size: str, system: str, column: str) -> list[tuple[int, float]]:
    """(size, measured) for every point that could be measured"""
    return [
        (case["shape"][size], row[column])
        for case in cases
        if case["shape"]["varied"] == size
        for row in case["systems"]
        if row["system"] == system and row.get(column) is not None
    ]
