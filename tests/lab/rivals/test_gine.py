"""The GINE network learns, on the same parts as ours and the same every time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from egocnn.config import TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DataError
from egocnn.train.validation import part_numbers
from lab.rivals import GINE, GINEConfig, fit, occlusion
from lab.rivals.gine import logits_of, make_inputs, portions, seeded
from tests.lab.rivals.peer import CONFIG, alcohols, trained
from tests.support.samples import molecules, one_graph
from tests.support.tiny import oxygens

CPU = torch.device("cpu")


def test_it_learns_to_tell_alcohols_from_alkanes() -> None:
    test = alcohols().select("test")
    assert trained().accuracy(test) == 1
    assert trained().validation_accuracy == 1
    assert trained().epochs <= 30
    probability = trained().probabilities(test)
    assert probability.shape == (len(test), 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-5)
    assert test.target is not None
    assert trained().predict(test).tolist() == test.target.tolist()


def test_the_same_seed_gives_the_same_network_and_another_seed_another() -> None:
    one, same, other = (fit(alcohols(), config=CONFIG, epochs=2, seed=seed).network.state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["embed.weight"], other["embed.weight"])


def test_the_test_part_is_never_looked_at() -> None:
    graphs = alcohols()
    assert graphs.part is not None
    without = graphs[np.flatnonzero(graphs.part != 2)]
    one, other = (fit(part, config=CONFIG, epochs=2).network.state_dict() for part in (graphs, without))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_the_validation_part_is_the_one_that_ours_has() -> None:
    graphs = alcohols().replace(part=None)
    validation = graphs[part_numbers(graphs.outline, TrainConfig(seed=3))[1]]
    untrained = fit(graphs, config=CONFIG, epochs=0, seed=3)
    assert untrained.epochs == 0
    assert untrained.validation_accuracy == pytest.approx(untrained.accuracy(validation))


def test_training_stops_when_patience_runs_out() -> None:
    assert fit(alcohols(), config=CONFIG, epochs=50, patience=1, learning_rate=1e-6).epochs < 50


HEADS = [
    GINEConfig(width=8, hidden=8, readout="mean"),
    GINEConfig(width=8, hidden=8, readout="max"),
    GINEConfig(width=8, hidden=0, readout="sum"),
]


@pytest.mark.parametrize("config", HEADS)
def test_a_graph_is_judged_alike_alone_and_among_others(config: GINEConfig) -> None:
    torch.manual_seed(0)
    graphs = molecules()
    inputs = make_inputs(graphs, CPU)
    network = GINE(inputs.x.shape[1], inputs.edge_attr.shape[1], 2, config).eval()
    together = logits_of(network, inputs)
    for g in range(len(graphs)):
        torch.testing.assert_close(logits_of(network, make_inputs(graphs[[g]], CPU))[0], together[g])


def test_inputs_are_labels_one_hot_then_attributes_and_weights() -> None:
    inputs = make_inputs(molecules(), CPU)
    assert inputs.x.shape == (8, 3 + 2)
    assert inputs.x[0].tolist() == [0, 1, 0, 0, 1]
    assert inputs.x[3].tolist() == [0, 0, 0, 6, 7]  # a label that is not known
    assert inputs.edge_attr.shape == (molecules().n_entries, 2 + 1)
    bare = make_inputs(one_graph(3, [(0, 1)]), CPU)
    assert bare.x.tolist() == [[1]] * 3
    assert bare.edge_attr.tolist() == [[1]] * 2


def test_labels_that_training_never_saw_are_taken_as_unknown() -> None:
    strange = one_graph(2, [(0, 1)], node_label=["C", "Xe"], edge_label=["quadruple"])
    assert np.isfinite(trained().probabilities(strange)).all()


@pytest.mark.parametrize("config", HEADS)
def test_an_empty_graph_reads_as_one_in_which_nothing_is_lit(config: GINEConfig) -> None:
    inputs = make_inputs(Graphs.from_edges(node_counts=[0, 2], edges=np.array([[0, 1]])), CPU)
    network = GINE(1, 1, 2, config).eval()
    torch.testing.assert_close(logits_of(network, inputs)[:1], network.head(torch.zeros(1, 8)))


def test_values_are_learned_in_their_own_unit_and_what_counts_raises_them() -> None:
    graphs = oxygens(80)
    assert graphs.target is not None
    config = GINEConfig(width=16, hidden=0, readout="sum")
    model = fit(graphs, config=config, epochs=40, patience=40, learning_rate=1e-2)
    error = np.abs(model.values(graphs) - graphs.target).mean()
    assert error < 0.3 * graphs.target.std()
    contrasts = []
    for graph, found in zip(graphs, occlusion(model, graphs).importances, strict=True):
        is_oxygen = np.array([label == "O" for label in graph.node_label or ()])
        if is_oxygen.any() and not is_oxygen.all():
            contrasts.append(found.node_importance[is_oxygen].mean() - found.node_importance[~is_oxygen].mean())
    assert np.mean(contrasts) > 0


def test_settings_and_graphs_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        GINEConfig(layers=0)
    with pytest.raises(DataError, match="3 columns per node and 1 per edge; these graphs have 5 and 2"):
        trained().predict(molecules())


def test_one_thread_is_used_and_the_number_before_comes_back_even_after_an_error() -> None:
    before = torch.get_num_threads()
    with seeded(0, CPU):
        assert torch.get_num_threads() == 1
    with pytest.raises(ZeroDivisionError), seeded(0, CPU):
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_portions_hold_all_graphs_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = trained().probabilities(alcohols())
    monkeypatch.setattr("lab.rivals.gine.NODES_AT_ONCE", 50)
    cut = list(portions(alcohols()))
    assert len(cut) > 10
    assert sum((portion.names for portion in cut), ()) == alcohols().names
    np.testing.assert_allclose(trained().probabilities(alcohols()), expected, rtol=1e-4, atol=1e-6)
    assert trained().probabilities(alcohols()[:0]).shape == (0, 2)
