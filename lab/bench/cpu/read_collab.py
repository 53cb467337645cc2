"""COLLAB.zip -> how long reading it takes, next to pandas parsing its largest file alone, as JSON.

    python -m lab measure read_collab -o results/read_collab.json

Each measurement is a fresh process that reads once; the two take turns, and the medians are compared. Importing the
libraries is not counted, on either side. EGOCNN_DATA names the folder that holds tu/COLLAB.zip.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.record import ROOT, arguments, peak_gigabytes, write_measured

MEMBER = "COLLAB/COLLAB_A.txt"


def read_with_egocnn(path: Path) -> float:
    from egocnn.config import ReadConfig
    from egocnn.data.sources.tu import read_tu

    start = time.perf_counter()
    graphs = read_tu(path, ReadConfig())
    seconds = time.perf_counter() - start
    assert len(graphs) == 5000, graphs
    return seconds


def read_with_pandas(path: Path) -> float:
    import pandas

    start = time.perf_counter()
    table = pandas.read_csv(path, header=None)
    seconds = time.perf_counter() - start
    assert table.shape[1] == 2, table.shape
    return seconds


def measure(engine: str, path: Path) -> dict[str, float]:
    """Run one engine in a process of its own."""
    command = [sys.executable, "-m", "lab", "measure", "read_collab", "--engine", engine, "--path", str(path)]
    measured: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    return measured


def report(engine: str, path: Path) -> None:
    seconds = read_with_egocnn(path) if engine == "egocnn" else read_with_pandas(path)
    print(json.dumps({"seconds": seconds, "peak_gigabytes": peak_gigabytes()}))


def compare(archive: Path, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(archive) as opened:
            text = Path(opened.extract(MEMBER, folder))
        with text.open("rb") as lines:
            n_lines = sum(chunk.count(b"\n") for chunk in iter(lambda: lines.read(1 << 24), b""))
        pairs = [(measure("pandas", text), measure("egocnn", archive)) for _ in range(repeats)]
    pandas_runs, egocnn_runs = zip(*pairs, strict=True)
    pandas_seconds = statistics.median(run["seconds"] for run in pandas_runs)
    egocnn_seconds = statistics.median(run["seconds"] for run in egocnn_runs)
    return {
        "what": f"egocnn reads the whole of COLLAB.zip; pandas.read_csv, as it comes, parses {Path(MEMBER).name} alone",
        "edge_lines": n_lines,
        "ratio": round(egocnn_seconds / pandas_seconds, 3),
        "egocnn_seconds": round(egocnn_seconds, 3),
        "pandas_seconds": round(pandas_seconds, 3),
        "egocnn_peak_gigabytes": round(max(run["peak_gigabytes"] for run in egocnn_runs), 3),
        "pandas_peak_gigabytes": round(max(run["peak_gigabytes"] for run in pandas_runs), 3),
        "egocnn_runs": [round(run["seconds"], 3) for run in egocnn_runs],
        "pandas_runs": [round(run["seconds"], 3) for run in pandas_runs],
    }


def main(words: Sequence[str]) -> None:
    parser = arguments("read_collab", __doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--engine", choices=("egocnn", "pandas"), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.engine:
        report(options.engine, options.path)
        return
    archive = Path(os.environ.get("EGOCNN_DATA", ""), "tu", "COLLAB.zip")
    if "EGOCNN_DATA" not in os.environ or not archive.is_file():
        sys.exit("EGOCNN_DATA must name a folder that holds tu/COLLAB.zip")
    write_measured("read_collab", words, options.out, compare(archive, options.repeats), "pandas")
