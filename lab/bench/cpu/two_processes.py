"""Training in two processes of one thread against one process of one thread, and against one of two threads.

All do the same work by the same command; seconds are those of whole epochs, validation included, as the run folder has
them. Rounds alternate between the three, so that whatever else the machine does slows down all of them alike.

    EGOCNN_DATA=… python -m lab measure two_processes
"""

from __future__ import annotations

import csv
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.record import ROOT, arguments, write_measured

GOAL = 1.6  # Times the speed of one process that two must reach.


@dataclass(frozen=True, slots=True)
class Way:
    processes: int
    threads: int


WAYS = {
    "one process, one thread": Way(1, 1),
    "two processes, one thread each": Way(2, 1),
    "one process, two threads": Way(1, 2),
}


def epoch_seconds(way: Way, words: Sequence[str]) -> list[float]:
    """The time of every epoch but the first, which warms up."""
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={way.processes}"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *launch, "-m", "egocnn", "train", *words, "--device", "cpu", "--quiet"]
        done = subprocess.run(
            [*command, "-o", folder],
            env={**os.environ, "OMP_NUM_THREADS": str(way.threads)},
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        with (Path(folder) / "history.csv").open(encoding="utf-8", newline="") as file:
            return [float(row["seconds"]) for row in csv.DictReader(file)][1:]


def measure(words: Sequence[str], rounds: int) -> dict[str, Any]:
    busy = os.getloadavg()[0]
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            seconds[name] += epoch_seconds(way, words)
    times = {
        name: {"best": round(min(of), 3), "median": round(statistics.median(of), 3)} for name, of in seconds.items()
    }
    one, two, threads = times.values()
    ratio = round(one["best"] / two["best"], 2)
    return {
        "what": "seconds of an epoch of training, validation included, on a CPU",
        "words": list(words),
        "rounds": rounds,
        "load_average": [round(busy, 2), round(os.getloadavg()[0], 2)],
        "seconds": times,
        "times_faster": ratio,
        "times_faster_by_median": round(one["median"] / two["median"], 2),
        "goal": GOAL,
        "met": ratio >= GOAL,
        "two_threads_times_faster": round(one["best"] / threads["best"], 2),
        "two_threads_times_faster_by_median": round(one["median"] / threads["median"], 2),
    }


def main(words: Sequence[str]) -> None:
    parser = arguments("two_processes", __doc__)
    parser.add_argument("--data", default="NCI1", help="graphs with classes (default: NCI1)")
    parser.add_argument("--test", type=float, default=0.75, help="share of the graphs that are not trained on")
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--k", type=int, default=4, help="few atoms have more neighbours than the default")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(words)
    sizes = {name: str(getattr(options, name)) for name in ("width", "depth", "k", "batch_size", "epochs")}
    flags = [word for name, value in sizes.items() for word in (f"--{name.replace('_', '-')}", value)]
    asked = [options.data, "--test", str(options.test), *flags, "--patience", sizes["epochs"]]
    write_measured("two_processes", words, options.out, measure(asked, options.rounds))
