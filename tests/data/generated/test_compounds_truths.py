"""The critical structures that generated compounds were built around, and the symmetry of the isomers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from egocnn.data.generated import CompoundsConfig, generate, mirror, read_compounds
from egocnn.data.generated.trees import build_tree, canonical_text
from egocnn.data.graphs import Graph, Graphs
from egocnn.errors import DataError
from tests.data.generated.molecules import atoms, canonical, configs, incident, neighbours, size_of, truth, without

# ── critical structures ──────────────────────────────────────────────────────────────────────────────


@settings(deadline=None, max_examples=25)
@given(configs(("alcohols",)))
def test_an_alcohol_is_its_oh_group_and_an_alkane_has_no_critical_structure(config: CompoundsConfig) -> None:
    for graph in generate(config):
        nodes, edges = truth(graph)
        if graph.target == "alkane":
            assert not nodes
            assert not edges
            continue
        oxygen = atoms(graph).index("O")
        around = neighbours(graph)[oxygen]
        assert nodes == {oxygen, *(n for n in around if atoms(graph)[n] == "H")}
        assert edges == incident(graph, {oxygen})
        assert len(edges) == (2 if config.settings.hydrogens else 1)


def methyls(graph: Graph) -> set[int]:
    """Critical carbons that hang on one other carbon alone."""
    around = neighbours(graph)
    critical = {n for n in truth(graph)[0] if atoms(graph)[n] == "C"}
    return {n for n in critical if sum(atoms(graph)[m] == "C" for m in around[n]) == 1}


def hydrogens_of(graph: Graph, nodes: set[int]) -> set[int]:
    around = neighbours(graph)
    return {m for n in nodes for m in around[n] if atoms(graph)[m] == "H"}


def carbons_without(graph: Graph, nodes: set[int]) -> Graph:
    return without(graph, nodes | {n for n, letter in enumerate(atoms(graph)) if letter == "H"})


def bare_chain(graph: Graph) -> str:
    length = 2 * size_of(graph) + 1 if graph.name.startswith("isomer") else size_of(graph)
    return canonical_text("C" * length, build_tree(length, pairwise(range(length))))


@settings(deadline=None, max_examples=25)
@given(configs(("isomers",)))
def test_a_symmetric_isomer_is_its_centre_and_all_its_methyls(config: CompoundsConfig) -> None:
    for graph in generate(config):
        if graph.target == "symmetric":
            nodes, edges = truth(graph)
            groups = methyls(graph)
            (centre,) = nodes - groups - hydrogens_of(graph, groups)
            assert edges == incident(graph, groups)
            assert canonical(carbons_without(graph, groups)) == bare_chain(graph)
            assert len(neighbours(graph)[centre]) == (4 if config.settings.hydrogens else 3)
            assert mirror(graph)[centre] == centre
            assert set(mirror(graph)[list(nodes)].tolist()) == nodes


@settings(deadline=None, max_examples=8)
@given(configs(("isomers",)))
def test_an_asymmetric_isomer_is_the_two_methyls_without_which_it_would_be_symmetric(config: CompoundsConfig) -> None:
    for graph in generate(config):
        if graph.target == "asymmetric":
            nodes, edges = truth(graph)
            groups = methyls(graph)
            assert len(groups) == 2
            assert nodes == groups | hydrogens_of(graph, groups)
            assert edges == incident(graph, groups)
            mirror(carbons_without(graph, groups))
            for one in groups:
                with pytest.raises(DataError, match="two arms differ"):
                    mirror(carbons_without(graph, {one}))


@settings(deadline=None, max_examples=25)
@given(configs(("methylalkanes",)))
def test_a_methylalkane_is_its_methyl_and_the_carbon_that_holds_it(config: CompoundsConfig) -> None:
    for graph in generate(config):
        nodes, edges = truth(graph)
        (methyl,) = methyls(graph)
        (holder,) = (n for n in neighbours(graph)[methyl] if atoms(graph)[n] == "C")
        assert nodes == {methyl, holder} | hydrogens_of(graph, {methyl})
        assert edges == incident(graph, {methyl})
        assert canonical(carbons_without(graph, {methyl})) == bare_chain(graph)
        if graph.target == "symmetric":
            assert mirror(graph)[holder] == holder
        else:
            with pytest.raises(DataError, match="two arms differ"):
                mirror(graph)


# ── symmetry ─────────────────────────────────────────────────────────────────────────────────────────


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
