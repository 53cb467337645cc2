"""What a graph and a collection of graphs hold, and the rules that it obeys: Graphs -> nothing, or a DataError."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from egocnn.data.arrays import LARGEST, Bools, Floats, Ints, bits, mix
from egocnn.errors import DataError
from egocnn.errors import rule as rule

if TYPE_CHECKING:
    from egocnn.data.graphs import Graphs

PARTS = ("train", "validation", "test")
DRAWN = ("random", "scaffold")  # splits that need no column
NODE_COLUMNS = ("node_label", "node_attr", "node_truth")
EDGE_COLUMNS = ("edge_label", "edge_weight", "edge_truth")
INNER_COLUMNS = (*NODE_COLUMNS, *EDGE_COLUMNS)
GRAPH_COLUMNS = ("target", "group", "part")
ARRAYS = ("node_ptr", "indptr", "indices", *INNER_COLUMNS, *GRAPH_COLUMNS)
NAME_LISTS = {"node_label": "node_label_names", "edge_label": "edge_label_names", "target": "class_names"}
SEPARATOR = "|"  # between the words of a label; see :mod:`egocnn.encode.words`
ENTRIES_AT_ONCE = 1 << 15  # adjacency entries checked together: few enough for the processor's cache
INTEGERS = ("node_ptr", "indptr", "indices", "node_label", "edge_label", "group", "part")
Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """One graph of a collection, node ids counted from 0, each edge once with u <= v.

    Example:
        >>> import egocnn
        >>> graph = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")[0]
        >>> graph.name, graph.n_nodes, graph.target, graph.smiles
        ('C3H8 #1', 11, 'alkane', 'CCC')"""

    name: str  #: what to call it
    n_nodes: int  #: N
    edges: Ints  #: (E, 2) pairs of nodes
    node_label: tuple[str, ...] | None  #: (N) for example element symbols; "?" where a label is not known
    edge_label: tuple[str, ...] | None  #: (E) for example kinds of bonds
    edge_weight: Floats | None  #: (E) heavier is nearer
    node_attr: Floats | None  #: (N, A) numbers that the nodes bring along
    target: str | float | None  #: the class by name, or the value to be predicted
    smiles: str | None  #: where the graph is a molecule
    node_truth: Bools | None  #: (N) whether the node is known to be critical
    edge_truth: Bools | None  #: (E) whether the edge is known to be critical
    node_names: tuple[str, ...] | None = None  #: (N) what the source calls the nodes, where they have names


class FlatGraphs:
    """What follows from the three arrays in which a collection of G graphs holds its structure."""

    __slots__ = ()
    node_ptr: Ints
    indptr: Ints
    indices: Ints

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def shape(self) -> tuple[int]:
        """(G), for scikit-learn, which takes a collection apart as it does an array"""
        return (len(self),)

    @property
    def n_nodes(self) -> int:
        """N, of all graphs together."""
        return int(self.node_ptr[-1])

    @property
    def n_entries(self) -> int:
        """M, the adjacency entries of all graphs together."""
        return len(self.indices)

    @property
    def n_edges(self) -> int:
        """Undirected edges, a self-loop counted once."""
        return (self.n_entries + int((self.indices == self.entry_node).sum())) // 2

    @property
    def node_counts(self) -> Ints:
        """(G) nodes of every graph"""
        return np.diff(self.node_ptr)

    @property
    def degree(self) -> Ints:
        """(N) neighbours of every node, a self-loop counted once"""
        return np.diff(self.indptr)

    @property
    def graph_of(self) -> Ints:
        """(N) the graph that owns each node"""
        return np.repeat(np.arange(len(self)), self.node_counts)

    @property
    def entry_node(self) -> Ints:
        """(M) the node in whose row each adjacency entry stands"""
        return np.repeat(np.arange(self.n_nodes, dtype=self.indices.dtype), self.degree)

    @property
    def edges(self) -> Ints:
        """(E, 2) every edge once, u <= v, in collection-wide node ids, sorted"""
        node = self.entry_node
        keep = node <= self.indices
        return np.stack([node[keep], self.indices[keep]], axis=1)


def take_columns(graphs: "Graphs", *, nodes: Any, entries: Any, chosen: Any = None) -> dict[str, Any]:
    """The columns of these nodes, adjacency entries and graphs (None: all), each an index array, a mask or a slice."""
    by_node = (*NODE_COLUMNS, "node_names")
    units = ((by_node, nodes), (EDGE_COLUMNS, entries), (GRAPH_COLUMNS, slice(None) if chosen is None else chosen))
    return {n: None if (v := getattr(graphs, n)) is None else v[where] for names, where in units for n in names}


def checked(graphs: "Graphs") -> "Graphs":
    """The same, once kinds, lengths, ranges and symmetry have been checked by what the fields of Graphs say."""
    node_ptr, indptr, indices = graphs.node_ptr, graphs.indptr, graphs.indices
    whole = (*INTEGERS, "target") if graphs.class_names else INTEGERS
    for name in ARRAYS:
        if (values := getattr(graphs, name)) is not None:
            rule(isinstance(values, np.ndarray), f"{name} must be an array of numpy")
            rule(name not in whole or np.issubdtype(values.dtype, np.integer), f"{name} must be whole numbers")
    for name, pointer in (("node_ptr", node_ptr), ("indptr", indptr)):
        rule(pointer.ndim == 1 and len(pointer) >= 1 and pointer[0] == 0, f"{name} must start with 0")
        rule((pointer[1:] >= pointer[:-1]).all(), f"{name} must not decrease")
    n_nodes, n_entries = graphs.n_nodes, len(indices)
    rule(len(indptr) == n_nodes + 1, f"indptr has {len(indptr)} entries for {n_nodes} nodes")
    rule(indptr[-1] == n_entries, f"indptr ends at {indptr[-1]} but there are {n_entries} adjacency entries")
    rule(indices.min(initial=0) >= 0 and indices.max(initial=-1) < n_nodes, "indices out of range")
    units = (((*NODE_COLUMNS, "node_names"), n_nodes, "nodes"), (EDGE_COLUMNS, n_entries, "adjacency entries"))
    tables = ("node_attr", "target") if graphs.targets else ("node_attr",)
    for columns, size, unit in (*units, (GRAPH_COLUMNS, len(graphs), "graphs")):
        for name in columns:
            if (values := getattr(graphs, name)) is not None:
                rule(values.ndim == 1 + (name in tables), f"{name} has shape {values.shape} for {size} {unit}")
                rule(len(values) == size, f"{name} has {len(values)} entries for {size} {unit}")
    several = {name: getattr(graphs, name) for name in ("names", "smiles", "node_names", *NAME_LISTS.values())}
    several["targets"] = [text for one, names in graphs.targets for text in (one, *names)]
    for name, given in several.items():
        try:
            "".join(() if given is None else given).encode()
        except (TypeError, UnicodeEncodeError) as error:
            raise DataError(f"{name} must be texts that can be written as UTF-8 ({error})") from None
    rule(len(graphs.names) == len(graphs), f"{len(graphs.names)} names for {len(graphs)} graphs")
    rule(graphs.smiles is None or len(graphs.smiles) == len(graphs), "smiles must name every graph")
    for name in ("node_label", "edge_label"):
        if (codes := getattr(graphs, name)) is not None and codes.size:
            rule(codes.min() >= -1 and codes.max() < len(getattr(graphs, f"{name}_names")), f"{name} out of range")
    if graphs.targets:
        names, shape = graphs.target_names, None if graphs.target is None else graphs.target.shape
        rule(len(set(names)) == len(names), f"two of the targets {', '.join(names)} have one name")
        rule(shape == (len(graphs), len(names)), f"target has shape {shape}, not a column for each of {len(names)}")
    for one in [graphs.of_target(name) for name in graphs.target_names] or [graphs]:
        if one.target is not None and one.class_names:
            known = (one.target >= -1) & (one.target < len(one.class_names))
            rule(known.all(), "target names a class that does not exist")
        elif one.target is not None:
            rule(not np.isinf(one.target).any(), "target must be finite, or NaN where it is unknown")
            for g in np.flatnonzero(np.abs(one.target) > LARGEST).tolist():
                value = f"target of graph {graphs.names[g]!r} is {one.target[g]:g}"
                raise DataError(f"{value}; at most {LARGEST:.2g} is allowed: rescale them")
    if graphs.part is not None:
        rule(((graphs.part >= 0) & (graphs.part < len(PARTS))).all(), f"part must be one of {', '.join(PARTS)}")
    rule(graphs.group is None or graphs.group.min(initial=0) >= 0, "group must not be negative")
    for name in ("node_attr", "edge_weight"):
        fits = (values := getattr(graphs, name)) is None or (np.abs(values) <= LARGEST).all()  # NaN does not
        rule(fits, f"{name} must be finite numbers of at most {LARGEST:.2g}")
    if len(indices):
        node, owner = graphs.entry_node, graphs.graph_of
        rule((owner[node] == owner[indices]).all(), "an edge must stay inside one graph")
        ascending = (indices[1:] > indices[:-1]) | (node[1:] != node[:-1])
        rule(ascending.all(), "the neighbours of a node must be in ascending order, each once")
        rule(_is_symmetric(graphs), "an edge must stand in the rows of both its ends, with the same label and weight")
    return graphs


def _is_symmetric(graphs: "Graphs") -> bool:
    """Whether the entries below the diagonal mirror those above: as scattered 64-bit numbers their sums are equal."""
    columns = [values for name in EDGE_COLUMNS if (values := getattr(graphs, name)) is not None]
    node_of, neighbour_of, balance = graphs.entry_node, graphs.indices, 0
    for first in range(0, graphs.n_entries, ENTRIES_AT_ONCE):
        here = slice(first, first + ENTRIES_AT_ONCE)
        node, neighbour = node_of[here].astype(np.int64), neighbour_of[here].astype(np.int64)
        entry = mix(bits(np.minimum(node, neighbour) * graphs.n_nodes + np.maximum(node, neighbour)))
        for values in columns:
            entry = mix(entry ^ mix(bits(values[here])))
        balance += int((entry.view(np.int64) * np.sign(neighbour - node)).sum())
    return balance % 2**64 == 0
