"""Four huge graphs: what train, predict and explain take of the processor and of the memory, as JSON.

    python -m lab measure huge_graphs -o results/huge_graphs.json

A complete graph of 3,000 nodes, a star of a million leaves, a path of a million nodes, and two million random edges
over a million nodes, drawn by a seed, each a line of JSON. A model is trained with the default settings on twenty small
graphs, half of them with a triangle, and predicts and explains each huge graph; ``train`` trains another one on the
same graphs and the huge one. Processor seconds, user and system together, and the peak of resident memory are those of
the whole command, reading included, on one thread: the machine may be busy with other things meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.arrays import Ints
from lab.record import ROOT, arguments, one_line, write_measured

GOAL = {"processor_seconds": 60, "gigabytes": 3}
AT_ONCE = (
    100_000  # Edges that are written together: this process must stay small, for its children begin as its copies.
)
PARTS = ("train", "train", "train", "validation", "test")
SMALL = 20


def complete(nodes: int) -> Iterator[Ints]:
    """Every node with all that come after it."""
    for node in range(nodes - 1):
        others = np.arange(node + 1, nodes)
        yield np.stack([np.full_like(others, node), others], axis=1)


def star(leaves: int) -> Iterator[Ints]:
    yield np.stack([np.zeros(leaves, np.int64), np.arange(1, leaves + 1)], axis=1)


def path(nodes: int) -> Iterator[Ints]:
    yield np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)


def random_edges(nodes: int, edges: int, seed: int) -> Iterator[Ints]:
    """So many different ones, none from a node to itself."""
    draw = np.random.default_rng(seed)
    ends = np.sort(draw.integers(nodes, size=(edges + edges // 4, 2)), axis=1)
    keys = np.unique((ends[:, 0] * nodes + ends[:, 1])[ends[:, 0] < ends[:, 1]])
    keys = np.sort(draw.permutation(keys)[:edges])
    yield np.stack(np.divmod(keys, nodes), axis=1)


def huge_graphs(size: float, seed: int) -> dict[str, tuple[int, Iterator[Ints]]]:
    """Nodes and edges of each; ``size`` multiplies how many there are."""
    million, few = int(1_000_000 * size), int(3000 * size**0.5)
    return {
        "complete": (few, complete(few)),
        "star": (million + 1, star(million)),
        "path": (million, path(million)),
        "random": (million, random_edges(million, 2 * million, seed)),
    }


def small_graphs(seed: int) -> list[str]:
    """Random trees as lines of JSON; every second one has a triangle, and is called so."""
    draw, lines = np.random.default_rng(seed), []
    for number in range(SMALL):
        nodes = int(draw.integers(8, 30))
        edges = {(int(draw.integers(node)), node) for node in range(1, nodes)}
        if number % 2:
            edges |= {(0, nodes - 2), (0, nodes - 1), (nodes - 2, nodes - 1)}
        target, part = ("tree", "triangle")[number % 2], PARTS[number // 2 % len(PARTS)]
        graph = {"name": f"small {number}", "nodes": nodes, "edges": sorted(edges), "target": target, "split": part}
        lines.append(json.dumps(graph) + "\n")
    return lines


def write_huge(file: Path, before: Sequence[str], name: str, nodes: int, edges: Iterator[Ints]) -> int:
    """Lines of small graphs, and then the huge one, some edges at a time; returns how many it has."""
    count = 0
    with file.open("w", encoding="utf-8") as out:
        out.writelines(before)
        out.write(f'{{"name": "{name}", "target": "tree", "split": "train", "nodes": {nodes}, "edges": [')
        for some in edges:
            for first in range(0, len(some), AT_ONCE):
                text = json.dumps(some[first : first + AT_ONCE].tolist())[1:-1]
                out.write(f"{', ' if count else ''}{text}")
                count += len(some[first : first + AT_ONCE])
        out.write("]}\n")
    return count


def measured_command(*words: str) -> dict[str, Any]:
    """Run one command of egocnn; what it took."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "egocnn", *words, "--device", "cpu", "--quiet"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds, gigabytes = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9
    return {
        "exit_code": process.returncode,
        "processor_seconds": round(seconds, 1),
        "gigabytes": round(gigabytes, 2),
        "met": process.returncode == 0 and seconds <= GOAL["processor_seconds"] and gigabytes <= GOAL["gigabytes"],
    }


def check_structures(report: Path, nodes: int) -> bool:
    """Whether the file beside the page holds one number for every node of the graph."""
    with (report / "structures.jsonl").open(encoding="utf-8") as file:
        return len(json.loads(file.readline())["node_importance"]) == nodes


def main(words: Sequence[str]) -> None:
    parser = arguments("huge_graphs", __doc__)
    parser.add_argument("--size", type=float, default=1.0, help="how large, as a share of the sizes above [1]")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the graphs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name), small_graphs(options.seed)
        (folder / "small.jsonl").write_text("".join(small), encoding="utf-8")
        run = str(folder / "run")
        measured_command("train", str(folder / "small.jsonl"), "--split", "split", "-o", run)
        for graph in options.only or huge_graphs(options.size, options.seed):
            alone, together = folder / f"{graph}.jsonl", folder / f"{graph}-and-small.jsonl"
            for file, before in ((alone, ()), (together, small)):
                nodes, edges = huge_graphs(options.size, options.seed)[graph]
                count = write_huge(file, before, graph, nodes, edges)
            report = folder / "report"
            commands = {
                "train": ("train", str(together), "--split", "split", "-o", str(folder / f"run-{graph}")),
                "predict": ("predict", run, str(alone), "-o", str(folder / "predicted.csv")),
                "explain": ("explain", run, str(alone), "-o", str(report)),
            }
            for command, said in commands.items():
                row = {"graph": graph, "nodes": nodes, "edges": count, "command": command, **measured_command(*said)}
                if command == "explain" and row["exit_code"] == 0:
                    row["page_megabytes"] = round((report / "index.html").stat().st_size / 1e6, 2)
                    row["a_number_for_every_node"] = check_structures(report, nodes)
                rows.append(row)
                print(row, flush=True)
    record = {"what": one_line(__doc__), "goal": GOAL, "met": all(row["met"] for row in rows), "runs": rows}
    write_measured("huge_graphs", words, options.out, record)
