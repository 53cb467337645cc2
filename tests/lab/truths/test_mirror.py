"""The mirror of a symmetric molecule: an automorphism that exchanges its arms, and no other molecule has one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from egocnn.data.generated import CompoundsConfig, generate, read_compounds
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from lab.truths.isomers import mirror
from tests.data.generated.molecules import atoms, configs


@settings(deadline=None, max_examples=25)
@given(configs(("isomers", "methylalkanes")))
def test_the_mirror_is_an_automorphism_that_exchanges_the_arms(config: CompoundsConfig) -> None:
    for graph in generate(config):
        if graph.target == "symmetric":
            partner = mirror(graph)
            assert (partner[partner] == np.arange(graph.n_nodes)).all()
            assert [atoms(graph)[n] for n in partner] == list(atoms(graph))
            moved = np.sort(partner[graph.edges], axis=1)
            assert {(u, v) for u, v in moved.tolist()} == {(u, v) for u, v in graph.edges.tolist()}
            fixed = np.flatnonzero(partner == np.arange(graph.n_nodes))
            assert sum(atoms(graph)[n] == "C" for n in fixed) == 2


def test_no_automorphism_of_an_asymmetric_isomer_exchanges_the_arms() -> None:
    networkx = pytest.importorskip("networkx", exc_type=ImportError)
    for graph in read_compounds("compounds:isomers:sizes=3-6,per_size=10"):
        network = networkx.Graph(graph.edges.tolist())
        (centre,) = networkx.center(network)
        matcher = networkx.isomorphism.GraphMatcher(network, network)
        moves = [any(found[n] != n for n in network[centre]) for found in matcher.isomorphisms_iter()]
        assert any(moves) == (graph.target == "symmetric")


@pytest.mark.parametrize(
    ("edges", "n_nodes", "message"),
    [
        ([[0, 1], [1, 2], [2, 0]], 3, "only a tree"),
        ([[0, 1], [1, 2], [2, 0]], 4, "only a tree"),
        ([[0, 1], [1, 2], [2, 3]], 4, "its centre is a bond"),
        ([[0, 1], [1, 2], [2, 3], [3, 4], [1, 5]], 6, "two arms differ"),
        ([], 1, "two arms differ"),
    ],
)
def test_a_graph_without_a_mirror_says_why(edges: list[list[int]], n_nodes: int, message: str) -> None:
    (graph,) = Graphs.from_edges(node_counts=[n_nodes], edges=np.array(edges, int), names=["odd one"])
    with pytest.raises(DataError, match=f"^odd one: .*{message}"):
        mirror(graph)
