"""networkx graphs, and GraphML and GEXF files through networkx -> Graphs. Read are the node data ``label`` and ``attr``
(or ``x``; numbers), the edge data ``label`` and ``weight``, or those that the settings name, and of ``graph.graph``
name, target, split and group, as of a table, and ``smiles``; what is left out is told in one line. Directed graphs
become undirected and parallel edges one, if labels and weights agree. Nodes keep the names that they have."""

import logging
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from egocnn.config import ReadConfig, split_names
from egocnn.data.graphs import Graphs
from egocnn.data.schema import Names, rule
from egocnn.data.sources.builder import GraphFields, choose_field
from egocnn.data.sources.records import GraphRecord, collect
from egocnn.data.sources.text import listed, one_line, optional, reading, reason, short
from egocnn.errors import DataError

ATTRIBUTE_FIELDS = ("attr", "x")
GRAPH_SUFFIXES = (".graphml", ".gexf")
log = logging.getLogger("egocnn")


def from_networkx(graphs: Sequence[Any], config: ReadConfig | None = None) -> Graphs:
    """Read networkx graphs, nodes in their order of iteration."""
    found = [(graph, f"graph {i}", str(i)) for i, graph in enumerate(graphs)]
    return _collect(found, config or ReadConfig(), "networkx")


def _collect(found: Sequence[tuple[Any, str, str]], config: ReadConfig, where: str) -> Graphs:
    """Graphs, each with its place for error messages and the name that it has if it brings none -> one collection."""
    for graph, place, _ in found:
        if not all(hasattr(graph, part) for part in ("nodes", "edges", "graph")):
            raise DataError(f"{place}: {short(graph)} is not a networkx graph")
    config, used, left_out = _chosen([graph for graph, _, _ in found], config, where)
    records = [_record(graph, place, config) for graph, place, _ in found]
    fields = GraphFields(where, config)
    for graph, place, name in found:
        fields.add(place, name, {str(key): value for key, value in graph.graph.items()}, graph.graph.get("smiles"))
    graphs = collect(records, fields)
    if left_out:
        read = f"read of nodes and edges: {listed(used) or 'nothing'}; left out: {listed(left_out)}"
        choose = "--node-label, --node-attributes, --edge-label and --edge-weight choose"
        log.warning("%s: %s (%s)", one_line(where), read, choose)
    names = [[str(node) for node in graph.nodes] for graph, _, _ in found]
    has_names = any(own != [str(n) for n in range(len(own))] for own in names)
    is_unique = all(len(set(own)) == len(own) for own in names)  # 1 and "1" are two nodes to networkx
    own = np.array(list(chain(*names)), object) if has_names and is_unique else None
    return graphs.replace(used=used, left_out=left_out, node_names=own)


def _chosen(graphs: Sequence[Any], config: ReadConfig, where: str) -> tuple[ReadConfig, Names, Names]:
    """The settings with the data of nodes and edges that are read, these, and those that are left out."""
    rows = {"node": [data for graph in graphs for _, data in graph.nodes(data=True)]}
    rows["edge"] = [data for graph in graphs for *_, data in graph.edges(data=True)]
    there = {kind: [k for k in dict.fromkeys(chain(*data)) if isinstance(k, str)] for kind, data in rows.items()}
    usual = {"node_label": "label", "edge_label": "label", "edge_weight": "weight"}
    said: dict[str, Any] = {
        name: choose_field(there[name[:4]], getattr(config, name), [default], f"{where}, {name[:4]}s")
        for name, default in usual.items()
    }
    attributes = split_names(config.node_attributes)
    for name in attributes:
        choose_field(there["node"], name, (), f"{where}, nodes")
    # a lone x is where a drawing program put the node, not an attribute
    is_place = any(np.ndim(row.get("x", ())) == 0 for row in rows["node"])
    default = [name for name in ATTRIBUTE_FIELDS if name in there["node"] and not (name == "x" and is_place)][:1]
    said["node_attributes"] = ",".join(attributes or default) or None
    pairs = [(name[:4], own) for name, own in said.items() if own and name != "node_attributes"]
    pairs += [("node", name) for name in attributes or default]
    used = tuple(f"{kind} {name}" for kind, name in dict.fromkeys(pairs))
    left_out = tuple(f"{kind} {key}" for kind, keys in there.items() for key in keys if (kind, key) not in pairs)
    return replace(config, **said), used, left_out


def _record(graph: Any, place: str, config: ReadConfig) -> GraphRecord:
    position = {node: i for i, node in enumerate(graph.nodes)}
    node_data = [data for _, data in graph.nodes(data=True)]
    edges = list(graph.edges(data=True))
    edge_data = [data for _, _, data in edges]
    weights = _column(edge_data, config.edge_weight, f"{place}: edge")
    _check_numbers(weights or (), f"{place}: edge weight")
    columns: dict[str, Any] = {"edge_weight": weights}
    for kind, data, name in (("node", node_data, config.node_label), ("edge", edge_data, config.edge_label)):
        values = _column(data, name, f"{place}: {kind}")
        columns[f"{kind}_label"] = values and [None if value is None else str(value) for value in values]
    columns["node_attr"] = _attributes(node_data, split_names(config.node_attributes), place)
    pairs = [(position[u], position[v]) for u, v, _ in edges]
    return GraphRecord(place=place, n_nodes=len(position), edges=pairs, **columns)


