"""What the user wants predicted, y -> an array; the classes of a model, which are names -> as y had them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.config import ReadConfig, Task
from egocnn.data.arrays import LARGEST
from egocnn.data.graphs import Graphs
from egocnn.data.sources.builder import GraphFields, is_missing
from egocnn.data.sources.smiles import frame_rows
from egocnn.data.sources.text import short
from egocnn.errors import DataError, rule
from egocnn.explain.structure import CriticalStructure

KINDS = {"a truth value": (bool, np.bool_), "a number": (int, float, np.integer, np.floating), "a text": (str,)}
"""What y may hold, and the types of each; a truth value is told first, as Python counts it among the numbers."""
KEPT = "biufO"  # Kinds of numpy types that are written down: the lengths of texts follow from the texts.


def checked_targets(y: Any, n_graphs: int) -> NDArray[Any]:
    """(G) the targets as an array, all known and of one kind; categories become what they stand for."""
    y = y.detach().cpu() if hasattr(y, "detach") else y  # a tensor that gradients may flow to
    try:
        shape = np.shape(y)
    except ValueError:  # rows of different lengths
        raise DataError(f"y must hold one target for each of {n_graphs} graphs, got {short(y)}") from None
    rule(shape == (n_graphs,), f"y has shape {shape} for {n_graphs} graphs")
    items = y.tolist() if hasattr(y, "tolist") else list(y)
    first = ""
    for i, item in enumerate(items):
        rule(not is_missing(item), f"y[{i}] is {item}: a target that is not known; leave such graphs out")
        rule(item not in (np.inf, -np.inf), f"y[{i}] is {item}; a target must be finite")
        kind = next((word for word, types in KINDS.items() if isinstance(item, types)), "")
        rule(kind, f"y[{i}] is {short(item)}; a target is a number, a text or a truth value")
        first = first or kind
        rule(kind == first, f"y[{i}] is {kind} ({short(item)}) and y[0] {first}; all must be of one kind")
    array = np.asarray(y)
    array = array.astype(np.float64) if array.dtype == np.longdouble else array  # JSON has no longer numbers
    return np.array(items) if array.dtype == object and first != "a text" else array


def several_targets(graphs: Graphs, y: Any, task: Task) -> Graphs:
    """The graphs with the columns of a table as several targets; what is missing is not known."""
    rule(len(y) == len(graphs), f"y has {len(y)} rows for {len(graphs)} graphs")
    fields = GraphFields("y", ReadConfig(target=",".join(map(str, y.columns)), task=task), typed=False)
    for n, row in enumerate(frame_rows(y)):
        fields.add(f"y, row {n}", str(n), row)
    own = fields.columns()
    return graphs.replace(target=own["target"], targets=own["targets"], class_names=())


def checked_weights(weights: Any, n_graphs: int) -> NDArray[np.float64] | None:
    """(G) how much each graph counts; None where all count alike"""
    if weights is None:
        return None
    try:
        found = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    fits = found.shape == (n_graphs,) and np.isfinite(found).all() and (found >= 0).all() and found.any()
    rule(fits, f"sample_weight must be a number for each of {n_graphs} graphs, none below 0 and one above it")
    return found


def encode_classes(y: NDArray[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
    """(G) class numbers, and what to save of y beside a model: the classes in their order, and their type."""
    if y.dtype.kind == "f" and (y != np.round(y)).any():
        first = int(np.flatnonzero(y != np.round(y))[0])
        raise DataError(f"y[{first}] is {y[first]}, which is a value and not a class; use EgoCNNRegressor")
    classes, codes = np.unique(y, return_inverse=True)
    return codes, _to_save(classes.tolist(), y.dtype)


def encode_values(y: NDArray[Any]) -> NDArray[np.float64]:
    """(G) numbers to predict."""
    rule(not isinstance(y[0], str), f"y[0] is {short(str(y[0]))}, a text and not a value; use EgoCNNClassifier")
    for i in np.flatnonzero(abs(y) > LARGEST)[:1].tolist():
        raise DataError(f"y[{i}] is {short(y.tolist()[i])}; at most {LARGEST:.2g} is allowed: rescale them")
    return y.astype(np.float64)


def as_in_column(names: Sequence[str], column: Any) -> dict[str, Any]:
    """The same of classes that were read from a column of a table, by name."""
    known = [value for value in column if not is_missing(value)]
    if all(isinstance(value, KINDS["a truth value"]) for value in known):
        classes: list[Any] = [name == "True" for name in names]
    elif all(isinstance(value, KINDS["a number"]) for value in known):
        classes = [int(name) if name.lstrip("+-").isdecimal() else float(name) for name in names]
    else:
        classes = list(names)
    return _to_save(classes, np.asarray(column).dtype)


def _to_save(classes: list[Any], dtype: np.dtype[Any]) -> dict[str, Any]:
    """``dtype`` where the classes are of its kind: whole numbers among gaps are floats and texts objects to pandas."""
    is_kept = dtype.kind in KEPT and np.array(classes).dtype.kind in {"O": "U", "u": "iu"}.get(dtype.kind, dtype.kind)
    return {"classes": classes, "classes_dtype": dtype.str if is_kept else None}


def restored_classes(names: Sequence[str], about: Mapping[str, Any]) -> NDArray[Any]:
    """The classes of a model: as y had them where that was written down, else by name."""
    classes, dtype = about.get("classes"), about.get("classes_dtype")
    if not isinstance(classes, list) or list(map(str, classes)) != list(names):
        return np.array(names)
    try:
        kept = None if dtype is None or np.dtype(dtype).kind not in KEPT else np.dtype(dtype)
        return np.array(classes, dtype=kept)
    except (TypeError, ValueError, OverflowError):  # a type that these classes do not have
        return np.array(classes)


def with_classes(structure: CriticalStructure, names: Sequence[str], classes: Sequence[Any]) -> CriticalStructure:
    """The same structure with classes as y had them in place of their names; a class not known keeps its name."""
    if structure.explained is None or list(names) == list(classes):
        return structure
    of_name: dict[Any, Any] = dict(zip(names, classes, strict=True))
    graph = replace(structure.graph, target=of_name.get(structure.graph.target, structure.graph.target))
    predicted, explained = of_name[structure.predicted], of_name[structure.explained]
    return replace(structure, predicted=predicted, explained=explained, graph=graph)
