"""A transform of PyTorch Geometric: Data -> the same Data with the ranked neighbours of every node, for EgoConv. They
are kept as steps, differences of node numbers: batching shifts all numbers, and leaves steps as they are."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from egocnn.config import check_value
from egocnn.data.graphs import Graphs
from egocnn.data.sources.pyg import from_pyg
from egocnn.encode.ranking import Ranking, rank_neighbours
from egocnn.errors import ConfigError

# what the order of neighbours may depend on
STRUCTURE = ("edge_index", "x", "node_label", "z", "edge_label", "edge_attr", "edge_weight", "num_nodes")


class _RankNeighbours:
    """Adds ``neighbour_steps`` (N, k): from every node to its ranked neighbours; 0 where absent.

    ``neighbours_of(data)`` turns them into the table of node numbers that :class:`~egocnn.nn.EgoConv` reads, for a
    single graph and for a batch alike. :func:`egocnn.data.sources.pyg.from_pyg` says what is read of the data; a ``y``
    is not.

    :meth:`fit` counts how rare every neighbourhood is in training graphs, which is what neighbours are ranked by
    first; without it, they are counted in every graph by itself.

    Arguments:
        k: Neighbours to rank per node, the node itself not counted.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from egocnn.interop.pyg import RankNeighbours, neighbours_of
        >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> neighbours_of(RankNeighbours(k=2)(path))
        tensor([[ 1, -1],
                [ 0,  2],
                [ 1, -1]])"""

    def __init__(self, k: int = 16) -> None:
        check_value("k", k)
        self.k = k
        self.ranking: Ranking | None = None
        self.names: dict[str, tuple[str, ...]] = {}

    def fit(self, data: Iterable[Any]) -> Self:
        """Count the colours of training graphs, and learn the names of their labels.

        Arguments:
            data: Training graphs.

        Returns:
            The transform itself."""
        graphs = _read(data)
        self.names = {"nodes": graphs.node_label_names, "edges": graphs.edge_label_names}
        self.ranking = Ranking.fit(graphs)
        return self

    def forward(self, data: Any) -> Any:
        """Rank the neighbours of every node; call the transform itself, as PyTorch Geometric does.

        Arguments:
            data: One graph, or a batch of them.

        Returns:
            The same with ``neighbour_steps``."""
        graphs = _read(data.to_data_list() if hasattr(data, "to_data_list") else [data])
        graphs = graphs if self.ranking is None else graphs.with_names(**self.names)
        table = rank_neighbours(graphs, self.k, ranking=self.ranking)
        steps = np.where(table < 0, 0, table - np.arange(len(table))[:, None]).astype(np.int64)
        data.neighbour_steps = torch.from_numpy(steps).to(data.edge_index.device)
        return data

    def __repr__(self) -> str:
        counted = "" if self.ranking is None else f", {len(self.ranking.colours[0])} colours counted"
        return f"RankNeighbours(k={self.k}{counted})"


def neighbours_of(data: Any) -> Tensor:
    """The table that :class:`~egocnn.nn.EgoConv` reads.

    Arguments:
        data: A graph or a batch of graphs, transformed by ``RankNeighbours``.

    Returns:
        (N, k) node numbers in the order of their ranks, -1 where absent.

    Raises:
        ConfigError: the data was not transformed, or its edges are not those that were ranked.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Batch, Data
        >>> from egocnn.interop.pyg import RankNeighbours, neighbours_of
        >>> edge = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> ranked = RankNeighbours(k=1)(edge)
        >>> neighbours_of(Batch.from_data_list([ranked, ranked])).flatten()
        tensor([1, 0, 3, 2])"""
    steps = getattr(data, "neighbour_steps", None)
    if steps is None:
        raise ConfigError("this data has no neighbour_steps; transform it with egocnn.interop.pyg.RankNeighbours first")
    N, table = len(steps), torch.where(steps == 0, -1, torch.arange(len(steps), device=steps.device)[:, None] + steps)
    if (edge_index := getattr(data, "edge_index", None)) is not None:
        u, v = edge_index[:, edge_index[0] != edge_index[1]]
        edges = torch.unique(torch.cat([u * N + v, v * N + u]))
        node, rank = torch.nonzero(steps, as_tuple=True)
        wanted = torch.bincount(edges // max(N, 1), minlength=N).clamp(max=steps.shape[1])
        is_edge = torch.isin(node * N + table[node, rank], edges)
        if not is_edge.all() or not torch.equal(torch.bincount(node, minlength=N), wanted):
            raise ConfigError("the edges have changed since neighbours were ranked; apply RankNeighbours to it again")
    return table


def _read(data: Iterable[Any]) -> Graphs:
    return from_pyg([SimpleNamespace(**{name: getattr(item, name, None) for name in STRUCTURE}) for item in data])
