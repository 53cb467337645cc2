"""Choose the critical nodes from their importances: the threshold, the first few, or the fewest that suffice."""

from collections.abc import Callable

import numpy as np

from egocnn.config import ExplainConfig
from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graphs

STEPS_ONE_BY_ONE = 32
GROWTH = 1.15  # The search for the smallest set tries every size up to 32, then sizes that grow by 15%.


def select_nodes(
    graphs: Graphs, importance: Floats, config: ExplainConfig, keeps: Callable[[Ints, Bools], Bools]
) -> Bools:
    """(N) which nodes are critical.

    ``keeps(numbers, nodes)`` tells for these graphs whether the prediction holds with nothing but these nodes (N).
    Nodes of equal importance, symmetric ones say, are chosen together, except that ``top`` counts strictly."""
    if config.select == "top":
        return (_places(graphs, importance) < config.top) & (importance > 0)
    if config.select == "threshold":
        return importance_at_least(graphs, importance, config.threshold)
    return _smallest(graphs, importance, keeps)


def importance_at_least(graphs: Graphs, importance: Floats, share: float) -> Bools:
    """(N) positive importances of at least this share of their graph's largest"""
    largest = np.zeros(len(graphs))
    np.maximum.at(largest, graphs.graph_of, importance)
    return (importance > 0) & (importance >= share * largest[graphs.graph_of] * (1 - 1e-6))


def _smallest(graphs: Graphs, importance: Floats, keeps: Callable[[Ints, Bools], Bools]) -> Bools:
    """(N) the first few nodes of every graph, in the order of importance, that keep its prediction"""
    place = _places(graphs, importance)
    chosen, is_open = np.zeros(graphs.n_nodes, bool), np.ones(len(graphs), bool)
    size = 1
    while is_open.any():
        cut = np.full(len(graphs), np.inf)  # the importance of the last node that fits, so that its equals come along
        last = place == np.minimum(size, graphs.node_counts)[graphs.graph_of] - 1
        cut[graphs.graph_of[last]] = importance[last]
        here = is_open[graphs.graph_of]
        chosen[here] = (importance >= cut[graphs.graph_of])[here]
        numbers = np.flatnonzero(is_open)
        is_open[numbers] = ~(keeps(numbers, chosen) | (size >= graphs.node_counts[numbers]))
        size = size + 1 if size < STEPS_ONE_BY_ONE else int(size * GROWTH) + 1
    return chosen


def _places(graphs: Graphs, importance: Floats) -> Ints:
    """(N) 0 for the most important node of a graph, 1 for the next, and so on"""
    order = np.lexsort((-importance, graphs.graph_of))
    place = np.empty(graphs.n_nodes, np.int64)
    place[order] = np.arange(graphs.n_nodes) - graphs.node_ptr[:-1][graphs.graph_of[order]]
    return place
