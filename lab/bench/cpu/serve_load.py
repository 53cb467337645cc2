"""How many molecules a second does ``egocnn serve`` explain, and how soon? wrk on loopback, one machine -> JSON.

    python -m lab measure serve_load -o results/serve_load.json

The server and wrk share the machine. Every request brings one molecule of 20 atoms; there are two thousand different
ones, made here from fragments, and the server keeps no answers. The network has its default size and is untrained:
time does not depend on what the weights are. wrk asks anew as soon as it is answered, over a number of connections, so
that throughput and latency belong together. What else runs on the machine slows both (``load_average`` tells), but
hardly the processor time that a request takes: two cores could serve 2000 a second over those milliseconds.

Besides the whole answer it asks for answers without a picture, for predictions and importances alone, and for /health,
which is what HTTP costs without a model. ``stages`` is where the time of a whole answer goes, measured in one process
without a network, in batches of 8.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from egocnn.config import ModelConfig
from egocnn.data.sources.smiles import from_smiles, parse_smiles
from egocnn.encode.encoder import Encoder
from egocnn.explain import explain
from egocnn.model import Model
from lab.record import ROOT, arguments, write_measured

ATOMS, MOLECULES, TOGETHER = 20, 2000, 8
GOAL = {"requests_per_second": 200, "milliseconds_99": 100}

HEADS = ("C", "CC", "CC(C)", "CC(C)C", "O", "CO", "OC(=O)", "NC(=O)", "N", "CN(C)", "CCN", "F", "Cl", "N#C", "CS", "Br")
RINGS = ("c1ccc({})cc1", "c1cc({})ccn1", "C1CCC({})CC1", "c1cc({})cs1", "C1CN({})CCO1", "c1ccc2[nH]c({})cc2c1")
LINKS = ("C", "CC", "CCC", "C(=O)N", "OC", "NC(=O)C", "S(=O)(=O)N", "C=C", "COC", "CNC", "C#C", "C(O)C", "C(C)C", "OCC")

SCRIPT = """
local bodies, thread = {}, 0
for line in io.lines(os.getenv("SERVE_BODIES")) do bodies[#bodies + 1] = line end
function setup(t) thread = thread + 1; t:set("first", thread * 997) end
function init() at = first end
function request()
  at = at + 1
  return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, bodies[at % #bodies + 1])
end
"""
DONE = """
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\nJSON{"requests": %d, "seconds": %.3f, "p50": %.2f, "p90": %.2f, "p99": %.2f, "longest": %.2f, "failed": %d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(90) / 1e3,
    latency:percentile(99) / 1e3, latency.max / 1e3, e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def molecules(count: int = MOLECULES, atoms: int = ATOMS) -> list[str]:
    """Different molecules of this size: head, link, ring, link, ring."""
    found: dict[str, None] = {}
    random = np.random.default_rng(0)
    combinations = list(product(HEADS, LINKS, RINGS, LINKS, RINGS))
    for number in random.permutation(len(combinations)):
        head, link, ring, second, last = combinations[number]
        text = f"{head}{link}{ring.format(second + last.format('C'))}"
        if parse_smiles(text).GetNumAtoms() == atoms:
            found[text] = None
        if len(found) == count:
            break
    return list(found)


def untrained(smiles: Sequence[str]) -> Model:
    graphs = from_smiles(smiles, ["N" if "N" in text else "no N" for text in smiles])
    torch.manual_seed(0)
    return Model.build(ModelConfig(), Encoder.fit(graphs, ModelConfig()))


@contextmanager
def served(run: Path, workers: int) -> Iterator[tuple[str, int]]:
    """Address and process of a server of this run, as long as it is needed."""
    words = [sys.executable, "-m", "egocnn", "serve", str(run), "--port", "0", "--workers", str(workers), "--json"]
    server = subprocess.Popen([*words, "--device", "cpu"], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None
        address: str = json.loads(server.stdout.readline())["address"]
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"{address}/health", timeout=5):
                    break
            except (urllib.error.URLError, TimeoutError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait(20)


def facts_of(process: int) -> Iterator[list[str]]:
    """What the system says of a process and of each that it started: the words of its ``stat`` after the name."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended since
        if process in (int(file.parent.name), int(words[1])):
            yield words


def processor_seconds(process: int) -> float:
    """Of a process and those that it started, so far."""
    return sum(int(words[11]) + int(words[12]) for words in facts_of(process)) / os.sysconf("SC_CLK_TCK")


def load(address: str, process: int, bodies: Sequence[str], connections: int, seconds: int) -> dict[str, Any]:
    """One run of wrk; without bodies it asks by GET. Milliseconds, of all requests in that time."""
    before = processor_seconds(process)
    with tempfile.TemporaryDirectory() as folder:
        asked, script = Path(folder, "bodies.txt"), Path(folder, "ask.lua")
        asked.write_text("\n".join(bodies), encoding="utf-8")
        script.write_text((SCRIPT if bodies else "") + DONE, encoding="utf-8")
        words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(script), address]
        environment = {**os.environ, "SERVE_BODIES": str(asked)}
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    spent = processor_seconds(process) - before
    told: dict[str, Any] = json.loads(done.stdout.split("JSON", 1)[1])
    return {
        "connections": connections,
        "requests_per_second": round(told["requests"] / told["seconds"], 1),
        **{f"milliseconds_{name[1:]}": told[name] for name in ("p50", "p90", "p99")},
        "milliseconds_longest": told["longest"],
        "processor_milliseconds_a_request": round(spent / told["requests"] * 1000, 2),
        "failed": told["failed"],
    }


def stages(predictor: Model, smiles: Sequence[str]) -> dict[str, float]:
    """Milliseconds of one core for one molecule, batches of 8: the quickest of several rounds."""
    torch.set_num_threads(1)
    few = smiles[:TOGETHER]
    graphs = from_smiles(few)
    structures = explain(predictor, graphs, device="cpu")
    read = _milliseconds(lambda: from_smiles(few))
    importances = _milliseconds(lambda: explain(predictor, graphs, fidelity=False, device="cpu"))
    whole = _milliseconds(lambda: explain(predictor, graphs, device="cpu"))
    drawn = _milliseconds(lambda: [structure.draw() for structure in structures])
    plain = _milliseconds(lambda: [json.dumps(structure.to_plain()) for structure in structures])
    return {
        "read the SMILES": read,
        "predict and explain": importances,
        "fidelity": round(whole - importances, 3),
        "draw": drawn,
        "write JSON": plain,
    }


def _milliseconds(work: Callable[[], Any], rounds: int = 7) -> float:
    work()
    times = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return round(min(times) / TOGETHER * 1000, 3)


def main(words: Sequence[str]) -> None:
    parser = arguments("serve_load", __doc__)
    parser.add_argument("--seconds", type=int, default=10, help="of every run of wrk [10]")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server [2]")
    parser.add_argument("--connections", type=int, nargs="+", default=[8, 10, 12, 16, 32], help="at a time, run by run")
    options = parser.parse_args(words)
    smiles = molecules()
    predictor = untrained(smiles)
    kinds: dict[str, dict[str, Any]] = {
        "whole answer": {},
        "no picture": {"picture": False},
        "no picture, no fidelity": {"picture": False, "fidelity": False},
    }
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        predictor.save(folder)
        with served(Path(folder), options.workers) as (address, process):
            for kind, said in kinds.items():
                bodies = [json.dumps({"smiles": text, **said}) for text in smiles]
                load(f"{address}/explain", process, bodies, 4, 3)  # both processes must have met the model
                for connections in options.connections:
                    row = load(f"{address}/explain", process, bodies, connections, options.seconds)
                    runs.append({"asked": kind, **row})
                    print(runs[-1], flush=True)
            runs.append({"asked": "/health", **load(f"{address}/health", process, (), 4, min(options.seconds, 5))})
    reached = [
        run["connections"]
        for run in runs
        if run["asked"] == "whole answer"
        and run["requests_per_second"] >= GOAL["requests_per_second"]
        and run["milliseconds_99"] < GOAL["milliseconds_99"]
    ]
    measured: dict[str, Any] = {
        "what": f"egocnn serve under load from wrk on loopback: one molecule of {ATOMS} atoms a request",
        "different_molecules": len(smiles),
        "workers": options.workers,
        "goal": GOAL,
        "goal_met_at_connections": reached,
        "runs": runs,
        "stages_milliseconds_a_molecule": stages(predictor, smiles),
        "load_average": [round(value, 1) for value in os.getloadavg()],
    }
    write_measured("serve_load", words, options.out, measured, "fastapi", "uvicorn", "rdkit")
