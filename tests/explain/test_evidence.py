import sys
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import Readout
from egocnn.data.graphs import Graphs
from egocnn.encode.blocks import batch_in_blocks
from egocnn.explain.evidence import evidence, evidence_of_inputs, margins, slopes
from egocnn.explain.explain import _read_in_one_pass as read_in_one_pass
from egocnn.explain.techniques import by_gradient, by_integrated_gradients, by_relevance
from egocnn.model import Model
from egocnn.nn.readout import counted
from tests.explain.random_models import assert_close, forward_pass, predictor_for
from tests.support.samples import one_graph
from tests.support.strategies import random_connected, random_graphs

READOUTS = pytest.mark.parametrize("readout", get_args(Readout))


@READOUTS
@pytest.mark.parametrize("changes", [{}, {"jump": True}, {"jump": True, "k": 1}], ids=str)
@settings(max_examples=15)
@given(
    graphs=random_graphs(max_graphs=3, min_nodes=0, max_nodes=7),
    outputs=st.sampled_from([1, 2, 4]),
    seed=st.integers(0, 99),
)
def test_the_evidence_of_a_graph_adds_up_to_gradient_times_what_was_pooled_or_summed(
    readout: Readout, changes: dict[str, Any], graphs: Graphs, outputs: int, seed: int
) -> None:
    if graphs.n_nodes == 0:
        return
    predictor = predictor_for(
        graphs, outputs=outputs, seed=seed, readout=readout, head_norm=seed % 2 == 0, pool_norm=seed % 3 == 0, **changes
    )
    classes = [number % outputs for number in range(len(graphs))]
    explained = forward_pass(predictor, graphs, classes)
    found = np.zeros(len(graphs))
    for own in evidence(explained):
        np.add.at(found, graphs.graph_of, own.sum(dim=1).detach().numpy())
    network = predictor.networks[0]
    pooled = network.read_out(explained.h, explained.batch).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(margins(network.head(pooled), torch.tensor(classes)).sum(), pooled)
    taken, first = pooled.detach().clone(), 0
    for kind, width in ((kind, h.shape[1]) for h in explained.read for kind in readout.split("+")):
        if kind == "log":  # of 1 + a sum: the gradient of the logarithm, times the sum
            total = torch.expm1(taken[:, first : first + width])
            taken[:, first : first + width] = total / (1 + total)
        first += width
    assert_close(found, (gradient * taken).sum(dim=1), tolerance=1e-4)


@READOUTS
@pytest.mark.parametrize("jump", [False, True])
@settings(max_examples=15)
@given(graphs=random_graphs(max_graphs=3, max_nodes=7, node_labels=True), seed=st.integers(0, 99))
def test_the_slope_is_the_gradient_wherever_no_two_nodes_attain_the_maximum(
    readout: Readout, jump: bool, graphs: Graphs, seed: int
) -> None:
    predictor = predictor_for(graphs, outputs=3, seed=seed, readout=readout, jump=jump)
    classes = torch.zeros(len(graphs), dtype=torch.long)
    explained = forward_pass(predictor, graphs)
    reached = [h.detach().requires_grad_() for h in explained.h]
    network = predictor.networks[0]
    total = margins(network.head(network.read_out(reached, explained.batch)), classes).sum()
    read = reached if jump else reached[-1:]
    for h, gradient, found in zip(read, torch.autograd.grad(total, read), slopes(explained), strict=True):
        if "max" not in readout:
            assert_close(found, gradient)
            continue
        for first, last in zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True):
            ordered = np.sort(h.detach().numpy()[first:last], axis=0)
            alone = ordered[-1] > 0
            if last - first > 1:
                alone &= ordered[-2] < 0.999 * ordered[-1]
            assert_close(found[first:last][:, alone], gradient[first:last][:, alone])


def test_symmetric_nodes_share_the_evidence_of_the_maximum_alike() -> None:
    """A star of four equal leaves: whichever unit they attain the maximum of, they attain it together."""
    graphs = one_graph(5, [(0, 1), (0, 2), (0, 3), (0, 4)], node_label=[*"CNNNN"])
    explained = forward_pass(predictor_for(graphs, outputs=2, readout="max", k=4, width=10), graphs)
    (found,) = evidence(explained)
    leaves = found[1:]
    assert bool((leaves.abs().sum(dim=0) > 0).any())
    for leaf in leaves[1:]:
        torch.testing.assert_close(leaf, leaves[0])


def test_rounding_does_not_decide_which_of_two_equal_nodes_holds_the_evidence() -> None:
    graphs = one_graph(2, [(0, 1)], node_label=["C", "C"])
    explained = forward_pass(predictor_for(graphs, outputs=2, readout="max"), graphs)
    (exact,) = evidence(explained)
    explained.h[-1][0] *= 1 + 1e-7
    assert_close(evidence(explained)[0], exact, tolerance=1e-5)
    explained.h[-1][0] *= 1 + 1e-3
    assert bool((evidence(explained)[0][1] == 0).all())
    assert bool((exact[1] != 0).any())


# ── inputs that are read out as they are ──────────────────────────────────────────────────────────

COUNTED_READOUTS = pytest.mark.parametrize("readout", ["max", "mean", "sum", "log", "mean+log+max", "sort"])


def chain() -> Graphs:
    return one_graph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], node_label=[*"CNCOCN"])


