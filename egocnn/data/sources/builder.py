"""Graphs given one at a time -> one collection: records, and their names, targets, splits and groups -> Graphs."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from egocnn.config import IF_THERE, ReadConfig, Task, split_names
from egocnn.data.arrays import LARGEST, Floats, Ints, pointers
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS, rule
from egocnn.data.sources.text import check_texts, listed, one_line, short
from egocnn.errors import DataError, DuplicateEdgeError, MissingColumnError

MOST_NODES = 10_000_000  # a few bytes can claim any number of nodes; this many in one graph are believed
MOST_INVALID = 0.05  # share of the rows of a file that may be left out without being asked
MOST_NUMBERS = 0.95  # a column with this share of numbers, or more, holds values to predict
MISSING = ("", "na", "n/a", "nan", "null", "none", "-")  # how tables say that a value is not known
TARGET_FIELDS = ("target", "label", "class", "y")
NAME_FIELDS = ("name", "id")
PART_WORDS = {"training": "train", "valid": "validation", "val": "validation", "dev": "validation"}
MOST_CLASSES = 20  # more distinct whole numbers than this are taken for values to predict
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
INTEGER = re.compile(r"[+-]?\d{1,300}", re.ASCII)
BOUND = re.compile(
    rf"(>|<|>=|<=|≥|≤|~)\s*({NUMBER.pattern})", re.ASCII | re.IGNORECASE
)  # what assays say beyond their range

log = logging.getLogger("egocnn")

SkippedRow: TypeAlias = tuple[int, str, str]  # number, SMILES if it is a text, and why it has no graph


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecord:
    """One graph as a reader found it: node ids count from 0, edges stand in either or both directions.

    A column is None where the source does not have it, and a label is None where it is not known.
    """

    place: str  # where the graph stands, for error messages: ``graphs.jsonl, line 3``
    n_nodes: int
    edges: Ints | Sequence[Sequence[int]]  # (E, 2)
    node_label: Sequence[str | None] | None = None
    edge_label: Sequence[str | None] | None = None
    edge_weight: Floats | Sequence[float] | None = None
    node_attr: NDArray[Any] | Sequence[Sequence[float]] | None = None  # (n_nodes, A)
    node_truth: Sequence[bool] | None = None
    edge_truth: Sequence[bool] | None = None


class SkippedRows:
    """Invalid rows: a few are left out, with one line in the log; many, or one where that is strict, are an error.

    ``way_out``: how to leave out however many, for the error
    """

    def __init__(self, config: ReadConfig, where: str, way_out: str = "") -> None:
        self.config, self.where, self.way_out = config, where, way_out
        self.rows: list[SkippedRow] = []
        self.first: DataError | None = None

    def add(self, place: str, number: int, smiles: object, error: DataError) -> None:
        """Note a row and why it has no graph, or raise that."""
        self.first = self.first or DataError(f"{place}: {error}")
        self.rows.append((number, smiles if isinstance(smiles, str) else "", one_line(str(error))))
        if self.config.strict:
            self._refuse()

    def conclude(self, valid: int) -> None:
        """Once all rows are read, and so many have a graph: raise the first error, or log how many are left out."""
        if self.first is None:
            return
        if not self.config.skip_invalid and len(self.rows) > MOST_INVALID * (valid + len(self.rows)):
            self._refuse()
        count = f"{len(self.rows)} of {valid + len(self.rows)} rows left out"
        log.warning("%s: %s; the first is %s", one_line(self.where), count, one_line(str(self.first)))

    def _refuse(self) -> NoReturn:
        raise DataError(f"{self.first}{self.way_out}") from None


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
    for name in ("names", "smiles", "class_names", "node_label_names", "edge_label_names"):
        check_texts(where, columns.get(name) or ())
    joined = np.concatenate([part + start for part, start in zip(edges, starts, strict=False)])
    try:
        return Graphs.from_edges(node_counts=np.diff(starts), edges=joined, **columns)
    except DuplicateEdgeError as error:
        raise _explain_duplicate(records, edges, error) from None


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


@dataclass(slots=True)
class GraphFields:
    """The fields of the graphs of one source besides their structure, collected while the graphs are read one by one.

    ``typed`` fields distinguish the number 1 from the text 1, which those of a CSV cannot.
    """

    where: str
    config: ReadConfig
    typed: bool = True
    places: list[str] = field(default_factory=list)  # for error messages
    names: list[str] = field(default_factory=list)  # of graphs without a name: the numbers of their lines or rows
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    smiles: list[Any] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)  # of molecules: copies of one molecule share a number
    available: dict[str, None] = field(default_factory=dict)
    skipped: Sequence[SkippedRow] = ()
    lenient: bool = False  # whether a target that is not a number where numbers are predicted counts as unknown

    def add(self, place: str, name: str, row: Mapping[str, Any], smiles: Any = None) -> None:
        """Add one graph; of its fields only those are stored that may be read: a table may have a thousand others."""
        config = self.config
        named = (config.name, config.target, *split_names(config.target), config.split, config.group)
        self.places.append(place)
        self.names.append(name)
        self.rows.append({k: v for k, v in row.items() if k in named or k.lower() in (*NAME_FIELDS, *TARGET_FIELDS)})
        self.smiles.append(smiles)
        self.available.update(dict.fromkeys(row))

    def columns(self) -> dict[str, Any]:
        """Names, target, class_names, part, group and smiles of Graphs, once all graphs are added."""
        config, available = self.config, list(self.available)
        targets, is_several = choose_targets(available, config.target, self.where)
        wanted = ((config.name, NAME_FIELDS), (config.split, ()), (config.group, ()))
        name, split, group = (choose_field(available, one, usual, self.where) for one, usual in wanted)
        columns: dict[str, Any] = {"names": tuple(self.names)}
        if name is not None:
            columns["names"] = tuple(own or other for own, other in zip(self._texts(name), self.names, strict=True))
        encoded = {target: self._encoded(target, several=is_several) for target in targets}
        if is_several:
            found = {one: (values, names) for one, (values, names) in encoded.items() if values is not None}
            several = [np.where(values < 0, np.nan, values) if names else values for values, names in found.values()]
            columns["target"] = np.stack(several, axis=1).astype(np.float64) if several else None
            columns["targets"] = tuple((one, names) for one, (_, names) in found.items())
        elif targets:
            columns["target"], columns["class_names"] = encoded[targets[0]]
        if split is not None:
            columns["part"] = encode_parts(self._texts(split), self.places)
        if group is not None or self.groups:
            columns["group"] = np.array(self.groups, np.int64) if group is None else encode_groups(self._texts(group))
        if self.smiles and all(isinstance(text, str) for text in self.smiles):
            columns["smiles"] = tuple(self.smiles)
        for kind in ("names", "smiles", "class_names"):
            check_texts(self.where, columns.get(kind, ()))
        check_texts(self.where, [text for one, names in columns.get("targets", ()) for text in (one, *names)])
        return columns

    def _encoded(self, target: str, *, several: bool) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
        values = [row.get(target) for row in self.rows] if self.typed else self._texts(target)
        if self.lenient and self.config.task == "regression":
            values = [None if value is None or number_of(str(value)) is None else value for value in values]
        encode = encode_values if self.typed else encode_targets
        return encode(values, self.config.task, f"{self.where}, {target}" if several else self.where, self.places)

    def _texts(self, name: str) -> list[str]:
        return ["" if (value := row.get(name)) is None else str(value).strip() for row in self.rows]


def choose_targets(available: Sequence[str], wanted: str | None, where: str) -> tuple[list[str], bool]:
    """The fields to predict, and whether they are several, named with commas between; else it is one, or none."""
    names = [] if wanted in available else split_names(wanted)
    if len(names) < 2:
        target = choose_field(available, wanted, TARGET_FIELDS, where)
        return [] if target is None else [target], False
    if names[-1] == IF_THERE:
        return [name for name in names if name in available], True
    for name in names:
        choose_field(available, name, (), where)
    rule(len(set(names)) == len(names), f"{where}: the targets {listed(names)} name a column twice")
    return names, True


def choose_field(available: Sequence[str], wanted: str | None, defaults: Sequence[str], where: str) -> str | None:
    """The field that the user named, else the first of the defaults that there is, in capitals or not."""
    if wanted is not None and wanted not in available:
        there_are = f"there are {listed(available)}" if available else "there are none"
        raise MissingColumnError(f"{where}: no column or field is called {short(wanted)}; {there_are}")
    for default in defaults if wanted is None else ():
        found = [default] if default in available else [name for name in available if name.lower() == default]
        rule(len(found) <= 1, f"{where}: {' and '.join(found)} differ only in capitals; say which one to use")
        if found:
            return found[0]
    return wanted


def is_missing(value: object) -> bool:
    """None, NaN, and what pandas has for them."""
    is_nan = isinstance(value, (float, np.floating)) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def encode_labels(values: Sequence[str | None]) -> tuple[Ints, tuple[str, ...]]:
    """Labels -> their positions in the sorted list of names, and that list; None, a label not known, is -1."""
    names = sort_names([name for name in dict.fromkeys(values) if name is not None])
    position: dict[str | None, int] = {None: -1, **{name: number for number, name in enumerate(names)}}
    return np.fromiter((position[value] for value in values), np.int32, len(values)), names


def encode_parts(values: Sequence[str], places: Sequence[str]) -> Ints:
    """Words for training, validation and test -> positions in ``PARTS``."""
    words = [PART_WORDS.get(word, word) for word in (value.strip().lower() for value in values)]
    for word, value, place in zip(words, values, places, strict=True):
        if word not in PARTS:
            raise DataError(f"{place}: split {short(value)} must be one of {', '.join(PARTS)}")
    return np.array([PARTS.index(word) for word in words], np.int64)


def encode_groups(values: Sequence[str]) -> Ints:
    """Equal texts get one number; a graph with an empty text is a group of its own."""
    number: dict[object, int] = {}
    keys: list[object] = [value.strip() or row for row, value in enumerate(values)]
    return np.array([number.setdefault(key, len(number)) for key in keys], np.int64)


def encode_targets(
    values: Sequence[str | None], task: Task, where: str, places: Sequence[str], missing: Sequence[str] = MISSING
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Texts -> (class numbers, class names), or (real values, ()); without a single value (None, ()).

    None, empty texts, NA, N/A, NaN, null, none and - are missing: class -1, value NaN. ``task="auto"`` reads classes
    where more than one text in twenty is not a number, where all are whole and only two differ, and where all are whole
    with at most 20 different ones and fewer than half as many as there are graphs; anything else is to be predicted as
    a number. Numbers that are equal name one class, however they are written; classes are sorted by number where all
    are numbers, else by name. ``places`` says where each value stands, for error messages.
    """
    texts = [None if value is None or value.strip().lower() in missing else value.strip() for value in values]
    known = [text for text in texts if text is not None]
    if not known:
        return None, ()
    target: NDArray[Any]
    if task == "classification" or (task == "auto" and look_like_classes(known)):
        name_of = _class_names(sorted(set(known)))
        target, names = encode_labels([None if text is None else name_of[text] for text in texts])
        shown = listed(names[:5]) + (", ..." if len(names) > 5 else "")
        guess = f"{len(names)} classes to predict ({shown}); --task regression for numbers"
        target = target.astype(np.int64)
    else:
        pairs = [(text, place) for text, place in zip(texts, places, strict=True) if text is not None]
        _check_numbers(pairs, task)
        target = np.array([math.nan if text is None else number_of(text) for text in texts], np.float64)
        guess, names = "numbers to predict; --task classification for classes", ()
    if task == "auto":
        log.info("%s: %s", one_line(where), guess)
    return target, names


