"""Labels that are read out as they are: what their counts say goes back to the nodes that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from egocnn.critical.evidence import evidence_of_labels, margins
from egocnn.critical.techniques import by_gradient, by_integrated_gradients, by_relevance
from egocnn.graphs import Graphs
from egocnn.predictor import Predictor
from tests.critical.questions import ask, assert_close, predictor_for
from tests.samples import one_graph

READOUTS = pytest.mark.parametrize("readout", ["max", "mean", "sum", "log", "mean+log+max", "sort"])


def chain() -> Graphs:
    return one_graph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], node_label=[*"CNCOCN"])


def of_labels_alone(graphs: Graphs, **changes: Any) -> Predictor:
    """A network whose head is deaf to its layers."""
    predictor = predictor_for(graphs, outputs=2, count_labels=True, **changes)
    hidden = predictor.network.hidden
    counted = (
        predictor.network.labels * hidden.in_features // (predictor.config.layer_width[-1] + predictor.network.labels)
    )
    with torch.no_grad():
        hidden.weight[:, :-counted] = 0
    return predictor


@READOUTS
def test_the_evidence_of_the_labels_is_the_gradient_times_what_they_were_read_as(readout: Any) -> None:
    graphs = chain()
    predictor = of_labels_alone(graphs, readout=readout, pool_norm=True)
    layers, network = ask(predictor, graphs).layers, predictor.network
    classes = torch.tensor([1])
    found = evidence_of_labels(layers, classes)
    assert found.shape == (6, 3)
    eye = np.eye(3)[np.asarray(graphs.node_label)]
    assert not found.numpy()[eye == 0].any()  # a node speaks for its own label alone
    factor = torch.ones(6, requires_grad=True)
    labels = torch.from_numpy(eye).float() * factor[:, None]
    total = margins(network.head(network.read_out(layers.h, layers.batch, labels)), classes).sum()
    (gradient,) = torch.autograd.grad(total, factor)
    assert_close(found.sum(dim=1).detach(), gradient)


def test_nodes_are_important_for_what_their_labels_count() -> None:
    graphs = chain()
    predictor = of_labels_alone(graphs, readout="sum")
    question = ask(predictor, graphs, [0], against=1.0)
    answer = by_relevance(question)
    counted = evidence_of_labels(question.layers, torch.tensor([0])).sum(dim=1)
    assert bool(counted.any())
    assert_close(answer.nodes, counted)
    label = np.asarray(graphs.node_label)
    for number in range(3):  # all of a label alike
        assert len(set(np.round(answer.nodes.numpy()[label == number], 5))) == 1


@READOUTS
def test_the_gradient_techniques_find_what_the_labels_count(readout: Any) -> None:
    graphs = chain()
    predictor = of_labels_alone(graphs, readout=readout)
    question = ask(predictor, graphs, [1])
    counted = evidence_of_labels(question.layers, question.classes).sum(dim=1)
    if "max" not in readout:  # nodes that share a maximum share its gradient otherwise
        assert_close(by_gradient(question).nodes, counted)
    batch = question.batch
    nothing = torch.zeros(6, predictor.network.labels)
    with torch.no_grad():
        network = predictor.network
        empty, whole = (
            margins(network.head(network.read_out(question.layers.h, batch, labels)), question.classes)
            for labels in (nothing, None)
        )
    steps = ask(predictor, graphs, [1], steps=400)
    assert float(by_integrated_gradients(steps).nodes.sum()) == pytest.approx(float(whole - empty), abs=2e-2)


def test_labels_that_the_model_does_not_know_count_for_none() -> None:
    graphs = chain()
    predictor = predictor_for(graphs, outputs=2, count_labels=True, readout="sum")
    for names, counts in ((("C", "N", "O"), [3, 2, 1]), (("C", "N", "Xe"), [3, 2, 0])):
        layers = ask(predictor, graphs.replace(node_label_names=names)).layers
        assert predictor.network.read_out(layers.h, layers.batch)[0, -3:].tolist() == counts
