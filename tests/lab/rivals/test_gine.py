"""The GINE network learns, on the same parts as ours; its explainers find what they should, the exact ones by hand."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
import torch

pytest.importorskip("torch_geometric.explain", reason="torch-geometric is not installed")

from egocnn.config import TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from egocnn.train.validation import part_numbers
from lab.rivals import (
    GINE,
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
from lab.rivals.gine import logits_of, make_inputs
from lab.truths import edges_from_nodes
from tests.support.samples import as_list, molecules, one_graph, sure
from tests.support.tiny import alcohols_of_all_sizes as alcohols
from tests.support.tiny import oxygens

CONFIG = GINEConfig(width=16, hidden=16)
CPU = torch.device("cpu")


@cache
def trained() -> FittedGINE:
    return fit(alcohols(), config=CONFIG, epochs=30, learning_rate=1e-2)


def positives() -> Graphs:
    test = alcohols().select("test")
    return test[np.flatnonzero(test.target == test.class_names.index("alcohol"))]


def test_it_learns_to_tell_alcohols_from_alkanes() -> None:
    test = alcohols().select("test")
    assert trained().accuracy(test) == trained().validation_accuracy == 1
    assert trained().predict(test).tolist() == as_list(test.target)
    probability = trained().probabilities(test)
    assert probability.shape == (len(test), 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-5)
    strange = one_graph(2, [(0, 1)], node_label=["C", "Xe"], edge_label=["quadruple"])  # labels never seen
    assert np.isfinite(trained().probabilities(strange)).all()


def test_the_same_seed_gives_the_same_network_whatever_is_tested_and_another_seed_another() -> None:
    graphs = alcohols()
    without = graphs[np.flatnonzero(graphs.part != 2)]
    one, same, other = (
        fit(some, config=CONFIG, epochs=2, seed=seed).network.state_dict()
        for some, seed in ((graphs, 0), (without, 0), (graphs, 1))
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["embed.weight"], other["embed.weight"])


def test_the_validation_part_is_the_one_that_ours_has() -> None:
    graphs = alcohols().replace(part=None)
    validation = graphs[part_numbers(graphs.outline, TrainConfig(seed=3))[1]]
    untrained = fit(graphs, config=CONFIG, epochs=0, seed=3)
    assert untrained.epochs == 0
    assert untrained.validation_accuracy == pytest.approx(untrained.accuracy(validation))
    assert fit(graphs, config=CONFIG, epochs=50, patience=1, learning_rate=1e-6).epochs < 50  # patience runs out


HEADS = [
    GINEConfig(width=8, hidden=8, readout="mean"),
    GINEConfig(width=8, hidden=8, readout="max"),
    GINEConfig(width=8, hidden=0, readout="sum"),
]


@pytest.mark.parametrize("config", HEADS)
def test_a_graph_is_judged_alike_alone_and_among_others_and_an_empty_one_as_if_nothing_were_lit(
    config: GINEConfig,
) -> None:
    torch.manual_seed(0)
    graphs = molecules()
    inputs = make_inputs(graphs, CPU)
    network = GINE(inputs.x.shape[1], inputs.edge_attr.shape[1], 2, config).eval()
    together = logits_of(network, inputs)
    for g in range(len(graphs)):
        torch.testing.assert_close(logits_of(network, make_inputs(graphs[[g]], CPU))[0], together[g])
    inputs = make_inputs(Graphs.from_edges(node_counts=[0, 2], edges=np.array([[0, 1]])), CPU)
    network = GINE(1, 1, 2, config).eval()
    torch.testing.assert_close(logits_of(network, inputs)[:1], network.head(torch.zeros(1, 8)))


def test_inputs_are_labels_one_hot_then_attributes_and_weights() -> None:
    inputs = make_inputs(molecules(), CPU)
    assert inputs.x.shape == (8, 3 + 2)
    assert inputs.x[0].tolist() == [0, 1, 0, 0, 1]
    assert inputs.x[3].tolist() == [0, 0, 0, 6, 7]  # a label that is not known
    assert inputs.edge_attr.shape == (molecules().n_entries, 2 + 1)
    bare = make_inputs(one_graph(3, [(0, 1)]), CPU)
    assert bare.x.tolist() == [[1]] * 3
    assert bare.edge_attr.tolist() == [[1]] * 2


def test_values_are_learned_in_their_own_unit_and_what_counts_raises_them() -> None:
    graphs = oxygens(80)
    config = GINEConfig(width=16, hidden=0, readout="sum")
    model = fit(graphs, config=config, epochs=40, patience=40, learning_rate=1e-2)
    target = np.array(as_list(graphs.target))
    assert np.abs(model.values(graphs) - target).mean() < 0.3 * target.std()
    contrasts = []
    for graph, found in zip(graphs, occlusion(model, graphs).importances, strict=True):
        is_oxygen = np.array([label == "O" for label in graph.node_label or ()])
        if is_oxygen.any() and not is_oxygen.all():
            contrasts.append(found.node_importance[is_oxygen].mean() - found.node_importance[~is_oxygen].mean())
    assert np.mean(contrasts) > 0


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


def numbers(found: Explained) -> np.ndarray:
    """all importances, one after the other"""
    return np.concatenate([np.append(one.node_importance, one.edge_importance) for one in found.importances])


def assert_same(one: Explained, other: Explained) -> None:
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-4, atol=1e-5)


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
    assert np.isfinite(numbers(found)).all()
    assert found.milliseconds > 0
    assert (found.training_seconds > 0) == (explain is EXPLAINERS["pg_explainer"])


@each_explainer
def test_the_predicted_class_is_explained_the_same_every_time_alone_and_among_others(explain: Explainer) -> None:
    """The network and the random numbers are afterwards as they were."""
    graphs = positives()[:3]
    before = {name: value.clone() for name, value in trained().network.state_dict().items()}
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    found = explain(trained(), graphs)
    assert torch.equal(torch.rand(1), expected)
    predicted = trained().class_names[trained().predict(graphs)[0]]
    assert_same(found, explain(trained(), graphs, target=predicted))
    alone = [explain(trained(), graphs[[g]]) for g in range(len(graphs))]
    assert_same(found, Explained([one.importances[0] for one in alone], 0))
    torch.testing.assert_close(dict(trained().network.state_dict()), before, rtol=0, atol=0)
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in trained().network.parameters())
    with pytest.raises(DataError, match="no class is called 'ether'; there are alkane, alcohol"):
        explain(trained(), graphs, target="ether")


def test_integrated_gradients_add_up_to_what_the_labels_change_in_the_log_odds() -> None:
    graphs = positives()[:3]
    unknown = (np.full(size, -1, np.int32) for size in (graphs.n_nodes, graphs.n_entries))
    blank = graphs.replace(node_label=next(unknown), edge_label=next(unknown))
    change = log_odds(trained(), graphs, 1) - log_odds(trained(), blank, 1)
    found = integrated_gradients(trained(), graphs, target="alcohol", steps=300).importances
    total = [one.node_importance.sum() + one.edge_importance.sum() for one in found]
    np.testing.assert_allclose(total, change, rtol=0.02)


def without(graphs: Graphs, *, node: int | None = None, edge: int | None = None) -> Graphs:
    """One graph, built anew without one of its nodes, or without one of its edges."""
    (graph,) = graphs
    keep = [n for n in range(graph.n_nodes) if n != node]
    left = [pair for number, pair in enumerate(graph.edges.tolist()) if number != edge and node not in pair]
    return Graphs.from_edges(
        node_counts=[len(keep)],
        edges=np.array([(keep.index(u), keep.index(v)) for u, v in left]),
        node_label=sure(graphs.node_label)[keep],
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
