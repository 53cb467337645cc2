from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from tests.support.samples import molecules, one_graph
from tests.support.strategies import random_graphs

Changes = Callable[[Graphs], dict[str, Any]]


def changed(values: Any, at: int, to: Any) -> Any:
    """A copy of an array with one entry exchanged."""
    copy = values.copy()
    copy[at] = to
    return copy


BROKEN: list[tuple[Changes, str]] = [
    (lambda g: {"node_ptr": changed(g.node_ptr, 0, 1)}, "node_ptr must start with 0"),
    (lambda _: {"node_ptr": np.zeros(0, np.int64)}, "node_ptr must start with 0"),
    (lambda _: {"node_ptr": np.zeros((2, 2), np.int64)}, "node_ptr must start with 0"),
    (lambda g: {"node_ptr": changed(g.node_ptr, 1, 5)}, "node_ptr must not decrease"),
    (lambda g: {"node_ptr": changed(g.node_ptr.astype(np.uint64), 1, 5)}, "node_ptr must not decrease"),
    (lambda g: {"indptr": changed(g.indptr, 0, 1)}, "indptr must start with 0"),
    (lambda g: {"indptr": changed(g.indptr, 3, 9)}, "indptr must not decrease"),
    (lambda g: {"indptr": g.indptr[:-1]}, "indptr has 8 entries for 8 nodes"),
    (lambda g: {"indptr": changed(g.indptr, -1, 12)}, "indptr ends at 12 but there are 11 adjacency entries"),
    (lambda g: {"indices": changed(g.indices, 0, 8)}, "indices out of range"),
    (lambda g: {"indices": changed(g.indices, 0, -1)}, "indices out of range"),
    (lambda g: {"indices": g.indices.astype(float)}, "indices must be whole numbers"),
    (lambda g: {"indices": changed(g.indices, 0, 3)}, "an edge must stay inside one graph"),
    (lambda g: {"indices": changed(g.indices, 0, 2)}, "rows of both its ends"),
    (lambda g: {"indices": changed(g.indices, 1, 2)}, "ascending order, each once"),
    (lambda g: {"edge_label": changed(g.edge_label, 0, 1)}, "rows of both its ends, with the same label"),
    (lambda g: {"edge_weight": changed(g.edge_weight, 0, 9)}, "with the same label and weight"),
    (lambda g: {"edge_truth": changed(g.edge_truth, 0, True)}, "rows of both its ends"),
    (lambda _: {"names": ("a", "b")}, "2 names for 3 graphs"),
    (lambda _: {"smiles": ("C",)}, "smiles must name every graph"),
    (lambda _: {"node_label": np.zeros(7, int)}, "node_label has 7 entries for 8 nodes"),
    (lambda _: {"node_label": np.zeros(8)}, "node_label must be whole numbers"),
    (lambda _: {"node_label": np.full(8, 3)}, "node_label out of range"),
    (lambda _: {"node_label": np.full(8, -2)}, "node_label out of range"),
    (lambda _: {"edge_label": np.full(11, 2)}, "edge_label out of range"),
    (lambda _: {"edge_label": np.zeros(12, int)}, "edge_label has 12 entries for 11 adjacency entries"),
    (lambda _: {"edge_weight": np.zeros(10)}, "edge_weight has 10 entries for 11 adjacency entries"),
    (lambda _: {"edge_weight": np.full(11, np.inf)}, "edge_weight must be finite"),
    (lambda _: {"edge_weight": np.full(11, 1e39)}, "edge_weight must be finite numbers of at most 3.4e"),
    (lambda _: {"edge_truth": np.zeros(3, bool)}, "edge_truth has 3 entries"),
    (lambda _: {"node_truth": np.zeros(3, bool)}, "node_truth has 3 entries"),
    (lambda _: {"node_attr": np.zeros(8)}, r"node_attr has shape \(8,\) for 8 nodes"),
    (lambda _: {"edge_weight": np.zeros((11, 1))}, r"edge_weight has shape \(11, 1\) for 11 adjacency entries"),
    (lambda _: {"target": np.zeros((3, 2), int)}, r"target has shape \(3, 2\) for 3 graphs"),
    (lambda _: {"node_names": np.array(["a"], object)}, "node_names has 1 entries for 8 nodes"),
    (lambda _: {"names": ("a", "b", 5)}, "names must be texts that can be written as UTF-8 .*item 2.* int found"),
    (lambda _: {"smiles": ("C", "N", "\ud800")}, "smiles must be texts that can be written as UTF-8"),
    (lambda _: {"node_attr": np.full((8, 1), np.nan)}, "node_attr must be finite"),
    (lambda _: {"target": np.array([0, 1])}, "target has 2 entries for 3 graphs"),
    (lambda _: {"target": np.array([0, 1, 2])}, "target names a class that does not exist"),
    (lambda _: {"target": np.array([0, 1, -2])}, "target names a class that does not exist"),
    (lambda _: {"target": np.array([0.0, 1.0, 0.0])}, "target must be whole numbers"),
    (lambda _: {"target": np.array([0.5, np.inf, 1]), "class_names": ()}, "target must be finite"),
    (lambda _: {"group": np.array([0, -1, 0])}, "group must not be negative"),
    (lambda _: {"part": np.array([0, 3, 0])}, "part must be one of train, validation, test"),
    (lambda _: {"part": np.array([0, -1, 0])}, "part must be one of train, validation, test"),
]


@pytest.mark.parametrize(
    ("changes", "message"), BROKEN, ids=[f"{n}-{message}" for n, (_, message) in enumerate(BROKEN)]
)
def test_a_broken_rule_is_named_in_one_line(changes: Changes, message: str) -> None:
    graphs = molecules()
    with pytest.raises(DataError, match=message) as caught:
        graphs.replace(**changes(graphs))
    assert "\n" not in str(caught.value)


def test_a_directed_ring_is_no_undirected_graph_and_many_entries_are_checked_as_few_are() -> None:
    with pytest.raises(DataError, match="rows of both its ends"):
        Graphs(
            node_ptr=np.array([0, 3]), indptr=np.array([0, 1, 2, 3]), indices=np.array([1, 2, 0]), names=("ring",)
        ).validate()
    size = 300
    graphs = one_graph(size, [(u, v) for u in range(size) for v in range(u + 1, size)])
    graphs.validate()
    with pytest.raises(DataError, match="rows of both its ends"):
        graphs.replace(edge_weight=changed(np.ones(graphs.n_entries, np.float32), 60_000, 2))


@given(random_graphs(), st.data())
def test_one_entry_moved_is_noticed(graphs: Graphs, data: st.DataObject) -> None:
    if graphs.n_entries == 0:
        return
    at = data.draw(st.integers(0, graphs.n_entries - 1))
    to = data.draw(st.integers(0, graphs.n_nodes - 1).filter(lambda node: node != graphs.indices[at]))
    with pytest.raises(DataError):
        replace(graphs, indices=changed(graphs.indices, at, to)).validate()
