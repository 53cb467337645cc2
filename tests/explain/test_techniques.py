from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from egocnn.config import ExplainConfig, Readout
from egocnn.data.graphs import Graphs
from egocnn.explain import explain, techniques
from egocnn.explain.evidence import margins
from egocnn.explain.techniques import TECHNIQUES, ExplainedBatch, by_gradient, by_integrated_gradients, occlude
from egocnn.model import Model
from egocnn.nn.batch import Batch
from tests.data.test_subgraphs import without_edge, without_node
from tests.explain.random_models import assert_close, forward_pass, head_for, predictor_for
from tests.support.naive_techniques import Found
from tests.support.networks import array
from tests.support.strategies import dressed, random_graphs, random_trees

EMBEDDINGS: list[dict[str, Any]] = [{}, {"embedding": "attributes"}, {"own": True}]
READ = pytest.mark.parametrize("changes", EMBEDDINGS, ids=["patchy-san", "attributes", "own"])
MORE: list[dict[str, Any]] = [{}, {"jump": True, "k": 1, "head_norm": True}]
READ_MORE = pytest.mark.parametrize("more", MORE, ids=["plain", "jump"])
SMOOTH: dict[str, Any] = {"readout": "mean", "depth": 1, "width": 10, "hidden": 20}


def rich_trees(n_graphs: int = 3) -> Graphs:
    """Labels, attributes and weights together."""
    trees = random_trees(2 * n_graphs, nodes=6, seed=5)
    trees = trees[np.flatnonzero(trees.node_counts > 2)[:n_graphs]]  # two nodes may be alike: a kink of the maximum
    assert len(trees) == n_graphs
    return dressed(trees)


def whole_margin(explained: ExplainedBatch, batch: Batch) -> float:
    with torch.no_grad():
        return float(margins(explained.network(batch).output, explained.classes).sum())


def scaled(batch: Batch, part: str, at: tuple[int, ...], factor: float) -> Batch:
    """The batch with one number of its input multiplied."""
    values = batch.bags.weight if part == "bags" else getattr(batch, part)
    if values is None:
        values = torch.ones(len(batch.bags.rows), dtype=torch.float64)
    values = values.clone()
    values[at] *= factor
    if part == "bags":
        return replace(batch, bags=replace(batch.bags, weight=values))
    changed: dict[str, Any] = {part: values}
    return replace(batch, **changed)


@READ_MORE
@pytest.mark.parametrize("readout", get_args(Readout))
@pytest.mark.parametrize("changes", EMBEDDINGS[:2], ids=["patchy-san", "attributes"])
def test_the_gradient_times_the_input_agrees_with_finite_differences(
    readout: Readout, changes: dict[str, Any], more: dict[str, Any]
) -> None:
    """Every entry of the input is scaled up and down a little, one after the other."""
    trees = rich_trees()
    predictor = predictor_for(trees, outputs=2, seed=1, readout=readout, **changes, **more)
    explained = forward_pass(predictor, trees)
    importances = by_gradient(explained)
    batch, tiny = explained.batch, 1e-6

    def difference(part: str, *at: int) -> float:
        up, down = (whole_margin(explained, scaled(batch, part, at, 1 + sign * tiny)) for sign in (1, -1))
        return (up - down) / (2 * tiny)

    wanted = Found(np.zeros(trees.n_nodes))
    wanted.own += [sum(difference("attributes", node, a) for a in range(2)) for node in range(trees.n_nodes)]
    for entry in range(0 if changes else len(batch.bags.rows)):
        u, v = int(explained.places.u[entry]), int(explained.places.v[entry])
        if explained.places.is_edge[entry]:
            wanted.join(u, v, difference("bags", entry))
        else:
            wanted.own[u] += difference("bags", entry)
    nodes, edges = wanted.importances(trees)
    assert_close(importances.nodes, nodes, tolerance=1e-5)
    assert_close(importances.edges, edges, tolerance=1e-5)


def margins_from(explained: ExplainedBatch, h: Tensor) -> Tensor:
    """The margins (B) of a network whose nodes have these embeddings."""
    network, batch, reached = explained.network, explained.batch, [h]
    for conv in network.convs:
        reached.append(conv(reached[-1], batch.neighbours))
    return margins(network.head(network.read_out(reached, batch)), explained.classes)


