"""JSON lines, one graph an object -> Graphs::

    {"name": "ethanol", "nodes": ["C", "C", "O"], "edges": [[0, 1, "single"], [1, 2, "single"]], "target": "alcohol"}

- ``nodes``, counted from 0: how many; or a list with the label of every node; or a list of objects
  ``{"label": "C", "attributes": [0.1, 2]}`` with either field or both.
- ``edges``: a list of ``[0, 1]``, ``[0, 1, "single"]`` or ``{"source": 0, "target": 1, "label": "single", "weight":
  2.0}``, undirected; an edge may stand in both directions if both say the same.
- ``target``: a text or a boolean is a class, a number with a point a value to predict; whole numbers are judged as
  those of a table are. ``null``, or no such field: unknown.
- ``name``, ``split``, ``group``: as the columns of a table. ``smiles``: the molecule, atoms in the order of the nodes.
- ``critical_nodes``, ``critical_edges``: what is known to decide the target, ``[2]`` and ``[[1, 2]]``.

Labels are texts or whole numbers, ``null`` for one that is not known. What one graph has (labels, attributes, weights),
all must have. Other fields are left alone; :class:`~egocnn.config.ReadConfig` renames target, name, split and group."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.schema import rule
from egocnn.data.sources.builder import GraphFields
from egocnn.data.sources.records import MOST_NODES, GraphRecord
from egocnn.data.sources.text import checked_text, raw_lines, short
from egocnn.errors import DataError

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
NODE_KEYS = ("label", "attributes")
STRUCTURE = ("nodes", "edges", "critical_nodes", "critical_edges")
EDGE_KEYS = ("source", "target", "label", "weight")
# nodes beyond its characters that a file may claim by number alone: twenty bytes must not fill the memory, and a graph
UNMENTIONED_NODES = 250_000  # whose nodes have edges takes more characters than it has nodes, so no real one is refused


def json_records(path: Path, fields: GraphFields) -> Iterator[GraphRecord]:
    """The graphs of a file one at a time; their other fields are added to ``fields``. Blank lines are skipped, and a
    graph without a name is called by its line."""
    for number, row, graph in json_rows(path):
        place = f"{path.name}, line {number}"
        if isinstance(graph, DataError):
            fields.skip(place, number, row.get("smiles"), graph)
            continue
        fields.add(place, str(number), row, row.get("smiles"))
        yield graph
    fields.conclude("graphs")


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any], GraphRecord | DataError]]:
    """For every line its number, its fields besides the structure, and its graph or why it has none."""
    unmentioned = UNMENTIONED_NODES
    for number, line in enumerate(raw_lines(path), 1):
        if not line.strip():
            continue
        value: dict[str, Any] = {}
        try:
            value = _parse_line(checked_text(line))
            unmentioned += len(line)
            nodes: Any = value.get("nodes")
            if _is_whole(nodes) and 0 < nodes <= MOST_NODES:  # a number that is none of nodes is refused below
                more = f"a file may have {UNMENTIONED_NODES} more nodes than characters, so list them"
                rule(nodes <= unmentioned, f"{nodes} nodes by number alone; {more}")
                unmentioned -= nodes
            graph: GraphRecord | DataError = _parse_graph(value, f"{path.name}, line {number}")
        except DataError as error:
            graph = error
        yield number, {key: item for key, item in value.items() if key not in STRUCTURE}, graph


def _parse_line(line: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(line, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
        if "\\u" in line:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise DataError("nested too deeply for a graph") from None
    except UnicodeEncodeError as error:  # half a surrogate pair, which JSON can spell
        raise DataError(f"{short(error.object[error.start])} is not text that can be written as UTF-8") from None
    except ValueError as error:
        raise DataError(f"not JSON ({error})") from None
    rule(isinstance(value, dict), "a line must be one JSON object, {...}")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise DataError(f"the field {short(twice)} is given twice")
    return value


def _refuse_constant(word: str) -> Any:
    raise DataError(f"{word} is not a number that JSON knows; use null where a target is unknown")


def _parse_graph(value: Mapping[str, Any], place: str) -> GraphRecord:
    n_nodes, node_label, node_attr = _parse_nodes(value.get("nodes"))
    edges, edge_label, edge_weight = _parse_edges(value.get("edges", []), n_nodes)
    columns: dict[str, Any] = {"node_label": node_label, "node_attr": node_attr}
    columns |= {"edge_label": edge_label, "edge_weight": edge_weight}
    if "critical_nodes" in value:
        nodes = value["critical_nodes"]
        if not isinstance(nodes, list) or not all(_is_whole(node) and 0 <= node < n_nodes for node in nodes):
            raise DataError(f"critical_nodes must be a list of nodes, got {short(nodes)}")
        columns["node_truth"] = np.isin(np.arange(n_nodes), nodes).tolist()
    if "critical_edges" in value:
        critical = {tuple(sorted(pair)) for pair in _parse_edges(value["critical_edges"], n_nodes)[0].tolist()}
        known = [tuple(sorted(pair)) for pair in edges.tolist()]
        for u, v in critical.difference(known):
            raise DataError(f"critical edge {u}, {v} is not among the edges")
        columns["edge_truth"] = [pair in critical for pair in known]
    return GraphRecord(place=place, n_nodes=n_nodes, edges=edges, **columns)


def _parse_nodes(nodes: Any) -> tuple[int, list[str | None] | None, list[list[float]] | None]:
    """The field ``nodes`` -> how many, their labels, their attributes."""
    if _is_whole(nodes):
        rule(1 <= nodes <= MOST_NODES, f"nodes must be 1 to {MOST_NODES}, got {short(nodes)}")
        return nodes, None, None
    if not isinstance(nodes, list):
        raise DataError(f"nodes must be a number or a list, got {short(nodes)}")
    rule(nodes, "a graph must have at least one node")
    if not isinstance(nodes[0], dict):
        return len(nodes), [_label(node, "node") for node in nodes], None
    keys = nodes[0].keys()
    for number, node in enumerate(nodes):
        _check_keys(node, NODE_KEYS, f"node {number}")
        if node.keys() != keys:
            raise DataError(f"node {number} has other fields than node 0; labels and attributes are for all or none")
    labels = [_label(node["label"], "node") for node in nodes] if "label" in keys else None
    if "attributes" not in keys:
        return len(nodes), labels, None
    return len(nodes), labels, [_numbers(node["attributes"], f"attributes of node {i}") for i, node in enumerate(nodes)]


def _parse_edges(edges: Any, n_nodes: int) -> tuple[Ints, list[str | None] | None, list[float] | None]:
    """The field ``edges`` -> pairs of nodes, their labels, their weights."""
    if not isinstance(edges, list):
        raise DataError(f"edges must be a list, got {short(edges)}")
    if not edges:
        return np.zeros((0, 2), np.int64), None, None
    columns = _edge_columns(edges)
    for u, v in zip(columns["source"], columns["target"], strict=True):
        if not (type(u) is type(v) is int and 0 <= u < n_nodes and 0 <= v < n_nodes):
            raise DataError(f"edge {short([u, v])} must join two nodes, numbered 0 to {n_nodes - 1}")
    pairs = np.array([columns["source"], columns["target"]], np.int64).T
    labels = [_label(label, "edge") for label in columns["label"]] if "label" in columns else None
    weights = _numbers(list(columns["weight"]), "edge weights") if "weight" in columns else None
    return pairs, labels, weights


def _edge_columns(edges: list[Any]) -> dict[str, Sequence[Any]]:
    """Edges, all lists or all objects, all with the same fields -> one sequence per field."""
    kind = type(edges[0])
    rule(kind in (list, dict), f"edge {short(edges[0])} must be a list or an object")
    length = len(edges[0])
    for edge in edges:
        if type(edge) is not kind or len(edge) != length:
            raise DataError(f"edge {short(edge)} is not written as edge 0 is; labels and weights are for all or none")
    if kind is list:
        rule(2 <= length <= 3, f"edge {short(edges[0])} must be [source, target] or [source, target, label]")
        return {key: [edge[i] for edge in edges] for i, key in enumerate(EDGE_KEYS[:length])}
    for edge in edges:
        _check_keys(edge, EDGE_KEYS, f"edge {short(edge)}")
        if edge.keys() != edges[0].keys() or not {"source", "target"} <= edge.keys():
            raise DataError(f"edge {short(edge)} must have a source and a target, and the fields that the others have")
    return {key: [edge[key] for edge in edges] for key in edges[0]}


def _check_keys(value: Any, known: Sequence[str], what: str) -> None:
    rule(isinstance(value, dict), f"{what} must be an object with {', '.join(known)}, got {short(value)}")
    for key in value:
        if key not in known:
            raise DataError(f"{what} has a field {short(key)}; there may be {', '.join(known)}")


def _label(value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if _is_whole(value):
        return str(value)
    raise DataError(f"{what} label {short(value)} must be a text or a whole number")


def _numbers(values: Any, what: str) -> list[float]:
    if not isinstance(values, list) or not all(_is_whole(v) or isinstance(v, float) for v in values):
        raise DataError(f"{what} must be numbers, got {short(values)}")
    return values


def _is_whole(value: Any) -> bool:
    return type(value) is int  # isinstance would let booleans pass
