from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.explain.backtrack import backtrack
from egocnn.explain.evidence import SAME, evidence
from egocnn.explain.techniques import TECHNIQUES, Importances, by_attention, by_grad_cam, by_relevance
from tests.explain.random_models import assert_close, forward_pass, head_for, predictor_for
from tests.support.naive_techniques import Found, Naive
from tests.support.networks import array
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs, random_trees

MODELS: list[dict[str, Any]] = [
    {},
    {"tie": True, "depth": 3},
    {"slots": 6, "k": 2},
    {"depth": 1, "slots": 1, "k": 1},
    {"jump": True},
    {"k": 2, "jump": True, "head_norm": True, "pool_norm": True, "degrees": True},
    {"k": 1, "jump": True, "readout": "mean+max"},
    {"k": 1, "jump": True, "readout": "sort", "tie": True},
]
KINDS = pytest.mark.parametrize("changes", MODELS, ids=lambda changes: " ".join(map(str, changes)) or "plain")


def check(importances: Importances, found: Found, graphs: Graphs) -> None:
    nodes, edges = found.importances(graphs)
    assert_close(importances.nodes, nodes)
    assert_close(importances.edges, edges)
    assert_close(importances.trace[-2][1], found.crossings(graphs))


# ── the paper's technique against its equations ───────────────────────────────────────────────────


@KINDS
@settings(max_examples=15)
@given(graphs=random_graphs(max_graphs=2, max_nodes=6), seed=st.integers(0, 99), threshold=st.sampled_from([0, 0.5, 1]))
def test_the_papers_technique_equals_the_equations_of_the_supplement(
    changes: dict[str, Any], graphs: Graphs, seed: int, threshold: float
) -> None:
    predictor = predictor_for(graphs, outputs=2, seed=seed, **changes)
    head = head_for(predictor.config.width, seed=seed)
    explained = forward_pass(predictor, graphs, attention=head, attention_threshold=threshold)
    importances, naive = by_attention(explained), Naive(predictor, graphs)

    top = np.zeros_like(naive.h[-1])
    for first, last in zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True):
        score = naive.h[-1][first:last] @ array(head.attend)
        attention = np.exp(score) / np.exp(score).sum()
        share = attention / attention.max()
        top[first:last] = naive.h[-1][first:last] * np.where(share >= threshold * (1 - SAME), share, 0)[:, None]
    found, _ = naive.backtracked([top], None)
    check(importances, found, graphs)


@pytest.mark.parametrize("technique", ["paper", "grad-cam"])
def test_a_neighbourhood_below_the_threshold_is_not_traced_back(technique: str) -> None:
    """Two separate pairs of nodes in one graph; the pair with less attention is left out altogether."""
    graphs = one_graph(4, [(0, 1), (2, 3)], node_label=["C", "C", "N", "O"])
    predictor = predictor_for(graphs, outputs=2, seed=1)
    head = head_for(8, seed=1)
    everything = TECHNIQUES[technique](forward_pass(predictor, graphs, [1], attention=head, attention_threshold=0.0))
    largest = TECHNIQUES[technique](forward_pass(predictor, graphs, [1], attention=head, attention_threshold=1.0))
    pairs = largest.nodes.view(2, 2).abs().sum(dim=1)
    assert int((pairs > 0).sum()) == 1
    assert int((everything.nodes.view(2, 2).abs().sum(dim=1) > 0).sum()) == 2


@settings(max_examples=20)
@given(graphs=random_graphs(max_graphs=2, max_nodes=6), seed=st.integers(0, 99))
def test_grad_cam_weighs_embeddings_by_the_mean_slope_of_the_class(graphs: Graphs, seed: int) -> None:
    predictor = predictor_for(graphs, outputs=2, seed=seed, readout="mean")
    explained = forward_pass(predictor, graphs, attention_threshold=0.0)
    importances, naive = by_grad_cam(explained), Naive(predictor, graphs)
    network = predictor.networks[0]
    top = np.zeros_like(naive.h[-1])
    for first, last in zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True):
        h = naive.h[-1][first:last]
        active = array(network.hidden.weight) @ h.mean(axis=0) + array(network.hidden.bias) > 0
        slope = (array(network.out.weight[0] - network.out.weight[1]) * active) @ array(network.hidden.weight)
        weight = np.maximum(h @ slope / len(h) ** 2, 0)  # the readout's share 1 / n, then the mean over n nodes
        top[first:last] = h * (weight / max(weight.max(), 1e-300))[:, None]
    found, _ = naive.backtracked([top], None)
    check(importances, found, graphs)


