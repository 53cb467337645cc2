"""A store -> Graphs: in portions that are read and checked one after the other, or whole, over memory-mapped files.
Opening checks version, names, sizes and the manifest's own checksum. A portion is checked as it is read: the bytes that
have passed the checksum are the very bytes that are used. Reading the whole checks all of it once, then maps it."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.schema import ARRAYS, EDGE_COLUMNS, GRAPH_COLUMNS, NAME_LISTS, NODE_COLUMNS, checked, rule
from egocnn.data.store.manifest import CHUNK, FORMAT, LARGEST, NAME, TEXT, Column, Manifest
from egocnn.errors import DataError
from egocnn.files import regular

PORTION_BYTES = 1 << 23  # of a portion's columns, unless one graph has more; several times that with what is computed
POINTER = 8  # bytes of a row of indptr, which is read along with every node
HEAD = 200  # bytes at the start of a manifest that hold its format
BY_UNIT = {"nodes": NODE_COLUMNS, "entries": ("indices", *EDGE_COLUMNS), "graphs": GRAPH_COLUMNS}


def is_store(path: str | Path) -> bool:
    """Whether this folder means to be a store; :meth:`Store.open` says whether it is a sound one."""
    try:
        with regular(Path(path) / NAME).open("rb") as file:
            return FORMAT.encode() in file.read(HEAD)
    except (OSError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class Store:
    """An opened store: G graphs on disk."""

    folder: Path
    manifest: Manifest

    @staticmethod
    def open(folder: str | Path) -> "Store":
        """The store in this folder, its manifest and the sizes of its files checked."""
        folder = Path(folder)
        with _naming(folder):
            rule(folder.is_dir(), "no such folder")
            with _open(folder / NAME) as file:
                size = os.fstat(file.fileno()).st_size
                rule(size <= LARGEST, f"{NAME} is larger than any store's")
                manifest = Manifest.from_text(file.read(size))  # to ask for more would take the memory for it
            _check_files(folder, manifest)
        return Store(folder, manifest)

    def __len__(self) -> int:
        return self.manifest.graphs

    def portions(self, most_bytes: int | None = None, *, first: int = 0, last: int | None = None) -> Iterator[Graphs]:
        """Graphs from ``first`` to before ``last`` in order, as many at a time as fit."""
        with _naming(self.folder):
            node_ptr, entry_ptr = map(self._pointer, ("node_ptr", "entry_ptr"))  # 16 bytes a graph stay in memory
            there = self.manifest.columns
            width = {unit: sum(there[name].row_bytes for name in BY_UNIT[unit] if name in there) for unit in BY_UNIT}
            end = node_ptr * (width["nodes"] + POINTER) + entry_ptr * width["entries"]
            end += np.arange(len(end)) * width["graphs"]  # (G + 1) bytes of all graphs before each
            last = len(self) if last is None else last
            while first < last:
                most = int(np.searchsorted(end, end[first] + (most_bytes or PORTION_BYTES), side="right")) - 1
                after = max(first + 1, min(last, most))
                yield checked(self._part(first, after, node_ptr, entry_ptr))
                first = after

    def graphs(self) -> Graphs:
        """The whole collection over memory-mapped arrays, once all of it has been checked; names are in memory. The
        files must stay as they are while it is used: what is cut off a mapped file ends the process."""
        texts: dict[str, list[str]] = {name: [] for name in TEXT if name in self.manifest.columns}
        for part in self.portions():
            for name, found in texts.items():
                found += getattr(part, name)
        columns: dict[str, Any] = {name: tuple(found) for name, found in texts.items()}
        for name, column in ((name, column) for name, column in self.manifest.columns.items() if name in ARRAYS):
            place, kind, shape = self.folder / f"{name}.bin", column.dtype, column.shape
            # where there is nothing to map it is empty
            columns[name] = np.memmap(place, kind, "r", shape=shape) if column.size else np.zeros(shape, kind)
        return Graphs(**self._name_lists(), **columns)

    def outline(self) -> Graphs:
        """All graphs without their nodes: targets, groups and parts. Nameless but for the first that has no target."""
        there = [name for name in GRAPH_COLUMNS if name in self.manifest.columns]
        with _naming(self.folder):
            names = [""] * len(self)
            columns: dict[str, Any] = {name: self._rows(name, 0, len(self)) for name in there}
            if "target" in columns:
                target = columns["target"]
                is_missing = target < 0 if self.manifest.class_names else ~np.isfinite(target)
                is_missing = is_missing.all(axis=1) if self.manifest.targets else is_missing
                for number in np.flatnonzero(is_missing)[:1]:
                    (names[number],) = self._texts("names", int(number), int(number) + 1)
            columns |= {"names": tuple(names), "class_names": self.manifest.class_names}
            columns["targets"] = self.manifest.targets
            pointer, empty = np.zeros(len(self) + 1, np.int64), np.zeros(0, np.int32)
            return checked(Graphs(node_ptr=pointer, indptr=pointer[:1], indices=empty, **columns))

    def node_ptr(self) -> Ints:
        """(G + 1) first node of every graph"""
        with _naming(self.folder):
            return self._pointer("node_ptr")

    def _part(self, first: int, last: int, node_ptr: Ints, entry_ptr: Ints) -> Graphs:
        node, after = int(node_ptr[first]), int(node_ptr[last])
        entry, end = int(entry_ptr[first]), int(entry_ptr[last])
        rows = {"nodes": (node, after), "entries": (entry, end), "graphs": (first, last)}
        there = ((unit, name) for unit, names in BY_UNIT.items() for name in names if name in self.manifest.columns)
        columns: dict[str, Any] = {name: self._rows(name, *rows[unit]) for unit, name in there}
        columns["indptr"] = self._rows("indptr", node, after + 1)
        columns["indptr"] -= entry  # in place: the arrays are this portion's own
        columns["indices"] -= np.int32(node)
        columns |= {name: self._texts(name, first, last) for name in TEXT if name in self.manifest.columns}
        return Graphs(node_ptr=node_ptr[first : last + 1] - node, **self._name_lists(), **columns)

    def _name_lists(self) -> dict[str, Any]:
        return {name: getattr(self.manifest, name) for name in (*NAME_LISTS.values(), "targets")}

    def _pointer(self, name: str) -> Ints:
        """Where every graph starts, its counts checked before anything is looked up by them."""
        pointer = self._rows(name, 0, len(self) + 1)
        total = self.manifest.nodes if name == "node_ptr" else self.manifest.entries
        rises = pointer[0] == 0 and pointer[-1] == total and (pointer[1:] >= pointer[:-1]).all()
        rule(rises, f"{name} must rise from 0 to {total}")
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
        column = self.manifest.columns[name]
        data = read_checked(self.folder / f"{name}.bin", column, first * column.row_bytes, last * column.row_bytes)
        return np.frombuffer(data, column.dtype).reshape(last - first, *column.shape[1:])


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """G graphs that stay in their store and are read in portions; in memory are a few numbers of each."""

    store: Store
    numbers: Ints  # (G) their numbers in the store, ascending
    node_counts: Ints  # (G)
    outline: Graphs  # without nodes: targets, groups and parts, all that decides who is learned from and who is tested

    @staticmethod
    def of(store: Store) -> "Stored":
        """All graphs of the store."""
        return Stored(store, np.arange(len(store)), np.diff(store.node_ptr()), store.outline())

    def __len__(self) -> int:
        return len(self.numbers)

    def choose(self, which: Ints) -> "Stored":
        """Those at these places, ascending."""
        return Stored(self.store, self.numbers[which], self.node_counts[which], self.outline[which])

    def with_parts(self, part: Ints | None, group: Ints | None = None) -> "Stored":
        return replace(self, outline=self.outline.with_parts(part, group))

    @property
    def bytes_on_disk(self) -> int:
        return self.store.manifest.size

    def whole(self) -> Graphs:
        """Over memory-mapped files, once all of them have been checked."""
        graphs = self.store.graphs()
        graphs = graphs if len(self) == len(graphs) else graphs[self.numbers]
        return replace(graphs, part=self.outline.part, group=self.outline.group)

    def portions(self, first: int = 0, last: int | None = None) -> Iterator[Graphs]:
        """The graphs from place ``first`` to before ``last``, in order, as many at a time as fit."""
        wanted = self.numbers[first:last]
        if len(wanted) == 0:
            return
        start = int(wanted[0])
        for graphs in self.store.portions(first=start, last=int(wanted[-1]) + 1):
            here = wanted[slice(*np.searchsorted(wanted, [start, start + len(graphs)]))] - start
            start += len(graphs)
            if len(here):
                yield graphs if len(here) == len(graphs) else graphs[here]

    @property
    def digest(self) -> str:
        """Changes with any bit of the store, with the choice of graphs, and with the parts they are in."""
        digest = hashlib.sha256(self.store.manifest.to_text().encode())
        for values in (self.numbers, *(getattr(self.outline, name) for name in GRAPH_COLUMNS)):
            digest.update(b"none" if values is None else np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


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
            is_whole = hashlib.sha256(chunk).hexdigest() == column.digests[number]
            rule(is_whole, f"{path.name} is damaged: the checksum of its bytes from {start} on differs")
            a, b = max(first, start), min(last, start + CHUNK)
            found[a - first : b - first] = memoryview(chunk)[a - start : b - start]
    return found


def _open(path: Path) -> Any:
    """A plain file that is no link: what a link points to may lie anywhere, and a pipe would wait for ever."""
    rule(not path.is_symlink(), f"{path.name} is no plain file")
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


def _check_files(folder: Path, manifest: Manifest) -> None:
    try:
        there = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})") from None
    expected = {f"{name}.bin": column.size for name, column in manifest.columns.items()}
    for name, size in expected.items():
        with _open(folder / name) as file:
            found = os.fstat(file.fileno()).st_size
        rule(found == size, f"{name} has {found} bytes; it should have {size}")
    for name in there:
        rule(name in (*expected, NAME), f"holds {ascii(name)[:60]}, which is no part of a store")
