"""Kill -9 at random moments of train, crossval, prepare and explain -> what was left, and what became of it, as JSON.

    python -m lab measure kills --kills 50 -o results/kills.json

Every command runs once unbroken, which gives its result and its duration. Then it is started again and again, and its
process group is killed at a moment drawn uniformly from that duration. What it leaves must be whole and readable, file
by file. It is then continued (train by --resume, crossval and explain by the same command, prepare with --overwrite),
at times killed once more, and in the end allowed to finish: the result must be that of the unbroken run, byte for byte,
in all but the seconds that were measured, and nothing else may be left.
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
import xml.etree.ElementTree
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from egocnn.data.store import Store
from egocnn.explain.structure import read_structures
from egocnn.model import Model
from egocnn.study.crossval.record import CrossValidation, Fold
from egocnn.train.checkpoint import check_seal
from lab.record import ROOT, arguments, one_line, write_measured

AGAIN = 0.3  # Chance that a run which goes on is killed once more.
PATIENCE = 600.0  # seconds after which a run that is not killed must have ended
SMALL = ("--width", "16", "--depth", "2", "--hidden", "16", "--slots", "5", "--k", "5")
COMPLETE = "complete"
MEASURED = ("seconds", "preparing_seconds", "training_seconds", "testing_seconds", "peak_megabytes")
"""what no two runs have in common"""


@dataclass(frozen=True, slots=True)
class KilledCommand:
    """A command that may be killed."""

    name: str
    words: tuple[str, ...]  # the command, less -o OUT
    again: tuple[str, ...]  # what is typed in addition to go on
    check: Callable[[Path], str]
    """reads all that a killed run left, and says how far it had come; what is not whole raises"""
    result: Callable[[Path], dict[str, Any]]  # what must be the same in the end: names of files, and what is in them


@dataclass(frozen=True, slots=True)
class Kill:
    command: str
    trial: int
    number: int  # 1 for the first kill of the trial; the later ones hit a run that went on
    moment: float  # seconds after the start
    share: float  # of the duration of the unbroken run
    stage: str  # how far it had come, as seen from what was left


# ── the four commands ─────────────────────────────────────────────────────────────────────────────


def killed_commands(folder: Path, *, size: float) -> list[KilledCommand]:
    """On small generated data, written to the folder; ``size`` multiplies how much there is to do."""
    alcohols = "compounds:alcohols:sizes=3-12,per_size=6"
    epochs = str(max(2, round(200 * size)))
    write_graphs(folder / "graphs.jsonl", max(100, round(60_000 * size)))
    training = (*SMALL, "--quiet", "--device", "cpu")
    model = ("train", alcohols, *training, "--epochs", "5", "-o", str(folder / "model"))
    subprocess.run([sys.executable, "-m", "egocnn", *model], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    count = str(max(10, round(100 * size)))
    train = ("train", alcohols, *training, "--epochs", epochs, "--patience", epochs)
    crossval = ("crossval", alcohols, *training, "--folds", "6", "--epochs", str(max(2, round(40 * size))))
    prepare = ("prepare", str(folder / "graphs.jsonl"))
    few = ("--limit", count, "--figures", count, "--quiet")
    explain = ("explain", str(folder / "model"), "compounds:alcohols", *few)
    return [
        KilledCommand("train", train, ("--resume",), check_run, result_of_run),
        KilledCommand("crossval", crossval, (), check_crossval, result_of_crossval),
        KilledCommand("prepare", prepare, ("--overwrite",), check_store, bytes_in),
        KilledCommand("explain", explain, (), lambda out: check_report(out, int(count)), bytes_in),
    ]


def write_graphs(path: Path, count: int) -> None:
    """Random trees of 5 to 15 nodes."""
    draw = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            nodes = draw.choices("CNO", k=draw.randint(5, 15))
            edges = [[draw.randrange(node), node] for node in range(1, len(nodes))]
            graph = {"name": f"tree {number}", "nodes": nodes, "edges": edges, "target": draw.choice(["a", "b"])}
            file.write(json.dumps(graph) + "\n")


def check_run(out: Path) -> str:
    from safetensors.torch import load_file

    if not out.exists():
        return "nothing written"
    stage = "folder made"
    if (out / "checkpoint.safetensors").exists():
        check_seal(load_file(out / "checkpoint.safetensors"))
        stage = "first epoch over"
    if (out / "history.csv").exists():
        with (out / "history.csv").open(encoding="utf-8") as file:
            rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
        epochs: dict[float, list[float]] = {}
        for row in rows:
            epochs.setdefault(row["network"], []).append(row["epoch"])
        for network, own in epochs.items():
            assert own == list(range(1, len(own) + 1)), f"history.csv: network {network:g} has the epochs {own}"
        stage = f"{len(rows)} epochs over"
    if (out / "config.json").exists():
        Model.load(out)
        stage = "model written"
    if (out / "metrics.json").exists():
        assert json.loads((out / "metrics.json").read_text(encoding="utf-8"))["interrupted"] is False
        Model.load(out)
        stage = COMPLETE
    return stage


def result_of_run(out: Path) -> dict[str, Any]:
    found = bytes_in(out)
    found["metrics.json"] = timeless(json.loads(found["metrics.json"]))
    rows = csv.DictReader(found["history.csv"].decode().splitlines())
    found["history.csv"] = [{name: value for name, value in row.items() if name != "seconds"} for row in rows]
    return found


def check_crossval(out: Path) -> str:
    stage, partial = "nothing written", out / "record.json.partial"
    if partial.exists():
        folds = [Fold.from_plain(each) for each in json.loads(partial.read_text(encoding="utf-8"))["folds"]]
        stage = f"{len(folds)} folds over"
    if (out / "record.json").exists():
        CrossValidation.from_plain(json.loads((out / "record.json").read_text(encoding="utf-8")))
        stage = COMPLETE
    return stage


def result_of_crossval(out: Path) -> dict[str, Any]:
    return {name: timeless(json.loads(content)) for name, content in bytes_in(out).items()}


def check_store(out: Path) -> str:
    if not out.exists():
        return "writing beside" if any(out.parent.glob(f".{out.name}.*.tmp")) else "nothing written"
    for _ in Store.open(out).portions():  # every byte under its checksum
        pass
    return COMPLETE


def check_report(out: Path, count: int) -> str:
    if not out.exists():
        return "nothing written"
    stage = "folder made"
    for picture in (out / "figures").glob("*.svg"):
        xml.etree.ElementTree.parse(picture)
    if (out / "structures.jsonl").exists():
        assert len(list(read_structures(out / "structures.jsonl"))) == count
        stage = "structures in place"
    if (out / "index.html").exists():
        assert (out / "index.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
        stage = COMPLETE
    return stage


def bytes_in(out: Path) -> dict[str, Any]:
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*")) if file.is_file()}


def timeless(plain: Any) -> Any:
    """The same without what is measured."""
    if isinstance(plain, dict):
        return {name: timeless(value) for name, value in plain.items() if name not in MEASURED}
    return [timeless(value) for value in plain] if isinstance(plain, list) else plain


# ── kills ─────────────────────────────────────────────────────────────────────────────────────────


def start(subject: KilledCommand, out: Path, *more: str) -> subprocess.Popen[str]:
    place = out / "record.json" if subject.name == "crossval" else out
    command = [sys.executable, "-m", "egocnn", *subject.words, *more, "-o", str(place)]
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},  # small tensors gain nothing from more
    )


def finish(subject: KilledCommand, out: Path, *more: str) -> float:
    """Run to the end; the seconds it took."""
    started = time.monotonic()
    with start(subject, out, *more) as process:
        _, said = process.communicate(timeout=PATIENCE)
    if process.returncode != 0:
        raise AssertionError(f"{subject.name} ended with {process.returncode}: {said}")
    return time.monotonic() - started


def kill_at(subject: KilledCommand, out: Path, moment: float, *more: str) -> float | None:
    """Kill all its processes at the moment; where it has ended by itself before, the seconds it took."""
    started = time.monotonic()
    with start(subject, out, *more) as process:
        try:
            _, said = process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
    if process.returncode != 0:
        raise AssertionError(f"{subject.name} ended with {process.returncode}: {said}")
    return time.monotonic() - started


@dataclass(slots=True)
class Trials:
    """A command, and what it comes to unbroken."""

    subject: KilledCommand
    draw: random.Random
    seconds: float  # that it takes now: the machine may have become faster
    expected: dict[str, Any]

    def kill_and_compare(self, folder: Path, trial: int) -> list[Kill]:
        """Kill it once or more, let it finish, compare; none where it has ended before it could be killed.

        Raises where something is not as it should be.
        """
        subject, out = self.subject, folder / "out"
        kills: list[Kill] = []
        more: tuple[str, ...] = ()
        while not kills or (kills[-1].stage != COMPLETE and self.draw.random() < AGAIN):
            moment = self.draw.uniform(0, self.seconds)
            taken = kill_at(subject, out, moment, *more)
            if taken is not None and not kills:
                self.seconds = taken
                return []
            if taken is not None:
                break
            place = (round(moment, 3), round(moment / self.seconds, 3), subject.check(out))
            kills.append(Kill(subject.name, trial, len(kills) + 1, *place))
            more = subject.again
        finish(subject, out, *more)
        found = subject.result(out)
        if found != self.expected:
            names = {name for name in found.keys() | self.expected.keys() if found.get(name) != self.expected.get(name)}
            raise AssertionError(f"{', '.join(sorted(names))} differ after {kills}")
        left = sorted(path.name for path in folder.iterdir())
        if left != ["out"]:
            raise AssertionError(f"leaves {left}")
        return kills


def run_kills(kills: int, *, seed: int, size: float, say: Callable[[str], None]) -> dict[str, Any]:
    draw = random.Random(seed)
    done: list[Kill] = []
    findings: list[str] = []
    durations: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        several = killed_commands(folder, size=size)
        for turn, subject in enumerate(several):
            wanted = kills // len(several) + (turn < kills % len(several))
            if wanted == 0:
                continue
            whole = folder / f"{subject.name}-unbroken"
            durations[subject.name] = finish(subject, whole)
            say(f"{subject.name}: {durations[subject.name]:.1f} s unbroken")
            trials = Trials(subject, draw, durations[subject.name], subject.result(whole))
            number = here = 0
            while here < wanted:
                number += 1
                place = folder / f"{subject.name}-{number}"
                place.mkdir()
                try:
                    own = trials.kill_and_compare(place, number)
                except Exception as error:
                    findings.append(f"{subject.name}, trial {number}: {type(error).__name__}: {error}")
                    say(findings[-1])
                    own = []
                    wanted -= 1
                here += len(own)
                done += own
                for each in own:
                    say(f"{each.command} killed after {each.moment:.2f} s ({each.stage}): identical in the end")
    survived = {subject.name: sum(kill.command == subject.name for kill in done) for subject in several}
    return {
        "kills": len(done) + len(findings),
        "survived": len(done),
        "by_command": survived,
        "findings": findings,
        "unbroken_seconds": {name: round(seconds, 2) for name, seconds in durations.items()},
        "every_kill": [asdict(kill) for kill in done],
    }


def main(words: Sequence[str]) -> None:
    parser = arguments("kills", __doc__)
    parser.add_argument("--kills", type=int, default=50, help="at least so many [50]")
    parser.add_argument("--size", type=float, default=1.0, help="how much the commands have to do [1]")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    measured = run_kills(
        options.kills, seed=options.seed, size=options.size, say=lambda text: print(text, file=sys.stderr, flush=True)
    )
    measured = {"what": one_line(__doc__), **measured, "seed": options.seed}
    write_measured("kills", words, options.out, measured, hidden=["every_kill"])
    if measured["findings"]:
        raise SystemExit(1)
