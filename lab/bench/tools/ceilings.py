"""What this machine can do at best: copy bandwidth and matrix rates, measured -> floors for everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch

from lab.bench.tools.systems import BenchSettings, Floor, significant
from lab.bench.tools.timing import measure

Precision = Literal["bfloat16", "tf32", "float32"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingSizes:
    copied_bytes: int
    square: int  # rows and columns of the matrices
    tall: tuple[int, int, int]
    """rows, inner size and columns of a product shaped like an ego-convolution after its gather"""


GPU = CeilingSizes(copied_bytes=1 << 30, square=8192, tall=(1 << 18, 17 * 128, 128))
CPU = CeilingSizes(copied_bytes=1 << 28, square=2048, tall=(1 << 13, 17 * 128, 128))
QUICK = CeilingSizes(copied_bytes=1 << 26, square=1024, tall=(1 << 11, 17 * 128, 128))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    copy_gigabytes: float  # per second, bytes read and bytes written
    matrix_teraflops: Mapping[Precision, float]  # of a large square product
    tall_teraflops: Mapping[Precision, float]  # of a product shaped like an ego-convolution

    def floor(self, parts: Sequence[tuple[float, float]], precision: Precision) -> Floor:
        """Parts that follow each other, each of (operations, bytes): a part waits for the slower of the two."""
        rate, bandwidth = self.matrix_teraflops[precision] * 1e12, self.copy_gigabytes * 1e9
        times = [(operations / rate, size / bandwidth) for operations, size in parts]
        computing = sum(matrix for matrix, memory in times if matrix >= memory)
        whole = sum(max(pair) for pair in times)
        return Floor(milliseconds=1000 * whole, bound="matrix rate" if computing >= whole / 2 else "memory")

    def to_plain(self) -> dict[str, Any]:
        return {
            "copy_gigabytes_per_second": significant(self.copy_gigabytes),
            "matrix_teraflops": {name: significant(rate) for name, rate in self.matrix_teraflops.items()},
            "tall_matrix_teraflops": {name: significant(rate) for name, rate in self.tall_teraflops.items()},
        }


def measure_ceilings(
    setting: BenchSettings, precisions: Sequence[Precision] | None = None, sizes: CeilingSizes | None = None
) -> Ceilings:
    on_cuda = setting.device.type == "cuda"
    sizes = sizes or (QUICK if setting.quick else GPU if on_cuda else CPU)
    precisions = precisions or (("bfloat16", "tf32", "float32") if on_cuda else ("float32",))
    setting.say("ceilings: copying and matrix products")
    rows, inner, columns = sizes.tall
    square = {name: _matrix_rate(setting, name, (sizes.square,) * 3) for name in precisions}
    tall = {name: _matrix_rate(setting, name, (rows, inner, columns)) for name in precisions}
    return Ceilings(copy_gigabytes=_copy_rate(setting, sizes), matrix_teraflops=square, tall_teraflops=tall)


def bench_ceilings(setting: BenchSettings, sizes: CeilingSizes | None = None) -> dict[str, Any]:
    return {"ceilings": measure_ceilings(setting, sizes=sizes).to_plain(), "cases": []}


def _copy_rate(setting: BenchSettings, sizes: CeilingSizes) -> float:
    source = torch.randn(sizes.copied_bytes // 4, device=setting.device, generator=setting.generator())
    sink = torch.randn(len(source), device=setting.device, generator=setting.generator(1))
    timing = measure([lambda: sink.copy_(source)], setting.device, budget=setting.budget)
    return 2 * 4 * len(source) / timing.milliseconds / 1e6


def _matrix_rate(setting: BenchSettings, precision: Precision, shape: tuple[int, int, int]) -> float:
    rows, inner, columns = shape
    dtype = dtype_of(precision)
    # random and not zeros: a GPU that multiplies zeros draws less power and runs faster than it ever will in earnest
    left = torch.randn(rows, inner, device=setting.device, generator=setting.generator()).to(dtype)
    right = torch.randn(inner, columns, device=setting.device, generator=setting.generator(1)).to(dtype)
    with arithmetic(precision):
        timing = measure([lambda: left @ right], setting.device, budget=setting.budget)
    return 2 * rows * inner * columns / timing.milliseconds / 1e9


def dtype_of(precision: Precision) -> torch.dtype:
    return torch.bfloat16 if precision == "bfloat16" else torch.float32


@contextmanager
def arithmetic(precision: Precision) -> Iterator[None]:
    """float32 products in full, or by TF32 where the precision says so; afterwards as before."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
