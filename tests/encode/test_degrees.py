"""Nodes without labels, described by the number of their neighbours and by those of the nodes around them."""

from __future__ import annotations

import math
import re
from statistics import fmean, pstdev

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.degrees import EXACT, PROFILE, describe_by_degree, levels, name_of
from egocnn.encode.encoder import Encoder
from egocnn.errors import DataError
from egocnn.study.invariance import relabel
from tests.support.samples import one_graph
from tests.support.strategies import random_graphs

CONFIG = ModelConfig(degrees=True, k=3, slots=3)


def star(leaves: int) -> Graphs:
    return one_graph(leaves + 1, [(0, leaf) for leaf in range(1, leaves + 1)])


def names_of(graphs: Graphs) -> list[str]:
    assert graphs.node_label is not None
    return [graphs.node_label_names[label] for label in graphs.node_label]


def neighbours_of(graphs: Graphs) -> list[set[int]]:
    """Of every node, itself never one of them."""
    found: list[set[int]] = [set() for _ in range(graphs.n_nodes)]
    for u, v in graphs.edges.tolist():
        if u != v:
            found[u].add(v)
            found[v].add(u)
    return found


def naive_profile(graphs: Graphs) -> list[list[float]]:
    """A node's own logarithm, then least, largest, mean and standard deviation of its neighbours'."""
    around = neighbours_of(graphs)
    own = [math.log(1 + len(each)) for each in around]
    rows = []
    for node, neighbours in enumerate(around):
        values = [own[neighbour] for neighbour in neighbours]
        spread = [min(values), max(values), fmean(values), pstdev(values)] if values else [0.0] * 4
        rows.append([own[node], *spread])
    return rows


def attributes_of(graphs: Graphs) -> NDArray[np.float32]:
    assert graphs.node_attr is not None
    assert graphs.node_attr.dtype == np.float32
    return graphs.node_attr


def bounds(name: str) -> tuple[int, int]:
    numbers = [int(number) for number in re.findall(r"\d+", name)]
    return numbers[0], numbers[-1]


# ── levels and their names ────────────────────────────────────────────────────────────────────────


@given(st.integers(0, 10**7))
def test_the_name_of_a_degrees_label_says_the_range_that_it_lies_in(degree: int) -> None:
    (level,) = levels(np.array([degree])).tolist()
    first, last = bounds(name_of(level))
    assert first <= degree <= last
    assert levels(np.array([first, last])).tolist() == [level, level]
    assert int(levels(np.array([last + 1]))[0]) == level + 1


def test_small_degrees_have_a_label_each_and_large_ones_share_it_over_half_an_octave() -> None:
    assert [name_of(level) for level in (0, 1, 63, 64, 65, 66)] == [
        "degree 0",
        "degree 1",
        "degree 63",
        "degree 64 to 90",
        "degree 91 to 127",
        "degree 128 to 181",
    ]
    assert levels(np.array([63, 64, 90, 91, 127, 128, 3000])).tolist() == [63, 64, 64, 65, 65, 66, 75]


def test_no_more_labels_than_half_octaves_for_the_largest_graphs() -> None:
    assert int(levels(np.array([10**6])).max()) < EXACT + 2 * 16


# ── graphs ────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(random_graphs(max_nodes=8))
def test_every_node_is_named_after_the_number_of_its_neighbours(graphs: Graphs) -> None:
    labelled = describe_by_degree(graphs)
    assert names_of(labelled) == [f"degree {len(each)}" for each in neighbours_of(graphs)]
    assert len(set(labelled.node_label_names)) == len(labelled.node_label_names)
    np.testing.assert_array_equal(labelled.indices, graphs.indices)


def test_a_hub_is_named_after_a_range() -> None:
    assert names_of(describe_by_degree(star(100))) == ["degree 91 to 127", *["degree 1"] * 100]


def test_graphs_without_nodes_have_no_degrees() -> None:
    empty = Graphs.from_edges(node_counts=[0, 0], edges=np.zeros((0, 2), np.int64))
    described = describe_by_degree(empty)
    assert described.node_label_names == ()
    assert attributes_of(described).shape == (0, PROFILE)


# ── the profile ───────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=80)
@given(random_graphs(max_nodes=9))
def test_the_profile_of_every_node_is_what_a_loop_over_its_neighbours_finds(graphs: Graphs) -> None:
    """Nodes without neighbours, self-loops and attributes of the graph's own included."""
    described = attributes_of(describe_by_degree(graphs))
    np.testing.assert_allclose(described[:, -PROFILE:], naive_profile(graphs), rtol=1e-6, atol=1e-6)
    if graphs.node_attr is None:
        assert described.shape[1] == PROFILE
    else:
        np.testing.assert_array_equal(described[:, :-PROFILE], graphs.node_attr)


