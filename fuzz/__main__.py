"""Fuzz all targets, or those that are named, one after the other; exit code 1 where something was found.

python -m fuzz --seconds 3600 -o results/fuzzing.json      an hour, shared by all
python -m fuzz csv jsonl --each 60                         a minute for each of two
python -m fuzz --again runs/fuzz/csv-1                     what one input does, with the whole story
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FINDINGS = Path(__file__).parent / "findings.json"
"""What has been found and fixed so far."""
LIBRARIES = ("atheris", "numpy", "torch", "safetensors", "networkx", "rdkit")
PROGRESS = rb"^#(\d+)\s.*cov: (\d+) ft: (\d+)"
END = rb"^Done \d+ runs in (\d+) second"
MEMORY = rb"rss: (\d+)Mb"
"""What libFuzzer tells: inputs, branches and features; seconds; megabytes."""
INPUTS_AT_ONCE = {"outputs": 2000}
"""Inputs for one process: under atheris it grows by a megabyte with each page that it looks at."""
MOST_FINDINGS = 20
"""Of one target, in one call."""


@dataclass(slots=True)
class Outcome:
    """What one target went through."""

    target: str
    command: str = ""
    seconds: float = 0.0
    inputs: int = 0
    edges: int = 0
    """branches of the program that were reached"""
    features: int = 0
    """branches with how often they were taken, as libFuzzer counts"""
    corpus: int = 0
    """inputs that each reach something new"""
    corpus_bytes: int = 0
    peak_megabytes: int = 0
    open: list[dict[str, str]] = field(default_factory=list)
    """what was found now, and where the input lies"""


def main(words: list[str] | None = None) -> int:
    arguments = _parse(words)
    if arguments.again is not None:
        return _again(arguments.again)
    from fuzz.targets import TARGETS

    names = arguments.targets or list(TARGETS)
    for name in names:
        if name not in TARGETS:
            print(f"no target is called {name}; there are {', '.join(TARGETS)}", file=sys.stderr)
            return 2
    each = arguments.each or arguments.seconds / len(names)
    guided = _version("atheris") is not None
    if not guided:
        print("atheris is not installed: inputs are made without a look at what they reach", file=sys.stderr)
    outcomes = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="egocnn-fuzz-", dir=_memory()) as folder:
            outcome = (_guided if guided else _blind)(name, each, Path(folder), arguments.findings)
        outcome.command = f"python -m fuzz {' '.join(sys.argv[1:] if words is None else words)}"
        outcomes.append(outcome)
        _tell(outcome)
        if arguments.out is not None:
            _write(arguments.out, outcomes, guided)
    return int(any(outcome.open for outcome in outcomes))


def _parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", help="what to fuzz; all by default")
    parser.add_argument("--seconds", type=float, default=120.0, help="of fuzzing in all (default 120)")
    parser.add_argument("--each", type=float, help="seconds of fuzzing for every target, instead")
    parser.add_argument("-o", "--out", type=Path, help="where to write the record, as JSON")
    parser.add_argument("--findings", type=Path, default=Path("runs/fuzz"), help="where to put what is found")
    parser.add_argument("--again", type=Path, help="feed this finding, TARGET-N, to its target once more")
    return parser.parse_args(words)


def _tell(outcome: Outcome) -> None:
    print(
        f"{outcome.target:14} {outcome.inputs:9,} inputs in {outcome.seconds:6.1f} s, {outcome.edges:5} edges, "
        f"{outcome.corpus:4} kept, {len(outcome.open)} found",
        flush=True,
    )
    for finding in outcome.open:
        print(f"    {finding['what']}  ({finding['input']})", flush=True)


# ── guided by coverage ────────────────────────────────────────────────────────────────────────────


def _guided(name: str, seconds: float, folder: Path, findings: Path) -> Outcome:
    from fuzz.blind import starts
    from fuzz.targets import TARGETS

    outcome = Outcome(name)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(starts(TARGETS[name])):
        (corpus / f"start-{number}").write_bytes(data)
    known: set[str] = set()
    while outcome.seconds < seconds - 1 and len(outcome.open) < MOST_FINDINGS:
        found = folder / "found"
        started = time.monotonic()
        log = _run(name, folder, found, corpus, seconds - outcome.seconds)
        done = _last(log, PROGRESS)
        lasted = _last(log, END)
        # what libFuzzer does not get to say it took, with the start of the interpreter left out
        outcome.seconds += float(lasted[0]) if lasted else max(1.0, time.monotonic() - started - 5)
        if done:
            outcome.inputs += int(done[0])
            outcome.edges, outcome.features = int(done[1]), int(done[2])
        peak = _last(log, MEMORY)
        outcome.peak_megabytes = max(outcome.peak_megabytes, int(peak[0]) if peak else 0)
        if (found / "what").exists():
            what = (found / "what").read_text(encoding="utf-8")
            _keep(outcome, what, (found / "input").read_bytes(), findings, known)
            (found / "what").unlink()
        elif not lasted:
            stuck = sorted(folder.glob("found-*"))
            what = f"the process ended: {log[-600:].decode('utf-8', 'replace')}"
            _keep(outcome, what, stuck[-1].read_bytes() if stuck else b"", findings, known)
            for path in stuck:
                path.unlink()
    outcome.seconds = round(outcome.seconds, 1)
    kept = [path.stat().st_size for path in corpus.iterdir()]
    outcome.corpus, outcome.corpus_bytes = len(kept), sum(kept)
    return outcome


def _run(name: str, folder: Path, found: Path, corpus: Path, seconds: float) -> bytes:
    command = [sys.executable, "-m", "fuzz.one", name, str(folder / "work"), str(found)]
    # libFuzzer's clock runs on while other programs compute; how much of a processor an input takes, the guard tells
    options = [f"-max_total_time={max(1, round(seconds))}", "-max_len=65536", "-timeout=900", "-rss_limit_mb=4096"]
    artifacts = [f"-artifact_prefix={folder}/found-", "-print_final_stats=1", str(corpus)]
    if name in INPUTS_AT_ONCE:
        options.append(f"-runs={INPUTS_AT_ONCE[name]}")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, *options, *artifacts],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout


def _last(log: bytes, pattern: bytes) -> tuple[bytes, ...] | None:
    found = list(re.finditer(pattern, log, re.MULTILINE))
    return found[-1].groups() if found else None


def _keep(outcome: Outcome, what: str, data: bytes, findings: Path, known: set[str]) -> None:
    reason = what.partition("\n")[0]
    kind = re.sub(r"\d+", "0", reason)[:60]
    if kind in known:
        return
    known.add(kind)
    findings.mkdir(parents=True, exist_ok=True)
    path = findings / f"{outcome.target}-{len(outcome.open) + 1}"
    path.write_bytes(data)
    path.with_name(f"{path.name}.txt").write_text(what, encoding="utf-8", errors="backslashreplace")
    outcome.open.append({"what": reason[:300], "input": str(path)})


# ── without ───────────────────────────────────────────────────────────────────────────────────────


def _blind(name: str, seconds: float, folder: Path, findings: Path) -> Outcome:
    from fuzz.blind import feed, starts
    from fuzz.guard import ViolationError
    from fuzz.targets import TARGETS

    outcome = Outcome(name, corpus=len(starts(TARGETS[name])))
    started = time.monotonic()
    try:
        outcome.inputs, _ = feed(TARGETS[name], folder, seconds=seconds, seed=time.time_ns())
    except ViolationError as error:
        _keep(outcome, str(error), (folder / "last").read_bytes(), findings, set())
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def _again(path: Path) -> int:
    from fuzz.targets import TARGETS, try_input

    target = TARGETS[re.sub(r"-\d+$", "", path.name)]
    with tempfile.TemporaryDirectory(prefix="egocnn-fuzz-", dir=_memory()) as folder:
        print(try_input(target, path.read_bytes(), Path(folder)) or "it is read")
    return 0


# ── the record ────────────────────────────────────────────────────────────────────────────────────


def _write(path: Path, outcomes: list[Outcome], guided: bool) -> None:
    from egocnn.files import write_json
    from egocnn.train.run import machine
    from fuzz.targets import TARGETS

    found = json.loads(FINDINGS.read_text(encoding="utf-8"))
    # a target that was fuzzed again after a fix takes the place of its earlier self
    earlier = json.loads(path.read_text(encoding="utf-8"))["targets"] if path.exists() else []
    told = {one["target"]: one for one in earlier} | {outcome.target: asdict(outcome) for outcome in outcomes}
    targets = list(told.values())
    record: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "system": platform.platform(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}},
        "guided_by_coverage": guided,
        "limits": {target.name: asdict(target.limits) for target in TARGETS.values()},
        "seconds": round(sum(one["seconds"] for one in targets), 1),
        "inputs": sum(one["inputs"] for one in targets),
        "open_findings": sum(len(one["open"]) for one in targets),
        "targets": targets,
        "findings": found,
    }
    write_json(path, record)


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _memory() -> str | None:
    """A folder in memory, where there is one: every input is a few files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    sys.exit(main())
