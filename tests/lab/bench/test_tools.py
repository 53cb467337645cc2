"""What benchmarks are made of: ceilings, random graphs, systems side by side, and how calls are timed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from lab.bench.tools.ceilings import Ceilings
from lab.bench.tools.systems import OURS, Floor, Measurement, TimedCase, TimedSystem, measure_systems
from lab.bench.tools.timing import Timing, Work, input_sets, measure
from tests.lab.bench.samples import HURRY, product

CEILINGS = Ceilings(copy_gigabytes=1000.0, matrix_teraflops={"bfloat16": 500.0}, tall_teraflops={})


@pytest.mark.parametrize(
    ("parts", "milliseconds", "bound"),
    [
        ([(1e12, 1e9)], 2.0, "matrix rate"),
        ([(1e11, 1e9)], 1.0, "memory"),
        ([(1e12, 1e9), (1e11, 1e9)], 3.0, "matrix rate"),  # floors of parts add up
    ],
)
def test_a_floor_waits_for_the_slower_of_computing_and_copying(
    parts: list[tuple[float, float]], milliseconds: float, bound: str
) -> None:
    found = CEILINGS.floor(parts, "bfloat16")
    assert found.milliseconds == pytest.approx(milliseconds)
    assert found.bound == bound


def taking(milliseconds: float, peak: float | None = None) -> Timing:
    return Timing(milliseconds=milliseconds, spread=0.1, rounds=5, peak_megabytes=peak, added_megabytes=peak)


def test_times_and_memory_are_ratios_to_ours_where_there_is_a_time_of_ours() -> None:
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
    failed = [Measurement(system=OURS, problem="out of memory"), case.measurements[1]]
    peer = replace(case, measurements=failed).to_plain()["systems"][1]
    assert (peer["milliseconds"], peer["time_ratio"]) == (9, None)


def failing(message: str) -> Sequence[Work]:
    raise RuntimeError(message)


@pytest.mark.parametrize(
    ("message", "problem"),
    [("CUDA out of memory. Tried to allocate", "out of memory"), ("\nno such kernel\n at line 3", "no such kernel")],
)
def test_a_peer_that_fails_says_why_and_stops_nothing_unless_it_is_ours(message: str, problem: str) -> None:
    systems = [
        TimedSystem(name=OURS, build=lambda: product(8)),
        TimedSystem(name="peer", build=lambda: failing(message)),
        TimedSystem(name="other", build=lambda: product(8)),
    ]
    found = measure_systems(systems, HURRY)
    assert [m.problem for m in found] == [None, problem, None]
    assert all(m.timing for m in (found[0], found[2]))
    with pytest.raises(RuntimeError, match="wrong shape"):
        measure_systems([TimedSystem(name=OURS, build=lambda: failing("wrong shape"))], HURRY)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_cuda_small_inputs_rotate_and_memory_is_counted() -> None:
    device = torch.device("cuda")
    assert input_sets(device, 1 << 20) > input_sets(device, 1 << 33) == 1
    x = torch.randn(1 << 20, device=device)
    timing = measure([lambda: x * 2], device, budget=0.01)
    assert timing.milliseconds > 0
    assert timing.added_megabytes == pytest.approx(4 * (1 << 20) / 1e6, rel=0.01)
    assert timing.peak_megabytes is not None
    assert timing.peak_megabytes >= 2 * 4 * (1 << 20) / 1e6