def of_inputs_alone(graphs: Graphs, **changes: Any) -> Model:
    """A network whose head is deaf to its explained."""
    predictor = predictor_for(graphs, outputs=2, count_inputs=True, **changes)
    hidden = predictor.networks[0].hidden
    columns = predictor.networks[0].counted
    read = columns * hidden.in_features // (predictor.config.width + columns)
    with torch.no_grad():
        hidden.weight[:, :-read] = 0
    return predictor


@COUNTED_READOUTS
def test_the_evidence_of_the_labels_is_the_gradient_times_what_they_were_read_as(readout: Any) -> None:
    graphs = chain()
    predictor = of_inputs_alone(graphs, readout=readout, pool_norm=True)
    explained, network = forward_pass(predictor, graphs, [1]), predictor.networks[0]
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


@COUNTED_READOUTS
def test_the_gradient_techniques_find_what_the_labels_count(readout: Any) -> None:
    graphs = chain()
    predictor = of_inputs_alone(graphs, readout=readout)
    explained = forward_pass(predictor, graphs, [1])
    own = evidence_of_inputs(explained).sum(dim=1)
    if "max" not in readout:  # nodes that share a maximum share its gradient otherwise
        assert_close(by_gradient(explained).nodes, own)
    batch = explained.batch
    nothing = torch.zeros(6, predictor.networks[0].counted)
    with torch.no_grad():
        network = predictor.networks[0]
        empty, whole = (
            margins(network.head(network.read_out(explained.h, replace(batch, inputs=labels))), explained.classes)
            for labels in (nothing, None)
        )
    steps = forward_pass(predictor, graphs, [1], steps=100)
    assert float(by_integrated_gradients(steps).nodes.sum()) == pytest.approx(float(whole - empty), abs=2e-2)


def test_an_attribute_falls_to_the_two_bins_around_it() -> None:
    label, nothing = torch.tensor([0, -1]), torch.zeros(2, 0)
    assert counted(label, nothing, 3).tolist() == [[1, 0, 0], [0, 0, 0]]
    apart = 6 / 15
    found = counted(label, torch.tensor([[-3 + 2.25 * apart], [99.0]]), 16 + 1)
    assert found[0].tolist() == pytest.approx([0, 0, 0.75, 0.25, *[0] * 12, 1], abs=1e-5)
    assert found[1].tolist() == pytest.approx([*[0] * 15, 1, 0], abs=1e-5)  # what lies beyond counts at the end


def test_labels_that_the_model_does_not_know_count_for_none() -> None:
    graphs = chain()
    predictor = predictor_for(graphs, outputs=2, count_inputs=True, readout="sum")
    for names, counts in ((("C", "N", "O"), [3, 2, 1]), (("C", "N", "Xe"), [3, 2, 0])):
        explained = forward_pass(predictor, graphs.replace(node_label_names=names))
        assert predictor.networks[0].read_out(explained.h, explained.batch)[0, -3:].tolist() == counts


@COUNTED_READOUTS
@pytest.mark.parametrize("attributes", [False, True])
def test_nodes_are_important_for_what_their_labels_and_attributes_count(readout: Any, attributes: bool) -> None:
    rows = [[0.0, 1.0], [0.5, 1.0], [3.0, 1.0], [-2.0, 1.0]]
    graphs = one_graph(4, [(0, 1), (1, 2), (2, 3)], node_attr=rows) if attributes else chain()
    predictor = of_inputs_alone(graphs, readout=readout)
    explained = forward_pass(predictor, graphs, [1], against=1.0)
    found = evidence_of_inputs(explained)
    assert found.shape == ((4, 2 * 16) if attributes else (6, 3))
    assert bool(found.any())
    importances = by_relevance(explained).nodes
    assert_close(importances, found.sum(dim=1))
    if readout == "sum" and not attributes:
        for number in range(3):  # all of a label alike
            assert len(set(np.round(importances.numpy()[np.asarray(graphs.node_label) == number], 5))) == 1


@pytest.mark.parametrize("readout", ["max", "mean", "sum", "log", "mean+log+max"])
@pytest.mark.parametrize("changes", [{}, {"jump": True, "count_inputs": True, "pool_norm": True}], ids=str)
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_graph_that_is_read_in_blocks_holds_the_same_evidence(
    readout: Readout, changes: dict[str, Any], outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("encode.blocks", "encode.patches", "explain.explain"):
        # by the module: the room has a function of the same name
        monkeypatch.setattr(sys.modules[f"egocnn.{module}"], "NODES_AT_ONCE", 17)
    graphs = random_connected(1, nodes=60, extra=80, seed=3)
    predictor = predictor_for(graphs, outputs=outputs, seed=1, readout=readout, **changes)
    [network] = predictor.networks
    batch = batch_in_blocks(predictor.encoder, predictor.config, graphs, torch.device("cpu"))
    with torch.no_grad():
        both, held = read_in_one_pass(network.eval(), replace(batch, kept=[]))
    for number in range(outputs):
        explained = forward_pass(predictor, graphs, [number])
        of_nodes = sum(each.sum(dim=1) for each in evidence(explained))
        if network.counted:
            of_nodes = of_nodes + evidence_of_inputs(explained).sum(dim=1)
        assert isinstance(of_nodes, torch.Tensor)
        expected, size = of_nodes.detach(), float(of_nodes.detach().abs().max())
        near = (held[:, number].double() - expected).abs() <= 3e-3 * size  # layers are kept in half precision
        assert near.float().mean() > 0.9  # in which two nodes may share a maximum that one has
        assert_close(held[:, number].double().sum(), expected.sum(), tolerance=3e-3 * size)
        assert_close(both[:1].double(), explained.output.output.detach(), tolerance=1e-4)
        network.float()
