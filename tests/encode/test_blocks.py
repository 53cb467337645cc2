"""A graph taken in blocks of nodes gives the outputs that it gives as one batch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.model import Model
from tests.support.networks import untrained
from tests.support.strategies import dressed, random_connected
from tests.support.tiny import MODEL

VARIANTS: dict[str, dict[str, Any]] = {
    "the usual": {},
    "every layer read": {"jump": True, "readout": "mean+log+max", "pool_norm": True, "count_inputs": True},
    "the sum of nodes with few neighbours read": {"k": 2, "readout": "sum"},
    "patches wider than layers": {"k": 2, "slots": 6},
    "the paper's flatten": {"readout": "sort", "sort_nodes": 7},
    "the flatten of a small graph": {"readout": "sort", "sort_nodes": 400, "count_inputs": True},
    "attributes alone": {"embedding": "attributes"},
}


@pytest.fixture(autouse=True)
def in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("egocnn.encode.blocks.NODES_AT_ONCE", 17)
    monkeypatch.setattr("egocnn.encode.patches.NODES_AT_ONCE", 17)


def some_graphs() -> Graphs:
    return random_connected(4, nodes=60, extra=80, seed=3, target=np.array([0, 1, 0, 1]), class_names=("no", "yes"))


def check_same(graphs: Graphs, config: ModelConfig) -> None:
    predictor = untrained(graphs, config, networks=2)
    expected = predictor.outputs_of_each(graphs, device="cpu")
    for g in range(len(graphs)):
        found = predictor.outputs_in_blocks(graphs[[g]], torch.device("cpu"))
        np.testing.assert_allclose(found, expected[:, g], rtol=1e-4, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("variant", VARIANTS)
def test_blocks_and_one_batch_agree(variant: str) -> None:
    check_same(dressed(some_graphs(), attributes=3, weights=False), replace(MODEL, **VARIANTS[variant]))


def test_weighted_edges_count_in_blocks_too() -> None:
    check_same(dressed(some_graphs()), MODEL)


def test_nodes_without_labels_are_described_by_degrees_in_blocks_too() -> None:
    graphs = some_graphs()
    bare = Graphs.from_edges(
        node_counts=graphs.node_counts, edges=graphs.edges, target=graphs.target, class_names=graphs.class_names
    )
    check_same(bare, replace(MODEL, degrees=True))


def test_only_huge_graphs_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = some_graphs()
    predictor = untrained(graphs, MODEL, networks=2)
    largest = int(graphs.node_counts.max())
    expected = predictor.outputs(graphs, device="cpu")
    probabilities = predictor.probabilities(graphs, device="cpu")
    asked: list[int] = []
    in_blocks = Model.outputs_in_blocks

    def noted(self: Model, graph: Graphs, device: torch.device) -> NDArray[np.float32]:
        asked.append(graph.n_nodes)
        return in_blocks(self, graph, device)

    monkeypatch.setattr(Model, "outputs_in_blocks", noted)
    for huge in (1, largest, largest + 1):
        asked.clear()
        monkeypatch.setattr("egocnn.model.HUGE", huge)
        np.testing.assert_allclose(predictor.outputs(graphs, device="cpu"), expected, rtol=1e-4, atol=1e-5)
        assert asked == [n for n in graphs.node_counts.tolist() if n >= huge]
        np.testing.assert_allclose(predictor.probabilities(graphs, device="cpu"), probabilities, rtol=1e-4)
