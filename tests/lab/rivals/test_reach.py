from __future__ import annotations

import numpy as np
import pytest

from egocnn.data.graphs import Graphs
from egocnn.encode.ranking import Ranking
from lab.rivals.networks import reach
from tests.support.samples import one_graph
from tests.support.strategies import random_connected


def hops_from(graphs: Graphs, start: int, most: int) -> dict[int, int]:
    """Breadth first: how far every other node within reach is."""
    distance, frontier = {start: 0}, [start]
    for hop in range(1, most + 1):
        reached = [int(n) for node in frontier for n in graphs.indices[graphs.indptr[node] : graphs.indptr[node + 1]]]
        frontier = [node for node in dict.fromkeys(reached) if node not in distance]
        distance |= dict.fromkeys(frontier, hop)
    del distance[start]
    return distance


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_nearest_nodes_are_those_of_fewest_hops_also_in_small_portions(
    hops: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = random_connected(5, nodes=25, extra=12, seed=1)
    order = Ranking.fit(graphs).order(graphs)
    wanted = np.full((graphs.n_nodes, 8), -1)
    for node in range(graphs.n_nodes):
        reached = hops_from(graphs, node, hops)
        best = sorted(reached, key=lambda other: (reached[other], order.place[other]))[:8]
        wanted[node, : len(best)] = best
    np.testing.assert_array_equal(reach.nearest_nodes(graphs, order, 8, hops=hops), wanted)
    monkeypatch.setattr(reach, "PAIRS_AT_ONCE", 10)
    np.testing.assert_array_equal(reach.nearest_nodes(graphs, order, 8, hops=hops), wanted)


def test_nearer_nodes_come_before_those_behind_heavy_edges() -> None:
    chain = one_graph(3, [(0, 1), (1, 2)], edge_weight=[0.1, 9.0])
    assert reach.nearest_nodes(chain, Ranking.fit(chain).order(chain), 2, hops=2)[0].tolist() == [1, 2]
