from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ExplainConfig
from egocnn.data.graphs import Graphs
from egocnn.explain import explain, techniques
from egocnn.explain.techniques import occlude
from egocnn.model import Model
from tests.data.test_subgraphs import without_edge, without_node
from tests.explain.random_models import predictor_for
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs, random_trees

MODELS: list[dict[str, Any]] = [{}, {"embedding": "adjacency"}, {"max_hops": 2}, {"readout": "mean+max"}]


def margin_of(predictor: Model, graphs: Graphs, number: int) -> float:
    """By the formula, from the public outputs."""
    (logits,) = predictor.outputs(graphs).astype(np.float64)
    if len(logits) == 1:
        return float(logits[0])
    return float(logits[number] - np.log(np.exp(np.delete(logits, number)).sum()))


def brute_force(predictor: Model, graphs: Graphs, classes: list[int]) -> tuple[list[float], list[float]]:
    """One prediction for every graph that is left when a node or an edge is taken out by hand."""
    nodes, edges = [], []
    for g, number in enumerate(classes):
        whole = graphs[[g]]
        before = margin_of(predictor, whole, number)
        nodes += [before - margin_of(predictor, without_node(whole, n), number) for n in range(whole.n_nodes)]
        edges += [before - margin_of(predictor, without_edge(whole, u, v), number) for u, v in whole.edges.tolist()]
    return nodes, edges


@pytest.mark.parametrize("changes", MODELS)
@pytest.mark.parametrize("outputs", [1, 2, 3])
@settings(max_examples=6)
@given(graphs=random_graphs(max_graphs=2, min_nodes=0, max_nodes=5), seed=st.integers(0, 99))
def test_occlusion_equals_a_prediction_for_every_graph_cut_by_hand(
    changes: dict[str, Any], outputs: int, graphs: Graphs, seed: int
) -> None:
    if graphs.n_nodes == 0:
        return
    predictor = predictor_for(graphs, outputs=outputs, seed=seed, **changes)
    classes = [(g + seed) % outputs for g in range(len(graphs))]
    nodes, edges = occlude(predictor, graphs, np.array(classes), device="cpu")
    wanted_nodes, wanted_edges = brute_force(predictor, graphs, classes)
    np.testing.assert_allclose(nodes, wanted_nodes, atol=2e-5, rtol=1e-5)
    np.testing.assert_allclose(edges, wanted_edges, atol=2e-5, rtol=1e-5)


def test_cutting_in_portions_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = random_trees(5, nodes=8, seed=0)
    predictor = predictor_for(trees, outputs=2)
    classes = np.zeros(5, np.int64)
    at_once = occlude(predictor, trees, classes, device="cpu")
    monkeypatch.setattr(techniques, "NODES_AT_ONCE", 10)
    for one, other in zip(at_once, occlude(predictor, trees, classes, device="cpu"), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_explaining_by_occlusion_gives_its_importances_and_no_trace() -> None:
    trees = random_trees(4, nodes=6, seed=3, target=np.array([0, 1, 0, 1]), class_names=("no", "yes"))
    predictor = predictor_for(trees)
    found = explain(predictor, trees, ExplainConfig(technique="occlusion"), classes="yes")
    nodes, edges = occlude(predictor, trees, np.ones(4, np.int64), device="cpu")
    np.testing.assert_allclose(np.concatenate([s.node_importance for s in found]), nodes, atol=1e-6)
    np.testing.assert_allclose(np.concatenate([s.edge_importance for s in found]), edges, atol=1e-6)
    assert all(structure.trace is None for structure in found)


def test_a_node_that_stands_apart_matters_only_through_the_readout() -> None:
    """With the maximum, and another node like it in the graph, taking it out changes nothing at all."""
    graphs = one_graph(4, [(0, 1)], node_label=[*"CNOO"])
    predictor = predictor_for(graphs, outputs=2, readout="max")
    nodes, _ = occlude(predictor, graphs, np.zeros(1, np.int64), device="cpu")
    np.testing.assert_allclose(nodes[2:], 0, atol=1e-6)
    summed, _ = occlude(predictor_for(graphs, outputs=2, readout="sum"), graphs, np.zeros(1, np.int64), device="cpu")
    assert abs(summed[2]) > 1e-3
