"""A store -> Graphs: in portions that are read and checked one after the other, or whole, over memory-mapped files.

Opening checks version, names, sizes and the manifest's own checksum. A portion is checked as it is read: the bytes that
have passed the checksum are the very bytes that are used. Reading the whole checks all of it once, then maps it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import EDGE_COLUMNS, GRAPH_COLUMNS, NODE_COLUMNS
from egocnn.data.store.manifest import CHUNK, FORMAT, LARGEST, NAME, NAME_LISTS, TEXT, Column, Manifest
from egocnn.errors import DataError

PORTION_BYTES = 1 << 23
"""What the columns of a portion take, unless it is one larger graph; what is computed from them takes several times
as much."""
POINTER = 8  # bytes of a row of indptr, which is read along with every node
HEAD = 200  # bytes at the start of a manifest that hold its format


def is_store(path: str | Path) -> bool:
    """Whether this folder means to be a store; :meth:`Store.open` says whether it is a sound one."""
    try:
        with (Path(path) / NAME).open("rb") as file:
            return FORMAT.encode() in file.read(HEAD)
    except (OSError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class Store:
    """An opened store: G graphs on disk."""

    folder: Path
    manifest: Manifest

    @staticmethod
    def open(folder: str | Path) -> Store:
        """The store in this folder, its manifest and the sizes of its files checked."""
        folder = Path(folder)
        with _naming(folder):
            manifest = Manifest.from_text(_read_manifest(folder))
            _check_files(folder, manifest)
        return Store(folder, manifest)

    def __len__(self) -> int:
        return self.manifest.graphs

    def portions(self, most_bytes: int | None = None, *, first: int = 0, last: int | None = None) -> Iterator[Graphs]:
        """Graphs in order, all or those from ``first`` to before ``last``, as many at a time as fit.

        In memory are one portion and 16 bytes a graph.
        """
        with _naming(self.folder):
            node_ptr, entry_ptr = (self._pointer(name) for name in ("node_ptr", "entry_ptr"))
            columns = self.manifest.columns
            sizes = {
                unit: sum(columns[name].row_bytes for name in names if name in columns)
                for unit, names in _BY_UNIT.items()
            }
            end = node_ptr[1:] * (sizes["nodes"] + POINTER) + entry_ptr[1:] * sizes["entries"]
            end += np.arange(1, len(self) + 1) * sizes["graphs"]
            before = int(end[first - 1]) if first else 0
            for start, after in _cuts(end[first:last] - before, most_bytes or PORTION_BYTES):
                graphs = self._part(first + start, first + after, node_ptr, entry_ptr)
                graphs.validate()
                yield graphs

    def graphs(self) -> Graphs:
        """The whole collection over memory-mapped arrays, once all of it has been checked; names are in memory.

        The files must stay as they are while it is used: what is cut off a mapped file ends the process.
        """
        names: list[str] = []
        smiles: list[str] | None = [] if "smiles" in self.manifest.columns else None
        for part in self.portions():
            names += part.names
            if smiles is not None:
                smiles += part.smiles or ()
        arrays: dict[str, Any] = {name: self._mapped(name) for name in self.manifest.columns if name in _GRAPHS}
        return Graphs(
            names=tuple(names),
            smiles=None if smiles is None else tuple(smiles),
            **{name: getattr(self.manifest, name) for name in NAME_LISTS},
            **arrays,
        )

    def outline(self) -> Graphs:
        """All graphs without their nodes: targets, groups and parts. Nameless but for the first that has no target."""
        with _naming(self.folder):
            names = [""] * len(self)
            columns: dict[str, Any] = {
                name: self._rows(name, 0, len(self)) for name in GRAPH_COLUMNS if name in self.manifest.columns
            }
            if "target" in columns:
                target = columns["target"]
                missing = np.flatnonzero(target < 0 if self.manifest.class_names else ~np.isfinite(target))
                for number in missing[:1]:
                    (names[number],) = self._texts("names", int(number), int(number) + 1)
            graphs = Graphs(
                node_ptr=np.zeros(len(self) + 1, np.int64),
                indptr=np.zeros(1, np.int64),
                indices=np.zeros(0, np.int32),
                names=tuple(names),
                class_names=self.manifest.class_names,
                **columns,
            )
            graphs.validate()
        return graphs

    def node_ptr(self) -> Ints:
        """(G + 1) first node of every graph"""
        with _naming(self.folder):
            return self._pointer("node_ptr")

    # ── columns ───────────────────────────────────────────────────────────────────────────────────

    def _part(self, first: int, last: int, node_ptr: Ints, entry_ptr: Ints) -> Graphs:
        node, after = int(node_ptr[first]), int(node_ptr[last])
        entry, end = int(entry_ptr[first]), int(entry_ptr[last])
        rows = {"nodes": (node, after), "entries": (entry, end), "graphs": (first, last)}
        columns: dict[str, Any] = {
            name: self._rows(name, *rows[unit])
            for unit, names in _BY_UNIT.items()
            for name in names
            if name in self.manifest.columns and name in _GRAPHS
        }
        # in place: the arrays are this portion's own
        columns["indices"] -= np.int32(node)
        indptr = self._rows("indptr", node, after + 1)
        indptr -= entry
        texts: dict[str, Any] = {name: self._texts(name, first, last) for name in TEXT if name in self.manifest.columns}
        return Graphs(
            node_ptr=node_ptr[first : last + 1] - node,
            indptr=indptr,
            **{name: getattr(self.manifest, name) for name in NAME_LISTS},
            **columns,
            **texts,
        )

    def _pointer(self, name: str) -> Ints:
        """Where every graph starts, its counts checked before anything is looked up by them."""
        pointer = self._rows(name, 0, len(self) + 1)
        total = self.manifest.nodes if name == "node_ptr" else self.manifest.entries
        if pointer[0] != 0 or pointer[-1] != total or (pointer[1:] < pointer[:-1]).any():
            raise DataError(f"{name} must rise from 0 to {total}")
        return pointer

    def _texts(self, name: str, first: int, last: int) -> tuple[str, ...]:
        pointer = self._rows(f"{name}_ptr", first, last + 1)
        if pointer[0] < 0 or pointer[-1] > self.manifest.columns[name].size or (pointer[1:] < pointer[:-1]).any():
            raise DataError(f"{name}_ptr must rise within {name}")
        data = self._rows(name, int(pointer[0]), int(pointer[-1])).tobytes()
        bounds = (pointer - pointer[0]).tolist()
        try:
            return tuple(data[a:b].decode() for a, b in pairwise(bounds))
        except UnicodeDecodeError:
            raise DataError(f"{name} is not UTF-8 text") from None

    def _rows(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Rows of a column, checked, in memory of their own."""
        column = self.manifest.columns[name]
        data = read_checked(self.folder / f"{name}.bin", column, first * column.row_bytes, last * column.row_bytes)
        return np.frombuffer(data, column.dtype).reshape(last - first, *column.shape[1:])

    def _mapped(self, name: str) -> NDArray[Any]:
        column = self.manifest.columns[name]
        if column.size == 0:  # there is nothing to map
            return np.zeros(column.shape, column.dtype)
        return np.memmap(self.folder / f"{name}.bin", column.dtype, "r", shape=column.shape)


