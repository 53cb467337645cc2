"""A collection as flat tensors on one device: Graphs, or tensors made there -> ResidentGraphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from egocnn.data.graphs import Graphs
from egocnn.encode.on_device.arrays import order_by, pointers, ranges, repeat, row_portions
from egocnn.errors import DataError

NODE_COLUMNS = ("node_label", "node_attr")
EDGE_COLUMNS = ("edge_label", "edge_weight")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResidentGraphs:
    """What ranking reads of :class:`egocnn.Graphs`, in the same layout; build one with :meth:`of` or :meth:`build`."""

    node_ptr: Tensor
    """(G + 1) first node of every graph"""
    indptr: Tensor
    """(N + 1) first adjacency entry of every node"""
    indices: Tensor
    """(M) neighbour of every adjacency entry, int32"""
    loops: Tensor
    """the entries that join a node to itself"""
    node_label: Tensor | None = None
    edge_label: Tensor | None = None
    edge_weight: Tensor | None = None
    node_attr: Tensor | None = None

    @staticmethod
    def of(graphs: Graphs, device: torch.device | str) -> ResidentGraphs:
        """Copy a collection to a device (on the CPU, share its memory where possible)."""
        if torch.device(device).type == "cuda" and not torch.cuda.is_available():
            raise DataError(f"device {device}: this machine has no CUDA device that torch can use")

        def moved(values: NDArray[Any], kind: Any = None) -> Tensor:
            # torch takes only arrays that may be written to, though nothing here writes to them
            return torch.from_numpy(np.require(values, kind, ("C", "W"))).to(device)

        columns = {name: getattr(graphs, name) for name in (*NODE_COLUMNS, *EDGE_COLUMNS)}
        return ResidentGraphs.build(
            moved(graphs.indptr, np.int64),
            moved(graphs.indices, np.int32),
            node_ptr=moved(graphs.node_ptr, np.int64),
            **{name: moved(values) for name, values in columns.items() if values is not None},
        )

    @staticmethod
    def build(
        indptr: Tensor, indices: Tensor, *, node_ptr: Tensor | None = None, **columns: Tensor | None
    ) -> ResidentGraphs:
        """From tensors on one device, in the layout of :class:`egocnn.Graphs`; one graph unless ``node_ptr`` is given.

        ``columns`` are ``node_label``, ``node_attr``, ``edge_label`` and ``edge_weight``. Kinds and lengths are
        checked; that neighbours are in ascending order and edges stand in both rows is taken on trust.
        """
        n_nodes = len(indptr) - 1
        node_ptr = torch.tensor([0, n_nodes], device=indptr.device) if node_ptr is None else node_ptr
        _check(indptr, indices, node_ptr, columns)
        loops = _find_loops(indptr, indices)
        return ResidentGraphs(node_ptr=node_ptr, indptr=indptr, indices=indices, loops=loops, **columns)

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def n_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def node_counts(self) -> Tensor:
        return self.node_ptr.diff()

    @property
    def graph_of(self) -> Tensor:
        """(N) the graph that owns each node"""
        return self.of_nodes(torch.arange(len(self), device=self.indptr.device))

    def of_nodes(self, values: Tensor) -> Tensor:
        """Values of the graphs (G) -> of their nodes (N)."""
        return repeat(values, self.node_counts, self.n_nodes)

    def ordered(self, key: Tensor) -> Tensor:
        """All nodes, graph by graph, those of each graph in ascending order of a key (N)."""
        return order_by(key) if len(self) == 1 else order_by(self.graph_of, key)

    def nodes_of(self, chosen: Tensor) -> Tensor:
        """The nodes of these graphs, end to end."""
        counts = self.node_counts[chosen]
        return ranges(self.node_ptr[chosen], counts, int(counts.sum()))

    def take(self, chosen: Tensor) -> ResidentGraphs:
        """The graphs with these numbers, in this order; node ids count anew."""
        nodes = self.nodes_of(chosen)
        counts, degree, first = self.node_counts[chosen], self.indptr.diff()[nodes], self.indptr[nodes]
        node_ptr, indptr = pointers(counts), pointers(degree)
        n_entries = int(indptr[-1])
        shift = repeat(node_ptr[:-1] - self.node_ptr[chosen], counts, len(nodes)).int()  # as far as its graph moves
        taken = {
            name: values.new_empty(n_entries)
            for name in ("indices", *EDGE_COLUMNS)
            if (values := getattr(self, name)) is not None
        }
        for rows, here in row_portions(indptr):
            total = here.stop - here.start
            entries = ranges(first[rows], degree[rows], total)
            for name, values in taken.items():
                values[here] = getattr(self, name)[entries]
            taken["indices"][here] += repeat(shift[rows], degree[rows], total)
        columns = {name: values[nodes] for name in NODE_COLUMNS if (values := getattr(self, name)) is not None}
        return ResidentGraphs.build(indptr, node_ptr=node_ptr, **taken, **columns)


def _find_loops(indptr: Tensor, indices: Tensor) -> Tensor:
    found = [indptr[:0]]
    for nodes, entries in row_portions(indptr):
        node = torch.arange(nodes.start, nodes.stop, dtype=indices.dtype, device=indices.device)
        node = repeat(node, indptr[nodes.start : nodes.stop + 1].diff(), entries.stop - entries.start)
        found.append((indices[entries] == node).nonzero().flatten() + entries.start)
    return torch.cat(found)


def _check(indptr: Tensor, indices: Tensor, node_ptr: Tensor, columns: dict[str, Tensor | None]) -> None:
    n_nodes, n_entries = len(indptr) - 1, len(indices)
    for name, tensor, kind in (
        ("indptr", indptr, torch.int64),
        ("node_ptr", node_ptr, torch.int64),
        ("indices", indices, torch.int32),
    ):
        if tensor.dtype != kind:
            raise DataError(f"{name} must be {kind}, not {tensor.dtype}")
    if len(indptr) < 1 or len(node_ptr) < 1 or int(indptr[-1]) != n_entries or int(node_ptr[-1]) != n_nodes:
        raise DataError(f"indptr must end at the {n_entries} adjacency entries and node_ptr at the {n_nodes} nodes")
    for name, values in columns.items():
        if name not in (*NODE_COLUMNS, *EDGE_COLUMNS):
            raise DataError(f"ranking reads no column {name!r}")
        length = n_nodes if name in NODE_COLUMNS else n_entries
        if values is not None and len(values) != length:
            raise DataError(f"{name} has {len(values)} entries, not {length}")
    for name, values in {"indices": indices, "node_ptr": node_ptr, **columns}.items():
        if values is not None and values.device != indptr.device:
            raise DataError(f"{name} is on {values.device}, indptr on {indptr.device}; all must be on one device")