def encode_values(
    values: Sequence[object], task: Task, where: str, places: Sequence[str]
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Values with a type -> as :func:`encode_targets`, which alone judges whole numbers.

    Left to itself (``task="auto"``), texts and booleans are classes and a number with a point is a value to predict.
    """
    texts = [_target_text(value, place) for value, place in zip(values, places, strict=True)]
    known = [value for value, text in zip(values, texts, strict=True) if text and text.strip().lower() not in MISSING]
    if task == "auto":
        words = sum(isinstance(value, (str, bool, np.bool_)) for value in known)
        if words > (1 - MOST_NUMBERS) * len(known) and not _have_bounds([str(value).strip() for value in known]):
            task = "classification"
        elif any(isinstance(value, (float, np.floating)) for value in known):
            task = "regression"
    # among classes that are texts by their type, none is one like the others
    return encode_targets(texts, task, where, places, ("", "nan") if task == "classification" else MISSING)


def _target_text(value: object, place: str) -> str | None:
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if value is None or isinstance(value, (str, bool, np.bool_, int, np.integer)):
        return None if value is None else str(value)
    raise DataError(f"{place}: target {short(value)} must be a text or a number")


def sort_names(names: Sequence[str]) -> tuple[str, ...]:
    """By number where all are numbers, else by name."""
    if all(number_of(name) is not None for name in names):
        return tuple(sorted(names, key=lambda name: (number_of(name), name)))
    return tuple(sorted(names))


def number_of(text: str) -> float | None:
    """The finite number that the text spells; whole numbers exactly."""
    if INTEGER.fullmatch(text):
        return int(text)
    number = float(text) if NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def _check_numbers(targets: Sequence[tuple[str, str]], task: Task) -> None:
    """Refuse texts, each with its place, that are no numbers or too large: the first few by name."""
    bad = [(text, place) for text, place in targets if number_of(text) is None]
    if bad:
        (text, place), *others = bad
        more = ", ".join(f"{short(other, 20)} in {where.rpartition(', ')[2]}" for other, where in others[:2])
        more = f" (nor {more}{f' and {len(others) - 2} more' if len(others) > 2 else ''})" if others else ""
        way_out = "write the limit itself, or leave it empty" if BOUND.fullmatch(text) else "leave unknown values empty"
        way_out += ", or use --task classification" if task == "auto" else ""
        raise DataError(f"{place}: target {short(text)} is not a finite number{more}; {way_out}")
    for text, place in targets:
        if abs(number_of(text) or 0) > LARGEST:
            raise DataError(f"{place}: target {short(text)} is too large; at most {LARGEST:.2g} is read: rescale them")


def _have_bounds(texts: Sequence[str]) -> bool:
    """Whether these are numbers but for some that are only known to lie above or below one: no classes, then."""
    numbers, bounds = (sum(bool(kind.fullmatch(text)) for text in texts) for kind in (NUMBER, BOUND))
    return 0 < bounds < numbers and numbers + bounds >= MOST_NUMBERS * len(texts)


def look_like_classes(texts: Sequence[str]) -> bool:
    if _have_bounds(texts):
        return False
    written = [text for text in texts if NUMBER.fullmatch(text)]
    if len(written) < MOST_NUMBERS * len(texts):
        return True
    numbers = {number_of(text) for text in written}
    if not all(number is not None and number == int(number) for number in numbers):
        return False
    return len(numbers) <= 2 or (len(numbers) <= MOST_CLASSES and 2 * len(numbers) < len(texts))


def _class_names(distinct: Sequence[str]) -> dict[str, str]:
    """What to call the class that each text means: 1 and 1.0 are one in the file of today and in that of tomorrow."""
    numbers = {text: number_of(text) for text in distinct}
    if None in numbers.values():
        return {text: text for text in distinct}
    shortest: dict[float | None, str] = {}
    for text, number in numbers.items():
        plain = re.sub(r"(?<=\d)\.0*$", "", text)
        shortest[number] = min(plain, shortest.get(number, plain), key=lambda name: (len(name), name))
    return {text: shortest[number] for text, number in numbers.items()}
