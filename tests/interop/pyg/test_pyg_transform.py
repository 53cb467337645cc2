"""Ranked neighbours as a transform of PyTorch Geometric: the same table as ours, whatever is batched with what."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform, Compose

from egocnn.data.graphs import Graphs
from egocnn.data.sources.pyg import from_pyg, to_pyg
from egocnn.encode.ranking import Ranking, rank_neighbours
from egocnn.errors import ConfigError
from egocnn.interop.pyg import RankNeighbours, neighbours_of
from egocnn.nn import EgoConv
from tests.support.strategies import random_connected, random_graphs, random_trees


@given(random_graphs(classes=True))
def test_a_batch_of_transformed_graphs_has_the_table_of_the_collection(graphs: Graphs) -> None:
    items = to_pyg(graphs)
    transform = RankNeighbours(3).fit(items)
    batch = Batch.from_data_list([transform(data) for data in items])
    read = from_pyg(items)  # labels that no node has are not counted there, and colours follow from the numbers
    np.testing.assert_array_equal(neighbours_of(batch).numpy(), rank_neighbours(read, 3))
    whole = transform(Batch.from_data_list(to_pyg(graphs)))
    assert torch.equal(neighbours_of(whole), neighbours_of(batch))


def test_rarity_and_labels_are_those_of_the_graphs_it_was_fitted_to_also_where_it_was_sent() -> None:
    train, new = random_trees(30, nodes=12, seed=0), random_connected(6, nodes=10, extra=4, seed=1)
    transform = RankNeighbours(4).fit(to_pyg(train))
    found = neighbours_of(Batch.from_data_list([transform(data) for data in to_pyg(new)])).numpy()
    by_training_graphs = rank_neighbours(new, 4, ranking=Ranking.fit(train))
    np.testing.assert_array_equal(found, by_training_graphs)
    assert (found != rank_neighbours(new, 4)).any()  # counted over the new graphs themselves, another order
    train = random_trees(20, nodes=10, seed=0)
    transform = RankNeighbours(4).fit(to_pyg(train))
    for data, one in zip(to_pyg(train), range(len(train)), strict=True):  # few of them have all three labels
        wanted = rank_neighbours(train[[one]], 4, ranking=Ranking.fit(train))
        np.testing.assert_array_equal(neighbours_of(transform(data)).numpy(), wanted)
    graphs = to_pyg(random_trees(4, nodes=8, seed=3))
    transform = RankNeighbours(k=3).fit(graphs)
    again = pickle.loads(pickle.dumps(transform))
    assert repr(again) == repr(transform)
    assert torch.equal(again(graphs[0]).neighbour_steps, transform(graphs[0]).neighbour_steps)
    with pytest.raises(ConfigError, match="k must be at least 1, got 0"):
        RankNeighbours(0)
    with pytest.raises(ConfigError, match="k must be a whole number, got 'x'"):
        RankNeighbours("x")
    with pytest.raises(ConfigError, match="no neighbour_steps"):
        neighbours_of(Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=1))


def test_it_is_one_of_their_transforms_and_leaves_the_data_it_is_given_alone() -> None:
    transform = RankNeighbours(k=2)
    assert isinstance(transform, BaseTransform)
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3, y=torch.zeros(3, 5))
    before = copy.copy(data)
    made = Compose([transform])(data)
    assert data.keys() == before.keys()
    assert neighbours_of(made).tolist() == [[1, -1], neighbours_of(made)[1].tolist(), [1, -1]]
    assert sorted(neighbours_of(made)[1].tolist()) == [0, 2]
    assert EgoConv(4, 5, k=2)(torch.randn(3, 4), neighbours_of(made)).shape == (3, 5)


def test_neighbours_that_a_subgraph_has_left_behind_are_refused_and_those_of_a_batch_are_not() -> None:
    path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    ranked = RankNeighbours(2)(path)
    for nodes in ([0, 2], [0, 1], [1]):
        with pytest.raises(ConfigError, match="have changed since neighbours were ranked"):
            neighbours_of(ranked.subgraph(torch.tensor(nodes)))
    again = RankNeighbours(2)(ranked.subgraph(torch.tensor([1, 2])))
    assert neighbours_of(again).tolist() == [[1, -1], [0, -1]]
    assert len(neighbours_of(Batch.from_data_list([ranked, ranked]))) == 6
