"""How many molecules a second are predicted and explained, and what takes the time: shards of SMILES -> JSON.

    python -m lab molecules 100000 -o shards --rows 10000 --broken 0.01
    python -m lab measure throughput RUN [RUN …] --shards shards [MORE …]

Each RUN is the folder of a trained model. Stages are timed in this process, in processor seconds, which other work on
the machine changes less than the time that passes; the commands as they are called, with their processes. From the
processor seconds of a command follows what it does on two free cores; what it did in the time that passed is beside it.
Broken rows are counted: each must come out with its reason, and no row may be lost.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from egocnn.data.rows import RowFile, RowPortion
from egocnn.data.sources.text import arrow
from egocnn.errors import DataError
from egocnn.model import Model
from egocnn.nn.predict import predict_each
from egocnn.show.streaming import Echo, usual_settings
from egocnn.show.tables import arrow_table, column_kinds, table_writer
from egocnn.train.predictions import prediction_kinds, prediction_rows
from lab.record import ROOT, arguments, one_line, write_measured

CORES = 2
GOALS = {"predict": 5000, "explain": 1000}  # molecules a second on two cores


def stages(run: Path, shard: Path) -> dict[str, Any]:
    """Processor microseconds a row, stage by stage, on one thread."""
    torch.set_num_threads(1)
    model, spent = Model.load(run), dict.fromkeys(("read", "parse", "encode", "forward", "table", "write"), 0.0)
    file = RowFile.open(shard, usual_settings(model), {})
    echo = Echo.of(column_kinds(shard, file.echoed), prediction_kinds(model))
    rows, chunks = 0, iter(file.chunks)

    def timed(stage: str, work: Callable[..., Any], *inputs: Any) -> Any:
        started = time.process_time()
        found = work(*inputs)
        spent[stage] += time.process_time() - started
        return found

    def table_of(portion: RowPortion, found: Any) -> Any:
        assert portion.graphs is not None
        return arrow_table(list(echo.rows(portion, prediction_rows(model, portion.graphs, found))), echo.kinds)

    with tempfile.TemporaryDirectory() as folder, table_writer(Path(folder, "x.parquet"), echo.kinds) as write:
        while chunk := timed("read", next, chunks, None):
            portion = timed("parse", file.reader, chunk)
            encoded = timed("encode", model.encode, portion.graphs)
            timed("forward", predict_each, model.networks, encoded)
            found = list(model.by_target(portion.graphs))  # not counted: its encoding and forward pass are above
            timed("write", write, timed("table", table_of, portion, found))
            rows += len(chunk)
    total = sum(spent.values())
    return {
        "rows": rows,
        "microseconds": {stage: round(1e6 * seconds / rows, 1) for stage, seconds in spent.items()},
        "share": {stage: round(seconds / total, 3) for stage, seconds in spent.items()},
        "a_second_on_two_cores": round(CORES * rows / total),
    }


def command(name: str, run: Path, shards: Path, out: Path, *more: str) -> dict[str, Any]:
    """One call of egocnn: rows a second, processor seconds, and the memory of its largest process."""
    words = [sys.executable, "-m", "egocnn", name, str(run.resolve()), str(shards.resolve()), "-o", str(out), "--quiet"]
    started = time.perf_counter()
    jobs = ["--jobs", str(CORES), *more]
    process = subprocess.Popen([*words, *jobs], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)  # with the processes that it has started, and no others
    seconds, processor = time.perf_counter() - started, used.ru_utime + used.ru_stime
    if status:
        raise DataError(f"egocnn {name} did not end well")
    tables = [arrow().parquet.read_table(file) for file in sorted(out.glob("*.parquet"))]
    table, read = arrow().concat_tables(tables), sum(file.stat().st_size for file in shards.glob("*.parquet"))
    failed = [bool(error) for error in table.column("error").to_pylist()]
    broken = [way is not None for way in table.column("broken").to_pylist()]
    rows = table.num_rows
    return {
        "rows": rows,
        "processor_seconds": round(processor, 1),
        "seconds": round(seconds, 1),
        "a_second_on_two_cores": round(CORES * rows / processor),
        "a_second_as_it_was": round(rows / seconds),
        "peak_gigabytes_of_a_process": round(used.ru_maxrss * 1024 / 1e9, 2),
        "bytes_a_row_in": round(read / rows, 1),
        "bytes_a_row_out": round(sum(file.stat().st_size for file in out.glob("*.parquet")) / rows, 1),
        "broken": sum(broken),
        "broken_with_a_reason": sum(f and b for f, b in zip(failed, broken, strict=True)),
        "whole_without_a_prediction": sum(f and not b for f, b in zip(failed, broken, strict=True)),
    }


def main(words: Sequence[str]) -> None:
    parser = arguments("throughput", __doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--shards", type=Path, nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("--explain", type=Path, metavar="FOLDER", help="fewer shards to explain; by default none are")
    options = parser.parse_args(words)
    measured: dict[str, Any] = {
        "what": one_line(__doc__),
        "cores": os.cpu_count(),
        "goals_a_second": GOALS,
        "models": [],
    }
    first = min(options.shards[0].glob("*.parquet"))
    for run in options.runs:
        found: dict[str, Any] = {"networks": len(Model.load(run).networks), "stages": stages(run, first)}
        with tempfile.TemporaryDirectory() as folder:
            found["predict"] = [
                command("predict", run, shards, Path(folder, f"predict{n}")) for n, shards in enumerate(options.shards)
            ]
            if options.explain:
                found["explain"] = command("explain", run, options.explain, Path(folder, "explain"))
        measured["models"].append(found)
    write_measured("throughput", words, options.out, measured, "rdkit", "pyarrow")
