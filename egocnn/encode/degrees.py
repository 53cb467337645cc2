"""Graphs without node labels -> the same graphs, every node described by degrees: its own and those around it. The
label is the degree, in classes. The attributes are the local degree profile (Cai and Wang, A simple yet effective
baseline for non-attributed graph classification, 2018), in logarithms: the degree itself, and least, largest, mean and
standard deviation of the neighbours' degrees. They see all neighbours, also those beyond K."""

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graphs

# degrees below have a label of their own: where cliques overlap, as in COLLAB, the exact numbers tell much
EXACT = 64  # larger ones share it with those up to half an octave away
PROFILE = 5  # Attributes that a local degree profile has.


def describe_by_degree(graphs: Graphs) -> Graphs:
    """Labels named ``degree 3`` or ``degree 64 to 90``, and five attributes more; self-loops do not count."""
    joined = np.flatnonzero(graphs.entry_node != graphs.indices)
    node, neighbour = graphs.entry_node[joined], graphs.indices[joined]
    degree = np.bincount(node, minlength=graphs.n_nodes)
    found, label = np.unique(levels(degree), return_inverse=True)
    # least, largest, mean and deviation of the neighbours' degrees; 0 without any
    own = np.log1p(degree)
    around = own[neighbour]
    has = degree > 0
    first = np.cumsum(degree[has]) - degree[has]
    attributes: Floats = np.zeros((len(degree), PROFILE))
    attributes[:, 0] = own
    if has.any():
        attributes[has, 1] = np.minimum.reduceat(around, first)
        attributes[has, 2] = np.maximum.reduceat(around, first)
        attributes[has, 3] = np.add.reduceat(around, first) / degree[has]
        away = np.square(around - attributes[node, 3])
        attributes[has, 4] = np.sqrt(np.add.reduceat(away, first) / degree[has])
    if graphs.node_attr is not None:
        attributes = np.concatenate([graphs.node_attr, attributes], axis=1)
    names, attr = tuple(name_of(int(each)) for each in found), attributes.astype(np.float32)
    return graphs.replace(node_label=label.astype(np.int32), node_label_names=names, node_attr=attr)


def levels(degree: Ints) -> Ints:
    """The number of the label: the degree itself, or EXACT and more for half octaves"""
    octaves = np.floor(2 * np.log2(np.maximum(degree, EXACT) / EXACT) + 1e-9).astype(np.int64)
    level: Ints = np.where(degree < EXACT, degree, EXACT + octaves)
    return level


def name_of(level: int) -> str:
    """The name of the label with this number."""
    if level < EXACT:
        return f"degree {level}"
    first, after = (int(np.ceil(EXACT * 2 ** (half / 2) - 1e-6)) for half in (level - EXACT, level - EXACT + 1))
    return f"degree {first} to {after - 1}"


NAMES = frozenset(name_of(level) for level in range(EXACT + 2 * 40))  # Of all degrees that fit on any disk.
