"""PyTorch Geometric data, or any objects with an edge_index -> Graphs, and back."""

import math
import operator
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.config import ReadConfig, split_names
from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import SEPARATOR, rule
from egocnn.data.sources.builder import NAME_FIELDS, GraphFields
from egocnn.data.sources.records import GraphRecord, checked_numbers, collect
from egocnn.data.sources.text import optional, short
from egocnn.errors import DataError

UNREADABLE = (TypeError, ValueError, RuntimeError, OverflowError)  # raised over values that are no arrays


def from_pyg(data: Sequence[Any], config: ReadConfig | None = None) -> Graphs:
    """Read objects with an ``edge_index`` (2, E); PyTorch Geometric itself is not needed. ``x`` are the node
    attributes, ``node_label`` or ``z`` whole numbers that label the nodes (negative: not known), and so is ``x`` where
    it holds whole numbers (several columns: words of one label, the first is the element of molecules of
    ``from_smiles``, MoleculeNet and OGB) or one-hot rows in all graphs. ``edge_label`` or ``edge_attr`` labels the
    edges likewise; ``edge_weight``, or one real number per edge in ``edge_attr``, weighs them. ``y`` is a class where
    it is whole, a text, or 0.0 and 1.0 alone, and a value where it is real; with the shape (1, T), as OGB and
    MoleculeNet have it, it is several targets: y0, y1 and so on, NaN where unknown. ``name`` and the fields that
    ``config`` names are read, too."""
    settings = config or ReadConfig()
    target = settings.target or "y"
    keys = {target, settings.split, settings.group, *((settings.name,) if settings.name else NAME_FIELDS)} - {None}
    keys |= {"y" if re.fullmatch(r"y\d+", name) else name for name in split_names(settings.target)}
    labelled = all(_labels(_array(item, "x", f"graph {i}")) is not None for i, item in enumerate(data))
    records = [_record(item, f"graph {i}", labelled) for i, item in enumerate(data)]
    rows = [plain_fields(item, keys, f"graph {i}") for i, item in enumerate(data)]
    several = dict.fromkeys(name for row in rows for name in row if re.fullmatch(r"y\d+", name) and name not in keys)
    if several and settings.target is None:
        settings = replace(settings, target=",".join(several))
    for name in (target, *several) if settings.task == "auto" else ():
        _as_classes(rows, name)
    if settings.task == "auto" and not several and not any(isinstance(row.get(target), float) for row in rows):
        settings = replace(settings, task="classification")
    fields = GraphFields("data", settings)
    for i, row in enumerate(rows):
        fields.add(f"graph {i}", str(i), row)
    return collect(records, fields)


def _as_classes(rows: Sequence[dict[str, Any]], name: str) -> None:
    """Make real numbers whole where those that are known are 0 and 1, both of them: others write classes so."""
    values = {value for row in rows if isinstance(value := row.get(name), float) and not math.isnan(value)}
    for row in rows if values == {0, 1} else ():
        if isinstance(value := row.get(name), float):
            row[name] = None if math.isnan(value) else int(value)


def to_pyg(graphs: Graphs) -> list[Any]:
    """One ``torch_geometric.data.Data`` per graph, every edge in both directions; no ``y`` where the target is unknown.
    Labels and classes are numbers: positions in ``node_label_names``, ``edge_label_names``, ``class_names``."""
    new_data = optional("torch_geometric.data", "pyg").Data
    import torch

    made = []
    for g, name in enumerate(graphs.names):
        one = graphs[[g]]
        columns: dict[str, NDArray[Any] | None] = {"edge_index": np.stack([one.entry_node, one.indices])}
        columns |= {"x": one.node_attr, "y": None if one.target_of(0) is None else one.target}
        columns |= {key: getattr(one, key) for key in ("edge_weight", "node_label", "edge_label")}
        item = new_data(num_nodes=one.n_nodes, name=name)
        for key, values in columns.items():
            if values is not None:
                item[key] = torch.from_numpy(values.astype(np.float32 if values.dtype.kind == "f" else np.int64))
        made.append(item)
    return made


def _record(item: Any, place: str, labelled: bool) -> GraphRecord:  # by x, where by nothing else
    edges = _edges(item, place)
    attributes = _array(item, "x", place)
    node_label = _whole(item, "node_label", place)
    if node_label is None and _is_whole(getattr(item, "z", None)):
        node_label = _whole(item, "z", place)
    n_nodes = _count_nodes(item, edges, [column for column in (attributes, node_label) if column is not None], place)
    texts = _labels(node_label)
    if texts is None and labelled:
        texts, attributes = _labels(attributes), None
    columns: dict[str, Any] = {"node_label": texts, **_edge_columns(item, len(edges), place)}
    if attributes is not None:
        fits = attributes.ndim <= 2
        rule(fits, f"{place}: x must have one row of numbers per node, got the shape {attributes.shape}")
        attributes = checked_numbers(attributes[:, None] if attributes.ndim == 1 else attributes, place, "x")
        columns["node_attr"] = attributes if attributes.size else None
    return GraphRecord(place=place, n_nodes=n_nodes, edges=edges, **columns)


def _edges(item: Any, place: str) -> Ints:
    edge_index = _array(item, "edge_index", place)
    if edge_index is None:
        raise DataError(f"{place}: {short(item)} has no edge_index")
    shape, kind = edge_index.shape, edge_index.dtype
    rule(len(shape) == 2 and shape[0] == 2, f"{place}: edge_index must have the shape (2, E), got {shape}")
    rule(kind.kind in "iu" or not edge_index.size, f"{place}: edge_index must be whole numbers, got {kind}")
    if kind == np.uint64 and edge_index.max(initial=0) > np.iinfo(np.int64).max:
        raise DataError(f"{place}: edge_index names node {edge_index.max()}, which there is not")
    return edge_index.T.astype(np.int64)


