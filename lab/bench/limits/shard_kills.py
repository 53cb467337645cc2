"""Kill -9 of a worker, of the driver or of both while shards are predicted and explained -> what became of it, as JSON.

    python -m lab measure shard_kills --kills 20 -o results/shard_kills.json

`predict` and `explain` run over small shards, in processes (`--jobs 2`) and on a Ray of their own (`--ray local`), once
unbroken and then again and again with a kill at a moment drawn from the second half of that duration, since the first
is the start of Python, or as soon as there is a worker. A worker that is killed may not be noticed: the command ends
well. Where the driver is killed, its processes have some seconds to end by themselves (those that do not are listed),
and the same command is called again. In the end the files are those of the unbroken run in processes, byte for byte in
all but the seconds in their footers.
"""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from egocnn.data.sources.text import arrow
from egocnn.scale.shards import MANIFEST, NOTE
from lab.bench.limits.kills import PATIENCE, SMALL, KilledCommand, bytes_in, finish, start, timeless
from lab.record import ROOT, arguments, one_line, write_measured

PIECES = ("C", "CC", "C(C)", "C(O)", "N", "C(=O)", "c1ccccc1", "C1CCCC1")
WAYS = {"processes": ("--jobs", "2"), "ray": ("--jobs", "2", "--ray", "local")}
VICTIMS = ("worker", "driver", "both")
LINGER = 20.0  # seconds that the processes of a killed driver are given to end by themselves


@dataclass(frozen=True, slots=True)
class ShardKill:
    command: str
    way: str
    victim: str
    moment: float  # seconds after the start
    written: int  # shards that had their file
    lingering: list[str]  # processes that a killed driver had left when the command was called again


def write_inputs(folder: Path, *, size: float) -> None:
    """Shards to predict, smaller ones to explain, and a model that tells alcohols from others."""
    draw = random.Random(0)

    def rows(count: int) -> list[tuple[str, str]]:
        several = ["".join(draw.choices(PIECES, k=draw.randint(3, 9))) for _ in range(count)]
        return [("C1CC", "none") if n % 100 == 99 else (text, str("O" in text)) for n, text in enumerate(several)]

    def write(path: Path, several: Sequence[tuple[str, str]]) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("smiles", "toxic"), *several])

    for name, count in (("predict", round(9000 * size)), ("explain", round(600 * size))):
        (folder / name).mkdir()
        for n in range(3):
            write(folder / name / f"{n}.csv", rows(count))
    write(folder / "train.csv", rows(99))
    settings = (*SMALL, "--target", "toxic", "--epochs", "2", "--networks", "1", "--quiet", "-o", str(folder / "model"))
    call = [sys.executable, "-m", "egocnn", "train", str(folder / "train.csv"), *settings]
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)


def result_of_shards(out: Path) -> dict[str, Any]:
    """Names of files, and of each its bytes but for the footer, and what the footer says but for the seconds."""
    found = bytes_in(out)
    found[MANIFEST] = timeless(json.loads(found[MANIFEST]))
    for name in [name for name in found if name.endswith(".parquet")]:
        footer = int.from_bytes(found[name][-8:-4], "little") + 8
        known = arrow().parquet.read_metadata(out / name)
        note = timeless(json.loads(known.metadata[NOTE.encode()]))
        found[name] = (found[name][:-footer], str(known.schema.to_arrow_schema()), known.num_row_groups, note)
    return found


