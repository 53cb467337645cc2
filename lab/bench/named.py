"""A benchmark by name -> its record, with when and where it was measured; JSON where a file is named, Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from egocnn.errors import ConfigError
from egocnn.files import write_json
from egocnn.nn.device import choose_device
from lab.bench.document import markdown
from lab.bench.speed.crossval import bench_crossval
from lab.bench.speed.explain import bench_explain
from lab.bench.speed.growth import bench_growth
from lab.bench.speed.layer import bench_layer
from lab.bench.speed.step import bench_step
from lab.bench.tools.ceilings import bench_ceilings
from lab.bench.tools.systems import BenchSettings
from lab.record import circumstances, installed

__all__ = ["BENCHMARKS", "Benchmark", "bench", "default_file", "markdown", "names"]

FOLDER = Path("results/bench")  # Not results/ itself, where the tables of the paper have some of the same names.
PEERS = ("torch_geometric", "triton")
QUICK_BUDGET = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    title: str
    run: Callable[[BenchSettings], dict[str, Any]]


BENCHMARKS: dict[str, Benchmark] = {
    "ceilings": Benchmark(title="Copy bandwidth and matrix rates of this machine", run=bench_ceilings),
    "layer": Benchmark(title="One ego-convolution beside the layers of others", run=bench_layer),
    "step": Benchmark(title="A whole training step of five layers on real batches", run=bench_step),
    "growth": Benchmark(title="Time and memory against N, K, D and L", run=bench_growth),
    "explain": Benchmark(title="Explaining a graph beside GNNExplainer", run=bench_explain),
    "crossval": Benchmark(title="Time to finish a cross-validation", run=bench_crossval),
}


def names() -> Iterator[str]:
    """A line for each, and one for the chart of them all."""
    for name, benchmark in BENCHMARKS.items():
        yield f"{name:16}{benchmark.title}"
    yield f"{'chart':16}The records of all benchmarks as one picture, and as the tables of docs/benchmarks.md"


def bench(
    name: str,
    *,
    out: Path | None = None,
    device: str = "auto",
    quick: bool = False,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run one benchmark; every ratio in the record is that of times taken in this run."""
    if name not in BENCHMARKS:
        raise ConfigError(f"no benchmark is called {name!r}; there are {', '.join(BENCHMARKS)}")
    place = choose_device(device)
    setting = BenchSettings(device=place, seed=seed, quick=quick, budget=QUICK_BUDGET if quick else 1.0, say=say)
    record = {
        "name": name,
        "title": BENCHMARKS[name].title,
        "device": place.type,
        "quick": quick,
        **BENCHMARKS[name].run(setting),
        "seed": seed,
        "threads": torch.get_num_threads(),
        "command": f"egocnn bench {name} --device {place.type}{' --quick' if quick else ''} --seed {seed}",
        **circumstances(*PEERS, device=place.type),
        "missing_peers": [library for library in PEERS if library not in installed(*PEERS)],
    }
    if out is not None:
        write_json(out, record)
    return record


def default_file(name: str, *, device: str = "auto") -> Path:
    """Where a full run is kept: results of a GPU and of a CPU stand side by side."""
    return FOLDER / f"{name}{'' if choose_device(device).type == 'cuda' else '_cpu'}.json"
