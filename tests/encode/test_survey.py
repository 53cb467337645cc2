"""What is fitted on training graphs: the same bits, however they are cut into portions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.encode.degrees import describe_by_degree
from egocnn.encode.encoder import Encoder, Moments, Survey
from tests.support.strategies import random_graphs
from tests.support.tiny import plain_model


def cut(length: int, places: list[int]) -> list[slice]:
    bounds = [0, *sorted(place % (length + 1) for place in places), length]
    return [slice(first, last) for first, last in pairwise(bounds)]


@settings(max_examples=40)
@given(st.integers(0, 200), st.integers(0, 3), st.lists(st.integers(0, 200), max_size=6), st.integers(0, 5))
def test_moments_do_not_depend_on_portions_and_are_those_of_numpy(
    rows: int, columns: int, places: list[int], seed: int
) -> None:
    values = np.random.default_rng(seed).normal(1e6, 3.0, (rows, columns)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("egocnn.encode.encoder.NUMBERS_AT_ONCE", 40)
        whole, several = Moments(columns), Moments(columns)
        whole.add(values)
        for some in cut(rows, places):
            several.add(values[some])
    mean, deviation = whole.result()
    for one, other in zip(several.result(), (mean, deviation), strict=True):
        assert one.tobytes() == other.tobytes()
    if rows:
        np.testing.assert_allclose(mean, values.mean(axis=0, dtype=np.float64), rtol=1e-12)
        np.testing.assert_allclose(deviation, values.std(axis=0, dtype=np.float64), rtol=1e-8, atol=1e-9)


def test_a_column_that_never_varies_has_no_deviation() -> None:
    moments = Moments(2)
    for _ in range(3):
        moments.add(np.full((100_001, 2), [0.1, 1e30], np.float32))
    mean, deviation = moments.result()
    assert (deviation <= 1e-12 * np.abs(mean)).all()


@settings(max_examples=30)
@given(random_graphs(unseen=True, min_graphs=2), st.lists(st.integers(0, 9), max_size=4))
def test_a_survey_names_the_labels_and_counts_the_degrees_of_all_portions(graphs: Graphs, places: list[int]) -> None:
    survey = Survey(graphs[some] for some in cut(len(graphs), places))
    used = graphs.with_names(nodes=survey.names("node"), edges=survey.names("edge"))
    for before, after in zip(graphs, used, strict=True):
        assert (before.node_label, before.edge_label) == (after.node_label, after.edge_label)
    if used.node_label is not None:
        assert set(used.node_label) - {-1} == set(range(len(used.node_label_names)))
    assert survey.nodes == graphs.n_nodes
    np.testing.assert_array_equal(survey.degrees, np.bincount(graphs.degree))
    assert survey.has_node_labels == (graphs.node_label is not None)
    if not survey.has_node_labels:
        assert survey.degree_names == describe_by_degree(graphs).node_label_names


@settings(max_examples=40)
@given(random_graphs(unseen=True, min_graphs=2), st.lists(st.integers(0, 9), max_size=4))
def test_a_preparation_fitted_on_portions_is_that_of_all_graphs(graphs: Graphs, places: list[int]) -> None:
    portions = [graphs[some] for some in cut(len(graphs), places)]
    found = Encoder.fit_portions(portions, target=graphs.target, by_degree=False)
    wanted = Encoder.fit(graphs, plain_model())
    assert found.texts() == wanted.texts()
    one, other = ({name: (v.dtype, v.tobytes()) for name, v in each.arrays().items()} for each in (found, wanted))
    assert one == other