# ── the relevance rule ────────────────────────────────────────────────────────────────────────────


@KINDS
@settings(max_examples=15)
@given(graphs=random_graphs(max_graphs=2, max_nodes=6), seed=st.integers(0, 99), gamma=st.sampled_from([0.25, 1.0]))
def test_the_relevance_rule_equals_its_equation(
    changes: dict[str, Any], graphs: Graphs, seed: int, gamma: float
) -> None:
    predictor = predictor_for(graphs, outputs=2, seed=seed, **changes)
    explained = forward_pass(predictor, graphs, gamma=gamma, against=0.5)
    importances, naive = by_relevance(explained), Naive(predictor, graphs)
    own = [array(each) for each in evidence(explained)]
    found, between = naive.backtracked([np.where(each > 0, each, 0.5 * each) for each in own], gamma)
    check(importances, found, graphs)
    for (nodes, _), wanted in zip(importances.trace[:-1], between, strict=True):
        assert_close(nodes, wanted.sum(axis=1))


def test_the_relevance_rule_follows_attributes_too() -> None:
    random = np.random.default_rng(0)
    trees = random_trees(4, nodes=6, seed=2)
    trees = trees.replace(node_attr=random.normal(size=(trees.n_nodes, 2)).astype(np.float32))
    jump = {"jump": True, "k": 1}
    for changes in ({}, {"embedding": "attributes"}, {"slots": 5, "k": 2}, jump, jump | {"embedding": "attributes"}):
        predictor = predictor_for(trees, outputs=2, seed=1, **changes)
        explained = forward_pass(predictor, trees, gamma=0.5, against=1.0)
        naive = Naive(predictor, trees)
        found, _ = naive.backtracked([array(each) for each in evidence(explained)], 0.5)
        importances = by_relevance(explained)
        check(importances, found, trees)


@pytest.mark.parametrize("gamma", [0.0, 0.25, 10.0])
@pytest.mark.parametrize("changes", [{}, {"jump": True}, {"k": 1}], ids=str)
@settings(max_examples=15)
@given(graphs=random_graphs(max_graphs=3, max_nodes=7, attributes=False), seed=st.integers(0, 99))
def test_what_is_handed_down_adds_up_to_what_was_held_less_the_share_of_the_bias(
    gamma: float, changes: dict[str, Any], graphs: Graphs, seed: int
) -> None:
    predictor = predictor_for(graphs, outputs=2, seed=seed, depth=3, **changes)
    explained = forward_pass(predictor, graphs)
    own = evidence(explained)
    held = own[-1]
    naive = Naive(predictor, graphs)
    for layer, (arrived_at, _) in zip((2, 1, 0), backtrack(explained, own, gamma), strict=True):
        _, b = naive.filters(layer, gamma)
        kept = np.zeros(len(graphs))
        for n in range(graphs.n_nodes):
            z, _ = naive.received(n, layer, gamma)
            holds = array(held[n])
            assert (z[np.abs(holds) > 1e-9] > 0).all()
            share = np.divide(np.maximum(b, 0), z, out=np.ones_like(z), where=z > 1e-9)
            kept[graphs.graph_of[n]] += (holds * (1 - share)).sum()
        arrived = array(arrived_at - own[layer] if len(own) > 1 else arrived_at).sum(axis=1)
        arrived = np.bincount(graphs.graph_of, weights=arrived, minlength=len(graphs))
        assert_close(arrived, kept, tolerance=1e-9 * max(1.0, float(held.abs().sum())))
        assert bool(torch.isfinite(arrived_at).all())
        held = arrived_at


def test_a_larger_gamma_lets_what_spoke_against_a_unit_count_less() -> None:
    trees = random_trees(6, nodes=8, seed=0)
    explained = forward_pass(predictor_for(trees, outputs=2, seed=1), trees)
    negative = [
        float(next(backtrack(explained, explained.h[-1:], gamma))[0].clamp(max=0).sum())
        for gamma in (0.1, 1.0, 10.0, 1e6)
    ]
    assert negative == sorted(negative)
    assert negative[0] < 10 * negative[-1]
    assert negative[-1] == pytest.approx(0, abs=1e-3)
