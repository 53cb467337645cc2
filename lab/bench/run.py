"""A benchmark by name -> its record, with when and where it was measured; JSON where a file is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from egocnn.errors import ConfigError
from egocnn.files import write_json
from egocnn.train.loop import choose_device
from egocnn.train.run import machine, versions
from lab.bench import ceilings, crossval, explain, growth, layer, step
from lab.bench.systems import Setting

FOLDER = Path("results/bench")
"""Not results/ itself, where the tables of the paper have some of the same names."""
PEERS = ("torch_geometric", "triton")
QUICK_BUDGET = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    title: str
    run: Callable[[Setting], dict[str, Any]]


BENCHMARKS: dict[str, Benchmark] = {
    "ceilings": Benchmark(title="Copy bandwidth and matrix rates of this machine", run=ceilings.run),
    "layer": Benchmark(title="One ego-convolution beside the layers of others", run=layer.run),
    "step": Benchmark(title="A whole training step of five layers on real batches", run=step.run),
    "growth": Benchmark(title="Time and memory against N, K, D and L", run=growth.run),
    "explain": Benchmark(title="Explaining a graph beside GNNExplainer", run=explain.run),
    "crossval": Benchmark(title="Time to finish a cross-validation", run=crossval.run),
}


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
    setting = Setting(device=place, seed=seed, quick=quick, budget=QUICK_BUDGET if quick else 1.0, say=say)
    record = {
        "name": name,
        "title": BENCHMARKS[name].title,
        "device": place.type,
        "quick": quick,
        **BENCHMARKS[name].run(setting),
        "seed": seed,
        "threads": torch.get_num_threads(),
        "command": f"egocnn bench {name} --device {place.type}{' --quick' if quick else ''} --seed {seed}",
        "date": date.today().isoformat(),
        "machine": torch.cuda.get_device_name(place) if place.type == "cuda" else machine(),
        "versions": versions() | _installed(),
        "missing_peers": [library for library in PEERS if library not in _installed()],
    }
    if out is not None:
        write_json(out, record)
    return record


def default_file(name: str, *, device: str = "auto") -> Path:
    """Where a full run is kept: results of a GPU and of a CPU stand side by side."""
    return FOLDER / f"{name}{'' if choose_device(device).type == 'cuda' else '_cpu'}.json"


def _installed() -> dict[str, str]:
    found = {}
    for library in PEERS:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found
