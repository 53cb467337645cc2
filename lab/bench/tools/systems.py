"""Systems that do the same job, one of them ours -> a case: their times and memory, and the ratios to ours.

On CUDA every system builds its own inputs, is measured, and is gone before the next one comes: what stands in memory
during a call is that system's alone. On a CPU, where memory is not measured, they take turns.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeVar

import torch

from egocnn.errors import MissingExtraError
from lab.bench.tools.timing import Timing, Work, measure, measure_in_turn, run_round

OURS = "egocnn"

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings:
    """How a benchmark is run."""

    device: torch.device
    seed: int = 0
    quick: bool = False
    budget: float = 1.0  # seconds of timing for every system
    say: Callable[[str], None] = print

    def generator(self, number: int = 0) -> torch.Generator:
        """Random numbers on the device; ``number`` tells sets of inputs apart."""
        return torch.Generator(self.device).manual_seed(self.seed * 1000 + number)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedSystem:
    name: str
    build: Callable[[], Sequence[Work]]  # the calls of one round; an ImportError names what is missing
    same_function: bool = True  # computes what ours computes, and not only something that serves the same end
    wall: bool = False  # timed by the clock on CUDA too
    per_call: int = 1  # how many of what the case is about one call does; the time is that of one


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    system: str
    timing: Timing | None = None
    same_function: bool = True
    problem: str | None = None  # why there is no timing
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least time that a perfect implementation needs on this machine."""

    milliseconds: float
    bound: str  # what it would wait for: the matrix rate, or the memory


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCase:
    name: str
    shape: Mapping[str, Any]
    measurements: Sequence[Measurement]  # ours first
    floor: Floor | None = None
    operations: float | None = None  # floating-point operations that the result needs: absent neighbours do not count

    def to_plain(self) -> dict[str, Any]:
        """With every time and memory as a ratio to ours: above 1, ours is the better."""
        ours = self.measurements[0].timing
        return {
            "case": self.name,
            "shape": dict(self.shape),
            "systems": [self._system(measurement, ours) for measurement in self.measurements],
            "floor": None if self.floor is None else _rounded(asdict(self.floor)),
        }

    def _system(self, measurement: Measurement, ours: Timing | None) -> dict[str, Any]:
        row: dict[str, Any] = {"system": measurement.system, "same_function": measurement.same_function}
        timing = measurement.timing
        if timing is not None:
            row |= asdict(timing)
            row["time_ratio"] = None if ours is None else timing.milliseconds / ours.milliseconds
            row["memory_ratio"] = _ratio(timing.peak_megabytes, None if ours is None else ours.peak_megabytes)
            if self.operations is not None and measurement.same_function:
                row["useful_teraflops"] = self.operations / timing.milliseconds / 1e9
            if self.floor is not None:
                row["times_floor"] = timing.milliseconds / self.floor.milliseconds
        for name in ("problem", "note"):
            if getattr(measurement, name):
                row[name] = getattr(measurement, name)
        return _rounded(row)


def measure_systems(systems: Sequence[TimedSystem], setting: BenchSettings) -> list[Measurement]:
    """One measurement per system; a peer that is missing or fails says why and stops nothing."""
    found = _one_by_one(systems, setting) if setting.device.type == "cuda" else _in_turn(systems, setting)
    measurements = []
    for system, result in zip(systems, found, strict=True):
        if isinstance(result, str):
            measurement = Measurement(system=system.name, same_function=system.same_function, problem=result)
        else:
            timing = replace(result, milliseconds=result.milliseconds / system.per_call)
            measurement = Measurement(system=system.name, same_function=system.same_function, timing=timing)
        measurements.append(measurement)
        shown = f"{measurement.timing.milliseconds:.4g} ms" if measurement.timing else measurement.problem
        setting.say(f"  {system.name}: {shown}")
    return measurements


def _one_by_one(systems: Sequence[TimedSystem], setting: BenchSettings) -> list[Timing | str]:
    found = []
    for system in systems:
        found.append(_try(system, partial(_alone, system, setting)))
        _free()  # not before the frames of a failure are gone: they hold its tensors
    return found


def _alone(system: TimedSystem, setting: BenchSettings) -> Timing:
    return measure(system.build(), setting.device, budget=setting.budget, wall=system.wall)


def _in_turn(systems: Sequence[TimedSystem], setting: BenchSettings) -> list[Timing | str]:
    """Where memory is not measured they need not be alone."""

    def prepared(system: TimedSystem) -> Sequence[Work]:
        works = system.build()
        run_round(works)
        return works

    ready = [_try(system, partial(prepared, system)) for system in systems]
    timings = iter(measure_in_turn([works for works in ready if not isinstance(works, str)], budget=setting.budget))
    return [works if isinstance(works, str) else next(timings) for works in ready]


def _try(system: TimedSystem, attempt: Callable[[], Result]) -> Result | str:
    """What the attempt gives, or why it gives nothing; that our own code fails is never passed over."""
    try:
        return attempt()
    except (ImportError, MissingExtraError) as error:
        name = str(getattr(error, "name", None) or "").partition(".")[0]
        return f"{name} is not installed" if name else str(error)
    except (RuntimeError, NotImplementedError) as error:  # torch raises nothing finer for memory or for compiling
        if "out of memory" in str(error) or "allocate memory" in str(error):
            return "out of memory"
        if system.name == OURS:
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return lines[0][:200] if lines else type(error).__name__


def _free() -> None:
    gc.collect()
    torch.cuda.empty_cache()


def _ratio(theirs: float | None, ours: float | None) -> float | None:
    return None if theirs is None or not ours else theirs / ours


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: significant(value) if isinstance(value, float) else value for name, value in row.items()}


def significant(value: float, digits: int = 4) -> float:
    """More digits than a timing has only make a table hard to read."""
    return round(value, digits - 1 - math.floor(math.log10(abs(value)))) if value and math.isfinite(value) else value
