"""Graphs given one at a time, each as a reader found it -> one collection."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import LARGEST, Floats, Ints, pointers
from egocnn.data.graphs import Graphs
from egocnn.data.schema import INNER_COLUMNS, rule
from egocnn.data.sources.builder import GraphFields, encode_labels
from egocnn.errors import DataError, DuplicateEdgeError

MOST_NODES = 10_000_000  # a few bytes can claim any number of nodes; this many in one graph are believed


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecord:
    """One graph as a reader found it: node ids count from 0, edges stand in either or both directions.

    A column is None where the source does not have it, and a label is None where it is not known."""

    place: str  # where the graph stands, for error messages: ``graphs.jsonl, line 3``
    n_nodes: int
    edges: Ints | Sequence[Sequence[int]]  # (E, 2)
    node_label: Sequence[str | None] | None = None
    edge_label: Sequence[str | None] | None = None
    edge_weight: Floats | Sequence[float] | None = None
    node_attr: NDArray[Any] | Sequence[Sequence[float]] | None = None  # (n_nodes, A)
    node_truth: Sequence[bool] | None = None
    edge_truth: Sequence[bool] | None = None


def collect(records: Iterable[GraphRecord], fields: GraphFields) -> Graphs:
    """Put the records into one collection, with the fields that were added and the rows left out on the way."""
    found = list(records)
    return assemble(found, fields.where, **fields.columns(), skipped=tuple(fields.skipped))


def assemble(records: Sequence[GraphRecord], where: str, **columns: Any) -> Graphs:
    """Put the records into one collection; ``columns`` are the fields of :class:`Graphs` with one entry per graph."""
    rule(records, f"{where}: no graphs in it")
    edges = [_checked_edges(record) for record in records]
    starts = pointers(np.array([record.n_nodes for record in records]))
    for name in ("node_label", "edge_label", "node_truth", "edge_truth"):
        if _has_column(records, name):
            values = list(chain.from_iterable(getattr(record, name) or () for record in records))
            if name.endswith("truth"):
                columns[name] = np.array(values, bool)
            else:
                columns[name], columns[f"{name}_names"] = encode_labels(values)
    if _has_column(records, "edge_weight"):
        columns["edge_weight"] = np.concatenate([_weights(record) for record in records])
    if _has_column(records, "node_attr"):
        columns["node_attr"] = _attributes(records)
    joined = np.concatenate([part + start for part, start in zip(edges, starts, strict=False)])
    try:
        return Graphs.from_edges(node_counts=np.diff(starts), edges=joined, **columns)
    except DuplicateEdgeError as error:
        raise _explain_duplicate(records, edges, error) from None


def refusals(items: Any, ask: Callable[[Any], object]) -> list[str]:
    """Why each of these is refused when it is asked about alone, '' where it is not."""
    try:
        ask(items)
    except DataError as error:
        half = len(items) // 2
        return [str(error)] if not half else [*refusals(items[:half], ask), *refusals(items[half:], ask)]
    return [""] * len(items)


def misfits(records: Sequence[GraphRecord], where: str) -> list[str]:
    """Why each of these does not go with the others, '' where it does: it breaks a rule by itself, or has other columns
    than most have."""

    def together(some: Sequence[GraphRecord]) -> Graphs:
        return assemble(some, where, names=[record.place for record in some])

    alone = refusals(records, lambda some: [together([record]) for record in some])
    kinds = [(bool(len(r.edges)), *(getattr(r, name) is not None for name in INNER_COLUMNS)) for r in records]
    sound = Counter(kind for kind, error in zip(kinds, alone, strict=True) if not error)
    if not sound:
        return alone
    # one without edges cannot say which columns edges have
    most = max(sound, key=lambda kind: (kind[0], sound[kind]))
    usual = next(r for r, kind, error in zip(records, kinds, alone, strict=True) if kind == most and not error)
    whys = refusals(records, lambda some: together([usual, *some]))
    return [why.removeprefix(f"{record.place}: ") for why, record in zip(whys, records, strict=True)]


def checked_numbers(values: Any, place: str, what: str) -> NDArray[np.float32]:
    """Numbers of any type -> float32, all finite."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{place}: {what} must be numbers") from None
    bad = ~(np.abs(numbers) <= LARGEST)  # also true of NaN
    if bad.any():
        raise DataError(f"{place}: {what} must be finite numbers, got {numbers[bad][0]:g}")
    return numbers.astype(np.float32)


def _checked_edges(record: GraphRecord) -> Ints:
    """Edges (E, 2) as integers, every end a node of the graph."""
    rule(record.n_nodes >= 1, f"{record.place}: a graph must have at least one node")
    rule(record.n_nodes <= MOST_NODES, f"{record.place}: {record.n_nodes} nodes; a graph may have {MOST_NODES}")
    if not len(record.edges):
        return np.zeros((0, 2), np.int64)
    edges = np.asarray(record.edges)
    outside = np.flatnonzero(((edges < 0) | (edges >= record.n_nodes)).any(axis=1))
    if len(outside):
        u, v = edges[outside[0]]
        raise DataError(f"{record.place}: edge {u}, {v} leaves the graph; its nodes are 0 to {record.n_nodes - 1}")
    return edges.astype(np.int64)


def _has_column(records: Sequence[GraphRecord], name: str) -> bool:
    """Whether the graphs have this column: all or none; a graph without edges fits either way."""
    first: dict[bool, str] = {}
    for record in [r for r in records if len(r.edges) or not name.startswith("edge_")] or records:
        first.setdefault(getattr(record, name) is not None, record.place)
    if len(first) == 2:
        what = {"attr": "attributes", "truth": "known critical parts"}.get(name[5:], f"{name[5:]}s")
        rest = f"but {first[True]} has; give all graphs some or none"
        raise DataError(f"{first[False]}: has no {name[:4]} {what}, {rest}")
    return True in first


def _weights(record: GraphRecord) -> NDArray[np.float32]:
    return checked_numbers([] if record.edge_weight is None else record.edge_weight, record.place, "edge weights")


def _attributes(records: Sequence[GraphRecord]) -> NDArray[np.float32]:
    tables = [checked_numbers(record.node_attr, record.place, "node attributes") for record in records]
    for record, table in zip(records, tables, strict=True):
        if table.ndim != 2 or len(table) != record.n_nodes:
            raise DataError(f"{record.place}: node attributes must be one row of numbers per node, all of one length")
        width, other = table.shape[1], tables[0].shape[1]
        rule(width == other, f"{record.place}: {width} attributes per node, but {records[0].place} has {other}")
    return np.concatenate(tables)


def _explain_duplicate(records: Sequence[GraphRecord], edges: Sequence[Ints], error: DuplicateEdgeError) -> DataError:
    """The same complaint in the graph's own node ids and labels."""
    first_row = pointers(np.array([len(part) for part in edges]))
    g = int(np.searchsorted(first_row, error.rows[0], side="right")) - 1
    record, (one, other) = records[g], (row - int(first_row[g]) for row in error.rows)
    (u, v), labels, what = edges[g][other], record.edge_label, "labels"
    if labels is None or labels[one] == labels[other]:
        labels, what = [f"{weight:g}" for weight in _weights(record)], "weights"
    pair = f"{labels[one]} and {labels[other]}"
    return DataError(f"{record.place}: edge {u}, {v} is given twice with different {what}: {pair}")
