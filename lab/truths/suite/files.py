"""Examples <-> files that are read without RDKit: two compressed files of JSON lines a task, one line a graph in each.

``NAME.jsonl.gz``
    the graphs, as egocnn's own reader of JSON lines takes them, with the field ``split``.
``NAME.truth.jsonl.gz``
    what is known, in the same order: ``alternatives`` (lists of nodes), ``edges`` (the critical pairs, or null where
    they are not known), ``values`` (a number per node, or null), ``nothing`` and ``larger`` (see
    :class:`lab.truths.known.Truth`).
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.read import read
from egocnn.errors import DataError
from egocnn.files import replacing
from lab.truths.known import Truth
from lab.truths.suite.task import Example

READING = ReadConfig(target="target", name="name", split="split")


def write_task(folder: Path, name: str, examples: Sequence[Example]) -> None:
    """Write both files of a task."""
    _write_lines(folder / f"{name}.jsonl.gz", map(_graph_line, examples))
    _write_lines(folder / f"{name}.truth.jsonl.gz", map(_truth_line, examples))


def load(folder: str | Path, name: str) -> tuple[Graphs, list[Truth]]:
    """The graphs of a task with their parts (``graphs.select("train")``), and the truth of each, in the same order.

    The test part holds graphs of the size that is trained on and, where ``truth.larger`` says so, larger ones.
    """
    path = Path(folder) / f"{name}.jsonl.gz"
    if not path.exists():
        raise DataError(f"{path}: no such file; python -m lab truths make -o {folder} makes it")
    with tempfile.TemporaryDirectory() as place:
        plain = Path(place) / f"{name}.jsonl"
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        graphs = read(plain, READING)
    lines = list(_read_lines(path.with_name(f"{name}.truth.jsonl.gz")))
    if len(lines) != len(graphs):
        raise DataError(f"{path.name} has {len(graphs)} graphs and {len(lines)} truths; make the task again")
    return graphs, [_truth(line, graph) for line, graph in zip(lines, graphs, strict=True)]


def _graph_line(example: Example) -> dict[str, Any]:
    nodes: Any = example.node_label or example.n_nodes
    if example.node_attr is not None:
        nodes = [{"attributes": row} for row in example.node_attr]
    labels = example.edge_label
    edges: list[Any] = list(example.edges)
    if labels is not None:
        edges = [(*edge, label) for edge, label in zip(example.edges, labels, strict=True)]
    line = {"name": example.name, "split": example.part, "target": example.target, "nodes": nodes, "edges": edges}
    return line if example.smiles is None else {**line, "smiles": example.smiles}


def _truth_line(example: Example) -> dict[str, Any]:
    return {
        "alternatives": example.alternatives,
        "edges": example.critical_edges,
        "values": example.values,
        "nothing": example.nothing,
        "larger": example.larger,
    }


def _truth(line: dict[str, Any], graph: Graph) -> Truth:
    critical = None if line["edges"] is None else {tuple(edge) for edge in line["edges"]}
    return Truth(
        alternatives=tuple(np.array(nodes, np.int64) for nodes in line["alternatives"]),
        edges=None if critical is None else np.array([(u, v) in critical for u, v in graph.edges.tolist()], bool),
        values=None if line["values"] is None else np.array(line["values"], np.float64),
        nothing=line["nothing"],
        larger=line["larger"],
    )


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in lines)
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))  # no time in it: the same task, the same bytes


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        yield json.loads(line)
