"""A small set in the TU Dortmund format, whole or with parts of it changed, for the tests of its reader."""

from pathlib import Path

import numpy as np

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.sources.tu import read_tu
from tests.support import samples

AUTO = ReadConfig()

# two triangles, a pair and a lonely node: graphs of 3, 3, 2 and 1 nodes
TINY = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n5, 6\n6, 5\n4, 6\n6, 4\n7, 8\n8, 7\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n3\n3\n4\n",
    "graph_labels": "1\n-1\n1\n-1\n",
    "node_labels": "10\n2\n2\n2\n2\n10\n2\n2\n-3\n",
    "edge_labels": "0\n0\n1\n1\n0\n0\n0\n0\n0\n0\n1\n1\n5\n5\n",
    "node_attributes": "".join(f"{i}.5, -1e-{i}\n" for i in range(9)),
}


def write_set(folder: Path, tables: dict[str, str] | dict[str, bytes], name: str = "TINY") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for table, text in tables.items():
        (folder / f"{name}_{table}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def refusal(source: Path, config: ReadConfig = AUTO) -> str:
    return samples.refusal(read_tu, source, config)


def assert_same(one: Graphs, other: Graphs) -> None:
    for name in ("node_ptr", "indptr", "indices", "node_label", "edge_label", "node_attr", "target"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("names", "node_label_names", "edge_label_names", "class_names"):
        assert getattr(one, name) == getattr(other, name)