def _attributes(node_data: Sequence[Mapping[str, Any]], names: Sequence[str], place: str) -> list[list[Any]] | None:
    """Numbers of every node (N, A): the data of these names, each a number or a list of them."""
    columns = [values for name in names if (values := _column(node_data, name, f"{place}: node")) is not None]
    rows = [
        [x for value in own for x in (value if isinstance(value, (list, tuple, np.ndarray)) else [value])]
        for own in zip(*columns, strict=True)
    ]
    for row in rows:
        _check_numbers(row, f"{place}: node attribute")
        rule(len(row) == len(rows[0]), f"{place}: node attributes must be as many for every node")
    return rows or None


def _check_numbers(values: Sequence[object], what: str) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise DataError(f"{what} {short(value)} must be a number")


def _column(data: Sequence[Mapping[str, Any]], name: str | None, what: str) -> list[Any] | None:
    """The value called ``name`` of every node or edge, None where none has it."""
    if name is None:
        return None
    having = [name in row for row in data]
    if not any(having):
        return None
    if not all(having):
        raise DataError(f"{what} {having.index(False)} has no {short(name)}, but {having.index(True)} has; all need it")
    return [row[name] for row in data]


def read_graph_files(paths: Sequence[Path], where: str, config: ReadConfig) -> Graphs:
    """The graphs of the files as one collection, called after their files; GraphML may hold several."""
    found: list[tuple[Any, str, str]] = []
    for path in paths:
        graphs = _parse_file(path, config)
        if len(graphs) == 1:
            found.append((graphs[0], path.name, path.stem))
        else:
            found += [(graph, f"{path.name}, graph {n}", f"{path.stem}-{n}") for n, graph in enumerate(graphs, 1)]
    return _collect(found, config, where)


def _parse_file(path: Path, config: ReadConfig) -> list[Any]:
    nx = optional("networkx", "networks")
    with reading(path):
        data = path.read_bytes()
    _check_xml(data, path.name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # networkx warns of what it leaves out: ports, untyped keys
            return [_read_gexf(data, nx)] if path.suffix.lower() == ".gexf" else _read_graphml(data, nx, config)
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None
    except Exception as error:  # networkx lets pass whatever its conversions raise
        raise DataError(f"{path.name}: networkx cannot read it ({reason(error)})") from None


def _check_xml(data: bytes, where: str) -> None:
    """Refuse broken XML, and any document type: it may define entities that grow without bound or read other files."""

    def refuse(*_: Any) -> None:
        raise DataError(f"{where}: has a document type (<!DOCTYPE ...>), which may be harmful; remove it")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise DataError(f"{where}, line {error.lineno}: not XML ({expat.ErrorString(error.code)})") from None
    except (ValueError, LookupError) as error:
        raise DataError(f"{where}: not XML that can be read ({error})") from None


def _read_graphml(data: bytes, nx: Any, config: ReadConfig) -> list[Any]:
    namespace = nx.readwrite.graphml.GraphML.NS_GRAPHML
    root = ElementTree.fromstring(data)
    for element in root.iter():
        if "}" not in element.tag:
            element.tag = f"{{{namespace}}}{element.tag}"
    # parallel edges stay until their labels have been compared
    reader = nx.readwrite.graphml.GraphMLReader(node_type=str, edge_key_type=str, force_multigraph=True)
    keys, defaults = reader.find_graphml_keys(root)
    # one default for each thing that is read: to fill in thousands at thousands of nodes would take all memory
    last = {(keys[key]["for"], keys[key]["name"]): key for key in defaults}  # which counts, as networkx has it
    wanted = {"label", "weight", *ATTRIBUTE_FIELDS, config.node_label, config.edge_label, config.edge_weight}
    wanted.update(split_names(config.node_attributes))
    read = [key for (of, name), key in last.items() if of in ("node", "edge") and name in wanted]
    defaults = {key: defaults[key] for key in read}
    graphs = []
    for element in root.findall(f"{{{namespace}}}graph"):
        graph = reader.make_graph(element, keys, defaults)
        _check_nodes(graph, element)
        _fill_in(graph.nodes(data=True), graph.graph.pop("node_default", {}))
        _fill_in(graph.edges(data=True), graph.graph.pop("edge_default", {}))
        graphs.append(graph)
    rule(graphs, "no graphs in it")
    return graphs


def _read_gexf(data: bytes, nx: Any) -> Any:
    graph = nx.read_gexf(BytesIO(data))
    _check_nodes(graph, ElementTree.fromstring(data))
    labels = {node: values.get("label") for node, values in graph.nodes(data=True)}
    # GEXF must call every node something; a node called by its own id has no label
    unlabelled = all(label == str(node) for node, label in labels.items())
    for node, label in labels.items():
        if unlabelled or label is None:
            graph.nodes[node].pop("label", None)
    if any("weight" in values for *_, values in graph.edges(data=True)):
        _fill_in(graph.edges(data=True), {"weight": 1.0})  # as the format has it
    return graph


def _check_nodes(graph: Any, element: ElementTree.Element) -> None:
    """networkx makes up the nodes that only an edge names, and merges those of one name: both are mistakes."""
    declared = [node.get("id") for node in element.iter() if str(node.tag).rpartition("}")[2] == "node"]
    rule(None not in declared, "a node has no id")
    known = Counter(declared)
    for node in graph.nodes:
        rule(str(node) in known, f"an edge names the node {short(str(node))}, which there is not")
    for twice, times in known.most_common(1):
        rule(times == 1, f"two nodes are called {short(twice)}")
    rule(len(declared) == len(graph), "graphs inside nodes are not read")


def _fill_in(items: Any, defaults: dict[str, Any]) -> None:
    for *_, values in items:
        for key, value in defaults.items():
            values.setdefault(key, value)
