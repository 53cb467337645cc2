"""Predict more and more rows, in shards and in one file -> the memory that it takes, as JSON.

    python -m lab molecules 1000000 -o shards --rows 10000 --broken 0.01
    python -m lab measure shard_memory RUN --shards shards --rows 10000 100000 1000000

For each number of rows the first shards that hold so many are predicted by a command of its own with two processes;
with --whole N the first N rows once more as a single file. While it runs, the resident memory of all its processes is
read from /proc every quarter of a second: the largest process, and the most that all held together, in which pages
that they share count more than once.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from egocnn.data.sources.text import arrow
from lab.bench.limits.kills import KilledCommand, start
from lab.bench.limits.shard_kills import processes_of
from lab.record import arguments, one_line, write_measured

JOBS = "2"
LIMIT = 3.0  # gigabytes that it may take, however many rows there are


def resident(session: int) -> list[int]:
    """Bytes that each process of a session holds now."""
    found = []
    for process in processes_of(session):
        try:
            pages = int(Path(f"/proc/{process}/statm").read_text(encoding="utf-8").split()[1])
        except OSError:  # it has ended
            continue
        found.append(pages * 4096)
    return found


def predict(run: Path, shards: Path, out: Path) -> dict[str, Any]:
    """One call of egocnn, watched to its end."""
    words = ("predict", str(run.resolve()), str(shards.resolve()), "--jobs", JOBS, "--device", "cpu", "--quiet")
    subject = KilledCommand("predict", words, (), lambda _: "", lambda _: {})
    started, largest, together = time.perf_counter(), 0, 0
    with start(subject, out) as process:
        while process.poll() is None:
            now = resident(process.pid)
            largest, together = max(largest, *now, 0), max(together, sum(now))
            time.sleep(0.25)
        _, said = process.communicate()
    if process.returncode:
        raise AssertionError(said)
    errors = [arrow().parquet.read_table(file, columns=["error", "broken"]) for file in sorted(out.glob("*.parquet"))]
    table = arrow().concat_tables(errors).to_pydict()
    lost = sum((error is None) != (way is None) for error, way in zip(table["error"], table["broken"], strict=True))
    return {
        "rows": len(table["error"]),
        "files": len(errors),
        "broken": sum(way is not None for way in table["broken"]),
        "broken_without_a_reason_or_whole_with_one": lost,
        "gigabytes_of_the_largest_process": round(largest / 1e9, 3),
        "gigabytes_together": round(together / 1e9, 3),
        "seconds": round(time.perf_counter() - started, 1),
    }


def main(words: Sequence[str]) -> None:
    parser = arguments("shard_memory", __doc__)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--shards", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--rows", type=int, nargs="+", required=True, metavar="N")
    parser.add_argument("--whole", type=int, default=0, metavar="N", help="so many rows as one file, too")
    options = parser.parse_args(words)
    shards = sorted(options.shards.resolve().glob("*.parquet"))
    size = arrow().parquet.read_metadata(shards[0]).num_rows
    found = []
    with tempfile.TemporaryDirectory() as name:
        for number, (rows, is_whole) in enumerate([*((n, False) for n in options.rows), (options.whole, True)]):
            some, place = shards[: rows // size], Path(name, f"in{number}")
            place.mkdir()
            if is_whole and some:
                with arrow().parquet.ParquetWriter(
                    place / "whole.parquet", arrow().parquet.read_schema(some[0])
                ) as one:
                    for shard in some:
                        one.write_table(arrow().parquet.read_table(shard))
            for shard in () if is_whole else some:
                (place / shard.name).symlink_to(shard)
            if some:
                found.append(predict(options.run, place, Path(name, f"out{number}")))
                print(found[-1], flush=True)
    peak = max(each["gigabytes_together"] for each in found)
    measured = {"what": one_line(__doc__), "measured": found, "limit_gigabytes": LIMIT, "met": peak <= LIMIT}
    write_measured("shard_memory", words, options.out, measured, "rdkit", "pyarrow", "joblib")
