"""A prepared collection, in flat tensors or as records of a file, and any choice of its graphs -> one batch.

A record, one per graph, is written portion by portion and holds all that :class:`EncodedGraphs` has of its graph, so a
batch costs one read per graph. Files are read by position and not mapped: address space is spent on a batch, not on the
collection, and a file cut off is an error and does not end the process. Alone, a process writes a file without a name,
which is gone however it ends. Several each write a stretch of the graphs, all open the files of all, and remove the
names."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from egocnn.data.arrays import Ints, pointers
from egocnn.errors import RunError
from egocnn.nn.batch import Bags, Batch
from egocnn.nn.embed import PatchShape
from egocnn.nn.engines import Neighbours

PREFIX = ".prepared"  # How names of shared files begin.
OF_NODES = ("steps", "node_label", "attributes", "place")  # What a record has a row of for every node,
OF_BAGS = ("bag_rows", "bag_weight")  # and for every entry of a bag.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedGraphs:
    """A whole collection as flat tensors; :meth:`batch` cuts graphs out of it."""

    node_ptr: Tensor
    steps: Tensor  # (N, W) from every node to its ranked neighbours, as a difference of node ids; 0: absent
    bag_ptr: Tensor
    bag_rows: Tensor
    bag_weight: Tensor | None
    node_label: Tensor
    attributes: Tensor
    place: Tensor  # (N) where each node stands in the ranking of its own graph
    target: Tensor | None

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @staticmethod
    def concat(several: "Sequence[EncodedGraphs]") -> "EncodedGraphs":
        """The graphs of all collections, one after the other."""
        names = [field.name for field in fields(EncodedGraphs)]
        return EncodedGraphs(**{name: _concat(name, [getattr(each, name) for each in several]) for name in names})

    @property
    def megabytes(self) -> float:
        """What the tensors take together."""
        return sum(t.nbytes for t in self._parts().values() if t is not None) / 1e6

    def in_memory(self) -> "EncodedGraphs":
        """Itself."""
        return self

    def to(self, device: torch.device) -> "EncodedGraphs":
        """A copy on the device."""
        moved: dict[str, Any] = {name: None if t is None else t.to(device) for name, t in self._parts().items()}
        return EncodedGraphs(**moved)

    def _parts(self) -> dict[str, Tensor | None]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def batch(self, chosen: Tensor, there: Tensor | None = None, shape: PatchShape | None = None) -> Batch:
        """The graphs with these numbers, in this order; ``there`` (N): with these of their nodes alone, ranked as they
        are. The network sees what it sees at presence 0 of the others; ``shape`` says which entries these leave."""
        counts = self.node_ptr[chosen + 1] - self.node_ptr[chosen]
        nodes = ranges(self.node_ptr[chosen], counts)
        graph_of = torch.repeat_interleave(torch.arange(len(chosen), device=nodes.device), counts)
        position = torch.arange(len(nodes), device=nodes.device)
        place = self.place[nodes]
        if there is not None:
            position, nodes, graph_of, place = position[there], nodes[there], graph_of[there], place[there]
            counts = torch.bincount(graph_of, minlength=len(chosen))
            # those that are there close ranks
            order = torch.argsort(graph_of * len(self.place) + place)
            place[order] = torch.arange(len(order), device=place.device) - (counts.cumsum(0) - counts)[graph_of]
        steps = self.steps[nodes]
        table = torch.where(steps == 0, -1, position[:, None] + steps)
        if there is not None:  # the last serves -1
            table = F.pad(torch.where(there, there.cumsum(0) - 1, -1), (0, 1), value=-1)[table]
        bag_counts = self.bag_ptr[nodes + 1] - self.bag_ptr[nodes]
        entries = ranges(self.bag_ptr[nodes], bag_counts)
        offsets = (bag_counts.cumsum(0) - bag_counts).to(self.bag_rows.dtype)
        weight = None if self.bag_weight is None else self.bag_weight[entries]
        batch = Batch(
            neighbours=Neighbours.of(table), bags=Bags(rows=self.bag_rows[entries], offsets=offsets, weight=weight),
            node_label=self.node_label[nodes], attributes=self.attributes[nodes], place=place,
            graph_of=graph_of, node_counts=counts, target=None if self.target is None else self.target[chosen],
        )  # fmt: skip
        return batch if there is None or shape is None else batch.without_absent(shape)


def _concat(name: str, several: Sequence[Any]) -> Any:
    """One field of several collections, end to end; None where they have none."""
    present = [each for each in several if each is not None]
    if not present:
        return None
    if name.endswith("ptr"):
        return F.pad(torch.cat([pointer.long().diff() for pointer in present]).cumsum(0), (1, 0))
    return torch.cat(present)


def ranges(first: Tensor, counts: Tensor) -> Tensor:
    """All integers of first[0]..first[0]+counts[0]-1, then of the next, end to end."""
    shift = torch.repeat_interleave(first - (counts.cumsum(0) - counts), counts)
    return torch.arange(len(shift), device=first.device) + shift


@dataclass(frozen=True, slots=True)
class Worker:
    """Which of the processes that share a machine's work this one is."""

    number: int = 0
    of: int = 1
    name: str = ""  # tells machines apart that share a folder
    meet: Callable[[], None] = lambda: None  # returns when all processes have called it


