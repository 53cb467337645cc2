"""networkx graphs -> Graphs.

Read from a graph: the node data ``label`` and ``attr`` (or ``x``; numbers), the edge data ``label`` and ``weight``,
and of ``graph.graph`` the name, the target, the split and the group (as those of a table) and ``smiles``.
Directed graphs are read as undirected and parallel edges as one; labels and weights must agree then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.sources.builder import GraphFields, GraphRecord, assemble
from egocnn.data.sources.text import short
from egocnn.errors import DataError

ATTRIBUTE_FIELDS = ("attr", "x")


def from_networkx(graphs: Sequence[Any], config: ReadConfig | None = None) -> Graphs:
    """Read networkx graphs, nodes in their order of iteration."""
    found = [(graph, f"graph {i}", str(i)) for i, graph in enumerate(graphs)]
    return collect(found, config or ReadConfig(), "networkx")


def collect(found: Sequence[tuple[Any, str, str]], config: ReadConfig, where: str) -> Graphs:
    """Graphs, each with its place for error messages and the name that it has if it brings none -> one collection."""
    records = [_record(graph, place) for graph, place, _ in found]
    fields = GraphFields(where, config)
    for graph, place, name in found:
        fields.add(place, name, {str(key): value for key, value in graph.graph.items()}, graph.graph.get("smiles"))
    return assemble(records, where, **fields.columns())


def _record(graph: Any, place: str) -> GraphRecord:
    if not all(hasattr(graph, part) for part in ("nodes", "edges", "graph")):
        raise DataError(f"{place}: {short(graph)} is not a networkx graph")
    position = {node: i for i, node in enumerate(graph.nodes)}
    node_data = [data for _, data in graph.nodes(data=True)]
    edges = list(graph.edges(data=True))
    edge_data = [data for _, _, data in edges]
    weights = _column(edge_data, "weight", f"{place}: edge")
    for weight in weights or ():
        if not _is_number(weight):
            raise DataError(f"{place}: edge weight {short(weight)} must be a number")
    return GraphRecord(
        place=place,
        n_nodes=len(position),
        edges=[(position[u], position[v]) for u, v, _ in edges],
        node_label=_labels(_column(node_data, "label", f"{place}: node")),
        edge_label=_labels(_column(edge_data, "label", f"{place}: edge")),
        edge_weight=weights,
        node_attr=_attributes(node_data, place),
    )


def _attributes(node_data: Sequence[Mapping[str, Any]], place: str) -> list[list[Any]] | None:
    """Numbers of every node (N, A): the data called attr or x."""
    for name in ATTRIBUTE_FIELDS:
        values = _column(node_data, name, f"{place}: node")
        # a lone x is where a drawing program put the node, not an attribute
        if values is not None and not (name == "x" and any(np.ndim(value) == 0 for value in values)):
            rows = [_flat(value, place) for value in values]
            if len({len(row) for row in rows}) > 1:
                raise DataError(f"{place}: node attributes must be as many for every node")
            return rows
    return None


def _flat(value: Any, place: str) -> list[Any]:
    numbers = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]
    for number in numbers:
        if not _is_number(number):
            raise DataError(f"{place}: node attribute {short(number)} must be a number")
    return numbers


def _column(data: Sequence[Mapping[str, Any]], name: str, what: str) -> list[Any] | None:
    """The value called ``name`` of every node or edge, None where none has it."""
    having = [name in row for row in data]
    if not any(having):
        return None
    if not all(having):
        raise DataError(f"{what} {having.index(False)} has no {short(name)}, but {having.index(True)} has; all need it")
    return [row[name] for row in data]


def _labels(values: Sequence[object] | None) -> list[str | None] | None:
    return None if values is None else [None if value is None else str(value) for value in values]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
