"""GraphML and GEXF files -> Graphs, through networkx."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.sources.networkx import ATTRIBUTE_FIELDS, collect
from egocnn.data.sources.text import read_bytes, short
from egocnn.errors import DataError, MissingExtraError

GRAPH_SUFFIXES = (".graphml", ".gexf")
READ_FIELDS = ("label", "weight", *ATTRIBUTE_FIELDS)  # data of nodes and edges that are read


def read_graph_files(paths: Sequence[Path], where: str, config: ReadConfig) -> Graphs:
    """The graphs of the files as one collection, called after their files; GraphML may hold several."""
    found: list[tuple[Any, str, str]] = []
    for path in paths:
        graphs = _parse_file(path)
        if len(graphs) == 1:
            found.append((graphs[0], path.name, path.stem))
        else:
            found += [(graph, f"{path.name}, graph {n}", f"{path.stem}-{n}") for n, graph in enumerate(graphs, 1)]
    return collect(found, config, where)


def _parse_file(path: Path) -> list[Any]:
    try:
        import networkx as nx
    except ImportError:
        raise MissingExtraError("networkx", "networks") from None
    data = read_bytes(path)
    _check_xml(data, path.name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # networkx warns of what it leaves out: ports, untyped keys
            if path.suffix.lower() == ".gexf":
                return [_read_gexf(data, nx)]
            return _read_graphml(data, nx)
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None
    except Exception as error:  # networkx lets pass whatever its conversions raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path.name}: networkx cannot read it ({reason})") from None


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


def _read_graphml(data: bytes, nx: Any) -> list[Any]:
    namespace = nx.readwrite.graphml.GraphML.NS_GRAPHML
    root = ElementTree.fromstring(data)
    for element in root.iter():
        if "}" not in element.tag:
            element.tag = f"{{{namespace}}}{element.tag}"
    # parallel edges stay until their labels have been compared
    reader = nx.readwrite.graphml.GraphMLReader(node_type=str, edge_key_type=str, force_multigraph=True)
    keys, defaults = reader.find_graphml_keys(root)
    defaults = _read_defaults(keys, defaults)
    graphs = []
    for element in root.findall(f"{{{namespace}}}graph"):
        graph = reader.make_graph(element, keys, defaults)
        _check_nodes(graph, element)
        _fill_in(graph.nodes(data=True), graph.graph.pop("node_default", {}))
        _fill_in(graph.edges(data=True), graph.graph.pop("edge_default", {}))
        graphs.append(graph)
    if not graphs:
        raise DataError("no graphs in it")
    return graphs


def _read_defaults(keys: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """One default for each thing that is read: to fill in thousands at thousands of nodes would take all memory."""
    chosen = {(keys[key]["for"], keys[key]["name"]): key for key in defaults}  # the last one counts, as networkx has it
    return {key: defaults[key] for (of, name), key in chosen.items() if of in ("node", "edge") and name in READ_FIELDS}


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
    known = set(declared)
    for node in graph.nodes:
        if str(node) not in known:
            raise DataError(f"an edge names the node {short(str(node))}, which there is not")
    if len(known) < len(declared):
        (twice, _), *_ = Counter(declared).most_common(1)
        raise DataError(f"two nodes are called {short(twice)}")
    if len(declared) != len(graph):
        raise DataError("graphs inside nodes are not read")


def _fill_in(items: Any, defaults: dict[str, Any]) -> None:
    for *_, values in items:
        for key, value in defaults.items():
            values.setdefault(key, value)
