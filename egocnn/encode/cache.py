"""Encoded graphs <-> records of a file, one per graph: written portion by portion, and read back in any choice.

A record holds all that :class:`~egocnn.encode.batch.EncodedGraphs` has of its graph, end to end, so a batch costs one
read per graph wherever they lie. Files are read by position and not mapped: address space is spent on a batch, not on
the collection, and a file that is cut off is an error and not the end of the process.

Alone, a process writes a file without a name, which is gone when it ends, however it ends. Several processes of one
machine share the work: each writes the records of its stretch of the graphs, all open the files of all, and then the
names are removed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from egocnn.data.arrays import Ints, pointers
from egocnn.encode.batch import EncodedGraphs
from egocnn.errors import RunError
from egocnn.nn.batch import Batch

PREFIX = ".prepared"  # How names of shared files begin.


@dataclass(frozen=True, slots=True)
class CachedColumn:
    """One kind of numbers in every record."""

    name: str
    unit: str  # what it has a row for: node, or bag (an entry of a bag)
    dtype: np.dtype[Any]
    row: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        """What a row takes in a record."""
        return int(self.dtype.itemsize * np.prod(self.row, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Worker:
    """Which of the processes that share a machine's work this one is."""

    number: int = 0
    of: int = 1
    name: str = ""  # tells machines apart that share a folder
    meet: Callable[[], None] = lambda: None  # returns when all processes have called it


class EncodedCache:
    """The records of G graphs."""

    def __init__(self, node_counts: Ints, folder: Path, worker: Worker) -> None:
        self._counts = node_counts
        self._folder = folder
        self._worker = worker
        sizes = np.cumsum(node_counts + 1)
        cuts = np.searchsorted(sizes, np.arange(1, worker.of) * (sizes[-1] / worker.of))
        self._bounds = np.array([0, *cuts, len(node_counts)])
        """first graph of every process, about as many nodes for each"""
        self._columns: list[CachedColumn] = []
        self._files: list[IO[bytes]] = []
        self._offsets = np.zeros(len(node_counts) + 1, np.int64)
        """where the record of every graph starts in its file; its length is ``_lengths``"""
        self._lengths = np.zeros(len(node_counts), np.int64)
        self._is_open = False

    @property
    def stretch(self) -> tuple[int, int]:
        """The graphs that this process writes: the first, and the one after the last."""
        return int(self._bounds[self._worker.number]), int(self._bounds[self._worker.number + 1])

    def _path(self, number: int) -> Path:
        return self._folder / f"{PREFIX}.{self._worker.name}.{number}.tmp"

    # ── writing ───────────────────────────────────────────────────────────────────────────────────

    def fill(self, portions: Iterator[EncodedGraphs]) -> None:
        """Write the graphs of the stretch, in order."""
        first, last = self.stretch
        try:
            if self._worker.of == 1:
                for left in self._folder.glob(f"{PREFIX}.*"):  # by processes that were killed
                    left.unlink(missing_ok=True)
                file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 — open as long as the cache is
            else:
                file = self._path(self._worker.number).open("w+b")
            self._files.append(file)
            place, at = first, 0
            for prepared in portions:
                lengths = self._write(file, prepared)
                here = slice(place, place + len(prepared))
                self._lengths[here] = lengths
                self._offsets[here] = at + np.cumsum(lengths) - lengths
                place, at = place + len(prepared), at + int(lengths.sum())
            file.flush()
        except OSError as error:
            raise OSError(error.errno, f"prepared graphs cannot be kept: {error.strerror}", str(self._folder)) from None
        assert place == last, "the stretch must be filled"

    def _write(self, file: IO[bytes], prepared: EncodedGraphs) -> Ints:
        """The bytes that each record takes"""
        found = _taken_apart(prepared)
        columns = [column for column, _ in found]
        self._columns = self._columns or columns
        assert columns == self._columns, "portions are prepared alike"
        ends = _ends(prepared)
        parts: list[bytes] = []
        for graph in range(len(prepared)):
            for column, values in found:
                pointer = ends[column.unit]
                parts.append(values[pointer[graph] : pointer[graph + 1]].tobytes())
        file.write(b"".join(parts))
        lengths: Ints = np.sum([np.diff(ends[column.unit]) * column.row_bytes for column in columns], axis=0)
        return lengths

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def open(self) -> None:
        """Make the records of all processes readable; with several, all must call this."""
        if self._is_open:
            return
        self._is_open = True
        if self._worker.of == 1:
            return
        own = self._path(self._worker.number)
        np.savez(own.with_suffix(".npz"), offsets=self._offsets, lengths=self._lengths)
        self._worker.meet()
        (mine,) = self._files
        self._files = []
        for number in range(self._worker.of):
            self._files.append(mine if number == self._worker.number else self._path(number).open("rb"))
            with np.load(self._path(number).with_suffix(".npz"), allow_pickle=False) as found:
                here = slice(int(self._bounds[number]), int(self._bounds[number + 1]))
                self._offsets[here], self._lengths[here] = found["offsets"][here], found["lengths"][here]
        self._worker.meet()
        self._unname()

    def close(self) -> None:
        """Remove the records."""
        for file in self._files:
            with suppress(OSError):  # what a full disk has no room for is not wanted any more
                file.close()
        self._unname()

    def _unname(self) -> None:
        if self._worker.of > 1:
            for path in (own := self._path(self._worker.number), own.with_suffix(".npz")):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def size(self, graphs: Ints) -> int:
        """Bytes of the records of these graphs."""
        return int(self._lengths[graphs].sum())

    def read(self, graphs: Ints) -> EncodedGraphs:
        """These graphs, in this order, as a collection of their own in memory."""
        try:
            return self._read(graphs)
        except MemoryError:  # as torch says it: whoever can do with fewer graphs at a time listens for that
            raise RuntimeError(f"out of memory: {len(graphs)} prepared graphs") from None

    def _read(self, graphs: Ints) -> EncodedGraphs:
        records = [self._record(int(graph)) for graph in graphs]
        counts = self._counts[graphs]
        pieces: dict[str, list[NDArray[Any]]] = {column.name: [] for column in self._columns}
        for record, nodes in zip(records, counts.tolist(), strict=True):
            rows, at = {"node": nodes}, 0
            for column in self._columns:
                shape = (rows[column.unit], *column.row)
                values = np.ndarray(shape, column.dtype, record, at)
                at += values.nbytes
                if column.name == "bag_counts":  # it comes first, and says how many rows the columns of bags have
                    rows["bag"] = int(values.sum())
                pieces[column.name].append(values)
        joined = {name: torch.from_numpy(np.concatenate(several)) for name, several in pieces.items()}
        return _put_together(counts, joined)

    def _record(self, graph: int) -> bytes:
        file = self._files[int(np.searchsorted(self._bounds, graph, side="right")) - 1]
        length = int(self._lengths[graph])
        record = os.pread(file.fileno(), length, int(self._offsets[graph]))
        if len(record) != length:
            raise RunError(f"{self._folder}: the file of prepared graphs has been cut off")
        return record


