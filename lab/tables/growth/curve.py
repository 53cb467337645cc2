"""A system and growing sizes -> seconds of one call at each size -> the power of the size that time grows with.

A curve ends where a call would take too long, or where the system refuses or lacks memory; it then says why. On a CPU
it is the processor's time that counts, and of several calls the quickest: whatever else runs can only add to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from egocnn.errors import EgoCNNError

Work = Callable[[], object]  # one call, to be timed
Clock = Callable[[], float]  # -> seconds

FEWEST_CALLS, MOST_CALLS = 2, 200

SHORTEST = 1e-9  # Seconds: a coarse clock may see none at all, and none has no logarithm.

PROBLEMS = (EgoCNNError, ImportError, MemoryError, RuntimeError)
"""What a system may raise at a size; torch raises nothing finer than RuntimeError where memory is short."""

LONGEST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveSizes:
    """What grows, what stays, and for how long it is timed."""

    nodes: Sequence[int]  # of each graph
    layers: Sequence[int]
    fixed_nodes: int  # while layers grow
    fixed_layers: int  # while nodes grow
    budget: float  # seconds of timing at each size, at least
    patience: float  # seconds; no size is tried at which a call is expected to take longer
    passes: int = 1  # times that every size has its turn: a busy minute of the machine then spoils no size for good


FULL = CurveSizes(
    nodes=[1 << power for power in range(7, 15)],
    layers=(1, 2, 3, 4, 6, 8),
    fixed_nodes=2048,
    fixed_layers=3,
    budget=0.3,
    patience=6.0,
    passes=2,
)
QUICK = CurveSizes(
    nodes=[1 << power for power in range(6, 13)],
    layers=(1, 2, 3, 4, 6, 8),
    fixed_nodes=512,
    fixed_layers=3,
    budget=0.1,
    patience=1.0,
    passes=2,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    size: int
    seconds: float  # of the quickest call
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    points: Sequence[Point]
    reason: str | None = None  # why it ends before the last size

    @property
    def exponent(self) -> float | None:
        """The slope of log seconds over log size, fitted by least squares to the larger half; None: too few points."""
        return slope([(point.size, point.seconds) for point in self.points])


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """(size, time) in ascending order -> the power of the size, by the larger half or at least two points."""
    if len(points) < 2:
        return None
    first = min(len(points) // 2, len(points) - 2)
    sizes, times = np.log(np.array(points[first:], np.float64)).T
    return float(np.polyfit(sizes, times, 1)[0])


def grow(values: Sequence[int], build: Callable[[int], Work], sizes: CurveSizes, *, letter: str, clock: Clock) -> Curve:
    """``build``: a size -> the call to time; ``letter`` names the size."""

    def measure(size: int) -> Point | str:
        try:
            seconds, calls = time_calls(build(size), sizes, clock)
        except PROBLEMS as error:
            return f"{letter} = {size:,}: {one_line(error)}"
        return Point(size=size, seconds=seconds, calls=calls)

    points: list[Point] = []
    reason = None
    for value in values:
        if expected(points, value) > sizes.patience:
            allowed = f"more than the {sizes.patience:g} s that a call may take"
            reason = f"{letter} = {value:,} was expected to take {allowed}"
            break
        found = measure(value)
        if isinstance(found, str):
            reason = found
            break
        points.append(found)
    for _ in range(sizes.passes - 1):
        points = [quicker(point, measure(point.size)) for point in points]
    return Curve(points=points, reason=reason)


def quicker(one: Point, other: Point | str) -> Point:
    """The less disturbed of two measurements of one size; a reason instead of the second changes nothing."""
    if isinstance(other, str):
        return one
    return Point(size=one.size, seconds=min(one.seconds, other.seconds), calls=one.calls + other.calls)


def expected(points: Sequence[Point], size: int) -> float:
    """Seconds at the next size, if time goes on growing as between the last two, and no slower than the size."""
    if not points:
        return 0.0
    last = points[-1]
    power = slope([(point.size, point.seconds) for point in points[-2:]])
    return float(last.seconds * (size / last.size) ** max(power or 1.0, 1.0))


def time_calls(work: Work, sizes: CurveSizes, clock: Clock) -> tuple[float, int]:
    """Seconds of the quickest call, and how many there were."""

    def call() -> float:
        started = clock()
        work()
        return clock() - started

    is_slow = call() > sizes.patience  # the first only warms up
    times = [call()]
    while not is_slow and len(times) < MOST_CALLS and (len(times) < FEWEST_CALLS or sum(times) < sizes.budget):
        times.append(call())
    return max(min(times), SHORTEST), len(times)


def one_line(error: BaseException) -> str:
    if isinstance(error, MemoryError) or "out of memory" in str(error) or "allocate memory" in str(error):
        return "out of memory"
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= LONGEST_REASON else words[:LONGEST_REASON] + " …"


def clock_of(device: torch.device) -> Clock:
    """A GPU's waits until all that was asked for is done."""
    if device.type != "cuda":
        return time.process_time

    def wait_and_look() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return wait_and_look
