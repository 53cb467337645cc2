"""The description of a store: manifest.json <-> Manifest, refused unless every field of it is valid. A store is a
folder with ``manifest.json`` and one file ``NAME.bin`` for each column: its numbers, little end first, row after row.
Columns are those of :class:`~egocnn.data.graphs.Graphs`, ``entry_ptr`` (the first adjacency entry of every graph) and,
for names and SMILES, the UTF-8 texts end to end (``names``) with where each starts (``names_ptr``). The manifest never
names a file: a column's file is called by the column, so no manifest can point out of the folder."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from egocnn.data.schema import NAME_LISTS, rule
from egocnn.errors import DataError
from egocnn.files import digest_of_plain

FORMAT = "egocnn store"
VERSION = 1  # raised whenever an older egocnn could no longer read the folder
NAME = "manifest.json"
CHUNK = 1 << 20  # bytes under one checksum: what is read is checked, and no more
LARGEST = 1 << 28  # bytes of a manifest that are believed: enough for the checksums of terabytes
MOST_ATTRIBUTES = 1 << 20
WHOLE = ("<i8", "<i4", "<i2", "|i1")
REAL = ("<f8", "<f4")
TEXT = ("names", "smiles")
COLUMNS: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("node_ptr", "entry_ptr", "names_ptr", "smiles_ptr"), ("graphs + 1", ("<i8",))),
    "indptr": ("nodes + 1", ("<i8",)),
    "indices": ("entries", ("<i4",)),
    "node_label": ("nodes", WHOLE),
    "node_attr": ("nodes", REAL),
    "node_truth": ("nodes", ("|b1",)),
    "edge_label": ("entries", WHOLE),
    "edge_weight": ("entries", REAL),
    "edge_truth": ("entries", ("|b1",)),
    "target": ("graphs", WHOLE + REAL),
    **dict.fromkeys(("group", "part"), ("graphs", WHOLE)),
    **dict.fromkeys(TEXT, ("", ("|u1",))),
}
"""Of each column: how many rows it has (empty: any number), and the kinds of numbers it may hold."""
ALWAYS = ("node_ptr", "entry_ptr", "indptr", "indices", "names", "names_ptr")


@dataclass(frozen=True, slots=True)
class Column:
    """The file of one column: its numbers and their checksums."""

    dtype: str  # as numpy writes it: <i4
    shape: tuple[int, ...]
    digests: tuple[str, ...]  # SHA-256 of every ``CHUNK`` bytes

    @property
    def row_bytes(self) -> int:
        return int(np.dtype(self.dtype).itemsize) * math.prod(self.shape[1:])

    @property
    def size(self) -> int:
        return self.shape[0] * self.row_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Sizes, names and columns of a store."""

    graphs: int
    nodes: int
    entries: int
    node_label_names: tuple[str, ...] = ()
    edge_label_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    targets: tuple[tuple[str, tuple[str, ...]], ...] = ()  # where there are several: name and class names of each
    source: str = ""  # what the graphs were read from
    read: Mapping[str, Any] = field(default_factory=dict)  # with which settings
    columns: Mapping[str, Column]

    @property
    def size(self) -> int:
        """Bytes of all columns together."""
        return sum(column.size for column in self.columns.values())

    def to_text(self) -> str:
        """The manifest as JSON, with its own checksum."""
        plain = {"format": FORMAT, "version": VERSION, **asdict(self)}
        if not self.targets:
            del plain["targets"]  # as in stores from before there were several
        return json.dumps({**plain, "digest": digest_of_plain(plain)}, indent=1, ensure_ascii=False) + "\n"

    @staticmethod
    def from_text(text: bytes) -> "Manifest":
        """The record again; a :class:`DataError` names what is wrong with it."""
        try:
            plain = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{NAME} is not JSON ({' '.join(str(error).split())[:120]})") from None
        rule(isinstance(plain, dict) and plain.get("format") == FORMAT, f"{NAME} is not that of a store")
        found = plain.get("version")
        other = f"a store of version {str(found)[:20]}; this egocnn reads version {VERSION}: prepare it again"
        rule(type(found) is int and found == VERSION, other)
        digest = plain.pop("digest", None)
        try:
            is_whole = digest == digest_of_plain(plain)
        except (ValueError, RecursionError):  # half a surrogate pair cannot be encoded
            is_whole = False
        rule(is_whole, f"{NAME} is damaged: its checksum differs")
        return _parse(plain)