@READ_MORE
def test_through_a_module_of_ones_own_the_gradient_reaches_the_nodes_embeddings(more: dict[str, Any]) -> None:
    trees = random_trees(3, nodes=6, seed=5)
    explained = forward_pass(predictor_for(trees, outputs=2, own=True, **more), trees)
    h = explained.h[0].detach().requires_grad_()
    (gradient,) = torch.autograd.grad(margins_from(explained, h).sum(), h)
    found = by_gradient(explained)
    assert_close(found.nodes, (gradient * h).sum(dim=1).detach())
    assert float(found.nodes.abs().max()) > 0


@READ
@READ_MORE
@pytest.mark.parametrize("outputs", [1, 3])
def test_integrated_gradients_add_up_to_the_margin_less_that_of_the_empty_input(
    changes: dict[str, Any], more: dict[str, Any], outputs: int
) -> None:
    trees = rich_trees(4)
    predictor = predictor_for(trees, outputs=outputs, seed=2, **(SMOOTH | changes | more))
    explained = forward_pass(predictor, trees, [number % outputs for number in range(4)], steps=300)
    importances = by_integrated_gradients(explained)
    network, batch = predictor.networks[0], explained.batch
    if changes.get("own"):
        before = margins_from(explained, torch.zeros(trees.n_nodes, 4, dtype=torch.float64))
    else:
        nothing = replace(
            batch,
            attributes=0 * batch.attributes,
            bags=replace(batch.bags, weight=torch.zeros(len(batch.bags.rows), dtype=torch.float64)),
        )
        before = margins(network(nothing).output, explained.classes)
    after = margins(network(batch).output, explained.classes)
    sums = np.bincount(trees.graph_of, weights=array(importances.nodes))
    assert_close(sums, (after - before).detach(), tolerance=5e-3)
    assert float((after - before).detach().abs().max()) > 0.1


def test_one_step_of_integrated_gradients_is_the_gradient_half_way_times_the_input() -> None:
    trees = rich_trees()
    predictor = predictor_for(trees, outputs=2, embedding="attributes", **SMOOTH)
    explained = forward_pass(predictor, trees, steps=1)
    half = replace(explained.batch, attributes=explained.batch.attributes / 2)
    attributes = half.attributes.requires_grad_()
    total = margins(predictor.networks[0](half).output, explained.classes).sum()
    (gradient,) = torch.autograd.grad(total, attributes)
    wanted = (gradient * explained.batch.attributes).sum(dim=1)
    assert_close(by_integrated_gradients(explained).nodes, wanted.detach())


def test_evidence_against_a_class_counts_as_much_as_it_is_told_to_and_what_lowers_a_value_fully() -> None:
    trees = random_trees(5, nodes=8, seed=1)
    classifier = predictor_for(trees, outputs=2)
    regressor = predictor_for(trees, outputs=1, seed=4, width=8, hidden=16, readout="sum")
    (none, some, whole), (lowest, _, highest) = (
        [
            TECHNIQUES["relevance"](forward_pass(model, trees, against=against)).trace[0][0]
            for against in (0.0, 0.5, 1.0)
        ]
        for model in (classifier, regressor)
    )
    assert bool((none >= 0).all())
    assert float((none - whole).max()) > 0
    assert_close(some, (none + whole) / 2)
    assert torch.equal(lowest, highest)
    assert float(lowest.min()) < 0 < float(lowest.max())


def test_no_technique_changes_the_network_or_leaves_gradients_in_it() -> None:
    trees = random_trees(3, nodes=6, seed=0)
    predictor: Model = predictor_for(trees, outputs=2)
    explained = forward_pass(predictor, trees, attention=head_for(8))
    before = {name: value.clone() for name, value in predictor.networks[0].state_dict().items()}
    for technique in TECHNIQUES.values():
        technique(explained)
    assert all(torch.equal(value, before[name]) for name, value in predictor.networks[0].state_dict().items())
    assert all(parameter.grad is None for parameter in predictor.networks[0].parameters())


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


@pytest.mark.parametrize("changes", [{}, {"readout": "mean+max"}])
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


def test_explaining_by_occlusion_gives_its_importances_also_in_portions_and_no_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trees = random_trees(4, nodes=6, seed=3, target=np.array([0, 1, 0, 1]), class_names=("no", "yes"))
    predictor = predictor_for(trees)
    found = explain(predictor, trees, ExplainConfig(technique="occlusion"), classes="yes")
    assert all(structure.trace is None for structure in found)
    monkeypatch.setattr(techniques, "NODES_AT_ONCE", 10)
    nodes, edges = occlude(predictor, trees, np.ones(4, np.int64), device="cpu")
    np.testing.assert_allclose(np.concatenate([s.node_importance for s in found]), nodes, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([s.edge_importance for s in found]), edges, atol=1e-5)
