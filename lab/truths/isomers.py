"""What an explanation of symmetric and asymmetric isomers must show: Graph + importances -> one number.

Nobody can name the nodes that make a molecule symmetric, but importances that explain it are symmetric themselves. An
asymmetric one is so by the methyls that have no counterpart on the other arm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from egocnn.data.arrays import Floats
from egocnn.data.generated import mirror
from egocnn.data.generated.trees import Tree, build_tree, centres, walk
from egocnn.data.graphs import Graph
from egocnn.errors import DataError


def mirror_correlation(graph: Graph, importance: Floats) -> float | None:
    """Pearson correlation of the importances with their mirror image; None where all are equal."""
    if np.ptp(importance) == 0:
        return None
    return float(np.corrcoef(importance, importance[mirror(graph)])[0, 1])


def unmatched_above_matched(graph: Graph, importance: Floats) -> bool | None:
    """Whether every methyl without a counterpart is more important than every methyl with one; equal is not more.

    The methyl at the centre is its own counterpart. A methyl next to the end of an arm and the end itself are twins:
    which of them is the methyl is read in favour of the importances. Hydrogens are not looked at. None where there
    is nothing to compare.
    """
    unmatched: list[float] = []
    matched: list[float] = []
    for site in _sites(graph):
        ascending = np.sort(importance[site.leaves])
        if site.matched:
            matched += ascending[: site.n_methyls].tolist()
        else:
            unmatched += ascending[len(ascending) - site.n_methyls :].tolist()
    if not unmatched or not matched:
        return None
    return min(unmatched) > max(matched)


@dataclass(frozen=True, slots=True)
class _Site:
    """A carbon of the chain with methyls on it."""

    leaves: list[int]
    """the methyls, and the end of the arm where it is one of them for all one can see"""
    n_methyls: int
    matched: bool
    """the same place on the other arm has as many"""


def _sites(graph: Graph) -> Iterator[_Site]:
    heavy, tree = _heavy_tree(graph)
    found = centres(tree)
    if len(found) != 1:
        raise DataError(f"{graph.name}: its centre is a bond, not a node, so its arms cannot be compared")
    (centre,) = found
    order, parent = walk(tree, centre)
    depth, arm_of = {centre: 0}, {centre: -1}
    for node in order[1:]:
        depth[node] = depth[parent[node]] + 1
        arm_of[node] = node if parent[node] == centre else arm_of[parent[node]]
    length = depth[order[-1]]
    arms = sorted({arm_of[node] for node in order if depth[node] == length})
    inner = sorted((arm_of[node], depth[node]) for node in order[1:] if len(tree[node]) > 1)
    places = [(arm, place) for arm in arms for place in range(1, length)]
    if len(arms) != 2 or inner != places:
        raise DataError(f"{graph.name}: not a chain with methyls, so its arms cannot be compared")
    leaves: dict[tuple[int, int], list[int]] = {place: [] for place in places}
    for node in order:
        if len(tree[node]) == 1 and arm_of[node] in arms:
            leaves[arm_of[node], depth[node] - 1].append(heavy[node])
    own = [heavy[node] for node in tree[centre] if node not in arms]
    yield _Site(own, len(own), matched=True)
    for (arm, place), here in leaves.items():
        there = leaves[sum(arms) - arm, place]
        yield _Site(here, len(here) - (place == length - 1), matched=len(here) <= len(there))


def _heavy_tree(graph: Graph) -> tuple[list[int], Tree]:
    """The nodes that are no hydrogens, and the tree they form, counted by their places among them."""
    labels = graph.node_label or ("C",) * graph.n_nodes
    heavy = [node for node, label in enumerate(labels) if label != "H"]
    place = {node: number for number, node in enumerate(heavy)}
    bonds = [(place[int(u)], place[int(v)]) for u, v in graph.edges if int(u) in place and int(v) in place]
    seen = {0}
    tree = build_tree(len(heavy), bonds)
    reached = [0] if heavy else []
    for node in reached:  # a plain walk on a graph with rings would not end
        fresh = [neighbour for neighbour in tree[node] if neighbour not in seen]
        seen.update(fresh)
        reached += fresh
    if not heavy or len(reached) != len(heavy) or len(bonds) != len(heavy) - 1:
        raise DataError(f"{graph.name}: only a tree, a connected graph without rings, has arms to compare")
    return heavy, tree
