"""Inputs that are read out as they are: what their counts say goes back to the nodes that have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from egocnn.data.graphs import Graphs
from egocnn.explain.evidence import evidence_of_inputs, margins
from egocnn.explain.techniques import by_gradient, by_integrated_gradients, by_relevance
from egocnn.model import Model
from egocnn.nn.readout import counted
from tests.explain.random_models import assert_close, forward_pass, predictor_for
from tests.support.samples import one_graph

READOUTS = pytest.mark.parametrize("readout", ["max", "mean", "sum", "log", "mean+log+max", "sort"])


def chain() -> Graphs:
    return one_graph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], node_label=[*"CNCOCN"])


def of_inputs_alone(graphs: Graphs, **changes: Any) -> Model:
    """A network whose head is deaf to its explained."""
    predictor = predictor_for(graphs, outputs=2, count_inputs=True, **changes)
    hidden = predictor.network.hidden
    columns = predictor.network.counted
    read = columns * hidden.in_features // (predictor.config.layer_width[-1] + columns)
    with torch.no_grad():
        hidden.weight[:, :-read] = 0
    return predictor


@READOUTS
def test_the_evidence_of_the_labels_is_the_gradient_times_what_they_were_read_as(readout: Any) -> None:
    graphs = chain()
    predictor = of_inputs_alone(graphs, readout=readout, pool_norm=True)
    explained, network = forward_pass(predictor, graphs, [1]), predictor.network
    classes = torch.tensor([1])
    found = evidence_of_inputs(explained)
    assert found.shape == (6, 3)
    eye = np.eye(3)[np.asarray(graphs.node_label)]
    assert not found.numpy()[eye == 0].any()  # a node speaks for its own label alone
    factor = torch.ones(6, requires_grad=True)
    labels = torch.from_numpy(eye).float() * factor[:, None]
    total = margins(network.head(network.read_out(explained.h, replace(explained.batch, inputs=labels))), classes).sum()
    (gradient,) = torch.autograd.grad(total, factor)
    assert_close(found.sum(dim=1).detach(), gradient)


def test_nodes_are_important_for_what_their_labels_count() -> None:
    graphs = chain()
    predictor = of_inputs_alone(graphs, readout="sum")
    explained = forward_pass(predictor, graphs, [0], against=1.0)
    importances = by_relevance(explained)
    own = evidence_of_inputs(explained).sum(dim=1)
    assert bool(own.any())
    assert_close(importances.nodes, own)
    label = np.asarray(graphs.node_label)
    for number in range(3):  # all of a label alike
        assert len(set(np.round(importances.nodes.numpy()[label == number], 5))) == 1


@READOUTS
def test_the_gradient_techniques_find_what_the_labels_count(readout: Any) -> None:
    graphs = chain()
    predictor = of_inputs_alone(graphs, readout=readout)
    explained = forward_pass(predictor, graphs, [1])
    own = evidence_of_inputs(explained).sum(dim=1)
    if "max" not in readout:  # nodes that share a maximum share its gradient otherwise
        assert_close(by_gradient(explained).nodes, own)
    batch = explained.batch
    nothing = torch.zeros(6, predictor.network.counted)
    with torch.no_grad():
        network = predictor.network
        empty, whole = (
            margins(network.head(network.read_out(explained.h, replace(batch, inputs=labels))), explained.classes)
            for labels in (nothing, None)
        )
    steps = forward_pass(predictor, graphs, [1], steps=400)
    assert float(by_integrated_gradients(steps).nodes.sum()) == pytest.approx(float(whole - empty), abs=2e-2)


def test_an_attribute_falls_to_the_two_bins_around_it() -> None:
    label, nothing = torch.tensor([0, -1]), torch.zeros(2, 0)
    assert counted(label, nothing, 3).tolist() == [[1, 0, 0], [0, 0, 0]]
    apart = 6 / 15
    found = counted(label, torch.tensor([[-3 + 2.25 * apart], [99.0]]), 16 + 1)
    assert found[0].tolist() == pytest.approx([0, 0, 0.75, 0.25, *[0] * 12, 1], abs=1e-5)
    assert found[1].tolist() == pytest.approx([*[0] * 15, 1, 0], abs=1e-5)  # what lies beyond counts at the end


@READOUTS
def test_the_evidence_of_attributes_goes_to_the_nodes_that_have_them(readout: Any) -> None:
    graphs = one_graph(4, [(0, 1), (1, 2), (2, 3)], node_attr=[[0.0, 1.0], [0.5, 1.0], [3.0, 1.0], [-2.0, 1.0]])
    predictor = of_inputs_alone(graphs, readout=readout)
    assert predictor.network.counted == 2 * 16
    explained = forward_pass(predictor, graphs, [1], against=1.0)
    found = evidence_of_inputs(explained)
    assert found.shape == (4, 32)
    assert bool(found.any())
    assert_close(by_relevance(explained).nodes, found.sum(dim=1))


def test_labels_that_the_model_does_not_know_count_for_none() -> None:
    graphs = chain()
    predictor = predictor_for(graphs, outputs=2, count_inputs=True, readout="sum")
    for names, counts in ((("C", "N", "O"), [3, 2, 1]), (("C", "N", "Xe"), [3, 2, 0])):
        explained = forward_pass(predictor, graphs.replace(node_label_names=names))
        assert predictor.network.read_out(explained.h, explained.batch)[0, -3:].tolist() == counts
