"""Renumbering the nodes of a graph must not change what a trained model says of it."""

from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from egocnn.config import Readout
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.model import Model
from egocnn.study.invariance import assert_relabelling_invariant, relabel
from egocnn.train.recipe import learn
from tests.support.strategies import random_connected
from tests.support.tiny import plain_model, plain_train

TRAIN = plain_train(epochs=2, learning_rate=5e-3)
TOLERANCE = 1e-5


def trained(graphs: Graphs, **settings: Any) -> Model:
    return learn(graphs, plain_model(**({"width": 16, "hidden": 16, "sort_nodes": 32} | settings)), TRAIN)[0]


def check(predictor: Model, graphs: Graphs, *, seeds: int = 2) -> float:
    """The worst change of any logit, relative to the larger of 1 and the logit."""
    before = predictor.outputs(graphs)
    assert np.ptp(before) > 0.01  # it does tell graphs apart

    def scaled(some: Graphs) -> NDArray[Any]:
        return predictor.outputs(some) / np.maximum(1, np.abs(before))

    worst = 0.0
    for seed in range(seeds):
        assert_relabelling_invariant(scaled, graphs, tolerance=TOLERANCE, seed=seed)
        worst = max(worst, float(np.abs(scaled(relabel(graphs, seed)[0]) - scaled(graphs)).max()))
    return worst


ALCOHOLS = "compounds:alcohols:sizes=3-20,per_size=4"
CASES: list[tuple[str, dict[str, Any]]] = [
    *((ALCOHOLS, {"readout": readout}) for readout in get_args(Readout)),
    *((ALCOHOLS, settings) for settings in ({"tie": True}, {"depth": 8}, {"slots": 3, "k": 2})),
    *(("compounds:isomers:sizes=3-7,per_size=16", {"readout": readout}) for readout in ("mean+log+max", "sort")),
    *(("compounds:methylalkanes:sizes=5-31", {"readout": readout}) for readout in ("mean+log+max", "sort")),
]


@pytest.mark.parametrize(("source", "settings"), CASES)
def test_generated_compounds_with_every_readout_and_other_settings(source: str, settings: dict[str, Any]) -> None:
    graphs = read(source)
    print("worst:", check(trained(graphs, **settings), graphs))


def test_graphs_with_attributes_and_weights() -> None:
    graphs = random_connected(60, nodes=10, extra=4, seed=3, target=np.arange(60) % 2, class_names=("no", "yes"))
    random = np.random.default_rng(0)
    value = random.normal(0, 1, graphs.n_nodes).astype(np.float32)
    graphs = graphs.replace(
        node_attr=random.normal(0, 1, (graphs.n_nodes, 2)).astype(np.float32),
        edge_weight=np.abs(value[graphs.entry_node] + value[graphs.indices]),
    )
    print("worst:", check(trained(graphs), graphs))
