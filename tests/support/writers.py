"""Graphs -> JSON lines and networkx graphs, the way back of the readers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS


def write_jsonlines(graphs: Graphs, path: str | Path) -> None:
    """Write one object per graph; read back with split="split" and group="group" it is the same collection.

    Names of labels and classes that no graph bears are not written.
    """
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for g, record in enumerate(take_apart(graphs)):
            value = {**_structure(record), **graph_facts(graphs, g)}
            file.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


def _structure(record: Any) -> dict[str, Any]:
    edges = record.edges.tolist()
    value: dict[str, Any] = {"nodes": record.n_nodes, "edges": edges}
    if record.node_attr is not None:
        value["nodes"] = [{"attributes": row} for row in record.node_attr.tolist()]
        for node, label in zip(value["nodes"], record.node_label or (), strict=False):
            node["label"] = label
    elif record.node_label is not None:
        value["nodes"] = record.node_label
    if record.edge_weight is not None:
        weights = record.edge_weight.tolist()
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
        graph.add_edges_from(record.edges.tolist())
        for data, label in zip(graph.nodes.values(), record.node_label or (), strict=False):
            data["label"] = label
        if record.node_attr is not None:
            for data, row in zip(graph.nodes.values(), record.node_attr.tolist(), strict=True):
                data["attr"] = row
        for row, (u, v) in enumerate(record.edges.tolist()):
            if record.edge_label is not None:
                graph.edges[u, v]["label"] = record.edge_label[row]
            if record.edge_weight is not None:
                graph.edges[u, v]["weight"] = float(record.edge_weight[row])
        made.append(graph)
    return made


def take_apart(graphs: Graphs) -> Iterator[Any]:
    """Each :class:`Graph`, with None in place of labels that are not known."""
    for g, graph in enumerate(graphs):
        one = graphs[[g]]
        labels = {"node_label": one.node_label, "edge_label": one.edge_label}
        if one.edge_label is not None:
            labels["edge_label"] = one.edge_label[one.entry_node <= one.indices]
        known: dict[str, Any] = {
            name: None if codes is None else [(*getattr(one, f"{name}_names"), None)[code] for code in codes]
            for name, codes in labels.items()
        }
        yield replace(graph, **known)


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