def _parse(plain: Mapping[str, Any]) -> Manifest:
    sizes: dict[str, Any] = {name: _size(plain.get(name), name) for name in ("graphs", "nodes", "entries")}
    rule(sizes["nodes"] < 2**31, f"{sizes['nodes']} nodes; a collection holds fewer than 2^31")
    columns: Any = plain.get("columns")
    rule(isinstance(columns, dict), f"{NAME} names no columns")
    for name in ALWAYS:
        rule(name in columns, f"the column {name} is missing")
    rule(("smiles" in columns) == ("smiles_ptr" in columns), "the columns smiles and smiles_ptr go together")
    names: dict[str, Any] = {}
    for name in NAME_LISTS.values():
        rule(_is_list(plain.get(name), lambda each: isinstance(each, str)), f"{name} must be a list of texts")
        names[name] = tuple(plain[name])
    targets = plain.get("targets", [])
    rule(_is_list(targets, _is_target), "targets must be a list of names, each with a list of class names")
    names["targets"] = tuple((name, tuple(classes)) for name, classes in targets)
    read, source = plain.get("read"), plain.get("source")
    if not isinstance(read, dict) or not isinstance(source, str):
        raise DataError("source and settings of reading must be a text and an object")
    tables = {"node_attr", "target"} if targets else {"node_attr"}
    found = {str(name): _column(str(name), column, sizes, name in tables) for name, column in columns.items()}
    fits = "target" not in found or (found["target"].dtype in WHOLE) == bool(names["class_names"])
    rule(fits, "target must be whole numbers with class_names, or real values without")
    fits = "target" in found and found["target"].shape[1:] == (len(targets),) and not names["class_names"]
    rule(fits or not targets, f"target must have a column for each of {len(targets)} targets")
    return Manifest(columns=found, source=source, read=read, **sizes, **names)


def _column(name: str, plain: Any, sizes: Mapping[str, int], is_table: bool) -> Column:
    rule(name in COLUMNS, f"a column {name[:40]!r}, which no store has")
    rows, kinds = COLUMNS[name]
    is_known = isinstance(plain, dict) and plain.get("dtype") in kinds
    rule(is_known, f"the column {name} must hold one of {', '.join(kinds)}")
    shape, digests = plain.get("shape"), plain.get("digests")
    fits = isinstance(shape, list) and len(shape) == (2 if is_table else 1)
    rule(fits, f"the column {name} has a shape that does not fit")
    shape = tuple(_size(size, f"{name}: a length") for size in shape)
    unit, _, more = rows.partition(" + ")
    if rows:
        fits = shape[0] == sizes[unit] + int(more or 0)
        rule(fits, f"the column {name} has {shape[0]} rows for {sizes[unit]} {unit}")
    rule(shape[1:] <= (MOST_ATTRIBUTES,), f"{shape[-1]} attributes; a node may have {MOST_ATTRIBUTES}")
    are_digests = _is_list(digests, lambda each: isinstance(each, str) and re.fullmatch("[0-9a-f]{64}", each))
    rule(are_digests, f"the checksums of {name} are not such")
    column = Column(plain["dtype"], shape, tuple(digests))
    fits = len(digests) == -(-column.size // CHUNK)
    rule(fits, f"{len(digests)} checksums for the {column.size} bytes of {name}")
    return column


def _size(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**48:
        raise DataError(f"{what} must be a whole number in its range, got {str(value)[:40]!r}")
    return value


def _is_target(value: Any) -> bool:
    is_pair = isinstance(value, list) and [type(each) for each in value] == [str, list]
    return is_pair and _is_list(value[1], lambda each: isinstance(each, str))


def _is_list(value: Any, is_right: Callable[[Any], object]) -> bool:
    return isinstance(value, list) and all(map(is_right, value))
