"""How time grows: powers fitted to known curves, and curves that end with a reason."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.errors import DataError
from lab.tables.growth.claims import CLAIMS
from lab.tables.growth.curve import CurveSizes, Point, Work, expected, grow, one_line, quicker, slope, time_calls

TINY = CurveSizes(nodes=(16, 32, 64), layers=(1, 2), fixed_nodes=32, fixed_layers=2, budget=0.0, patience=30.0)


def nothing() -> None:
    """A call that takes no time to speak of."""


# ── the slope ─────────────────────────────────────────────────────────────────────────────────────


@given(st.floats(-1, 5), st.floats(1e-6, 1e3), st.lists(st.integers(1, 10**6), min_size=2, unique=True))
def test_the_slope_of_a_power_is_its_exponent(power: float, factor: float, sizes: list[int]) -> None:
    found = slope([(size, factor * size**power) for size in sorted(sizes)])
    assert found == pytest.approx(power, abs=1e-6)


def test_the_slope_is_fitted_to_the_larger_half() -> None:
    flat, steep = [(2**i, 1.0) for i in range(4)], [(2**i, 4.0**i) for i in range(4, 8)]
    assert slope([*flat, *steep]) == pytest.approx(2)
    assert slope([*flat[:2], (8, 3.0)]) == pytest.approx(np.log(3) / np.log(4))
    assert slope([(8, 1.0)]) is slope([]) is None


# ── a curve ───────────────────────────────────────────────────────────────────────────────────────


def test_a_curve_ends_before_a_call_that_would_take_too_long() -> None:
    points = [Point(size=2, seconds=1.0, calls=1), Point(size=4, seconds=4.0, calls=1)]
    assert expected(points, 8) == pytest.approx(16)
    assert expected(points[:1], 8) == pytest.approx(4)
    assert expected([], 8) == 0
    curve = grow([4, 8, 1 << 40], lambda _: nothing, TINY, letter="N", clock=time.perf_counter)
    assert [point.size for point in curve.points] == [4, 8]
    assert curve.reason is not None
    assert curve.reason.startswith("N = 1,099,511,627,776 was expected to take more than the 30 s")


def test_a_curve_ends_where_the_system_refuses_and_says_why() -> None:
    def build(size: int) -> Work:
        if size > 8:
            raise KeyError("a defect of ours is no limit of the system")
        if size > 2:
            raise DataError("no more than\n 2")
        return nothing

    with pytest.raises(KeyError):
        grow([9], build, TINY, letter="L", clock=time.perf_counter)
    curve = grow([1, 2, 3, 4], build, TINY, letter="L", clock=time.perf_counter)
    assert [point.size for point in curve.points] == [1, 2]
    assert curve.reason == "L = 3: no more than 2"


def test_lack_of_memory_is_said_in_three_words() -> None:
    assert one_line(MemoryError()) == "out of memory"
    assert one_line(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")) == (
        "out of memory"
    )
    assert len(one_line(RuntimeError("long " * 1000))) < 250


def test_a_call_is_repeated_unless_it_is_long() -> None:
    calls: list[int] = []
    seconds, counted = time_calls(lambda: calls.append(1), TINY, time.perf_counter)
    assert len(calls) == counted + 1 == 3
    assert seconds > 0
    calls.clear()
    assert time_calls(lambda: calls.append(1), replace(TINY, patience=0.0), time.perf_counter)[1] == 1
    assert len(calls) == 2


def test_every_size_has_its_turn_in_every_pass_and_the_quickest_counts() -> None:
    built: list[int] = []

    def build(size: int) -> Work:
        built.append(size)
        if len(built) == 4:
            raise DataError("this time not")
        return nothing

    curve = grow([1, 2], build, replace(TINY, passes=2), letter="L", clock=time.perf_counter)
    assert built == [1, 2, 1, 2]
    assert [point.calls for point in curve.points] == [4, 2]
    assert curve.reason is None
    slow, fast = Point(size=1, seconds=2.0, calls=3), Point(size=1, seconds=1.0, calls=4)
    assert quicker(slow, fast) == quicker(fast, slow) == Point(size=1, seconds=1.0, calls=7)


# ── what the paper claims ─────────────────────────────────────────────────────────────────────────


def test_only_the_ego_cnn_has_all_four_ticks() -> None:
    ticks = {
        name: (claim.task_specific, claim.precise, claim.scale_efficient, claim.large_graphs)
        for name, claim in CLAIMS.items()
    }
    assert [name for name, each in ticks.items() if all(each)] == ["Ego-CNN"]
    assert ticks["Patchy-San"] == (True, True, False, True)
    assert ticks["MLG"] == (False, False, True, False)
