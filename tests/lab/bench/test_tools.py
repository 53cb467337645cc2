"""What benchmarks are made of: ceilings, random graphs, systems side by side, and how calls are timed."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from lab.bench.tools.ceilings import Ceilings, CeilingSizes, arithmetic, bench_ceilings
from lab.bench.tools.problems import LARGEST_DEGREE, REACH, degree_histogram, edge_list, neighbour_table, with_loops
from lab.bench.tools.systems import OURS, Floor, Measurement, TimedCase, TimedSystem, measure_systems, significant
from lab.bench.tools.timing import Timing, Work, input_sets, measure, measure_in_turn
from tests.lab.bench.samples import HURRY, product

# ── what a machine can do, and the floors that follow ─────────────────────────────────────────────


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


# ── random graphs ─────────────────────────────────────────────────────────────────────────────────


NODES = st.integers(REACH + 1, 200)
K = st.integers(1, 9)
SEEDS = st.integers(0, 1000)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(NODES, K, SEEDS)
def test_where_all_neighbours_are_present_they_are_near_and_not_the_node_itself(n: int, k: int, seed: int) -> None:
    table = neighbour_table(n, k, "full", seeded(seed))
    assert table.dtype == torch.int32
    assert table.shape == (n, k)
    distance = (table - torch.arange(n)[:, None]).abs()
    distance = torch.minimum(distance, n - distance)  # positions go round
    assert bool(((table >= 0) & (table < n) & (distance >= 1) & (distance <= REACH)).all())
    assert torch.equal(table, neighbour_table(n, k, "full", seeded(seed)))


@given(NODES, K, SEEDS)
def test_molecules_have_few_neighbours_and_the_absent_ones_come_last(n: int, k: int, seed: int) -> None:
    present = neighbour_table(n, k, "molecules", seeded(seed)) >= 0
    assert int(present.sum(1).min()) >= 1
    assert int(present.sum(1).max()) <= LARGEST_DEGREE
    assert not bool((~present[:, :-1] & present[:, 1:]).any())


def test_molecules_have_about_two_neighbours_a_node() -> None:
    present = neighbour_table(20_000, 16, "molecules", seeded(0)) >= 0
    assert 2.1 < float(present.sum(1).double().mean()) < 2.4


@given(NODES, K, SEEDS)
def test_the_edges_are_the_entries_of_the_table(n: int, k: int, seed: int) -> None:
    table = neighbour_table(n, k, "molecules", seeded(seed))
    edges = edge_list(table)
    wanted = [(int(j), i) for i, row in enumerate(table) for j in row if j >= 0]
    assert edges.T.tolist() == [list(pair) for pair in wanted]
    histogram = degree_histogram(edges, n)
    assert int(histogram.sum()) == n
    assert int((histogram * torch.arange(len(histogram))).sum()) == edges.shape[1]
    assert with_loops(edges, n)[:, edges.shape[1] :].tolist() == [list(range(n))] * 2


# ── systems beside each other ─────────────────────────────────────────────────────────────────────


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


# ── calls and how they are timed ──────────────────────────────────────────────────────────────────


CPU = torch.device("cpu")


def test_the_time_is_that_of_one_call_of_a_round() -> None:
    timing = measure([lambda: time.sleep(0.004), lambda: time.sleep(0.008)], CPU, budget=0.05)
    assert 6 <= timing.milliseconds < 20
    assert timing.rounds >= 4
    assert timing.peak_megabytes is None
    assert input_sets(CPU, 1) == 1


def test_rivals_take_turns_until_each_has_had_its_budget() -> None:
    called: list[str] = []

    def slow() -> None:
        called.append("slow")
        time.sleep(0.02)

    def quick() -> None:
        called.append("quick")
        time.sleep(0.002)

    of_slow, of_quick = measure_in_turn([[slow], [quick]], budget=0.1)
    assert called[:4] == ["slow", "quick", "slow", "quick"]
    assert called.count("quick") == of_quick.rounds > called.count("slow") == of_slow.rounds
    assert of_slow.milliseconds > 2 * of_quick.milliseconds


def test_the_quickest_round_counts_and_the_spread_says_how_much_slower_others_were() -> None:
    pauses = iter([0.0, 0.002, 0.03, 0.03, 0.03, 0.03, 0.03])
    timing = measure([lambda: time.sleep(next(pauses))], CPU, budget=0.0)
    assert timing.milliseconds < 20
    assert timing.spread > 0.5


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