def _count_nodes(item: Any, edges: Ints, columns: Sequence[NDArray[Any]], place: str) -> int:
    """Rows of x and of the labels, which must agree, else num_nodes, else as many as the edges need."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns when it has to infer the number
        try:
            stated = getattr(item, "num_nodes", None)
        except Exception as error:  # a property of somebody else's class
            raise DataError(f"{place}: num_nodes cannot be had ({short(error)})") from None
    lengths = {len(column) for column in columns}
    if stated is not None:
        try:
            lengths.add(operator.index(stated))
        except UNREADABLE:
            raise DataError(f"{place}: num_nodes must be a whole number, got {short(stated)}") from None
    counts = " and ".join(map(str, sorted(lengths)))
    rule(len(lengths) <= 1, f"{place}: num_nodes, x and the node labels disagree: {counts} nodes")
    return lengths.pop() if lengths else int(edges.max(initial=-1)) + 1


def _edge_columns(item: Any, n_edges: int, place: str) -> dict[str, Any]:
    """Label and weight of every edge; edge_attr serves as the one or the other where it can be nothing else."""
    label, texts = _whole(item, "edge_label", place), None
    weight = _array(item, "edge_weight", place)
    attributes = _array(item, "edge_attr", place)
    if attributes is not None and n_edges:
        if attributes.ndim == 2 and attributes.shape[1] == 1:
            attributes = attributes[:, 0]
        texts = _labels(attributes) if label is None else None
        if texts is None and attributes.ndim == 1 and attributes.dtype.kind == "f":
            weight = attributes if weight is None else weight
        elif label is None:
            neither = f"edge_attr of shape {attributes.shape} is neither a label nor a weight"
            rule(texts is not None, f"{place}: {neither}; set edge_label or edge_weight instead")
            label = np.zeros(len(attributes))
    for name, column in (("edge_label", label), ("edge_weight", weight)):
        if column is not None and column.shape not in ((n_edges,), (n_edges, 1)):
            raise DataError(f"{place}: {name} must have one entry for each of {n_edges} edges, got {column.shape}")
    weights = None if weight is None else checked_numbers(weight.reshape(-1), place, "edge weights")
    return {"edge_label": texts or _labels(label), "edge_weight": weights}


def _labels(array: NDArray[Any] | None) -> list[str | None] | None:
    """Whole numbers (N), (N, columns) or one-hot rows as labels; None where they are something else"""
    if array is None or array.ndim not in (1, 2) or not array.size:
        return None
    rows = array.reshape(len(array), -1)
    if array.dtype.kind == "f":  # whole numbers are never one-hot: those of one graph may look so by chance
        is_one_hot = rows.shape[1] > 1 and np.isin(rows, (0, 1)).all() and (rows.sum(axis=1) == 1).all()
        return _labels(rows.argmax(axis=1)) if is_one_hot else None
    kinds, which = np.unique(rows.astype(np.int64), axis=0, return_inverse=True)
    names = []
    for first, *further in kinds.tolist():  # a further word says its column: 1 means something else in each of them
        words = [str(first), *(f"{column}={value}" for column, value in enumerate(further, 1))]
        names.append(SEPARATOR.join(words) if first >= 0 else None)
    return [names[position] for position in which.reshape(-1)]


def _array(item: Any, name: str, place: str) -> NDArray[Any] | None:
    value = getattr(item, name, None)
    if value is None:
        return None
    try:
        array = _to_numpy(value)
    except UNREADABLE:
        array = np.empty((), object)
    rule(array.ndim and array.dtype.kind in "biuf", f"{place}: {name} must be an array of numbers, got {short(value)}")
    return array


def _to_numpy(value: Any) -> NDArray[Any]:
    detach = getattr(value, "detach", None)
    return np.asarray(value if detach is None else detach().cpu().numpy())


def _is_whole(value: Any) -> bool:
    try:
        return _to_numpy(value).dtype.kind in "iu"
    except UNREADABLE:
        return False


def _whole(item: Any, name: str, place: str) -> NDArray[Any] | None:
    array = _array(item, name, place)
    if array is None:
        return None
    rule(array.dtype.kind != "f" or not array.size, f"{place}: {name} must be whole numbers, got {array.dtype}")
    is_flat = array.shape in ((len(array),), (len(array), 1))
    rule(is_flat, f"{place}: {name} must be one number each, got the shape {array.shape}")
    return array.reshape(-1).astype(np.int64)


def plain_fields(item: Any, keys: Iterable[str], place: str) -> dict[str, object]:
    """The named fields of the graph as plain values: a tensor of one number counts as that number."""
    fields: dict[str, object] = {}
    for key in keys:
        value = getattr(item, key, None)
        if value is not None and not isinstance(value, str):
            try:
                value = _to_numpy(value)
            except UNREADABLE:
                raise DataError(f"{place}: {key} {short(value)} must be a number or a text") from None
            if key == "y" and value.ndim == 2 and len(value) == 1 and value.size > 1:
                fields |= {f"y{n}": each for n, each in enumerate(value[0].tolist())}
                continue
            rule(value.size == 1, f"{place}: {key} must be one number or text, got the shape {value.shape}")
            value = value.item()
        if value is not None:
            fields[key] = value
    return fields
