"""What a machine can do, and the floors that follow."""

from __future__ import annotations

import pytest
import torch

from lab.bench.tools.ceilings import Ceilings, CeilingSizes, arithmetic, bench_ceilings
from tests.lab.bench.samples import HURRY

CEILINGS = Ceilings(copy_gigabytes=1000.0, matrix_teraflops={"bfloat16": 500.0}, tall_teraflops={})


def test_a_floor_waits_for_the_slower_of_computing_and_copying() -> None:
    computing = CEILINGS.floor([(1e12, 1e9)], "bfloat16")
    assert computing.milliseconds == pytest.approx(2.0)
    assert computing.bound == "matrix rate"
    copying = CEILINGS.floor([(1e11, 1e9)], "bfloat16")
    assert copying.milliseconds == pytest.approx(1.0)
    assert copying.bound == "memory"


def test_the_floors_of_parts_add_up() -> None:
    both = CEILINGS.floor([(1e12, 1e9), (1e11, 1e9)], "bfloat16")
    assert both.milliseconds == pytest.approx(3.0)


def test_rates_are_measured_and_positive() -> None:
    found = bench_ceilings(HURRY, CeilingSizes(copied_bytes=1 << 16, square=64, tall=(256, 64, 16)))["ceilings"]
    assert found["copy_gigabytes_per_second"] > 0
    assert found["matrix_teraflops"].keys() == found["tall_matrix_teraflops"].keys() == {"float32"}
    assert all(rate > 0 for rate in found["matrix_teraflops"].values())


def test_the_arithmetic_of_products_is_afterwards_as_before() -> None:
    before = torch.get_float32_matmul_precision()
    with arithmetic("tf32"):
        assert torch.get_float32_matmul_precision() == "high"
        with arithmetic("float32"):
            assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == before
