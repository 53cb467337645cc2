from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from egocnn.data.graphs import Graphs
from egocnn.encode import colours
from egocnn.encode.on_device import ResidentGraphs, stable_colours, wl_rounds
from egocnn.encode.on_device.arrays import to_words
from egocnn.encode.on_device.colours import initial_colours
from tests.encode.on_device.devices import DEVICES, set_portions
from tests.support.samples import one_graph
from tests.support.strategies import random_connected, random_graphs


def assert_same_colours(graphs: Graphs, device: str, *, rounds: int = 3, most: int = 256) -> None:
    on_device = ResidentGraphs.of(graphs, device)
    ours, theirs = initial_colours(on_device), colours.initial_colours(graphs)
    np.testing.assert_array_equal(to_words(ours), theirs)
    for ours, theirs in zip(wl_rounds(on_device, rounds), colours.wl_rounds(graphs, rounds), strict=True):
        np.testing.assert_array_equal(to_words(ours), theirs)
    stable = stable_colours(on_device, ours, most=most)
    np.testing.assert_array_equal(to_words(stable), colours.stable_colours(graphs, theirs, most=most))


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=100)
@given(graphs=random_graphs(min_nodes=0, unseen=True))
def test_colours_are_those_of_the_arrays_bit_for_bit(device: str, graphs: Graphs) -> None:
    assert_same_colours(graphs, device)


@pytest.mark.parametrize("device", DEVICES)
def test_graphs_that_become_stable_at_different_times_stop_by_themselves(device: str) -> None:
    chains = [one_graph(n, [(i, i + 1) for i in range(n - 1)]) for n in (40, 3, 25, 40)]
    assert_same_colours(Graphs.concat(chains), device, rounds=1)
    assert_same_colours(Graphs.concat(chains), device, rounds=1, most=5)


@pytest.mark.parametrize("at_once", [1, 13, 100])
def test_colours_do_not_depend_on_the_portions(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    set_portions(monkeypatch, at_once)
    assert_same_colours(random_connected(6, nodes=20, extra=15, seed=0), "cpu")
