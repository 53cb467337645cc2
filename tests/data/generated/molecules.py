"""Settings of generated compounds by chance, and questions to the molecules, for their tests."""

import re
from typing import Any, get_args

import numpy as np
from hypothesis import strategies as st

from egocnn.data.generated import CompoundsConfig
from egocnn.data.generated.compounds import FAMILIES, FamilyName
from egocnn.data.generated.families import build_tree, canonical_text
from egocnn.data.graphs import Graph, Graphs


@st.composite
def configs(draw: st.DrawFn, families: tuple[str, ...] = get_args(FamilyName)) -> CompoundsConfig:
    family: Any = draw(st.sampled_from(families))
    least = FAMILIES[family].limits[0]
    first = draw(st.integers(least, least + 4))
    return CompoundsConfig(
        family=family,
        sizes=(first, first + draw(st.integers(3, 8 if family != "isomers" else 4))),
        hydrogens=draw(st.sampled_from([None, True, False])),
        per_size=draw(st.integers(1, 12)),
        per_test_size=draw(st.sampled_from([None, 1, 3])),
        copies=draw(st.integers(1, 3)),
        hold_out=draw(st.sampled_from([None, "sizes", "molecules"])),
        seed=draw(st.integers(0, 1000)),
    )


def atoms(graph: Graph) -> tuple[str, ...]:
    assert graph.node_label is not None
    return graph.node_label


def truth(graph: Graph) -> tuple[set[int], set[tuple[int, int]]]:
    assert graph.node_truth is not None
    assert graph.edge_truth is not None
    edges = {(int(u), int(v)) for u, v in graph.edges[graph.edge_truth]}
    return set(np.flatnonzero(graph.node_truth).tolist()), edges


def neighbours(graph: Graph) -> list[list[int]]:
    return build_tree(graph.n_nodes, ((int(u), int(v)) for u, v in graph.edges))


def incident(graph: Graph, nodes: set[int]) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in graph.edges if int(u) in nodes or int(v) in nodes}


def is_tree(graph: Graph) -> bool:
    reached, fresh, around = {0}, {0}, neighbours(graph)
    while fresh:
        fresh = {n for node in fresh for n in around[node]} - reached
        reached |= fresh
    return len(graph.edges) == graph.n_nodes - 1 and len(reached) == graph.n_nodes


def canonical(graph: Graph) -> str:
    return canonical_text(atoms(graph), neighbours(graph))


def without(graph: Graph, nodes: set[int]) -> Graph:
    keep = [n for n in range(graph.n_nodes) if n not in nodes]
    place = {n: i for i, n in enumerate(keep)}
    edges = [[place[u], place[v]] for u, v in graph.edges.tolist() if u in place and v in place]
    return Graphs.from_edges(
        node_counts=[len(keep)],
        edges=np.array(edges),
        node_label=np.array(["CHO".index(atoms(graph)[n]) for n in keep]),
        node_label_names=("C", "H", "O"),
    )[0]


def size_of(graph: Graph) -> int:
    """Carbons of an alcohol or alkane, of an isomer's arm, of a methylalkane's chain, as the name says."""
    found = re.match(r"isomer a(\d+)|C(\d*)H", graph.name)
    assert found
    carbons = int(found[1] or found[2] or 1)
    return carbons - 1 if "methyl" in graph.name else carbons
