"""Hand-made graphs, and comparisons of whole records."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from egocnn.data.graphs import TEXTS, Graph, Graphs
from egocnn.data.schema import ARRAYS
from egocnn.errors import DataError

Value = TypeVar("Value")


def sure(value: Value | None) -> Value:
    """The value, which must be there."""
    assert value is not None
    return value


def refusal(call: Callable[..., object], *arguments: Any, **named: Any) -> str:
    """The message of the :class:`DataError` that a call raises: one line, fit for a terminal."""
    with pytest.raises(DataError) as caught:
        call(*arguments, **named)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 1000
    return message


def written(folder: Path, name: str, data: str | bytes) -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def as_list(values: NDArray[Any] | None) -> list[Any]:
    """The entries of a column that must be there."""
    found: list[Any] = sure(values).tolist()
    return found


def one_graph(n_nodes: int, edges: Sequence[tuple[int, int]], **columns: Any) -> Graphs:
    """A collection of a single graph; labels as texts, attributes and weights as lists."""
    for kind in ("node_label", "edge_label"):
        if kind in columns:
            names = tuple(sorted(set(columns[kind])))
            columns[kind] = np.array([names.index(label) for label in columns[kind]], np.int32)
            columns[f"{kind}_names"] = names
    for kind in ("node_attr", "edge_weight"):
        if kind in columns:
            columns[kind] = np.asarray(columns[kind], np.float32)
    return Graphs.from_edges(node_counts=[n_nodes], edges=np.array(edges, np.int64).reshape(-1, 2), **columns)


def cycle(*nodes: int) -> list[tuple[int, int]]:
    """The edges of a ring through these nodes."""
    return list(zip(nodes, (*nodes[1:], nodes[0]), strict=True))


def molecules() -> Graphs:
    """Three small graphs with every kind of column; edges in both directions, and a self-loop."""
    return Graphs.from_edges(
        node_counts=[3, 1, 4],
        edges=np.array([[1, 0], [1, 2], [2, 1], [4, 5], [5, 6], [6, 4], [7, 7]]),
        names=["water", "atom", "ring"],
        node_label=np.array([1, 0, 1, -1, 0, 0, 0, 2]),
        node_label_names=("O", "H", "C"),
        edge_label=np.array([0, 1, 1, 0, 1, 0, -1]),
        edge_label_names=("single", "double"),
        edge_weight=np.array([1, 2, 2, 4, 5, 6, 7]),
        edge_truth=np.array([0, 1, 1, 0, 0, 0, 1], bool),
        node_attr=np.arange(16, dtype=np.float32).reshape(8, 2),
        node_truth=np.array([0, 1, 1, 0, 0, 0, 0, 1], bool),
        target=np.array([1, -1, 0]),
        class_names=("no", "yes"),
        group=np.array([0, 1, 1]),
        part=np.array([0, 1, 2]),
        smiles=("O", "C", "CCC"),
    )


def assert_same(one: Graph, other: Graph) -> None:
    for name in Graph.__dataclass_fields__:
        left, right = getattr(one, name), getattr(other, name)
        if isinstance(left, np.ndarray):
            np.testing.assert_array_equal(left, right, err_msg=name)
        else:
            assert left == right, name


def assert_equal(one: Graphs, other: Graphs) -> None:
    for name in ARRAYS:
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None), name
        if left is not None:
            np.testing.assert_array_equal(left, right, err_msg=name)
            assert left.dtype == right.dtype, name
    for name in TEXTS:
        assert getattr(one, name) == getattr(other, name), name
