"""Graphs -> JSON lines and networkx graphs, the way back of the readers."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.data.sources.records import GraphRecord


def write_jsonlines(graphs: Graphs, path: str | Path) -> None:
    """Write one object per graph; read back with split="split" and group="group" it is the same collection.

    Names of labels and classes that no graph bears are not written.
    """
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for g, record in enumerate(take_apart(graphs)):
            value = {**_structure(record), **graph_facts(graphs, g)}
            file.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


def _structure(record: GraphRecord) -> dict[str, Any]:
    edges = np.asarray(record.edges).tolist()
    value: dict[str, Any] = {"nodes": record.n_nodes, "edges": edges}
    if record.node_attr is not None:
        value["nodes"] = [{"attributes": row} for row in np.asarray(record.node_attr).tolist()]
        for node, label in zip(value["nodes"], record.node_label or (), strict=False):
            node["label"] = label
    elif record.node_label is not None:
        value["nodes"] = record.node_label
    if record.edge_weight is not None:
        weights = np.asarray(record.edge_weight).tolist()
        value["edges"] = [{"source": u, "target": v, "weight": w} for (u, v), w in zip(edges, weights, strict=True)]
        for edge, label in zip(value["edges"], record.edge_label or (), strict=False):
            edge["label"] = label
    elif record.edge_label is not None:
        value["edges"] = [[u, v, label] for (u, v), label in zip(edges, record.edge_label, strict=True)]
    if record.node_truth is not None:
        value["critical_nodes"] = np.flatnonzero(record.node_truth).tolist()
    if record.edge_truth is not None:
        value["critical_edges"] = [edge for edge, critical in zip(edges, record.edge_truth, strict=True) if critical]
    return value


def to_networkx(graphs: Graphs) -> list[Any]:
    """One undirected networkx graph per graph, nodes 0, 1, ..., with the data that :func:`from_networkx` reads.

    The known truth is left out: networkx has no custom for it.
    """
    import networkx as nx

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


def take_apart(graphs: Graphs) -> Iterator[GraphRecord]:
    """The collection as records again, each edge once; their places are the names of the graphs."""
    for g, name in enumerate(graphs.names):
        one = graphs[[g]]
        once = one.entry_node <= one.indices

        def of_edges(values: NDArray[Any] | None, once: NDArray[Any] = once) -> NDArray[Any] | None:
            return None if values is None else values[once]

        yield GraphRecord(
            place=name,
            n_nodes=one.n_nodes,
            edges=one.edges,
            node_label=_decode_labels(one.node_label, one.node_label_names),
            edge_label=_decode_labels(of_edges(one.edge_label), one.edge_label_names),
            edge_weight=of_edges(one.edge_weight),
            node_attr=one.node_attr,
            node_truth=None if one.node_truth is None else one.node_truth.tolist(),
            edge_truth=None if one.edge_truth is None else one.edge_truth[once].tolist(),
        )


def _decode_labels(codes: Ints | None, names: Sequence[str]) -> list[str | None] | None:
    return None if codes is None else [names[code] if code >= 0 else None for code in codes]


def graph_facts(graphs: Graphs, g: int) -> dict[str, Any]:
    """Name, target, split, group and SMILES of graph ``g``, as the fields that :class:`GraphFields` reads."""
    facts: dict[str, Any] = {"name": graphs.names[g]}
    if graphs.target is not None:
        facts["target"] = graphs[g].target
    if graphs.part is not None:
        facts["split"] = PARTS[int(graphs.part[g])]
    if graphs.group is not None:
        facts["group"] = int(graphs.group[g])
    if graphs.smiles is not None:
        facts["smiles"] = graphs.smiles[g]
    return facts
