"""Renumbering the nodes of a graph must not change what a trained model says of it."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from egocnn.config import ReadConfig, Readout
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


@pytest.mark.parametrize("readout", get_args(Readout))
def test_mutag_with_every_readout(readout: Readout, data_folder: Path) -> None:
    from egocnn.data.sources.tu import read_tu

    graphs = read_tu(data_folder / "tu" / "MUTAG.zip", ReadConfig())
    assert len(graphs) == 188
    print("worst:", check(trained(graphs, readout=readout), graphs))


@pytest.mark.parametrize("readout", get_args(Readout))
@pytest.mark.parametrize(
    "source",
    [
        "compounds:alcohols:sizes=3-30,per_size=4",
        "compounds:isomers:sizes=3-7,per_size=16",
        "compounds:methylalkanes:sizes=5-31",
    ],
)
def test_generated_compounds_with_every_readout(source: str, readout: Readout) -> None:
    graphs = read(source)
    print("worst:", check(trained(graphs, readout=readout), graphs))


@pytest.mark.parametrize("settings", [{"tie": True}, {"depth": 8}, {"slots": 3, "k": 2}])
def test_generated_compounds_with_other_settings(settings: dict[str, Any]) -> None:
    graphs = read("compounds:alcohols:sizes=3-20,per_size=4")
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


def test_a_model_that_heeds_node_numbers_is_caught() -> None:
    """The check itself must be able to fail."""
    graphs = read("compounds:alcohols:sizes=3-8,per_size=2")
    predictor = trained(graphs)

    def by_number(some: Graphs) -> NDArray[Any]:
        assert some.node_label is not None
        return predictor.outputs(some) + some.node_label[some.node_ptr[:-1], None] * 1e-3

    with pytest.raises(AssertionError, match="changes the prediction by"):
        assert_relabelling_invariant(by_number, graphs, tolerance=TOLERANCE)
