"""Nodes without labels, described by the number of their neighbours and by those of the nodes around them."""

import math
import re
from statistics import fmean, pstdev

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.encode.degrees import PROFILE, describe_by_degree, levels, name_of
from egocnn.encode.encoder import Encoder
from egocnn.errors import DataError
from tests.support.samples import as_list, one_graph
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model

CONFIG = plain_model(degrees=True, k=3, slots=3)


def star(leaves: int) -> Graphs:
    return one_graph(leaves + 1, [(0, leaf) for leaf in range(1, leaves + 1)])


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
    assert [name_of(level) for level in (63, 64, 65)] == ["degree 63", "degree 64 to 90", "degree 91 to 127"]
    assert levels(np.array([63, 64, 90, 91, 127, 128, 3000])).tolist() == [63, 64, 64, 65, 65, 66, 75]


# ── graphs ────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=80)
@given(random_graphs(min_nodes=0, max_nodes=9))
def test_a_node_is_named_after_the_number_of_its_neighbours_and_its_profile_is_what_a_loop_over_them_finds(
    graphs: Graphs,
) -> None:
    """Graphs without nodes, nodes without neighbours, self-loops and attributes of the graph's own included."""
    labelled = describe_by_degree(graphs)
    names = [labelled.node_label_names[label] for label in as_list(labelled.node_label)]
    assert names == [f"degree {len(each)}" for each in neighbours_of(graphs)]
    assert len(set(labelled.node_label_names)) == len(labelled.node_label_names)
    np.testing.assert_array_equal(labelled.indices, graphs.indices)
    described, profile = labelled.node_attr, np.reshape(naive_profile(graphs), (-1, PROFILE))
    assert described is not None
    np.testing.assert_allclose(described[:, -PROFILE:], profile, rtol=1e-6, atol=1e-6)
    if graphs.node_attr is None:
        assert described.shape[1] == PROFILE
    else:
        np.testing.assert_array_equal(described[:, :-PROFILE], graphs.node_attr)


# ── with a model ──────────────────────────────────────────────────────────────────────────────────


def test_a_degree_never_seen_in_training_is_an_unseen_label() -> None:
    encoder = Encoder.fit(star(3), CONFIG)
    assert encoder.by_degree
    assert encoder.node_label_names == ("degree 1", "degree 3")
    assert encoder.apply(star(3), CONFIG).node_label.tolist() == [1, 0, 0, 0]
    assert encoder.apply(star(2), CONFIG).node_label.tolist() == [-1, 0, 0]
    assert encoder.apply(one_graph(1, []), CONFIG).node_label.tolist() == [-1]
    hub = Encoder.fit(star(92), CONFIG)  # which shares its label with all of half an octave
    assert [int(hub.apply(star(leaves), CONFIG).node_label[0]) for leaves in (127, 128)] == [1, -1]


def test_labels_of_the_graphs_own_come_before_degrees_but_a_model_of_degrees_does_not_read_them() -> None:
    bare, labelled = star(3), one_graph(4, [(0, 1), (0, 2), (0, 3)], node_label=[*"CNOS"])
    by_label, encoder = Encoder.fit(labelled, CONFIG), Encoder.fit(bare, CONFIG)
    assert not by_label.by_degree
    assert by_label.node_label_names == ("C", "N", "O", "S")
    one, other = (encoder.apply(graphs, CONFIG) for graphs in (bare, labelled))
    for name in ("node_label", "bag_rows", "attributes"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


def test_a_profile_is_standardised_by_the_training_graphs_and_read_as_attributes() -> None:
    known, unknown = star(3), star(9)
    encoder = Encoder.fit(known, CONFIG)
    np.testing.assert_allclose(encoder.attr_mean, np.mean(naive_profile(known), axis=0), rtol=1e-6)
    prepared = encoder.apply(unknown, CONFIG).attributes
    wanted = (np.array(naive_profile(unknown)) - encoder.attr_mean) / encoder.attr_scale
    np.testing.assert_allclose(prepared.numpy(), wanted, rtol=1e-5)
    with pytest.raises(DataError, match="the model reads 5 node attributes, these graphs have 6"):
        encoder.apply(one_graph(2, [(0, 1)], node_attr=[[1.0], [2.0]]), CONFIG)


@pytest.mark.parametrize("degrees", [True, False])
def test_whether_labels_are_degrees_is_saved_with_the_model(degrees: bool) -> None:
    encoder = Encoder.fit(star(3), plain_model(degrees=degrees))
    assert encoder.node_label_names == (("degree 1", "degree 3") if degrees else ())
    again = Encoder.restore(encoder.arrays(), encoder.texts())
    assert again.by_degree == degrees
    older = {name: text for name, text in encoder.texts().items() if name != "by_degree"}
    assert not Encoder.restore(encoder.arrays(), older).by_degree
