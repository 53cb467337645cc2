from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import egocnn
from egocnn.data.graphs import Graphs
from egocnn.encode.on_device import ResidentGraphs, order_nodes, rank_neighbours
from egocnn.encode.ranking import Ranking
from egocnn.errors import ConfigError, DataError
from tests.encode.on_device.devices import DEVICES, set_portions
from tests.support.samples import cycle, one_graph
from tests.support.strategies import random_connected, random_graphs, random_trees


def assert_same_ranking(train: Graphs, graphs: Graphs, k: int, device: str, *, rounds: int = 3) -> None:
    ranking, on_device = Ranking.fit(train, rounds=rounds), ResidentGraphs.of(graphs, device)
    ours, theirs = order_nodes(on_device, ranking), ranking.order(graphs)
    for name in ("nodes", "place", "tier"):
        np.testing.assert_array_equal(getattr(ours, name).cpu(), getattr(theirs, name), err_msg=name)
    table = rank_neighbours(on_device, k, ranking=ranking)
    assert table.dtype == torch.int32
    np.testing.assert_array_equal(table.cpu(), ranking.neighbours(graphs, k))
    np.testing.assert_array_equal(rank_neighbours(on_device, k).cpu(), egocnn.rank_neighbours(graphs, k))


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=150)
@given(
    train=random_graphs(unseen=True),
    graphs=random_graphs(min_nodes=0, unseen=True),
    k=st.integers(1, 6),
    rounds=st.integers(1, 4),
)
def test_tables_are_those_of_the_arrays_entry_for_entry(
    device: str, train: Graphs, graphs: Graphs, k: int, rounds: int
) -> None:
    assert_same_ranking(train, graphs, k, device, rounds=rounds)


@pytest.mark.parametrize("device", DEVICES)
def test_rarity_counted_over_the_graphs_themselves_is_what_fitting_on_them_gives(device: str) -> None:
    graphs = random_trees(40, nodes=15, seed=3)
    fitted = Ranking.fit(graphs)
    table = fitted.neighbours(graphs, 4)
    np.testing.assert_array_equal(egocnn.rank_neighbours(graphs, 4), table)
    np.testing.assert_array_equal(egocnn.rank_neighbours(graphs, 4, device=device), table)
    on_device = Ranking.fit(graphs, device=device)
    for ours, theirs in zip(on_device.state().values(), fitted.state().values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def cliques_that_share_a_node(size: int) -> Graphs:
    members = [[0, *range(1, size)], [0, *range(size, 2 * size - 1)]]
    return one_graph(2 * size - 1, [(u, v) for clique in members for u in clique for v in clique if u < v])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "graphs",
    [
        cliques_that_share_a_node(5),
        one_graph(6, cycle(0, 1, 2) + cycle(3, 4, 5)),
        one_graph(80, cycle(*range(80))),  # too many ties to settle: ids decide
        one_graph(9, [(0, n) for n in range(1, 9)]),  # twins
        Graphs.concat([one_graph(2, []), one_graph(3, []), one_graph(5, cycle(0, 1, 2, 3, 4)), one_graph(1, [])]),
    ],
    ids=["cliques", "rings", "long ring", "star", "isolated"],
)
def test_ties_are_settled_alike(graphs: Graphs, device: str) -> None:
    together = Graphs.concat([graphs, random_connected(4, nodes=9, extra=4, seed=5).replace(**UNLABELLED), graphs])
    assert_same_ranking(together, together, 5, device)


UNLABELLED: dict[str, Any] = {"node_label": None, "node_label_names": (), "edge_label": None, "edge_label_names": ()}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at_once", [1, 13, 100])
def test_tables_do_not_depend_on_the_portions(at_once: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_portions(monkeypatch, at_once)
    graphs = random_connected(5, nodes=25, extra=40, seed=1)
    assert_same_ranking(graphs, graphs, 8, device)


@contextmanager
def largest_tensor() -> Iterator[list[int]]:
    """The most elements of any one tensor that is made inside, not counting views of what was there."""
    sizes = [0]

    def watch(_self: Any, function: Any, _types: Any, arguments: Any = (), options: Any = None) -> Any:
        result = function(*arguments, **(options or {}))
        old = {t.untyped_storage().data_ptr() for t in tree_leaves(arguments) if isinstance(t, torch.Tensor)}
        for made in tree_leaves(result):
            if isinstance(made, torch.Tensor) and made.untyped_storage().data_ptr() not in old:
                sizes[0] = max(sizes[0], made.numel())
        return result

    mode: Any = type("Watch", (TorchDispatchMode,), {"__torch_dispatch__": watch})
    with mode():
        yield sizes


@pytest.mark.parametrize("columns", [(), ("edge_label", "edge_weight")], ids=["plain", "labelled"])
def test_no_tensor_as_long_as_the_adjacency_is_made(columns: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    n_nodes, k, at_once = 300, 4, 2048
    set_portions(monkeypatch, at_once)
    edges = np.random.default_rng(0).integers(n_nodes, size=(12_000, 2))
    plain = Graphs.from_edges(node_counts=[n_nodes], edges=edges)
    ends = np.stack([plain.entry_node, plain.indices])
    made_up = {"edge_label": ends.sum(0) % 3, "edge_weight": (ends.min(0) % 5).astype(np.float32)}
    names = ("single", "double", "triple") if "edge_label" in columns else ()
    graphs = plain.replace(edge_label_names=names, **{name: made_up[name] for name in columns})
    on_device = ResidentGraphs.of(graphs, "cpu")
    with largest_tensor() as sizes:
        table = rank_neighbours(on_device, k)
    np.testing.assert_array_equal(table, egocnn.rank_neighbours(graphs, k))
    longest = int(graphs.degree.max())
    assert sizes[0] <= max(at_once + longest + 1, n_nodes * k) < graphs.n_entries // 5


def test_nodes_several_hops_away_are_found_whatever_the_device() -> None:
    chain = one_graph(5, [(n, n + 1) for n in range(4)])
    expected = egocnn.rank_neighbours(chain, 4, max_hops=3)
    np.testing.assert_array_equal(egocnn.rank_neighbours(chain, 4, max_hops=3, device="cpu"), expected)
    assert (expected[0] >= 0).sum() == 3


def test_nothing_ranks_nothing_on_a_device() -> None:
    nothing = Graphs.from_edges(node_counts=[], edges=np.zeros((0, 2), int))
    assert rank_neighbours(ResidentGraphs.of(nothing, "cpu"), 3).shape == (0, 3)
    pair = one_graph(2, [(0, 1)])
    assert rank_neighbours(ResidentGraphs.of(pair, "cpu"), 1, ranking=Ranking.fit(nothing)).tolist() == [[1], [0]]


def test_a_table_without_columns_is_refused() -> None:
    with pytest.raises(ConfigError, match="k must be at least 1, got 0"):
        rank_neighbours(ResidentGraphs.of(one_graph(2, [(0, 1)]), "cpu"), 0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
def test_ranking_on_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="no CUDA device"):
        egocnn.rank_neighbours(one_graph(2, [(0, 1)]), 1, device="cuda")
