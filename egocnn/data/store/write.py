"""Portions of graphs -> a store, written beside its place and put there whole: at any time there is the old one, or all
of the new. What a killed writer leaves, a hidden folder without a lock, the next one removes."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.collection import recode
from egocnn.data.graphs import Graphs
from egocnn.data.schema import EDGE_COLUMNS, GRAPH_COLUMNS, INNER_COLUMNS, NAME_LISTS, Names, rule
from egocnn.data.sources.text import listed
from egocnn.data.store.manifest import CHUNK, COLUMNS, NAME, TEXT, Column, Manifest
from egocnn.errors import DataError
from egocnn.files import check_is_no_file, put_folder, scratch, umask

ROWS_AT_ONCE = 1 << 20
GraphColumns = Callable[[], Mapping[str, Any]]  # called at the end: columns with one entry per graph, orders of labels


def write_store(
    portions: Iterable[Graphs],
    folder: str | Path,
    *,
    source: str = "",
    read: Mapping[str, Any] | None = None,
    facts: GraphColumns | None = None,
    overwrite: bool = False,
    report: Callable[[int], None] | None = None,
) -> Manifest:
    """Write the portions, one after the other, as one collection; only one of them is in memory at a time. Label and
    class names are united, and groups taken as they are. ``facts`` brings, at the end, columns with one entry per graph
    (``names``, ``target``, ...) that take the place of the portions' own, and ``node_label_names`` or
    ``edge_label_names`` in the order wanted. ``report`` is called with the number of graphs written so far."""
    folder = Path(folder)
    check_place(folder, overwrite=overwrite)
    with _beside(folder, overwrite=overwrite) as temporary:
        writer = _Writer(temporary)
        for graphs in portions:
            writer.add(graphs)
            if report is not None:
                report(writer.graphs)
        return writer.finish({} if facts is None else facts(), source, dict(read or {}))


def check_place(folder: Path, *, overwrite: bool) -> None:
    """Refuse, before anything is read, a place where no store can be put."""
    check_is_no_file(folder)
    if folder.exists() and any(folder.iterdir()):
        rule((folder / NAME).is_file(), f"{folder}: is not empty and holds no store; name another folder")
        rule(overwrite, f"{folder}: holds a store already; --overwrite replaces it")
        others = [each.name for each in folder.iterdir() if each.name != NAME and each.suffix != ".bin"]
        rule(not others, f"{folder}: holds {listed(others)} beside the store; move it away, or name another folder")


class _Writer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.graphs = self.nodes = self.entries = 0
        self.columns: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}  # kind of the numbers, shape of a row
        self.rows: dict[str, int] = {}
        self.names: dict[str, dict[str, int]] = {name: {} for name in NAME_LISTS}
        self.is_classification: bool | None = None
        self.targets: tuple[tuple[str, Names], ...] | None = None  # of all portions; None before the first

    def add(self, graphs: Graphs) -> None:
        if len(graphs) == 0:
            return
        rule(self.nodes + graphs.n_nodes < 2**31, "a store holds fewer than 2^31 nodes")
        self._check_kind(graphs)
        first = 1 if self.graphs else 0  # a pointer's first number is the last one of the portion before
        self._append("node_ptr", graphs.node_ptr[first:].astype(np.int64) + self.nodes)
        self._append("entry_ptr", graphs.indptr[graphs.node_ptr[first:]].astype(np.int64) + self.entries)
        self._append("indptr", graphs.indptr[first:].astype(np.int64) + self.entries)
        for some in _slices(graphs.n_entries):
            self._append("indices", graphs.indices[some].astype(np.int32) + np.int32(self.nodes))
        for name in (*INNER_COLUMNS, *GRAPH_COLUMNS):
            if (values := getattr(graphs, name)) is None:
                continue
            if not (ours := getattr(graphs, NAME_LISTS.get(name, ""), ())):
                self._append(name, values)
                continue
            known = self.names[name]
            codes = np.array([*(known.setdefault(each, len(known)) for each in ours), -1])  # the last serves -1 itself
            for some in _slices(len(values)):
                self._append(name, codes[values[some]].astype(values.dtype))
        for name in TEXT:
            if (texts := getattr(graphs, name)) is not None:
                self._append_texts(name, texts, 1 - first)
        self.graphs, self.nodes = self.graphs + len(graphs), self.nodes + graphs.n_nodes
        self.entries += graphs.n_entries

    def _check_kind(self, graphs: Graphs) -> None:
        """What one portion has, all must have; one without edges need not say what edges are like."""
        rule(self.targets in (None, graphs.targets), "some of these graphs have other targets, or other classes")
        self.targets = graphs.targets
        if graphs.target is not None and not graphs.targets:
            is_same = self.is_classification in (None, graphs.is_classification)
            rule(is_same, "some of these graphs have classes and some have values to predict")
            self.is_classification = graphs.is_classification
        for name in (*INNER_COLUMNS, *GRAPH_COLUMNS, "smiles"):
            is_there, was_there = getattr(graphs, name) is not None, name in self.columns
            has_both = self.entries and graphs.n_entries if name in EDGE_COLUMNS else self.graphs
            if is_there != was_there and has_both:
                now, before = ("have", "do not") if is_there else ("do not have", "do")
                these = f"graph {graphs.names[0]!r} and those after it {now} {name}"
                raise DataError(f"{these}, those before {before}; give all graphs some or none")

    def _append_texts(self, name: str, texts: Sequence[str], more: int) -> None:
        encoded = [text.encode() for text in texts]
        lengths = np.array([0] * more + [len(text) for text in encoded], np.int64)
        self._append(f"{name}_ptr", np.cumsum(lengths) + self.rows.get(name, 0))
        self._append(name, np.frombuffer(b"".join(encoded), np.uint8))

    def _append(self, name: str, values: NDArray[Any]) -> None:
        little = values.dtype.newbyteorder("<") if values.dtype.byteorder == ">" else values.dtype
        dtype, row = self.columns.setdefault(name, (little, values.shape[1:]))
        rule(dtype.str in COLUMNS[name][1], f"{name} holds {dtype}, which a store cannot keep")
        if values.shape[1:] != row:
            raise DataError(f"{values.shape[1]} attributes per node after {row[0]}; give all graphs the same")
        fits = np.can_cast(values.dtype, dtype, "same_kind")
        rule(fits, f"{name} holds {values.dtype} after {dtype}; give all graphs the same")
        self.rows[name] = self.rows.get(name, 0) + len(values)
        with (self.folder / f"{name}.bin").open("ab") as file:
            for some in _slices(len(values)):
                file.write(np.ascontiguousarray(values[some], dtype).data)

    def finish(self, facts: Mapping[str, Any], source: str, read: Mapping[str, Any]) -> Manifest:
        rule(self.graphs, "no graphs to write")
        names: dict[str, Any] = {"class_names": tuple(self.names["target"]), "targets": self.targets}
        for name in (*GRAPH_COLUMNS, *TEXT):
            if (values := facts.get(name)) is not None:
                rule(len(values) == self.graphs, f"{len(values)} of {name} for {self.graphs} graphs")
                self._drop(name)
                if name in TEXT:
                    self._drop(f"{name}_ptr")
                    self._append_texts(name, values, 1)
                else:
                    self._append(name, np.asarray(values))
                if name == "target":
                    names |= {kind: tuple(facts.get(kind, ())) for kind in ("class_names", "targets")}
        for name in ("node_label", "edge_label"):
            names[f"{name}_names"] = self._ordered(name, facts.get(f"{name}_names"))
        for name in EDGE_COLUMNS:
            if name in self.columns and self.rows[name] != self.entries:  # given by graphs without edges alone
                self._drop(name)
        names |= {"graphs": self.graphs, "nodes": self.nodes, "entries": self.entries}
        columns = {name: self._described(name) for name in sorted(self.columns)}
        manifest = Manifest(columns=columns, source=source, read=read, **names)
        with (self.folder / NAME).open("w", encoding="utf-8") as file:
            file.write(manifest.to_text())
            file.flush()
            os.fsync(file.fileno())
        return manifest

    def _drop(self, name: str) -> None:
        self.columns.pop(name, None)
        self.rows.pop(name, None)
        (self.folder / f"{name}.bin").unlink(missing_ok=True)

    def _ordered(self, name: str, wanted: Sequence[str] | None) -> tuple[str, ...]:
        """The names in the order wanted, what is written counted by it."""
        known = tuple(self.names[name])
        if wanted is None or tuple(wanted) == known:
            return known
        if self.rows.get(name):
            codes = recode(known, tuple(wanted))
            mapped = np.memmap(self.folder / f"{name}.bin", self.columns[name][0], "r+")
            for some in _slices(len(mapped)):
                mapped[some] = codes[mapped[some]]
            mapped.flush()
        return tuple(wanted)

    def _described(self, name: str) -> Column:
        dtype, row = self.columns[name]
        with (self.folder / f"{name}.bin").open("rb") as file:
            digests = tuple(hashlib.sha256(chunk).hexdigest() for chunk in iter(lambda: file.read(CHUNK), b""))
            os.fsync(file.fileno())
        return Column(dtype.str, (self.rows[name], *row), digests)


def _slices(length: int) -> Iterator[slice]:
    """Rows in portions, one even if there are none: a column without rows is still a column."""
    return (slice(first, first + ROWS_AT_ONCE) for first in range(0, max(length, 1), ROWS_AT_ONCE))


@contextmanager
def _beside(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """A locked temporary folder; on success it takes the place of ``folder`` in one step."""
    place = Path(os.path.realpath(folder))
    place.parent.mkdir(parents=True, exist_ok=True)
    with scratch(place, place) as (lock, temporary):
        temporary.chmod(0o777 & ~umask())  # a temporary folder is private; a store is an ordinary one
        yield temporary
        os.fsync(lock)
        check_place(place, overwrite=overwrite)
        put_folder(temporary, place)  # what was replaced is there then, and goes
