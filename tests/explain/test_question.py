from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.model import Model
from tests.explain.random_models import USUAL, assert_close, predictor_for, question_for
from tests.support.strategies import random_graphs, random_trees

NETWORKS = pytest.mark.parametrize("networks", [1, 3])
MODELS = pytest.mark.parametrize("changes", [{}, USUAL], ids=["plain", "usual"])


def trees(classes: int) -> Graphs:
    target = np.arange(8) % classes if classes else np.linspace(-40.0, 90.0, 8)
    return random_trees(8, nodes=9, seed=3, target=target, class_names=tuple("abc"[:classes]))


def model_of(classes: int, networks: int, changes: dict[str, Any]) -> Model:
    return replace(predictor_for(trees(classes), networks=networks, **changes), temperature=1.7)


@NETWORKS
@MODELS
@pytest.mark.parametrize("classes", [2, 3])
def test_the_log_odds_are_those_of_the_calibrated_probability(
    classes: int, networks: int, changes: dict[str, Any]
) -> None:
    model, graphs = model_of(classes, networks, changes), trees(classes)
    probability = model.probabilities(graphs)
    for number in range(classes):
        found = question_for(model, graphs, [number] * len(graphs)).answer().numpy()
        assert_close(1 / (1 + np.exp(-found)), probability[:, number], tolerance=1e-5)
        model = model_of(classes, networks, changes)  # asked in double precision, the old one stays so


@NETWORKS
@MODELS
def test_a_value_is_asked_for_in_the_unit_of_the_target(networks: int, changes: dict[str, Any]) -> None:
    model, graphs = model_of(0, networks, changes), trees(0)
    values = model.values(graphs)
    assert np.ptp(values) > 1
    assert_close(question_for(model, graphs).answer().numpy(), values, tolerance=1e-5)


@NETWORKS
@MODELS
@pytest.mark.parametrize("classes", [0, 2, 3])
@settings(max_examples=10)
@given(data=st.data())
def test_with_all_nodes_present_the_answer_is_the_output(
    networks: int, changes: dict[str, Any], classes: int, data: st.DataObject
) -> None:
    graphs = data.draw(random_graphs(classes=False))
    target = np.arange(len(graphs)) % max(classes, 1)
    graphs = graphs.replace(target=target if classes else target * 1.5, class_names=tuple("abc"[:classes]))
    model = predictor_for(graphs, networks=networks, **changes)
    question = question_for(model, graphs, [len(graphs) % max(classes, 1)] * len(graphs))
    whole = torch.ones(graphs.n_nodes, dtype=torch.float64)
    assert_close(question.answer(whole).numpy(), question.answer().numpy(), tolerance=1e-9)


@MODELS
@pytest.mark.parametrize("classes", [0, 3])
def test_the_slope_is_what_a_little_more_of_a_node_adds(classes: int, changes: dict[str, Any]) -> None:
    graphs = trees(classes)[:2]
    question, step = question_for(model_of(classes, 3, changes), graphs), 1e-6
    presence = torch.linspace(0.3, 0.9, graphs.n_nodes, dtype=torch.float64)
    slope = question.slope(presence).numpy()
    assert np.abs(slope).max() > 0
    for node in range(graphs.n_nodes):
        little = step * torch.nn.functional.one_hot(torch.tensor(node), graphs.n_nodes)
        above, below = (float(question.answer(presence + sign * little).sum()) for sign in (1, -1))
        assert slope[node] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-4 * np.abs(slope).max())