ALONE = Worker()


class EncodedCache:
    """The records of graphs with so many nodes; gone when closed."""

    def __init__(self, node_counts: Ints, folder: Path, worker: Worker = ALONE) -> None:
        self._counts, self._folder, self._worker = node_counts, folder, worker
        sizes = np.cumsum(node_counts + 1)
        cuts = np.searchsorted(sizes, np.arange(1, worker.of) * (sizes[-1] / worker.of))
        self._bounds = np.array([0, *cuts, len(node_counts)])  # first graph of every process, about as many nodes each
        self._kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}  # of the columns of a record: type, row
        self._files: list[IO[bytes]] = []
        self._offsets = np.zeros(len(node_counts) + 1, np.int64)  # where the record of every graph starts in its file
        self._lengths = np.zeros(len(node_counts), np.int64)
        self._is_open = False

    @property
    def stretch(self) -> tuple[int, int]:
        """The graphs that this process writes: the first, and the one after the last."""
        return int(self._bounds[self._worker.number]), int(self._bounds[self._worker.number + 1])

    def _path(self, number: int) -> Path:
        return self._folder / f"{PREFIX}.{self._worker.name}.{number}.tmp"

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
        found = {"bag_counts": prepared.bag_ptr.diff(), **{n: getattr(prepared, n) for n in (*OF_NODES, *OF_BAGS)}}
        columns: dict[str, NDArray[Any]] = {name: t.numpy() for name, t in found.items() if t is not None}
        kinds = {name: (values.dtype, values.shape[1:]) for name, values in columns.items()}
        self._kinds = self._kinds or kinds
        assert kinds == self._kinds, "portions are prepared alike"
        nodes, bags = prepared.node_ptr.numpy(), prepared.bag_ptr[prepared.node_ptr].numpy()
        parts = [(values, bags if name in OF_BAGS else nodes) for name, values in columns.items()]
        graphs = range(len(prepared))
        file.write(b"".join(values[ends[g] : ends[g + 1]].tobytes() for g in graphs for values, ends in parts))
        lengths: Ints = np.sum([np.diff(ends) * values[:1].nbytes for values, ends in parts], axis=0)
        return lengths

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
            path = self._path(number)
            self._files.append(mine if number == self._worker.number else path.open("rb"))
            with np.load(path.with_suffix(".npz"), allow_pickle=False) as found:
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
        pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in self._kinds}
        try:
            for graph in graphs.tolist():
                record, nodes, entries, at = self._record(graph), self._counts[graph], 0, 0
                for name, (dtype, row) in self._kinds.items():
                    values = np.ndarray((entries if name in OF_BAGS else nodes, *row), dtype, record, at)
                    at += values.nbytes
                    if name == "bag_counts":  # it comes first, and says how many rows the columns of bags have
                        entries = int(values.sum())
                    pieces[name].append(values)
            columns: dict[str, Any] = {name: torch.from_numpy(np.concatenate(each)) for name, each in pieces.items()}
        except MemoryError:  # as torch says it: whoever can do with fewer graphs at a time listens for that
            raise RuntimeError(f"out of memory: {len(graphs)} prepared graphs") from None
        pointer, bags = pointers(self._counts[graphs]), F.pad(columns.pop("bag_counts").cumsum(0), (1, 0))
        absent = {"bag_weight": None, "target": None}
        return EncodedGraphs(node_ptr=torch.from_numpy(pointer), bag_ptr=bags, **{**absent, **columns})

    def _record(self, graph: int) -> bytes:
        file = self._files[int(np.searchsorted(self._bounds, graph, side="right")) - 1]
        length = int(self._lengths[graph])
        record = os.pread(file.fileno(), length, int(self._offsets[graph]))
        if len(record) != length:
            raise RunError(f"{self._folder}: the file of prepared graphs has been cut off")
        return record


@dataclass(frozen=True, slots=True, eq=False)
class CachedGraphs:
    """Some graphs of a cache, as training reads them."""

    cache: EncodedCache
    numbers: Ints  # in the cache
    node_ptr: Tensor
    target: Tensor | None

    @staticmethod
    def of(cache: EncodedCache, numbers: Ints, node_counts: Ints, target: Tensor | None) -> "CachedGraphs":
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

    def to(self, device: torch.device) -> "CachedGraphs":
        """Batches will be made there; what is on disk stays there."""
        self.cache.open()
        target = None if self.target is None else self.target.to(device)
        return replace(self, node_ptr=self.node_ptr.to(device), target=target)

    def batch(self, chosen: Tensor, there: Tensor | None = None, shape: PatchShape | None = None) -> Batch:
        """As :meth:`EncodedGraphs.batch`, read from disk."""
        device = chosen.device
        some = self.cache.read(self.numbers[chosen.cpu().numpy()]).to(device)
        batch = some.batch(torch.arange(len(chosen), device=device), there, shape)
        return replace(batch, target=None if self.target is None else self.target[chosen])