def processes_of(session: int) -> dict[int, str]:
    """The processes of a session that was opened for one command, and so were started by it: id -> command line."""
    found = {}
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal():
            continue
        try:
            if os.getsid(int(place.name)) == session:
                found[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:  # it has ended
            continue
    return {process: words for process, words in found.items() if words}


def workers_of(driver: int) -> list[int]:
    """Those that have rows in work, or wait for them."""
    marks = ("loky.backend.popen", "ray::<lambda>", "ray::IDLE")
    return [each for each, words in processes_of(driver).items() if each != driver and any(m in words for m in marks)]


def kill_and_go_on(subject: KilledCommand, out: Path, way: str, victim: str, moment: float) -> ShardKill | None:
    """One kill, then the end; None where it had ended before. Raises where something is not as it should be."""
    started = time.monotonic()
    with start(subject, out) as process:
        while process.poll() is None and (time.monotonic() - started < moment or not workers_of(process.pid)):
            time.sleep(0.02)
        taken, written = time.monotonic() - started, len(list(out.glob("*.parquet")))
        workers = workers_of(process.pid)
        if process.poll() is not None or not workers:
            process.communicate(timeout=PATIENCE)
            return None
        for each in (*(workers[:1] if victim != "driver" else ()), *((process.pid,) if victim != "worker" else ())):
            os.kill(each, signal.SIGKILL)
        _, said = process.communicate(timeout=PATIENCE)
    if victim == "worker" and process.returncode != 0:
        raise AssertionError(f"a killed worker ended the command with {process.returncode}: {said[-300:]}")
    left: dict[int, str] = {}
    if victim != "worker":
        while (left := processes_of(process.pid)) and time.monotonic() - started - taken < LINGER:
            time.sleep(0.2)
        finish(subject, out)
        for each in processes_of(process.pid):  # of this session, which no other command has
            os.kill(each, signal.SIGKILL)
    return ShardKill(subject.name, way, victim, round(taken, 2), written, sorted(left.values()))


def run_shard_kills(kills: int, *, seed: int, size: float, say: Callable[[str], None]) -> dict[str, Any]:
    draw, done, findings = random.Random(seed), list[ShardKill](), list[str]()
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, size=size)
        expected: dict[str, Any] = {}
        trials = [(command, way, victim) for command in ("predict", "explain") for victim in VICTIMS for way in WAYS]
        for number in range(kills):
            command, way, victim = trials[number % len(trials)]
            words = (command, str(folder / "model"), str(folder / command), "--quiet", "--device", "cpu", *WAYS[way])
            subject = KilledCommand(command, words, (), lambda _: "", result_of_shards)
            call = f"{command}, {way}"
            try:
                if call not in seconds:
                    whole = folder / f"{command}-{way}"
                    seconds[call] = finish(subject, whole)
                    found = result_of_shards(whole)
                    if expected.setdefault(command, found) != found:
                        raise AssertionError("unbroken, the files differ from those that processes write")
                for attempt in range(10):
                    out = folder / f"out-{number}-{attempt}"
                    kill = kill_and_go_on(subject, out, way, victim, draw.uniform(0.5, 1.0) * seconds[call])
                    if result_of_shards(out) != expected[command]:
                        raise AssertionError(f"the files differ from those of the unbroken run after {kill}")
                    if kill is not None:
                        break
                else:
                    raise AssertionError("it ended ten times before it could be killed")
                done.append(kill)
                say(f"{call}: {victim} killed after {kill.moment} s, {kill.written} written: identical in the end")
            except Exception as error:
                findings.append(f"{call}, {victim}: {type(error).__name__}: {error}")
                say(findings[-1])
    return {
        "kills": len(done) + len(findings),
        "survived": len(done),
        "by_victim": {victim: sum(kill.victim == victim for kill in done) for victim in VICTIMS},
        "by_way": {way: sum(kill.way == way for kill in done) for way in WAYS},
        "findings": findings,
        "unbroken_seconds": {call: round(taken, 2) for call, taken in seconds.items()},
        "every_kill": [asdict(kill) for kill in done],
    }


def main(words: Sequence[str]) -> None:
    parser = arguments("shard_kills", __doc__)
    parser.add_argument("--kills", type=int, default=20, help="so many [20]")
    parser.add_argument("--size", type=float, default=1.0, help="how many rows there are [1: 27,000 to predict]")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    measured = run_shard_kills(
        options.kills, seed=options.seed, size=options.size, say=lambda text: print(text, file=sys.stderr, flush=True)
    )
    measured = {"what": one_line(__doc__), **measured, "seed": options.seed}
    write_measured("shard_kills", words, options.out, measured, "ray", "joblib", "pyarrow", hidden=["every_kill"])
    if measured["findings"]:
        raise SystemExit(1)
