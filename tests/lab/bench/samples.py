"""Settings for runs that take no time, and a record made of real measurements of trifles."""

from typing import Any

import torch

from lab.bench.tools.systems import BenchSettings, TimedCase, TimedSystem, measure_systems
from lab.bench.tools.timing import Work

HURRY = BenchSettings(device=torch.device("cpu"), budget=0.0, say=lambda _: None)


def product(size: int) -> list[Work]:
    values = torch.randn(size, size, generator=torch.Generator().manual_seed(0))
    return [lambda: values @ values]


def small_case(name: str = "product", **shape: Any) -> TimedCase:
    """Our product is 8 times smaller than the peer's, and one peer cannot be had."""

    def missing() -> list[Work]:
        raise ModuleNotFoundError("No module named 'nothing'", name="nothing.below")

    systems = [
        TimedSystem(name="egocnn", build=lambda: product(64)),
        TimedSystem(name="a larger product", build=lambda: product(512), same_function=False),
        TimedSystem(name="a library", build=missing),
    ]
    return TimedCase(name=name, shape=shape, measurements=measure_systems(systems, HURRY), operations=2 * 64**3)


def record(name: str = "layer", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": "Products of matrices",
        "device": "cpu",
        "quick": False,
        "cases": [small_case(precision="float32").to_plain()],
        "command": f"egocnn bench {name}",
        "date": "2020-01-02",
        "machine": "a machine",
        "versions": {"torch": "2.0"},
        **more,
    }