def test_the_profile_of_a_star_by_hand() -> None:
    hub, leaf = math.log(5), math.log(2)
    found = attributes_of(describe_by_degree(star(4)))
    np.testing.assert_allclose(found, [[hub, leaf, leaf, leaf, 0]] + 4 * [[leaf, hub, hub, hub, 0]], rtol=1e-6)


@settings(max_examples=30)
@given(random_graphs(max_nodes=7), st.integers(0, 99))
def test_a_node_is_described_alike_whatever_its_number(graphs: Graphs, seed: int) -> None:
    moved, new = relabel(graphs, seed)
    one, other = attributes_of(describe_by_degree(graphs)), attributes_of(describe_by_degree(moved))
    np.testing.assert_allclose(other[new], one, rtol=1e-6, atol=1e-6)


# ── with a model ──────────────────────────────────────────────────────────────────────────────────


def test_a_degree_never_seen_in_training_is_an_unseen_label() -> None:
    encoder = Encoder.fit(star(3), CONFIG)
    assert encoder.by_degree
    assert encoder.node_label_names == ("degree 1", "degree 3")
    assert encoder.apply(star(3), CONFIG).node_label.tolist() == [1, 0, 0, 0]
    assert encoder.apply(star(2), CONFIG).node_label.tolist() == [-1, 0, 0]
    assert encoder.apply(one_graph(1, []), CONFIG).node_label.tolist() == [-1]


def test_degrees_of_one_range_are_one_label_to_the_model() -> None:
    encoder = Encoder.fit(star(92), CONFIG)
    assert encoder.apply(star(127), CONFIG).node_label.tolist()[0] == 1
    assert encoder.apply(star(128), CONFIG).node_label.tolist()[0] == -1


def test_labels_of_the_graphs_own_come_before_degrees() -> None:
    labelled = one_graph(2, [(0, 1)], node_label=["C", "N"])
    encoder = Encoder.fit(labelled, CONFIG)
    assert not encoder.by_degree
    assert encoder.node_label_names == ("C", "N")


def test_a_model_of_degrees_does_not_read_labels_that_come_later() -> None:
    bare = star(3)
    labelled = one_graph(4, [(0, 1), (0, 2), (0, 3)], node_label=[*"CNOS"])
    encoder = Encoder.fit(bare, CONFIG)
    one, other = (encoder.apply(graphs, CONFIG) for graphs in (bare, labelled))
    assert torch.equal(one.node_label, other.node_label)
    assert torch.equal(one.bag_rows, other.bag_rows)
    assert torch.equal(one.attributes, other.attributes)


def test_a_profile_is_standardised_by_the_training_graphs_and_read_as_attributes() -> None:
    known, unknown = star(3), star(9)
    encoder = Encoder.fit(known, CONFIG)
    found = attributes_of(describe_by_degree(known))
    np.testing.assert_allclose(encoder.attr_mean, found.mean(axis=0), rtol=1e-6)
    prepared = encoder.apply(unknown, CONFIG).attributes
    wanted = (attributes_of(describe_by_degree(unknown)) - encoder.attr_mean) / encoder.attr_scale
    np.testing.assert_allclose(prepared.numpy(), wanted, rtol=1e-5)
    with pytest.raises(DataError, match="the model reads 5 node attributes, these graphs have 6"):
        encoder.apply(one_graph(2, [(0, 1)], node_attr=[[1.0], [2.0]]), CONFIG)


def test_without_the_setting_nodes_stay_without_labels() -> None:
    config = ModelConfig(k=3, slots=3)
    encoder = Encoder.fit(star(3), config)
    assert encoder.node_label_names == ()
    prepared = encoder.apply(star(3), config)
    assert prepared.node_label.tolist() == [-1] * 4
    assert prepared.attributes.shape == (4, 0)


@pytest.mark.parametrize("degrees", [True, False])
def test_whether_labels_are_degrees_is_saved_with_the_model(degrees: bool) -> None:
    encoder = Encoder.fit(star(3), ModelConfig(degrees=degrees))
    again = Encoder.restore(encoder.arrays(), encoder.texts())
    assert again.by_degree == degrees
    older = {name: text for name, text in encoder.texts().items() if name != "by_degree"}
    assert not Encoder.restore(encoder.arrays(), older).by_degree
