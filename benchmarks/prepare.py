"""How long preparing graphs takes, and how it grows: TU sets and random graphs -> JSON and CSV.

    python benchmarks/prepare.py -o results/prepare.json

Every measurement is a fresh process. Preparing means: count colours, rank neighbours, find Patchy-San's table rows,
with the default settings. EGOCNN_DATA names the folder that holds tu/; sets that are not there are left out. The
authors' seconds are from running their scripts for NCI1, PROTEINS and MUTAG on another machine: an order of magnitude.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from egocnn.config import ModelConfig
from egocnn.files import write_json, write_text
from egocnn.graphs import Graphs
from egocnn.preparation import Preparation
from egocnn.reading import read
from egocnn.reproduce import machine
from egocnn.runs import versions

SETS = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1", "Mutagenicity", "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY", "COLLAB")
AUTHORS_SECONDS = {"NCI1": 126, "PROTEINS": 52, "MUTAG": 5.4}
EDGES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
FAMILIES = ("molecules", "network")


def random_graphs(family: str, n_edges: int) -> Graphs:
    """Many sparse trees of 30 nodes with three labels, or one network in which early nodes have most edges."""
    random = np.random.default_rng(0)
    if family == "molecules":
        n_graphs = n_edges // 29
        inner = np.arange(1, 30)
        parent = (random.random((n_graphs, 29)) * np.minimum(inner, 3)).astype(np.int64)
        edges = np.stack([np.broadcast_to(inner, parent.shape), inner - 1 - parent], axis=2)
        edges = (edges + 30 * np.arange(n_graphs)[:, None, None]).reshape(-1, 2)
        labels = random.integers(0, 3, 30 * n_graphs).astype(np.int32)
        return Graphs.from_edges(
            node_counts=np.full(n_graphs, 30), edges=edges, node_label=labels, node_label_names=("C", "N", "O")
        )
    n_nodes = n_edges // 5
    ends = (n_nodes * random.random((n_edges, 2)) ** (1.0, 3.0)).astype(np.int64)
    return Graphs.from_edges(node_counts=[n_nodes], edges=ends)


def measure(what: str) -> dict[str, Any]:
    """In this process: read or make the graphs, prepare them once, report."""
    started = time.perf_counter()
    family, _, size = what.partition(":")
    graphs = random_graphs(family, int(size)) if size else read(what)
    read_seconds = time.perf_counter() - started
    started = time.perf_counter()
    prepared = Preparation.fit(graphs, ModelConfig()).apply(graphs, ModelConfig())
    return {
        "edges": graphs.n_edges,
        "read_seconds": round(read_seconds, 3),
        "prepare_seconds": round(time.perf_counter() - started, 3),
        "prepared_megabytes": round(prepared.megabytes, 1),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }


def in_fresh_processes(what: str, repeats: int) -> dict[str, Any]:
    """The run with the median time of several."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", what]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(repeats)]
    median = statistics.median_low(run["prepare_seconds"] for run in runs)
    chosen: dict[str, Any] = next(run for run in runs if run["prepare_seconds"] == median)
    print(what, chosen, file=sys.stderr, flush=True)
    return chosen


def exponent(curve: list[dict[str, Any]]) -> float:
    """Slope of log time over log edges, from 100,000 edges on: 1 is linear growth."""
    large = [row for row in curve if row["edges"] >= 90_000] or curve
    slope, _ = np.polyfit(np.log([r["edges"] for r in large]), np.log([r["prepare_seconds"] for r in large]), 1)
    return round(float(slope), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=Path("results/prepare.json"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="only the smallest sizes, once")
    parser.add_argument("--measure", metavar="WHAT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    repeats, edges = (1, EDGES[:2]) if options.quick else (options.repeats, EDGES)
    folder = Path(os.environ.get("EGOCNN_DATA", "nowhere"), "tu")
    there = [name for name in SETS if (folder / f"{name}.zip").exists()][: 1 if options.quick else None]
    sets = {name: in_fresh_processes(name, repeats) for name in there}
    for name, seconds in AUTHORS_SECONDS.items():
        if name in sets:
            total = sets[name]["read_seconds"] + sets[name]["prepare_seconds"]
            sets[name] |= {"authors_seconds": seconds, "times_faster": round(seconds / total, 1)}
    curves = {f: [in_fresh_processes(f"{f}:{n}", 1 if n > 1e6 else repeats) for n in edges] for f in FAMILIES}
    result = {
        "what": " ".join((__doc__ or "").split()),
        "sets": sets,
        "growth": {family: {"exponent": exponent(curve), "curve": curve} for family, curve in curves.items()},
        "command": "python benchmarks/prepare.py -o results/prepare.json",
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": versions(),
    }
    write_json(options.out, result)
    text = io.StringIO()
    writer = csv.DictWriter(text, ["family", *curves[FAMILIES[0]][0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"family": family, **row} for family, curve in curves.items() for row in curve)
    write_text(options.out.with_suffix(".csv"), text.getvalue())


if __name__ == "__main__":
    main()