@contextmanager
def encoded_cache(node_counts: Ints, folder: Path, worker: Worker | None = None) -> Iterator[EncodedCache]:
    """An empty cache for graphs with so many nodes; gone afterwards."""
    made = EncodedCache(node_counts, folder, worker or Worker())
    try:
        yield made
    finally:
        made.close()


@dataclass(frozen=True, slots=True, eq=False)
class CachedGraphs:
    """Some graphs of a cache, as training reads them."""

    cache: EncodedCache
    numbers: Ints  # in the cache
    node_ptr: Tensor
    target: Tensor | None

    @staticmethod
    def of(cache: EncodedCache, numbers: Ints, node_counts: Ints, target: Tensor | None) -> CachedGraphs:
        """``node_counts`` and ``target``: of these graphs"""
        return CachedGraphs(cache, numbers, torch.from_numpy(pointers(node_counts)), target)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def megabytes(self) -> float:
        """What these graphs take in memory."""
        self.cache.open()
        return self.cache.size(self.numbers) / 1e6

    def in_memory(self) -> EncodedGraphs:
        """All of them, read from disk."""
        self.cache.open()
        return replace(self.cache.read(self.numbers), target=self.target)

    def to(self, device: torch.device) -> CachedGraphs:
        """Batches will be made there; what is on disk stays there."""
        self.cache.open()
        target = None if self.target is None else self.target.to(device)
        return replace(self, node_ptr=self.node_ptr.to(device), target=target)

    def batch(self, chosen: Tensor) -> Batch:
        """The graphs with these numbers, read from disk."""
        device = chosen.device
        some = self.cache.read(self.numbers[chosen.cpu().numpy()]).to(device)
        batch = some.batch(torch.arange(len(chosen), device=device))
        return replace(batch, target=None if self.target is None else self.target[chosen])


# ── records ───────────────────────────────────────────────────────────────────────────────────────


def _taken_apart(prepared: EncodedGraphs) -> list[tuple[CachedColumn, NDArray[Any]]]:
    found: Sequence[tuple[str, str, Tensor | None]] = (
        ("bag_counts", "node", prepared.bag_ptr.diff()),
        ("steps", "node", prepared.steps),
        ("node_label", "node", prepared.node_label),
        ("attributes", "node", prepared.attributes),
        ("place", "node", prepared.place),
        ("bag_rows", "bag", prepared.bag_rows),
        ("bag_weight", "bag", prepared.bag_weight),
    )
    arrays = [(name, unit, tensor.numpy()) for name, unit, tensor in found if tensor is not None]
    return [(CachedColumn(name, unit, values.dtype, values.shape[1:]), values) for name, unit, values in arrays]


def _ends(prepared: EncodedGraphs) -> dict[str, Ints]:
    """Of each unit: where every graph starts, and the end"""
    nodes = prepared.node_ptr
    return {"node": nodes.numpy(), "bag": prepared.bag_ptr[nodes].numpy()}


def _put_together(counts: Ints, columns: dict[str, Tensor]) -> EncodedGraphs:
    return EncodedGraphs(
        node_ptr=torch.from_numpy(pointers(counts)),
        steps=columns["steps"],
        bag_ptr=torch.nn.functional.pad(columns["bag_counts"].cumsum(0), (1, 0)),
        bag_rows=columns["bag_rows"],
        bag_weight=columns.get("bag_weight"),
        node_label=columns["node_label"],
        attributes=columns["attributes"],
        place=columns["place"],
        target=None,
    )
