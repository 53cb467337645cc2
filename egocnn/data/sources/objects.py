"""Python objects -> Graphs: SMILES, RDKit molecules, a DataFrame, networkx graphs, data with an edge_index, our own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.sources.builder import TARGET_FIELDS, GraphFields, GraphRecord, assemble, choose_field
from egocnn.data.sources.networkx import from_networkx
from egocnn.data.sources.pyg import from_pyg, plain_fields
from egocnn.data.sources.smiles import frame_target, from_frame, from_smiles, is_molecule
from egocnn.data.sources.text import short
from egocnn.errors import DataError

ACCEPTED = (
    "graphs are read from the name of a TU data set, a TU folder or .zip, a .csv, .tsv or .smi with SMILES, .jsonl, "
    ".graphml, .gexf, .safetensors, a store that egocnn prepare wrote, compounds:NAME, SMILES, RDKit molecules, a "
    "DataFrame, networkx graphs, or objects with an edge_index"
)

Reader: TypeAlias = Callable[[Sequence[Any], ReadConfig], Graphs]


def from_objects(source: Any, config: ReadConfig) -> Graphs:
    """Read one object, or an iterable of objects of one kind."""
    if is_frame(source):
        return from_frame(source, config)
    items = _items(source)
    kinds = [_kind(item) for item in items]
    if kinds[0] is None:
        types = ", ".join(sorted({type(item).__name__ for item in items})[:5])
        raise DataError(f"a sequence of {types} is not a source of graphs; {ACCEPTED}")
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise DataError(f"item {i} is {kind or short(items[i])} and item 0 {kinds[0]}; all must be of one kind")
    return KINDS[kinds[0]][1](items, config)


def targets_inside(source: Any, config: ReadConfig) -> Any | None:
    """What is to be predicted, typed as a table, networkx graphs or data with an edge_index hold it; None elsewhere."""
    if is_frame(source):
        return frame_target(source, config)
    items = _items(source)
    if _is_networkx(items[0]):
        rows: list[dict[str, Any]] = [item.graph for item in items]
    elif hasattr(items[0], "edge_index"):
        rows = [plain_fields(item, {config.target or "y"}, "data") for item in items]
    else:
        return None
    names = dict.fromkeys(str(name) for row in rows for name in row)
    target = choose_field(list(names), config.target, TARGET_FIELDS, "graphs")
    return None if target is None else [row.get(target) for row in rows]


def is_frame(source: Any) -> bool:
    """Whether it is a table with named columns, of pandas say; no such library is imported to find out."""
    shape = getattr(source, "shape", None)
    return hasattr(source, "columns") and isinstance(shape, tuple) and len(shape) == 2


def from_graphs(graphs: Sequence[Graph], config: ReadConfig | None = None) -> Graphs:
    """Put single graphs of collections into one again; column names in ``config`` do not count."""
    settings = replace(config or ReadConfig(), target=None, name=None, split=None, group=None)
    fields, records = GraphFields("graphs", settings), []
    for i, graph in enumerate(graphs):
        fields.add(f"graph {i}", graph.name, {"target": graph.target}, graph.smiles)
        own: dict[str, Any] = {name: getattr(graph, name) for name in ("n_nodes", "edges", "edge_weight", "node_attr")}
        own |= {name: _known(getattr(graph, name)) for name in ("node_label", "edge_label", "node_truth", "edge_truth")}
        records.append(GraphRecord(place=f"graph {i}", **own))
    return assemble(records, "graphs", **fields.columns())


def _items(source: Any) -> list[Any]:
    # a data set of PyTorch Geometric computes an edge_index of all its graphs on access: look without accessing it
    is_data = inspect.getattr_static(source, "edge_index", None) is not None
    if is_data and hasattr(source, "to_data_list"):  # a batch of PyTorch Geometric
        source = source.to_data_list()
    elif is_data or isinstance(source, Graph) or is_molecule(source) or _is_networkx(source):
        return [source]
    if not isinstance(source, Iterable) or isinstance(source, (bytes, dict)):
        raise DataError(f"{short(source)} is not a source of graphs; {ACCEPTED}")
    if isinstance(source, np.ndarray) and source.ndim != 1:
        raise DataError(f"an array of shape {source.shape} is not a source of graphs; give it one dimension")
    items = list(source)
    if not items:
        raise DataError("no graphs are given")
    return items


def _kind(item: Any) -> str | None:
    return next((name for name, (is_one, _) in KINDS.items() if is_one(item)), None)


def _is_networkx(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("nodes", "edges", "graph", "is_multigraph"))


def _known(values: Iterable[Any] | None) -> list[Any] | None:
    return None if values is None else [None if str(value) == "?" else value for value in values]


def _from_molecules(molecules: Sequence[Any], config: ReadConfig) -> Graphs:
    return from_smiles(molecules, config=config)


KINDS: dict[str, tuple[Callable[[Any], bool], Reader]] = {
    "a SMILES": (lambda item: isinstance(item, str), _from_molecules),
    "an RDKit molecule": (is_molecule, _from_molecules),
    "a Graph": (lambda item: isinstance(item, Graph), from_graphs),
    "a networkx graph": (_is_networkx, from_networkx),
    "data with an edge_index": (lambda item: hasattr(item, "edge_index"), from_pyg),
}
"""Kind of object -> how to tell it, and its reader."""
