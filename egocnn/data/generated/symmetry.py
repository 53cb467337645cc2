"""Find the mirror of a symmetric molecule: Graph -> the partner of every node."""

from __future__ import annotations

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.generated.trees import Tree, build_tree, centres, subtree_texts, walk
from egocnn.data.graphs import Graph
from egocnn.errors import DataError


def mirror(graph: Graph) -> Ints:
    """The node that each node meets when the two arms of a tree are exchanged; (N), its own inverse.

    The centre and what hangs on it besides the arms, a methyl group say, are their own partners. A graph whose two
    longest branches at the centre are not alike has no mirror: a :class:`DataError`.
    """
    tree = build_tree(graph.n_nodes, ((int(u), int(v)) for u, v in graph.edges))
    centre = _single_centre(graph, tree)
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


def _single_centre(graph: Graph, tree: Tree) -> int:
    # edges are counted first: a walk on a graph with rings would not end
    if graph.n_nodes == 0 or len(graph.edges) != graph.n_nodes - 1 or not _is_connected(tree):
        raise DataError(f"{graph.name}: only a tree, a connected graph without rings, has a mirror")
    found = centres(tree)
    if len(found) != 1:
        raise DataError(f"{graph.name}: its centre is a bond, not a node, so no node can be the middle of a mirror")
    return found[0]


def _is_connected(tree: Tree) -> bool:
    seen = {0}
    reached = [0]
    for node in reached:
        fresh = [neighbour for neighbour in tree[node] if neighbour not in seen]
        seen.update(fresh)
        reached += fresh
    return len(seen) == len(tree)