_BY_UNIT = {"nodes": NODE_COLUMNS, "entries": ("indices", *EDGE_COLUMNS), "graphs": GRAPH_COLUMNS}
_GRAPHS = ("node_ptr", "indptr", "indices", *NODE_COLUMNS, *EDGE_COLUMNS, *GRAPH_COLUMNS)
"""Columns of a store that are fields of Graphs as they are."""


def _cuts(end: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Running sums of sizes (G) -> first and last graph of portions, none above ``most`` unless one graph is."""
    first, done = 0, 0
    while first < len(end):
        last = max(first + 1, int(np.searchsorted(end, done + most, side="right")))
        yield first, last
        first, done = last, int(end[last - 1])


def read_checked(path: Path, column: Column, first: int, last: int) -> bytearray:
    """The bytes from ``first`` to before ``last``, every chunk that holds some of them checked."""
    found = bytearray(last - first)
    if first == last:
        return found
    with _open(path) as file:
        for number in range(first // CHUNK, -(-last // CHUNK)):
            start = number * CHUNK
            file.seek(start)
            chunk = file.read(min(CHUNK, column.size - start))
            if hashlib.sha256(chunk).hexdigest() != column.digests[number]:
                raise DataError(f"{path.name} is damaged: the checksum of its bytes from {start} on differs")
            a, b = max(first, start), min(last, start + CHUNK)
            found[a - first : b - first] = memoryview(chunk)[a - start : b - start]
    return found


def _open(path: Path) -> Any:
    """A plain file that is no link: what a link points to may lie anywhere, and a pipe would wait for ever."""
    if path.is_symlink():
        raise DataError(f"{path.name} is no plain file")
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise DataError(f"{path.name} is missing") from None
    except OSError as error:
        raise DataError(f"{path.name} cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DataError(f"{path.name} is no plain file")
    return os.fdopen(handle, "rb")


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Errors begin with the folder of the store."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{folder}: {error}") from None


def _read_manifest(folder: Path) -> bytes:
    if not folder.is_dir():
        raise DataError("no such folder")
    with _open(folder / NAME) as file:
        if (size := os.fstat(file.fileno()).st_size) > LARGEST:
            raise DataError(f"{NAME} is larger than any store's")
        text: bytes = file.read(size)  # to ask for more would take the memory for it
    return text


def _check_files(folder: Path, manifest: Manifest) -> None:
    """Just the files that the manifest speaks of, plain ones, each of the size it says."""
    try:
        there = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})") from None
    expected = {f"{name}.bin": column.size for name, column in manifest.columns.items()}
    for name, size in expected.items():
        with _open(folder / name) as file:
            found = os.fstat(file.fileno()).st_size
        if found != size:
            raise DataError(f"{name} has {found} bytes; it should have {size}")
    for name in there:
        if name not in expected and name != NAME:
            raise DataError(f"holds {ascii(name)[:60]}, which is no part of a store")
