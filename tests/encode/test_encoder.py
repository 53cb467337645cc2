import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.encoder import Encoder
from egocnn.encode.ranking import Ranking
from egocnn.errors import DataError
from tests.support.networks import tensors_of
from tests.support.samples import one_graph, sure
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model

CONFIG = plain_model(k=3, slots=3)


def table_of(prepared: EncodedGraphs) -> Ints:
    """(N, K) node ids, from the steps that are stored"""
    steps = prepared.steps.numpy()
    return np.where(steps == 0, -1, np.arange(len(steps))[:, None] + steps)


@settings(max_examples=60)
@given(random_graphs(), st.integers(1, 4), st.integers(1, 6))
def test_neighbours_are_the_first_k_of_the_ranking_even_where_patches_read_more(
    graphs: Graphs, k: int, slots: int
) -> None:
    config = plain_model(k=k, slots=slots)
    prepared = Encoder.fit(graphs, config).apply(graphs, config)
    found = table_of(prepared)
    assert found.shape[1] == max(k, slots - 1)
    np.testing.assert_array_equal(found[:, :k], Ranking.fit(graphs).neighbours(graphs, k))


# ── labels ────────────────────────────────────────────────────────────────────────────────────────


def test_labels_are_counted_by_the_names_of_the_training_graphs() -> None:
    train = one_graph(3, [(0, 1), (1, 2)], node_label=["C", "N", "O"], edge_label=["double", "single"])
    test = one_graph(3, [(0, 1), (1, 2)], node_label=["O", "S", "C"], edge_label=["single", "triple"])
    encoder = Encoder.fit(train, CONFIG)
    prepared = encoder.apply(test, CONFIG)
    assert prepared.node_label.tolist() == [2, -1, 0]
    shape = encoder.shape(CONFIG)
    assert (shape.slots, shape.node_labels, shape.edge_labels) == (3, 3, 2)
    # of node 0's bag: its single bond (pair 0, 1), its own label O, and no label for the unseen S
    bag = prepared.bag_rows[: int(prepared.bag_ptr[1])].tolist()
    assert bag == [1 * 2 + 1, 12 + 2]


@pytest.mark.parametrize("kind", ["node", "edge"])
def test_graphs_without_labels_that_the_model_reads_are_refused(kind: str) -> None:
    columns: dict[str, Any] = {f"{kind}_label": ["a", "b"] if kind == "node" else ["a"]}
    encoder = Encoder.fit(one_graph(2, [(0, 1)], **columns), CONFIG)
    with pytest.raises(DataError, match=rf"the model reads {kind} labels \(a.*\), but these graphs have none"):
        encoder.apply(one_graph(2, [(0, 1)]), CONFIG)


@settings(max_examples=40)
@given(random_graphs(node_labels=True, edge_labels=True))
def test_labels_that_the_model_was_not_trained_with_change_nothing(graphs: Graphs) -> None:
    bare = graphs.replace(node_label=None, node_label_names=(), edge_label=None, edge_label_names=())
    encoder = Encoder.fit(bare, CONFIG)
    left, right = encoder.apply(graphs, CONFIG), encoder.apply(bare, CONFIG)
    for name in ("steps", "bag_ptr", "bag_rows", "node_label", "place"):
        torch.testing.assert_close(getattr(left, name), getattr(right, name), rtol=0, atol=0)


# ── attributes ────────────────────────────────────────────────────────────────────────────────────


def test_attributes_are_standardised_by_the_training_graphs() -> None:
    train = one_graph(4, [(0, 1)], node_attr=[[1, 5], [3, 5], [5, 5], [7, 5]])
    test = one_graph(2, [(0, 1)], node_attr=[[4, 5], [4 + 5**0.5, 6]])
    encoder = Encoder.fit(train, CONFIG)
    fitted = encoder.apply(train, CONFIG).attributes.numpy()
    np.testing.assert_allclose(fitted.mean(axis=0), [0, 0], atol=1e-6)
    np.testing.assert_allclose(fitted.std(axis=0), [1, 0], atol=1e-6)
    np.testing.assert_allclose(encoder.apply(test, CONFIG).attributes, [[0, 0], [1, 1]], atol=1e-6)
    small = one_graph(2, [(0, 1)], node_attr=[[1e-15], [3e-15]])
    np.testing.assert_allclose(Encoder.fit(small, CONFIG).apply(small, CONFIG).attributes, [[-1], [1]], rtol=1e-5)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1, -1e12, 1e-20])
