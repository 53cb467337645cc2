"""Curves of time and memory against one size."""

from __future__ import annotations

from typing import Any

import pytest

from lab.bench.speed.growth import GrowthSizes, SizePoint, bench_growth, curve, exponents
from tests.lab.bench.samples import HURRY


def made_up(power: float) -> list[dict[str, Any]]:
    """Fixed costs at first, then a power law."""
    return [
        {
            "shape": {"nodes": n, "varied": "nodes"},
            "systems": [{"system": "egocnn", "milliseconds": max(50.0, n**power)}, {"system": "gone"}],
        }
        for n in (1, 2, 4, 1000, 2000, 4000)
    ]


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_the_exponent_is_that_of_the_larger_half(power: float) -> None:
    assert exponents(made_up(power)) == {"N": {"egocnn": pytest.approx(power, abs=0.01)}}


def test_a_curve_leaves_out_what_could_not_be_measured() -> None:
    cases = made_up(1.0)
    assert curve(cases, "nodes", "egocnn", "milliseconds")[-1] == (4000, 4000.0)
    assert curve(cases, "nodes", "gone", "milliseconds") == []
    assert curve(cases, "width", "egocnn", "milliseconds") == []


def test_one_size_is_varied_at_a_time() -> None:
    fixed = SizePoint(nodes=64, k=2, width=4, layers=2)
    found = bench_growth(HURRY, GrowthSizes(fixed=fixed, grown={"nodes": [32, 128], "layers": [1, 3]}))
    shapes = [tuple(case["shape"][name] for name in ("nodes", "k", "width", "layers")) for case in found["cases"]]
    assert shapes == [(32, 2, 4, 2), (128, 2, 4, 2), (64, 2, 4, 1), (64, 2, 4, 3)]
    assert [case["case"] for case in found["cases"]] == ["N = 32", "N = 128", "L = 1", "L = 3"]
    assert found["exponents"].keys() == {"N", "L"}
    assert all(row["milliseconds"] > 0 for case in found["cases"] for row in case["systems"])
