"""How long preparing graphs takes, and how it grows: TU sets and random graphs -> JSON and CSV.

    python -m lab measure prepare -o results/prepare.json

Every measurement is a fresh process, and the quickest of a few counts: what else runs on the machine can only add to
the time. Preparing means: count colours, rank neighbours, find Patchy-San's table rows, with the default settings.
EGOCNN_DATA names the folder that holds tu/; sets that are not there are left out. The authors' seconds are from
running their scripts for NCI1, PROTEINS and MUTAG on another machine: an order of magnitude.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.encode.encoder import Encoder
from egocnn.files import write_text
from lab.markdown import csv_text
from lab.record import ROOT, arguments, one_line, peak_gigabytes, write_measured

SETS = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1", "Mutagenicity", "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY", "COLLAB")
AUTHORS_SECONDS = {"NCI1": 126, "PROTEINS": 52, "MUTAG": 5.4}
GOALS = (
    ("NCI1", ("read_seconds", "prepare_seconds"), 1.2),
    ("NCI1", ("prepared_megabytes",), 100),
    ("REDDIT-BINARY", ("prepare_seconds",), 10),
    ("COLLAB", ("prepare_seconds",), 10),
)
"""data set, what is added up, and what the sum must stay below"""
EDGES = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)
LARGE = 90_000  # The exponent is fitted from here on: below, fixed costs hide the growth.

Row = dict[str, Any]


# ── random graphs ─────────────────────────────────────────────────────────────────────────────────


def molecules(n_edges: int, random: np.random.Generator) -> Graphs:
    """Many sparse graphs of 30 nodes: short-branched trees with rings of six, five labels."""
    size, ring_share = 30, 0.1
    n_graphs = max(1, round(n_edges / (size - 1 + ring_share * (size - 5))))
    place = np.tile(np.arange(size), n_graphs)
    node = np.arange(len(place))
    parent = node - np.minimum(random.geometric(0.75, len(node)), place)
    closes = (place >= 5) & (random.random(len(node)) < ring_share)
    bonds = [np.stack([node, parent], axis=1)[place > 0], np.stack([node, node - 5], axis=1)[closes]]
    return Graphs.from_edges(
        node_counts=np.full(n_graphs, size),
        edges=np.concatenate(bonds),
        node_label=random.choice(5, len(node), p=(0.7, 0.12, 0.1, 0.05, 0.03)).astype(np.int32),
        node_label_names=tuple("CNOSP"),
    )


def network(n_edges: int, random: np.random.Generator) -> Graphs:
    """One graph by preferential attachment: every newcomer brings 8 edges, to ends of earlier edges drawn evenly."""
    newcomer = 1 + np.arange(n_edges) // 8
    # end 2i is the newcomer of edge i; end 2i + 1, its other end, is one of the ends before, which is followed up
    drawn = (random.random(n_edges) * (2 * np.arange(n_edges) + 1)).astype(np.int64)
    while (unknown := np.flatnonzero(drawn % 2)).size:
        drawn[unknown] = drawn[drawn[unknown] // 2]
    edges = np.stack([newcomer, newcomer[drawn // 2]], axis=1) - 1
    return Graphs.from_edges(node_counts=[int(newcomer[-1])], edges=edges)


FAMILIES = {"molecules": molecules, "network": network}


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────


def measure(source: str) -> Row:
    """In this process: read the graphs, prepare them once, report."""
    config = ModelConfig()
    started = time.perf_counter()
    graphs = read(source)
    read_seconds = time.perf_counter() - started
    started, processor = time.perf_counter(), time.process_time()
    prepared = Encoder.fit(graphs, config).apply(graphs, config)
    return {
        "nodes": graphs.n_nodes,
        "edges": graphs.n_edges,
        "read_seconds": round(read_seconds, 3),
        "prepare_seconds": round(time.perf_counter() - started, 3),
        "processor_seconds": round(time.process_time() - processor, 3),
        "prepared_megabytes": round(prepared.megabytes, 1),
        "peak_gigabytes": round(peak_gigabytes(), 2),
    }


def in_fresh_processes(source: str, repeats: int) -> Row:
    """The quickest of several runs."""
    command = [sys.executable, "-m", "lab", "measure", "prepare", "--measure", source]
    runs: list[Row] = [
        json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout) for _ in range(repeats)
    ]
    return min(runs, key=lambda run: float(run["prepare_seconds"]))


def measure_sets(names: Sequence[str], repeats: int) -> dict[str, Row]:
    sets = {}
    for name in names:
        sets[name] = in_fresh_processes(name, repeats)
        if name in AUTHORS_SECONDS:
            ours = sets[name]["read_seconds"] + sets[name]["prepare_seconds"]
            sets[name] |= {
                "authors_seconds": AUTHORS_SECONDS[name],
                "times_faster": round(AUTHORS_SECONDS[name] / ours, 1),
            }
        print(name, sets[name], file=sys.stderr, flush=True)
    return sets


def measure_growth(family: str, repeats: int, *, steps: int | None = None) -> Row:
    curve = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graphs.safetensors")  # made here: the process that is measured only reads it
        for n_edges in EDGES[:steps]:
            FAMILIES[family](n_edges, np.random.default_rng(0)).save(path)
            row = in_fresh_processes(str(path), repeats if n_edges <= 1_000_000 else min(repeats, 2))
            del row["read_seconds"]
            curve.append(row)
            print(family, row, file=sys.stderr, flush=True)
    return {"exponent": exponent(curve), "curve": curve}


def exponent(curve: Sequence[Row]) -> float:
    """Slope of log time over log edges by least squares: 1 is linear growth."""
    large = [row for row in curve if row["edges"] >= LARGE] if curve[-1]["edges"] >= 10 * LARGE else curve
    slope, _ = np.polyfit(np.log([r["edges"] for r in large]), np.log([r["processor_seconds"] for r in large]), 1)
    return round(float(slope), 3)


def goals(sets: dict[str, Row]) -> list[Row]:
    found = []
    for name, columns, most in GOALS:
        if name in sets:
            measured = round(sum(sets[name][column] for column in columns), 3)
            found.append({"goal": f"{name}: {' + '.join(columns)} below {most}", "measured": measured})
            found[-1]["met"] = measured < most
    return found


def main(words: Sequence[str]) -> None:
    parser = arguments("prepare", __doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one data set and the two smallest sizes, once")
    parser.add_argument("--measure", metavar="SOURCE", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    repeats, steps = (1, 2) if options.quick else (options.repeats, None)
    folder = Path(os.environ.get("EGOCNN_DATA", "nowhere"), "tu")
    there = [name for name in SETS if (folder / f"{name}.zip").exists()]
    sets = measure_sets(there[:1] if options.quick else there, repeats)
    growth = {family: measure_growth(family, repeats, steps=steps) for family in FAMILIES}
    measured = {
        "what": one_line(__doc__),
        "times_faster_than_the_authors": {n: row["times_faster"] for n, row in sets.items() if "times_faster" in row},
        "exponents": {family: found["exponent"] for family, found in growth.items()},
        "goals": goals(sets),
        "sets": sets,
        "growth": growth,
    }
    write_measured("prepare", words, options.out, measured)
    rows = [{"family": family, **row} for family, found in growth.items() for row in found["curve"]]
    write_text(options.out.with_suffix(".csv"), csv_text(list(rows[0]), rows))
