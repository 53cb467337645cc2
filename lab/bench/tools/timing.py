"""Calls -> how long one of them takes and how much memory it needs.

Several calls with inputs of their own make a round, so that a GPU's cache does not hold what the next call reads. On
CUDA the rounds are queued behind each other between events and the median counts. On a CPU rivals take turns and the
quickest round of each counts, as whatever else runs on the machine can only add to the time.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

WARM_UP = 3  # Rounds between events before any that counts: kernels are compiled and tuned in the first.
LEAST, MOST = 5, 300  # Rounds that count, on CUDA.
SLOW = 5.0  # Seconds; a round that takes so long is not repeated, and warming up is the least part of it.
LEAST_BY_CLOCK = 4
PATIENCE = 5  # On a busy machine, this many times the budget at most.
CACHES = 4  # Rotating inputs must be this many times larger than the cache together.
MOST_SETS = 64

Work: TypeAlias = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One call, on average over its round."""

    milliseconds: float
    spread: float  # how much longer the slower quarter of all rounds took, at least, as a share of ``milliseconds``
    rounds: int
    peak_megabytes: float | None = None
    """the most that was allocated on the device during a call, inputs and weights included; None on a CPU"""
    added_megabytes: float | None = None  # what of that was not there before the call


def measure(works: Sequence[Work], device: torch.device, *, budget: float = 1.0, wall: bool = False) -> Timing:
    """Time rounds of all ``works`` for about ``budget`` seconds, at least a few of them.

    ``wall``: by the clock on CUDA too, for calls that wait for the device and compute on the host besides.
    """
    if device.type != "cuda":
        run_round(works)
        return measure_in_turn([works], budget=budget)[0]
    torch.cuda.reset_peak_memory_stats()
    before, took = torch.cuda.memory_allocated(), warm_up(works, wall=wall)
    if took > SLOW:
        peak = torch.cuda.max_memory_allocated()
        return replace(
            _timing([took, took], len(works), took), peak_megabytes=peak / 1e6, added_megabytes=(peak - before) / 1e6
        )
    most, added = _memory(works[0])
    times = _by_clock(works, budget) if wall else _by_events(works, budget)
    timing = _timing(times, len(works), statistics.median(times))
    return replace(timing, peak_megabytes=most, added_megabytes=added)


def warm_up(works: Sequence[Work], *, wall: bool) -> float:
    """A few rounds before any that counts -> the seconds of the last; the first compiles and says nothing."""
    run_round(works)
    took = 0.0
    for _ in range(1 if wall else WARM_UP - 1):
        took = seconds_of(works)
        if took > SLOW:
            break
    return took


def measure_in_turn(rivals: Sequence[Sequence[Work]], *, budget: float = 1.0) -> list[Timing]:
    """On the CPU: a round of each in turn, until each has had its budget.

    So a busy minute of the machine falls on all of them alike. All must have run once before.
    """
    times: list[list[float]] = [[] for _ in rivals]

    def unfinished(taken: Sequence[float]) -> bool:
        if len(taken) < LEAST_BY_CLOCK:
            return True
        # rounds that others slowed down do not use up the budget, within reason
        return len(taken) < MOST and len(taken) * min(taken) < budget and sum(taken) < PATIENCE * budget

    while any(map(unfinished, times)):
        for works, taken in zip(rivals, times, strict=True):
            if unfinished(taken):
                started = time.perf_counter()
                run_round(works)
                taken.append(time.perf_counter() - started)
    return [_timing(taken, len(works), min(taken)) for works, taken in zip(rivals, times, strict=True)]


def run_round(works: Sequence[Work]) -> None:
    for work in works:
        work()


def seconds_of(works: Sequence[Work]) -> float:
    """Of one round on a GPU by the clock."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    run_round(works)
    torch.cuda.synchronize()
    return time.perf_counter() - started


def input_sets(device: torch.device, set_bytes: int) -> int:
    """How many sets of inputs of this size to rotate, so that the cache holds none of them until its next turn."""
    if device.type != "cuda":
        return 1
    cache = torch.cuda.get_device_properties(device).L2_cache_size
    return max(1, min(MOST_SETS, math.ceil(CACHES * cache / max(1, set_bytes))))


def _timing(times: Sequence[float], calls: int, counted: float) -> Timing:
    """Seconds of every round, and which of them counts."""
    slower = statistics.quantiles(times, n=4)[2]
    return Timing(milliseconds=1000 * counted / calls, spread=max(0.0, slower / counted - 1), rounds=len(times))


def _by_clock(works: Sequence[Work], budget: float) -> list[float]:
    times: list[float] = []
    while len(times) < LEAST_BY_CLOCK or (sum(times) < budget and len(times) < MOST):
        times.append(seconds_of(works))
    return times


def _by_events(works: Sequence[Work], budget: float) -> list[float]:
    event: Any = torch.cuda.Event  # torch gives it no types

    def queue() -> tuple[Any, Any]:
        start, stop = event(enable_timing=True), event(enable_timing=True)
        start.record()
        run_round(works)
        stop.record()
        return start, stop

    def seconds(pair: tuple[Any, Any]) -> float:
        return float(pair[0].elapsed_time(pair[1])) / 1000

    first = queue()
    torch.cuda.synchronize()
    rounds = max(LEAST, min(MOST, int(budget / max(seconds(first), 1e-6))))
    pairs = [queue() for _ in range(rounds)]
    torch.cuda.synchronize()
    return [seconds(pair) for pair in pairs]


def _memory(work: Work) -> tuple[float, float]:
    """The peak during one call and how much of it the call added, in megabytes."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    return peak / 1e6, (peak - before) / 1e6
