"""Every explainer gives finite importances of the right shape, the same every time; the exact ones by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.rivals import (
    Explained,
    FittedGINE,
    GINEConfig,
    cam,
    fit,
    gnn_explainer,
    integrated_gradients,
    occlusion,
    pg_explainer,
)
from lab.rivals.gine import logits_of
from lab.truths import Truth, edges_from_nodes, score_structures
from tests.lab.rivals.peer import CONFIG, alcohols, positives, trained
from tests.support.samples import molecules

Explainer = Callable[..., Explained]

EXPLAINERS: dict[str, Explainer] = {
    "gnn_explainer": partial(gnn_explainer, epochs=5),
    "pg_explainer": lambda model, graphs, **settings: pg_explainer(
        model, graphs, training=alcohols().select("train")[:20], epochs=3, **settings
    ),
    "integrated_gradients": partial(integrated_gradients, steps=10),
    "cam": cam,
    "occlusion": occlusion,
}
each_explainer = pytest.mark.parametrize("explain", EXPLAINERS.values(), ids=EXPLAINERS.keys())


def same(one: Explained, other: Explained) -> bool:
    pairs = zip(one.importances, other.importances, strict=True)
    return all(
        np.allclose(a.node_importance, b.node_importance, rtol=1e-4, atol=1e-5)
        and np.allclose(a.edge_importance, b.edge_importance, rtol=1e-4, atol=1e-5)
        for a, b in pairs
    )


def log_odds(model: FittedGINE, graphs: Graphs, which: int) -> np.ndarray:
    with torch.no_grad():
        logits = logits_of(model.network, model.inputs(model.prepare(graphs))).double().numpy()
    margin: np.ndarray = logits[:, which] - logits[:, 1 - which]
    return margin


@each_explainer
@pytest.mark.parametrize("odd", [False, True], ids=["alcohols", "loops and no edges"])
def test_importances_are_finite_and_there_is_one_for_every_node_and_edge(explain: Explainer, odd: bool) -> None:
    graphs = molecules().replace(node_attr=None, edge_weight=None) if odd else positives()
    found = explain(trained(), graphs)
    for importance, graph in zip(found.importances, graphs, strict=True):
        assert importance.node_importance.shape == (graph.n_nodes,)
        assert importance.edge_importance.shape == (len(graph.edges),)
        assert np.isfinite([*importance.node_importance, *importance.edge_importance]).all()
    assert found.milliseconds > 0


@each_explainer
def test_the_same_seed_gives_the_same_importances_alone_and_among_others(explain: Explainer) -> None:
    graphs = positives()[:4]
    found = explain(trained(), graphs)
    assert same(found, explain(trained(), graphs))
    alone = [explain(trained(), graphs[[g]]) for g in range(len(graphs))]
    joined = Explained([one.importances[0] for one in alone], 0)
    assert same(found, joined)


@each_explainer
def test_explaining_leaves_the_network_and_the_random_numbers_as_they_were(explain: Explainer) -> None:
    before = {name: value.clone() for name, value in trained().network.state_dict().items()}
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    explain(trained(), positives()[:2])
    assert torch.equal(torch.rand(1), expected)
    after = trained().network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in trained().network.parameters())


def test_an_explainer_that_learns_is_not_disturbed_by_one_that_ran_before() -> None:
    model = fit(alcohols(), config=CONFIG, epochs=1)
    training = alcohols().select("train")[:20]
    before = pg_explainer(model, positives(), training=training, epochs=3)
    gnn_explainer(model, positives()[:1], epochs=2)
    assert same(before, pg_explainer(model, positives(), training=training, epochs=3))
    assert before.training_seconds > 0


@each_explainer
def test_the_predicted_class_is_explained_unless_another_is_asked_for(explain: Explainer) -> None:
    graphs = positives()[:3]
    predicted = trained().class_names[trained().predict(graphs)[0]]
    assert same(explain(trained(), graphs), explain(trained(), graphs, target=predicted))
    with pytest.raises(DataError, match="no class is called 'ether'; there are alkane, alcohol"):
        explain(trained(), graphs, target="ether")


@pytest.mark.parametrize("explain", [cam, integrated_gradients, occlusion])
def test_what_speaks_for_one_of_two_classes_speaks_against_the_other(explain: Explainer) -> None:
    graphs = positives()[:3]
    one, other = (explain(trained(), graphs, target=name).importances for name in ("alcohol", "alkane"))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.node_importance, -b.node_importance, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("explain", [integrated_gradients, occlusion])
def test_the_oxygen_of_an_alcohol_is_found(explain: Explainer) -> None:
    graphs = positives()
    found = explain(trained(), graphs, target="alcohol").importances
    auc = score_structures(found, [Truth.of(graph) for graph in graphs]).node_auc
    assert auc is not None
    assert auc > 0.9


def test_integrated_gradients_add_up_to_what_the_labels_change_in_the_log_odds() -> None:
    graphs = positives()[:3]
    labels = graphs.node_label
    assert labels is not None
    assert graphs.edge_label is not None
    blank = graphs.replace(node_label=np.full_like(labels, -1), edge_label=np.full_like(graphs.edge_label, -1))
    change = log_odds(trained(), graphs, 1) - log_odds(trained(), blank, 1)
    found = integrated_gradients(trained(), graphs, target="alcohol", steps=300).importances
    total = [one.node_importance.sum() + one.edge_importance.sum() for one in found]
    np.testing.assert_allclose(total, change, rtol=0.02)


def without(graphs: Graphs, *, node: int | None = None, edge: int | None = None) -> Graphs:
    """One graph, built anew without one of its nodes, or without one of its edges."""
    (graph,) = graphs
    keep = [n for n in range(graph.n_nodes) if n != node]
    left = [pair for number, pair in enumerate(graph.edges.tolist()) if number != edge and node not in pair]
    assert graphs.node_label is not None
    return Graphs.from_edges(
        node_counts=[len(keep)],
        edges=np.array([(keep.index(u), keep.index(v)) for u, v in left]),
        node_label=graphs.node_label[keep],
        node_label_names=graphs.node_label_names,
        edge_label=np.zeros(len(left), np.int32),
        edge_label_names=graphs.edge_label_names,
    )


def test_occlusion_is_what_the_log_odds_lose_without_a_node_or_an_edge() -> None:
    graphs = positives()[[0]]
    (found,) = occlusion(trained(), graphs, target="alcohol").importances
    whole = log_odds(trained(), graphs, 1)[0]
    cut_nodes = [log_odds(trained(), without(graphs, node=node), 1)[0] for node in range(graphs.n_nodes)]
    cut_edges = [log_odds(trained(), without(graphs, edge=edge), 1)[0] for edge in range(graphs.n_edges)]
    np.testing.assert_allclose(found.node_importance, whole - np.array(cut_nodes), rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(found.edge_importance, whole - np.array(cut_edges), rtol=1e-2, atol=1e-2)


def test_cam_of_a_linear_head_adds_up_to_the_log_odds_without_the_bias() -> None:
    model = fit(alcohols(), config=GINEConfig(width=16, hidden=0), epochs=3)
    graphs = positives()[:4]
    bias = model.network.head.bias
    assert isinstance(bias, torch.Tensor)
    expected = log_odds(model, graphs, 1) - float(bias[1] - bias[0])
    found = cam(model, graphs, target="alcohol").importances
    np.testing.assert_allclose([one.node_importance.sum() for one in found], expected, rtol=1e-3, atol=1e-4)
    for one, graph in zip(found, graphs, strict=True):
        np.testing.assert_allclose(one.edge_importance, edges_from_nodes(graph, one.node_importance))
