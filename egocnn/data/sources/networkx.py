"""networkx graphs -> Graphs, and back.

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
from egocnn.data.sources.builder import GraphRecord, assemble, checked_numbers, take_apart
from egocnn.data.sources.columns import graph_columns, graph_facts
from egocnn.data.sources.text import short
from egocnn.errors import DataError, MissingExtraError

ATTRIBUTE_FIELDS = ("attr", "x")


def from_networkx(graphs: Sequence[Any], config: ReadConfig | None = None, *, attributes: Sequence[str] = ()) -> Graphs:
    """Read networkx graphs, nodes in their order of iteration; ``attributes`` names the node data that are numbers."""
    places = [f"graph {i}" for i in range(len(graphs))]
    names = [str(i) for i in range(len(graphs))]
    return collect(graphs, config or ReadConfig(), where="networkx", places=places, names=names, attributes=attributes)


def collect(
    graphs: Sequence[Any],
    config: ReadConfig,
    *,
    where: str,
    places: Sequence[str],
    names: Sequence[str],
    attributes: Sequence[str] = (),
) -> Graphs:
    """As :func:`from_networkx`, for graphs from files: ``places`` for errors, ``names`` for graphs without one."""
    records = [_record(graph, place, attributes) for graph, place in zip(graphs, places, strict=True)]
    fields: list[Mapping[str, object]] = [{str(key): v for key, v in graph.graph.items()} for graph in graphs]
    columns = graph_columns(fields, config, where=where, places=places, names=names)
    smiles = [row.get("smiles") for row in fields]
    if smiles and all(isinstance(text, str) for text in smiles):
        columns["smiles"] = tuple(smiles)
    return assemble(records, where, **columns)


def to_networkx(graphs: Graphs) -> list[Any]:
    """One undirected networkx graph per graph, nodes 0, 1, ..., with the data that :func:`from_networkx` reads.

    The known truth is left out: networkx has no custom for it.
    """
    try:
        import networkx as nx
    except ImportError:
        raise MissingExtraError("networkx", "networks") from None
    made = []
    for g, record in enumerate(take_apart(graphs)):
        graph = nx.Graph(**graph_facts(graphs, g))
        graph.add_nodes_from(range(record.n_nodes))
        graph.add_edges_from(np.asarray(record.edges).tolist())
        for data, label in zip(graph.nodes.values(), record.node_label or (), strict=False):
            data["label"] = label
        if record.node_attr is not None:
            for data, row in zip(graph.nodes.values(), np.asarray(record.node_attr).tolist(), strict=True):
                data["attr"] = row
        for row, (u, v) in enumerate(np.asarray(record.edges).tolist()):
            if record.edge_label is not None:
                graph.edges[u, v]["label"] = record.edge_label[row]
            if record.edge_weight is not None:
                graph.edges[u, v]["weight"] = float(record.edge_weight[row])
        made.append(graph)
    return made


def _record(graph: Any, place: str, attributes: Sequence[str]) -> GraphRecord:
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
        edge_weight=None if weights is None else checked_numbers(weights, place, "edge weights"),
        node_attr=_attributes(node_data, attributes, place),
    )


def _attributes(node_data: Sequence[Mapping[str, Any]], names: Sequence[str], place: str) -> Any:
    """Numbers of every node (N, A): the named data side by side, or the one called attr or x."""
    if names:
        columns = [_column(node_data, name, f"{place}: node") for name in names]
        for name, values in zip(names, columns, strict=True):
            if values is None:
                raise DataError(f"{place}: no node has {short(name)}")
        rows = [[number for value in row for number in _flat(value, place)] for row in zip(*columns, strict=True)]
    else:
        for name in ATTRIBUTE_FIELDS:
            values = _column(node_data, name, f"{place}: node")
            # a lone x is where a drawing program put the node, not an attribute
            if values is not None and not (name == "x" and any(np.ndim(value) == 0 for value in values)):
                rows = [_flat(value, place) for value in values]
                break
        else:
            return None
    if len({len(row) for row in rows}) > 1:
        raise DataError(f"{place}: node attributes must be as many for every node")
    return rows


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
