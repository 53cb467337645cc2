"""Kill -9 at random moments of every command that writes -> what was left, and what became of it, as JSON.

    python -m lab measure kills --kills 60 -o results/kills.json

Every command runs once unbroken, which gives its result and its duration. Then it is started again and again, and its
process group is killed at a moment drawn uniformly from that duration. What it leaves must be whole and readable, file
by file. It is then continued (train by --resume, prepare with --overwrite, the others by the same command), at times
killed once more, and in the end allowed to finish: the result must be that of the unbroken run, byte for byte, in all
but the seconds that were measured, and nothing else may be left. Where a command replaces a good result (--overwrite,
and a file or a report that is there), the old one must be whole after the kill, or the new one.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
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
OLD = "the old result"
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
    file: str = ""  # in the folder, where the command writes no folder of its own
    replaces: Path | None = None  # a good result that is in place before it starts

    def lay(self, out: Path) -> None:
        """Put in place what is to be replaced."""
        if self.replaces is not None:
            shutil.copytree(self.replaces, out)
        elif self.file:
            out.mkdir(parents=True)


@dataclass(frozen=True, slots=True)
class Kill:
    command: str
    trial: int
    number: int  # 1 for the first kill of the trial; the later ones hit a run that went on
    moment: float  # seconds after the start
    share: float  # of the duration of the unbroken run
    stage: str  # how far it had come, as seen from what was left


# ── the commands ─────────────────────────────────────────────────────────────────────────────


def killed_commands(folder: Path, *, size: float) -> list[KilledCommand]:
    """On small generated data, written to the folder; ``size`` multiplies how much there is to do."""
    alcohols = "compounds:alcohols:sizes=3-12,per_size=6"
    epochs, few_epochs = str(max(2, round(200 * size))), str(max(2, round(40 * size)))
    write_graphs(folder / "graphs.jsonl", max(100, round(60_000 * size)))
    write_graphs(folder / "few.jsonl", 100)
    training = (*SMALL, "--quiet", "--device", "cpu")
    model, report, store = folder / "model", folder / "report", folder / "store"
    count = max(10, round(100 * size))
    picture = ("explain", str(model), "compounds:alcohols", "--quiet")
    for words in (
        ("train", alcohols, *training, "--epochs", "5", "-o", str(model)),
        ("prepare", str(folder / "few.jsonl"), "-o", str(store)),
        (*picture, "--limit", "5", "--figures", "5", "-o", str(report)),
    ):
        subprocess.run([sys.executable, "-m", "egocnn", *words], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    train = ("train", alcohols, *training, "--epochs", epochs, "--patience", epochs)
    crossval = ("crossval", alcohols, *training, "--folds", "6", "--epochs", few_epochs)
    sweep = ("sweep", alcohols, *training, "--folds", "3", "--epochs", few_epochs, "--over", "depth=1,2")
    prepare = ("prepare", str(folder / "graphs.jsonl"))
    explain = (*picture, "--limit", str(count), "--figures", str(count))
    predict = ("predict", str(model), "compounds:alcohols", "--quiet")
    patterns = ("patterns", str(model), alcohols, "--quiet")
    whole = partial(check_report, count=count)
    return [
        KilledCommand("train", train, ("--resume",), check_run, result_of_run),
        KilledCommand("train over a run", (*train, "--overwrite"), (), check_run, result_of_run, replaces=model),
        KilledCommand("crossval", crossval, (), check_crossval, result_of_records, file="record.json"),
        KilledCommand(
            "crossval on Ray", (*crossval, "--ray", "local"), (), check_crossval, result_of_records, "record.json"
        ),
        KilledCommand("sweep", sweep, (), check_sweep, result_of_records),
        KilledCommand("prepare", prepare, ("--overwrite",), check_store, bytes_in),
        KilledCommand("prepare over a store", (*prepare, "--overwrite"), (), check_store, bytes_in, replaces=store),
        KilledCommand("explain", explain, (), whole, bytes_in),
        KilledCommand("explain over a report", explain, (), partial(whole, old=5), bytes_in, replaces=report),
        KilledCommand("predict", predict, (), check_rows, bytes_in, file="predictions.csv"),
        KilledCommand("patterns", patterns, (), check_page, bytes_in),
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


def check_sweep(out: Path) -> str:
    records = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in out.rglob("*.json")}
    if "sweep.json" in records and (out / "sweep.csv").exists():
        return COMPLETE
    return f"{len(list((out / 'folds').glob('*.json')))} trainings over" if records else "nothing written"


def result_of_records(out: Path) -> dict[str, Any]:
    found = bytes_in(out)
    for name, content in found.items():
        if name.endswith(".json"):  # a record tells the command, and so its own place
            found[name] = timeless(json.loads(content.replace(str(out).encode(), b"OUT")))
        else:
            found[name] = [timeless(row) for row in csv.DictReader(content.decode().splitlines())]
    return found


def check_store(out: Path) -> str:
    if not out.exists():
        return "writing beside" if any(out.parent.glob(f".{out.name}.*.tmp")) else "nothing written"
    for _ in Store.open(out).portions():  # every byte under its checksum
        pass
    return COMPLETE


def check_report(out: Path, count: int, old: int = 0) -> str:
    """``old``: so many structures are in the report that is replaced."""
    if not out.exists():
        return "nothing written"
    stage = "folder made"
    for picture in (out / "figures").glob("*.svg"):
        xml.etree.ElementTree.parse(picture)
    if (out / "structures.jsonl").exists():
        found = len(list(read_structures(out / "structures.jsonl")))
        assert found in (count, old), f"structures.jsonl holds {found}"
        stage = "structures in place" if found == count else OLD
    if (out / "index.html").exists() and stage != OLD:
        stage = check_page(out)
    return stage


def check_page(out: Path) -> str:
    if not (out / "index.html").exists():
        return "nothing written"
    assert (out / "index.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    return COMPLETE


def check_rows(out: Path) -> str:
    if not (out / "predictions.csv").exists():
        return "nothing written"
    lines = (out / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert len({line.count(",") for line in lines}) == 1, "a row of predictions.csv is cut"
    return COMPLETE


def bytes_in(out: Path) -> dict[str, Any]:
    return {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*")) if file.is_file()}


def timeless(plain: Any) -> Any:
    """The same without what is measured."""
    if isinstance(plain, dict):
        return {name: timeless(value) for name, value in plain.items() if name not in MEASURED}
    return [timeless(value) for value in plain] if isinstance(plain, list) else plain


# ── kills ─────────────────────────────────────────────────────────────────────────────────────────


def start(subject: KilledCommand, out: Path, *more: str) -> subprocess.Popen[str]:
    place = out / subject.file if subject.file else out
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
        subject.lay(out)
        while not kills or (kills[-1].stage != COMPLETE and self.draw.random() < AGAIN):
            moment = self.draw.uniform(0, self.seconds)
            taken = kill_at(subject, out, moment, *more)
            if taken is not None and not kills:
                self.seconds = taken
                return []
            if taken is not None:
                break
            stage = subject.check(out)
            if subject.replaces is not None and stage not in (COMPLETE, OLD):
                raise AssertionError(f"the old result is gone: {stage}")
            place = (round(moment, 3), round(moment / self.seconds, 3), stage)
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
            subject.lay(whole)
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
    parser.add_argument("--kills", type=int, default=60, help="at least so many [60]")
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
