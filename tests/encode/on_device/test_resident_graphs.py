from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.encode.on_device import ResidentGraphs
from egocnn.encode.on_device.graphs import EDGE_COLUMNS, NODE_COLUMNS
from egocnn.errors import DataError
from tests.encode.on_device.devices import set_portions
from tests.support.samples import molecules, one_graph
from tests.support.strategies import random_graphs


@pytest.mark.parametrize("at_once", [3, 1 << 16])
@settings(max_examples=60)
@given(graphs=random_graphs(max_graphs=5, min_nodes=0, unseen=True), data=st.data())
def test_taking_graphs_gives_what_choosing_them_gives(at_once: int, graphs: Graphs, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), max_size=4))
    expected = graphs[np.array(chosen, np.int64)]
    with pytest.MonkeyPatch.context() as monkeypatch:
        set_portions(monkeypatch, at_once)
        taken = ResidentGraphs.of(graphs, "cpu").take(torch.tensor(chosen, dtype=torch.int64))
    assert len(taken) == len(expected)
    assert taken.n_nodes == expected.n_nodes
    for name in ("node_ptr", "indptr", "indices", *NODE_COLUMNS, *EDGE_COLUMNS):
        ours, theirs = getattr(taken, name), getattr(expected, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            np.testing.assert_array_equal(ours.numpy(), theirs, err_msg=name)
    assert taken.loops.tolist() == np.flatnonzero(expected.indices == expected.entry_node).tolist()
    assert taken.graph_of.tolist() == expected.graph_of.tolist()


def test_tensors_without_bounds_are_one_graph() -> None:
    graphs = ResidentGraphs.build(torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1], dtype=torch.int32))
    assert len(graphs) == 1
    assert graphs.node_ptr.tolist() == [0, 3]
    assert graphs.loops.tolist() == []


def test_arrays_that_must_not_be_written_to_are_copied() -> None:
    graphs = molecules()
    graphs.indices.flags.writeable = False
    assert ResidentGraphs.of(graphs, "cpu").indices.tolist() == graphs.indices.tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": torch.tensor([1, 0])}, "indices must be torch.int32, not torch.int64"),
        ({"indptr": torch.tensor([0, 1, 2], dtype=torch.int32)}, "indptr must be torch.int64"),
        ({"indptr": torch.tensor([0, 1, 3])}, "indptr must end at the 2 adjacency entries"),
        ({"node_ptr": torch.tensor([0, 3])}, "node_ptr at the 2 nodes"),
        ({"node_label": torch.tensor([0])}, "node_label has 1 entries, not 2"),
        ({"edge_weight": torch.ones(3)}, "edge_weight has 3 entries, not 2"),
        ({"colour": torch.ones(2)}, "ranking reads no column 'colour'"),
        ({"node_label": torch.zeros(2, device="meta")}, "node_label is on meta, indptr on cpu"),
    ],
)
def test_tensors_that_do_not_fit_together_are_refused(changes: dict[str, Any], message: str) -> None:
    tensors = {"indptr": torch.tensor([0, 1, 2]), "indices": torch.tensor([1, 0], dtype=torch.int32)}
    with pytest.raises(DataError, match=message):
        ResidentGraphs.build(**(tensors | changes))


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
def test_a_missing_device_is_named() -> None:
    with pytest.raises(DataError, match="device cuda: this machine has no CUDA device that torch can use"):
        ResidentGraphs.of(one_graph(2, [(0, 1)]), "cuda")
