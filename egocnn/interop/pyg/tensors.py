"""Graphs -> the tensors that PyTorch Geometric passes around, in a model's own label order, and back.

``x`` (N, labels + attributes): a node's label one-hot, all zeros where the model does not know it, then its attributes
as the graph has them; where the model describes nodes by degrees, label and last attributes are what these say.
``edge_index`` (2, M), every edge in both directions; ``edge_attr`` (M, edge labels) one-hot, left out where the model
knows but one if you like; ``edge_weight`` (M). ``node_attr`` (N, attributes): the attributes again, for what is ranked
by them; masks change x, and never these."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from egocnn.data.graphs import Graph, Graphs
from egocnn.data.read import read
from egocnn.data.schema import SEPARATOR
from egocnn.data.sources.text import optional, short
from egocnn.encode.degrees import PROFILE
from egocnn.encode.encoder import Encoder
from egocnn.errors import DataError
from egocnn.model import Model


def class_of(module: str, name: str) -> Any:
    """``torch_geometric.MODULE.NAME``; an error names the extra to install where it is missing."""
    return getattr(optional(f"torch_geometric.{module}", "pyg"), name)


@cache
def inheriting(ours: type, module: str, name: str) -> Any:
    """A class of ours, named with a leading underscore -> the public one that inherits from ``MODULE.NAME`` too"""
    about = {"__module__": "egocnn.interop.pyg", "__doc__": ours.__doc__}
    return type(ours.__name__.removeprefix("_"), (ours, class_of(module, name)), about)


def to_data(predictor: Model, graphs: Graphs | Graph) -> Any:
    """One ``torch_geometric.data.Data`` for all graphs, ``batch`` (N) telling them apart. ``y`` (B) is what the model's
    outputs are compared with: class numbers, or standardised values; it is left out where some graph's is not known.
    Truths of nodes and edges come along as ``node_truth`` and ``edge_truth``."""
    graphs = read(graphs)
    prepared, ours = predictor.encode(graphs), predictor.encoder
    words, shape = ours.words(graphs), ours.shape(predictor.config)
    edge_index = np.stack([graphs.entry_node, graphs.indices]).astype(np.int64)
    described = ours.renamed(graphs).node_attr
    attributes = torch.zeros(graphs.n_nodes, 0) if described is None else torch.from_numpy(described)
    data = class_of("data", "Data")(
        x=torch.cat([_multi_hot(words.nodes, shape.node_labels, graphs.n_nodes), attributes.float()], dim=1),
        edge_index=torch.from_numpy(edge_index),
        batch=torch.from_numpy(graphs.graph_of.astype(np.int64)),
    )
    if ours.edge_label_names:
        data.edge_attr = _multi_hot(words.edges, shape.edge_labels, len(graphs.indices))
    if graphs.edge_weight is not None:
        data.edge_weight = torch.from_numpy(graphs.edge_weight.astype(np.float32))
    if attributes.shape[1]:
        data.node_attr = attributes
    target = prepared.target
    if target is not None and bool((torch.isfinite(target) & ((target >= 0) | (not ours.class_names))).all()):
        data.y = target
    for name in ("node_truth", "edge_truth"):
        if (truth := getattr(graphs, name)) is not None:
            data[name] = torch.from_numpy(truth)
    return data


def to_graphs(
    encoder: Encoder,
    x: Tensor,
    edge_index: Tensor,
    batch: Tensor | None = None,
    edge_attr: Tensor | None = None,
    edge_weight: Tensor | None = None,
    node_attr: Tensor | None = None,
) -> Graphs:
    """The graphs behind the tensors: the first word of a row's label is its largest entry in size, an all-zero row has
    one unknown, and all further words are those whose entries are not zero."""
    for name, given in (("x", x), ("edge_index", edge_index), ("batch", batch), ("edge_attr", edge_attr)):
        if not isinstance(given, Tensor) and (given is not None or name in ("x", "edge_index")):
            raise DataError(f"{name} must be a tensor, got {short(given)}; to_data makes what the model reads")
    labels, attributes = len(encoder.node_label_names) + len(encoder.node_words), len(encoder.attr_mean)
    if x.ndim != 2 or x.shape[1] != labels + attributes:
        raise DataError(f"x must have {labels} labels and {attributes} attributes per node, got {tuple(x.shape)}")
    if edge_index.ndim != 2 or len(edge_index) != 2 or edge_index.is_floating_point():
        raise DataError(f"edge_index must be whole numbers (2, M), got {edge_index.dtype} {tuple(edge_index.shape)}")
    wanted = edge_index.shape[1], len(encoder.edge_label_names) + len(encoder.edge_words)
    if edge_attr is None and wanted[1] == 1:
        edge_attr = torch.ones(wanted)
    if (edge_attr is None and wanted[1]) or (edge_attr is not None and edge_attr.shape != wanted):
        found = "none" if edge_attr is None else tuple(edge_attr.shape)
        raise DataError(f"the model knows {wanted[1]} edge labels; edge_attr must have the shape {wanted}, got {found}")
    if node_attr is not None and node_attr.shape != (len(x), attributes):
        raise DataError(f"node_attr must have the shape {(len(x), attributes)}, got {tuple(node_attr.shape)}")
    for name, given in (("x", x), ("edge_attr", edge_attr), ("edge_weight", edge_weight)):
        if given is not None and not bool(torch.isfinite(given).all()):
            raise DataError(f"{name} must hold finite numbers, got {given[~torch.isfinite(given)][0]:g}")
    rows = _array(x)
    known = rows[:, labels:] if node_attr is None else _array(node_attr)
    own = attributes - (PROFILE if encoder.by_degree else 0)  # what degrees say is read off the edges again
    counts = [len(x)]
    if batch is not None:
        if batch.shape != (len(x),) or batch.is_floating_point() or bool((torch.diff(batch) < 0).any()):
            raise DataError(f"batch must name the graph of each of {len(x)} nodes, in ascending order")
        counts = torch.bincount(batch).tolist()
    columns: dict[str, Any] = {}
    if labels:
        named = _named(rows[:, :labels], encoder.node_label_names, encoder.node_words)
        columns |= zip(("node_label", "node_label_names"), named, strict=True)
    if edge_attr is not None:
        named = _named(_array(edge_attr), encoder.edge_label_names, encoder.edge_words)
        columns |= zip(("edge_label", "edge_label_names"), named, strict=True)
    columns |= {} if edge_weight is None else {"edge_weight": _array(edge_weight)}
    columns |= {"node_attr": known[:, :own]} if own else {}
    return Graphs.from_edges(node_counts=counts, edges=_array(edge_index).T, **columns)


def _multi_hot(words: Sequence[NDArray[Any]], labels: int, rows: int) -> Tensor:
    """Columns of word numbers, (rows) each -> (rows, labels); nothing for -1"""
    found = torch.zeros(rows, labels + 1)
    for column in words:
        found[torch.arange(rows), torch.from_numpy(column).long()] = 1  # -1 is the last, which is cut off
    return found[:, :labels]


def _named(
    rows: NDArray[Any], firsts: tuple[str, ...], further: tuple[str, ...]
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The opposite: numbers of labels, and their names"""
    size = np.abs(rows[:, : len(firsts)])
    largest = size.argmax(axis=1) if firsts else np.zeros(len(rows), np.int64)
    first = np.where(size.any(axis=1) | (not firsts), largest, -1).astype(np.int32)
    if not further:
        return first, firsts
    kinds, which = np.unique(np.column_stack([first, rows[:, len(firsts) :] != 0]), axis=0, return_inverse=True)
    names = [
        SEPARATOR.join([firsts[kind[0]], *(word for word, has in zip(further, kind[1:], strict=True) if has)])
        for kind in kinds.tolist()
    ]
    return np.where(first < 0, -1, which.reshape(-1)).astype(np.int32), tuple(names)


def _array(values: Tensor) -> NDArray[Any]:
    return values.detach().cpu().numpy()
