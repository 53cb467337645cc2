"""What an explanation of symmetric and asymmetric isomers must show: Graph + importances -> one number.

Nobody can name the nodes that make a molecule symmetric, but importances that explain it are symmetric themselves. An
asymmetric one is so by the methyls that have no counterpart on the other arm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.generated import Tree, build_tree, centres, subtree_texts, walk
from egocnn.data.graphs import Graph
from egocnn.errors import DataError


def mirror_correlation(graph: Graph, importance: Floats) -> float | None:
    """Pearson correlation of the importances with their mirror image; None where all are equal."""
    if np.ptp(importance) == 0:
        return None
    return float(np.corrcoef(importance, importance[mirror(graph)])[0, 1])


def mirror(graph: Graph) -> Ints:
    """The node that each node meets when the two arms of a tree are exchanged; (N), its own inverse.

    The centre and what hangs on it besides the arms, a methyl group say, are their own partners. A graph whose two
    longest branches at the centre are not alike has no mirror: a :class:`DataError`.
    """
    tree = build_tree(graph.n_nodes, ((int(u), int(v)) for u, v in graph.edges))
    if not _is_tree(tree):
        raise DataError(f"{graph.name}: only a tree, a connected graph without rings, has a mirror")
    centre, *second = centres(tree)
    if second:
        raise DataError(f"{graph.name}: its centre is a bond, not a node, so no node can be the middle of a mirror")
    labels = graph.node_label or ("C",) * graph.n_nodes
    texts = subtree_texts(labels, tree, centre)
    _, parent = walk(tree, centre)

    critical = np.zeros(graph.n_nodes, bool) if graph.node_truth is None else graph.node_truth

    def branches(node: int) -> list[int]:
        outward = [neighbour for neighbour in tree[node] if neighbour != parent[node]]
        # alike but not equally critical: a methyl next to the end of its arm is to meet the other methyl, not the end
        return sorted(outward, key=lambda n: (len(texts[n]), texts[n], critical[n]))

    arms = branches(centre)[-2:]
    if len(arms) < 2 or texts[arms[0]] != texts[arms[1]]:
        raise DataError(f"{graph.name}: its two arms differ, so it has no mirror")
    partner = np.arange(graph.n_nodes)
    pairs = [(arms[0], arms[1])]
    for left, right in pairs:
        partner[left], partner[right] = right, left
        pairs += zip(branches(left), branches(right), strict=True)  # alike, so in the same order
    return partner


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

    leaves: list[int]  # the methyls, and the end of the arm where it is one of them for all one can see
    n_methyls: int
    matched: bool  # the same place on the other arm has as many


def _sites(graph: Graph) -> Iterator[_Site]:
    heavy, tree = _heavy_tree(graph)
    centre, *second = centres(tree)
    if second:
        raise DataError(f"{graph.name}: its centre is a bond, not a node, so its arms cannot be compared")
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
    tree = build_tree(len(heavy), bonds)
    if not _is_tree(tree):
        raise DataError(f"{graph.name}: only a tree, a connected graph without rings, has arms to compare")
    return heavy, tree


def _is_tree(tree: Tree) -> bool:
    """Whether the graph is connected and has no rings, on which a plain walk would not end."""
    if not tree or sum(map(len, tree)) != 2 * (len(tree) - 1):
        return False
    seen = {0}
    reached = [0]
    for node in reached:
        fresh = [neighbour for neighbour in tree[node] if neighbour not in seen]
        seen.update(fresh)
        reached += fresh
    return len(seen) == len(tree)
