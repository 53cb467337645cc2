"""Property checks for anything that predicts from graphs: it must not depend on how the nodes are numbered."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints, pointers
from egocnn.data.graphs import Graphs
from egocnn.data.schema import take_columns


def relabel(graphs: Graphs, seed: int = 0) -> tuple[Graphs, Ints]:
    """The same graphs with the nodes of each renumbered at random, and the new number of every node (N). All columns of
    nodes and edges move along. SMILES are left out, because they give atoms in the old order."""
    random = np.random.default_rng(seed)
    old = np.lexsort((random.random(graphs.n_nodes), graphs.graph_of))  # the node that each new number stands for
    new = np.empty_like(old)
    new[old] = np.arange(len(old))
    node, neighbour = new[graphs.entry_node], new[graphs.indices]
    entries = np.lexsort((neighbour, node))
    relabelled = graphs.replace(
        indptr=pointers(graphs.degree[old]),
        indices=neighbour[entries].astype(graphs.indices.dtype),
        smiles=None,
        **take_columns(graphs, nodes=old, entries=entries),
    )
    return relabelled, new


def assert_relabelling_invariant(
    predict: Callable[[Graphs], NDArray[Any]], graphs: Graphs, *, tolerance: float = 1e-5, seed: int = 0
) -> None:
    """Raise AssertionError if renumbering the nodes changes a prediction by more than ``tolerance``. ``predict``
    returns numbers, one row per graph: probabilities or values, say."""
    relabelled, _ = relabel(graphs, seed)
    difference = np.asarray(predict(graphs), np.float64) - np.asarray(predict(relabelled), np.float64)
    if len(difference) != len(graphs):
        raise AssertionError(f"{len(difference)} predictions for {len(graphs)} graphs")
    change = np.abs(difference).max(axis=tuple(range(1, difference.ndim)), initial=0)
    changed = np.flatnonzero(~(change <= tolerance))  # so that NaN counts as changed
    if len(changed):
        first = int(changed[0])
        raise AssertionError(
            f"graph {first} ({graphs.names[first]}): renumbering its nodes changes the prediction by "
            f"{change[first]:.3g}, more than {tolerance:g}; so it is for {len(changed)} of {len(graphs)} graphs"
        )
