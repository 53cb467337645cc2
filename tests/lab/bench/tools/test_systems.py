"""Systems beside each other: ratios, failures, records."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab.bench.tools.systems import OURS, Floor, Measurement, TimedCase, TimedSystem, measure_systems, significant
from lab.bench.tools.timing import Timing, Work
from tests.lab.bench.samples import HURRY, product, small_case


def taking(milliseconds: float, peak: float | None = None) -> Timing:
    return Timing(milliseconds=milliseconds, spread=0.1, rounds=5, peak_megabytes=peak, added_megabytes=peak)


def test_times_and_memory_are_ratios_to_ours() -> None:
    case = TimedCase(
        name="case",
        shape={"nodes": 3},
        measurements=[
            Measurement(system=OURS, timing=taking(2.0, 10.0)),
            Measurement(system="peer", timing=taking(9.0, 25.0), same_function=False),
            Measurement(system="none", problem="out of memory"),
        ],
        floor=Floor(milliseconds=0.5, bound="memory"),
        operations=4e9,
    )
    ours, peer, none = case.to_plain()["systems"]
    assert (ours["time_ratio"], ours["memory_ratio"], ours["times_floor"]) == (1, 1, 4)
    assert (peer["time_ratio"], peer["memory_ratio"], peer["times_floor"]) == (4.5, 2.5, 18)
    assert ours["useful_teraflops"] == 2
    assert "useful_teraflops" not in peer  # it does other operations
    assert none == {"system": "none", "same_function": True, "problem": "out of memory"}


def test_without_a_time_of_ours_there_are_no_ratios() -> None:
    measurements = [Measurement(system=OURS, problem="out of memory"), Measurement(system="peer", timing=taking(9.0))]
    case = TimedCase(name="case", shape={}, measurements=measurements).to_plain()
    assert case["systems"][1]["milliseconds"] == 9
    assert case["systems"][1]["time_ratio"] is None


def test_a_larger_product_takes_longer_and_a_missing_library_is_named() -> None:
    ours, larger, missing = small_case().to_plain()["systems"]
    assert ours["time_ratio"] == 1
    assert larger["time_ratio"] > 5
    assert missing["problem"] == "nothing is not installed"


def failing(message: str) -> Sequence[Work]:
    raise RuntimeError(message)


@pytest.mark.parametrize(
    ("message", "problem"),
    [("CUDA out of memory. Tried to allocate", "out of memory"), ("\nno such kernel\n at line 3", "no such kernel")],
)
def test_a_peer_that_fails_says_why_and_stops_nothing(message: str, problem: str) -> None:
    systems = [
        TimedSystem(name=OURS, build=lambda: product(8)),
        TimedSystem(name="peer", build=lambda: failing(message)),
        TimedSystem(name="other", build=lambda: product(8)),
    ]
    found = measure_systems(systems, HURRY)
    assert [m.problem for m in found] == [None, problem, None]
    assert all(m.timing for m in (found[0], found[2]))


def test_a_failure_of_ours_is_not_passed_over() -> None:
    with pytest.raises(RuntimeError, match="wrong shape"):
        measure_systems([TimedSystem(name=OURS, build=lambda: failing("wrong shape"))], HURRY)


def test_a_call_that_does_many_is_counted_by_the_piece() -> None:
    whole, piece = measure_systems(
        [
            TimedSystem(name=OURS, build=lambda: product(512)),
            TimedSystem(name="piece", build=lambda: product(512), per_call=100),
        ],
        HURRY,
    )
    assert whole.timing is not None
    assert piece.timing is not None
    assert piece.timing.milliseconds < whole.timing.milliseconds / 10


@given(st.floats(min_value=1e-12, max_value=1e12))
@example(math.inf)
@example(0.0)
def test_four_digits_are_kept(value: float) -> None:
    assert significant(value) == pytest.approx(value, rel=5.1e-4)
    assert significant(-value) == -significant(value)
    if math.isfinite(value):
        assert len(f"{significant(value):.12e}".split("e")[0].replace(".", "").rstrip("0")) <= 4
