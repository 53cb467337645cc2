"""Calls and how they are timed."""

from __future__ import annotations

import time

import pytest
import torch

from lab.bench.tools.timing import input_sets, measure, measure_in_turn

CPU = torch.device("cpu")


def test_the_time_is_that_of_one_call_of_a_round() -> None:
    timing = measure([lambda: time.sleep(0.004), lambda: time.sleep(0.008)], CPU, budget=0.05)
    assert 6 <= timing.milliseconds < 20
    assert timing.rounds >= 4
    assert timing.peak_megabytes is None


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


def test_a_cpu_needs_no_rotating_inputs() -> None:
    assert input_sets(CPU, 1) == 1


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
