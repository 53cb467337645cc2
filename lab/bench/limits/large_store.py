"""One huge graph through `egocnn prepare` and `egocnn predict` -> seconds and memory of each, as JSON.

    python -m lab measure large_store -o results/large_store.json --nodes 10000000 --edges 100000000

The graph is random, N nodes and E different edges, no labels; it is made from a seed and written through the writer of
stores, which is the source that `prepare` then reads. The model is small in its training (twenty graphs of fifty nodes)
and of the width asked for. Every stage is a process of its own, and its memory is the most that it held in RAM.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lab.record import ROOT, arguments, one_line, peak_gigabytes, write_measured

STAGES = ("make", "train", "prepare", "predict")
LIMIT = 24.0  # gigabytes that each stage may take


def make(options: argparse.Namespace, folder: Path) -> None:
    import torch

    from egocnn.data.graphs import Graphs
    from egocnn.data.store import write_store
    from lab.bench.limits.large_graph import LargeGraph, random_adjacency

    problem = LargeGraph(nodes=options.nodes, edges=options.edges, seed=options.seed)
    indptr, indices = random_adjacency(problem, torch.device("cpu"))
    graphs = Graphs(
        node_ptr=np.array([0, problem.nodes]), indptr=indptr.numpy(), indices=indices.numpy(), names=("random",)
    )
    write_store([graphs], folder / "source", source=json.dumps(asdict(problem)))


def train(options: argparse.Namespace, folder: Path) -> None:
    from egocnn.config import ModelConfig, TrainConfig
    from egocnn.data.graphs import Graphs
    from egocnn.train.recipe import learn

    random = np.random.default_rng(options.seed)
    ends = random.integers(50, size=(20, 300, 2))
    joined = [pair + 50 * number for number, pair in enumerate(ends)]
    graphs = Graphs.from_edges(
        node_counts=[50] * 20,
        edges=np.concatenate([pair[pair[:, 0] != pair[:, 1]] for pair in joined]),
        target=np.arange(20) % 2,
        class_names=("no", "yes"),
    )
    predictor, _ = learn(graphs, ModelConfig(width=options.width), TrainConfig(epochs=1, device="cpu"))
    predictor.save(folder / "run")


def prepare(_: argparse.Namespace, folder: Path) -> None:
    _command("prepare", str(folder / "source"), "-o", str(folder / "store"))


def predict(_: argparse.Namespace, folder: Path) -> None:
    _command(
        "predict", str(folder / "run"), str(folder / "store"), "-o", str(folder / "it.csv"), "--device", "cpu", "--json"
    )


def _command(*words: str) -> None:
    from egocnn.cli import main as egocnn

    if code := egocnn(words):
        raise SystemExit(code)


def run_stages(words: Sequence[str], options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Every stage in turn, each in a process of its own."""
    measured: dict[str, Any] = {}
    for stage in STAGES:
        again = [sys.executable, "-m", "lab", "measure", "large_store", *words]
        command = [*again, "--stage", stage, "--folder", str(folder.resolve())]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
        measured[stage] = json.loads(done.stdout.splitlines()[-1])
        print(stage, measured[stage], file=sys.stderr, flush=True)
    sizes = {name: sum(f.stat().st_size for f in (folder / name).iterdir()) for name in ("store", "run")}
    prediction = (folder / "it.csv").read_text(encoding="utf-8").splitlines()[1]
    peak = max(stage["gigabytes"] for stage in measured.values())
    return {
        **{name: getattr(options, name) for name in ("nodes", "edges", "width", "seed")},
        "store_bytes": sizes["store"],
        "stages": measured,
        "prediction": prediction,
        "peak_gigabytes": peak,
        "bytes_per_node": {name: round(stage["gigabytes"] * 1e9 / options.nodes) for name, stage in measured.items()},
        "limit_gigabytes": LIMIT,
        "met": peak <= LIMIT,
    }


def main(words: Sequence[str]) -> None:
    parser = arguments("large_store", __doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to put graph and model for the time [the usual place]")
    parser.add_argument("--stage", choices=STAGES, help="only this one, in this process")
    options = parser.parse_args(words)
    if options.stage is not None:
        started = time.perf_counter()
        {"make": make, "train": train, "prepare": prepare, "predict": predict}[options.stage](options, options.folder)
        taken = time.perf_counter() - started
        print(json.dumps({"seconds": round(taken, 1), "gigabytes": round(peak_gigabytes(), 3)}))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        measured = run_stages(words, options, Path(temporary))
    write_measured("large_store", words, options.out, {"what": one_line(__doc__), **measured})