def test_a_column_that_never_varies_is_not_blown_up_by_rounding(value: float) -> None:
    many = Graphs.from_edges(
        node_counts=[5001], edges=np.zeros((0, 2), int), node_attr=np.full((5001, 1), value), target=np.array([value])
    )
    encoder = Encoder.fit(many, CONFIG)
    assert encoder.attr_scale.tolist() == [1.0]
    assert encoder.target_scale == 1.0


def test_another_number_of_attributes_is_refused() -> None:
    encoder = Encoder.fit(one_graph(2, [(0, 1)], node_attr=[[1, 2], [3, 4]]), CONFIG)
    for count, columns in ((1, {"node_attr": [[1], [2]]}), (0, {})):
        with pytest.raises(DataError, match=f"the model reads 2 node attributes, these graphs have {count}"):
            encoder.apply(one_graph(2, [(0, 1)], **columns), CONFIG)


# ── targets ───────────────────────────────────────────────────────────────────────────────────────


def with_values(*values: float) -> Graphs:
    return Graphs.concat([one_graph(1, [])] * len(values)).replace(target=np.array(values, np.float64))


def with_classes(names: tuple[str, ...], *numbers: int) -> Graphs:
    return with_values(*numbers).replace(target=np.array(numbers), class_names=names)


def test_values_are_standardised_and_come_back_in_their_unit() -> None:
    encoder = Encoder.fit(with_values(1, 3, float("nan"), 5), CONFIG)
    prepared = encoder.apply(with_values(3, 7, float("nan")), CONFIG)
    assert prepared.target is not None
    np.testing.assert_allclose(prepared.target.numpy(), [0, 4 / float(np.std([1, 3, 5])), np.nan], rtol=1e-6)
    np.testing.assert_allclose(encoder.to_value(prepared.target), [3, 7, np.nan], rtol=1e-6)


def test_classes_are_counted_by_the_names_of_the_training_graphs() -> None:
    encoder = Encoder.fit(with_classes(("no", "yes"), 0, 1), CONFIG)
    prepared = encoder.apply(with_classes(("yes", "maybe", "no"), 0, 1, 2, -1), CONFIG)
    assert sure(prepared.target).tolist() == [1, -1, 0, -1]


def test_a_classifier_passes_over_values_and_a_regressor_over_classes() -> None:
    values, classes = with_values(0, 1), with_classes(("no", "yes"), 0, 1)
    for trained_on, graphs in ((classes, values), (values, classes), (one_graph(1, []), one_graph(1, []))):
        assert Encoder.fit(trained_on, CONFIG).apply(graphs, CONFIG).target is None


# ── the rest ──────────────────────────────────────────────────────────────────────────────────────


def test_nothing_can_be_fitted_on_graphs_without_nodes() -> None:
    with pytest.raises(DataError, match="no nodes at all"):
        Encoder.fit(Graphs.from_edges(node_counts=[0, 0], edges=np.zeros((0, 2), int)), CONFIG)


@settings(max_examples=40)
@given(random_graphs(), random_graphs())
def test_the_order_of_neighbours_follows_the_training_graphs_alone(train: Graphs, test: Graphs) -> None:
    plain = {"node_label": None, "node_label_names": (), "edge_label": None, "edge_label_names": (), "node_attr": None}
    train, test = train.replace(**plain), test.replace(**plain)
    prepared = Encoder.fit(train, CONFIG).apply(test, CONFIG)
    np.testing.assert_array_equal(table_of(prepared), Ranking.fit(train).neighbours(test, 3))


@settings(max_examples=40)
@given(random_graphs(classes=True))
def test_a_preparation_survives_arrays_and_json(graphs: Graphs) -> None:
    fitted = Encoder.fit(graphs, CONFIG)
    restored = Encoder.restore(fitted.arrays(), json.loads(json.dumps(fitted.texts())))
    left, right = (dict(tensors_of(encoder.apply(graphs, CONFIG))) for encoder in (fitted, restored))
    torch.testing.assert_close(left, right, rtol=0, atol=0)
    assert restored.class_names == fitted.class_names
    assert (restored.target_mean, restored.target_scale) == (fitted.target_mean, fitted.target_scale)
