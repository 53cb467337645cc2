"""A collection of graphs as one big disconnected graph in flat arrays.

Node ids count through the whole collection: graph ``g`` owns the nodes ``node_ptr[g]`` to ``node_ptr[g + 1]``.
The neighbours of node ``n`` are ``indices[indptr[n]:indptr[n + 1]]``, in ascending order. Every edge is undirected
and stands once in the row of each of its ends (a self-loop once in all), so E edges give M = 2 E - loops entries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import EllipsisType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from egocnn.data.arrays import Bools, Floats, Ints, build_adjacency, check_duplicates_agree, pointers, positions
from egocnn.data.collection import choose_graphs, graphs_of_part, join, renamed, single, split_by_scaffold, split_off
from egocnn.data.schema import ARRAYS, DRAWN, INNER_COLUMNS, NAME_LISTS, FlatGraphs, Names, checked, rule
from egocnn.data.schema import Graph as Graph
from egocnn.data.sources.text import listed, short
from egocnn.errors import DataError
from egocnn.files import regular, replacing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graphs(FlatGraphs):
    """G graphs with N nodes and M adjacency entries in all; build one with :func:`egocnn.read` or :meth:`from_edges`.

    A collection is indexed as an array is: ``graphs[3]`` is one :class:`Graph`, ``graphs[:10]`` and
    ``graphs[graphs.node_counts > 5]`` are smaller collections.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> len(graphs), graphs.class_names, graphs[:4].n_nodes
        (10, ('alkane', 'alcohol'), 52)
        >>> train, test = graphs.split(test=0.2, seed=0)"""

    node_ptr: Ints  #: (G + 1) first node of every graph
    indptr: Ints  #: (N + 1) first adjacency entry of every node
    indices: Ints  #: (M) neighbour of every adjacency entry
    names: Names  #: (G) what to call each graph
    node_label: Ints | None = None  #: (N) position in ``node_label_names``; -1: a label that is not among them
    node_label_names: Names = ()  #: what the numbers in ``node_label`` stand for
    edge_label: Ints | None = None  #: (M) position in ``edge_label_names``; -1: a label that is not among them
    edge_label_names: Names = ()  #: what the numbers in ``edge_label`` stand for
    edge_weight: Floats | None = None  #: (M) heavier is nearer
    node_attr: Floats | None = None  #: (N, A) numbers that the nodes bring along
    target: NDArray[Any] | None = None
    """(G) position in ``class_names`` (-1: unknown), or a real value (NaN: unknown) where there are no classes"""
    class_names: Names = ()  #: what the numbers in ``target`` stand for; empty where values are predicted
    targets: tuple[tuple[str, Names], ...] = ()
    """(T) where there are several: name and class names of each; ``target`` is (G, T) numbers, NaN where unknown"""
    group: Ints | None = None
    """(G) graphs of one group, for example copies of a molecule, always stay on one side of a split"""
    part: Ints | None = None  #: (G) position in ``PARTS`` where the data brings its own split
    node_truth: Bools | None = None  #: (N) whether the node is known to be critical
    edge_truth: Bools | None = None  #: (M) whether the edge is known to be critical
    smiles: Names | None = None  #: (G) where the graphs are molecules
    skipped: tuple[tuple[int, str, str], ...] = ()
    """rows of the source that were left out: number, SMILES, and why it has no graph; not saved with the graphs"""
    node_names: NDArray[Any] | None = None  #: (N) what the source calls the nodes, as texts; not saved with the graphs
    used: Names = ()
    """of networkx graphs, GraphML and GEXF: the data of nodes and edges that were read; not saved with the graphs"""
    left_out: Names = ()  #: and those that were not

    @classmethod
    def from_edges(
        cls,
        *,
        node_counts: Ints | Sequence[int],
        edges: Any,
        names: Sequence[str] | None = None,
        edge_label: Any = None,
        edge_weight: Any = None,
        edge_truth: Any = None,
        **columns: Any,
    ) -> Graphs:
        """Build from a list of edges (E, 2) in collection-wide node ids, either or both directions of each.

        An edge given several times counts once; given with different labels or weights it is an error.

        Arguments:
            node_counts: (G) nodes of every graph.
            edges: (E, 2) pairs of nodes.
            names: (G) what to call the graphs (default: 0, 1, ...).
            edge_label: (E) positions in ``edge_label_names``.
            edge_weight: (E) weights; heavier is nearer.
            edge_truth: (E) whether each edge is known to be critical.
            columns: The other fields of :class:`Graphs`, one entry per node or per graph.

        Returns:
            The collection, checked.

        Raises:
            DataError: the arrays do not fit together.

        Example:
            >>> import numpy as np
            >>> import egocnn
            >>> edges = np.array([[0, 1], [1, 2], [3, 4]])
            >>> egocnn.Graphs.from_edges(node_counts=[3, 2], edges=edges)
            Graphs(2 graphs, 5 nodes, 3 edges)"""
        counts, edges = _numbers("node_counts", node_counts), _numbers("edges", edges)
        edges = edges if edges.size else np.zeros((0, 2), np.int64)
        is_whole = counts.ndim == 1 and edges.dtype.kind in "iu" and counts.dtype.kind in "iu"
        rule(is_whole, "node_counts must be a list of whole numbers, and edges pairs of them")
        rule(edges.shape == (len(edges), 2), f"edges must be pairs of nodes, (E, 2), not {edges.shape}")
        rule((counts >= 0).all(), f"a graph cannot have {counts.min(initial=0)} nodes")
        node_ptr = pointers(counts)
        indptr, indices, source = build_adjacency(edges, int(node_ptr[-1]))
        more = sorted(columns.keys() - ({field.name for field in fields(cls)} - {"node_ptr", "indptr", "indices"}))
        rule(not more, f"a collection of graphs has no {', '.join(more)}")
        given = (("label", edge_label, np.int32), ("weight", edge_weight, np.float32), ("truth", edge_truth, np.bool_))
        columns |= {f"edge_{what}": values for what, values, _ in given}
        columns["names"] = map(str, range(len(counts))) if names is None else names
        for name, values in columns.items():
            if name in ARRAYS and values is not None:
                columns[name] = _numbers(name, values)
            elif values is not None:
                if not np.iterable(values):
                    raise DataError(f"{name} must be a list, got {short(values)}")
                columns[name] = np.array(list(values), object) if name == "node_names" else tuple(values)
        for what, _, kind in given:
            if (values := columns[f"edge_{what}"]) is not None:
                rule(len(values) == len(edges), f"{len(values)} edge {what}s for {len(edges)} edges")
                check_duplicates_agree(edges, values, f"{what}s")
                columns[f"edge_{what}"] = values.astype(kind)[source]
        return checked(cls(node_ptr=node_ptr, indptr=indptr, indices=indices, **columns))

    def validate(self) -> None:
        """Raise :class:`DataError` unless all arrays fit together; cheap next to reading them."""
        checked(self)

    def __repr__(self) -> str:
        kind = f", classes {listed(self.class_names)}" if self.class_names else ""
        kind = f", targets {listed(self.target_names)}" if self.targets else kind
        return f"Graphs({len(self)} graphs, {self.n_nodes} nodes, {self.n_edges} edges{kind})"

    @property
    def unit(self) -> str:
        """What people call them: molecules, where each has a SMILES, else graphs."""
        return "graphs" if self.smiles is None else "molecules"

    @property
    def is_classification(self) -> bool:
        """Whether classes are predicted, not values; not to be asked of several targets together."""
        rule(not self.targets, f"several targets ({', '.join(self.target_names)}), and here one is needed")
        return len(self.class_names) > 0

    @property
    def target_names(self) -> Names:
        """What is predicted, where there are several targets."""
        return tuple(name for name, _ in self.targets)

    @overload
    def __getitem__(self, which: int | np.integer[Any]) -> Graph: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | NDArray[Any] | tuple[Any, EllipsisType]) -> Graphs: ...
    def __getitem__(self, which: Any) -> Graph | Graphs:
        if isinstance(which, tuple) and len(which) == 2 and which[1] is Ellipsis:
            which = which[0]  # graphs[numbers, ...], the way scikit-learn indexes
        if isinstance(which, (int, np.integer)):
            if not -len(self) <= which < len(self):
                raise IndexError(f"graph {which} of a collection of {len(self)}")
            return single(self, int(which) % len(self))
        return self.choose(positions(which, len(self)))

    def __iter__(self) -> Iterator[Graph]:
        return (single(self, g) for g in range(len(self)))

    def target_of(self, g: int) -> str | float | None:
        """What is to be predicted for one graph.

        Arguments:
            g: Number of the graph.

        Returns:
            Its class by name, or its value; None where it is not known."""
        if self.target is None:
            return None
        if not self.is_classification:
            return None if np.isnan(self.target[g]) else float(self.target[g])
        return None if self.target[g] < 0 else self.class_names[int(self.target[g])]

    def of_target(self, name: str) -> Graphs:
        """The same graphs with one of several targets alone.

        Arguments:
            name: Which of ``targets``; by another name than these, nothing is known.

        Returns:
            A collection with one target, or with none."""
        kinds, values = dict(self.targets), None
        if name in kinds and self.target is not None:
            values = self.target[:, self.target_names.index(name)]
            values = np.where(np.isnan(values), -1, values).astype(np.int64) if kinds[name] else values
        return replace(self, target=values, class_names=kinds.get(name, ()), targets=())

    def replace(self, **changes: Any) -> Graphs:
        """A copy with some fields exchanged, checked again.

        Arguments:
            changes: New values of fields, by name.

        Returns:
            The changed collection; this one stays as it is.

        Raises:
            DataError: the new fields do not fit the old ones."""
        return checked(replace(self, **changes))

    def select(self, part: str) -> Graphs:
        """One part of the split that the data brings along.

        Arguments:
            part: train, validation or test.

        Returns:
            The graphs of this part.

        Raises:
            DataError: the graphs bring no split, or no part has this name."""
        return self[graphs_of_part(self.part, part)]

    def split(self, *, test: float = 0.2, by: str = "random", seed: int = 0) -> tuple[Graphs, Graphs]:
        """Two disjoint collections, classes in equal shares on both sides, groups never torn apart.

        Arguments:
            test: Share of the graphs in the second collection.
            by: "random", or "scaffold" for molecules: those with one Bemis-Murcko scaffold stay together, the largest
                such groups train, and neither classes nor seed count.
            seed: Which of the possible random splits.

        Returns:
            The larger collection for training, and the other for testing."""
        rule(isinstance(by, str) and by in DRAWN, f"a split is drawn by {' or '.join(DRAWN)}, not by {by!r}")
        rest, chosen = split_by_scaffold(self, test) if by == "scaffold" else split_off(self, test, seed)
        return self[rest], self[chosen]

    @staticmethod
    def concat(collections: Sequence[Graphs]) -> Graphs:
        """Put collections end to end; label and class names are united, groups kept apart.

        Arguments:
            collections: At least one.

        Returns:
            All their graphs, in order.

        Raises:
            DataError: some have a column that others lack."""
        return join(collections)

    @property
    def outline(self) -> Graphs:
        """The graphs without their nodes: nothing to copy when some are chosen."""
        nothing: dict[str, Any] = dict.fromkeys((*INNER_COLUMNS, "node_names"))
        pointer, empty = np.zeros_like(self.node_ptr), np.zeros(0, np.int32)
        return replace(self, node_ptr=pointer, indptr=np.zeros(1, np.int64), indices=empty, **nothing)

    @property
    def digest(self) -> str:
        """SHA-256 of all arrays and texts."""
        digest = hashlib.sha256(json.dumps(self._texts(), sort_keys=True).encode())
        for name in ARRAYS:
            values = getattr(self, name)
            digest.update(f"{name} {None if values is None else (values.shape, values.dtype.str)}".encode())
            digest.update(b"" if values is None else np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()

    @property
    def bytes_on_disk(self) -> int:
        """0: they are in memory."""
        return 0

    def choose(self, which: Ints) -> Graphs:
        """The graphs with these numbers.

        Arguments:
            which: Their numbers, ascending.

        Returns:
            A collection of them."""
        return choose_graphs(self, which)

    def with_parts(self, part: Ints | None, group: Ints | None = None) -> Graphs:
        """The same graphs, marked as parts of another split.

        Arguments:
            part: (G) 0 for training, 1 for validation, 2 for the test; None for no split.
            group: (G) other groups; None leaves them as they are.

        Returns:
            The marked collection; this one stays as it is."""
        return self.replace(part=part, group=self.group if group is None else group)

    def portions(self, first: int = 0, last: int | None = None) -> Iterator[Graphs]:
        """All of them at once: they are in memory already.

        Arguments:
            first: Number of the first graph.
            last: Number after that of the last; None for all.

        Returns:
            An iterator over one collection."""
        yield self if first == 0 and last in (None, len(self)) else self[first:last]

    def whole(self) -> Graphs:
        """This collection itself.

        Returns:
            All graphs, in memory."""
        return self

    def save(self, path: str | Path) -> None:
        """Write one safetensors file: the arrays as they are, the texts as JSON in one byte array.

        Arguments:
            path: A file that ends in ``.safetensors``, so that :func:`egocnn.read` knows it."""
        arrays = {name: np.ascontiguousarray(v) for name in ARRAYS if (v := getattr(self, name)) is not None}
        arrays["texts"] = np.frombuffer(json.dumps(self._texts()).encode(), np.uint8)
        with replacing(Path(path)) as temporary:
            temporary.write_bytes(save(arrays, metadata={"format": "egocnn graphs", "version": "1"}))

    def _texts(self) -> dict[str, Any]:
        """What is saved as JSON."""
        return {name: getattr(self, name) for name in TEXTS if name != "targets" or self.targets}

    @classmethod
    def load(cls, path: str | Path) -> Graphs:
        """Read what :meth:`save` wrote.

        Arguments:
            path: The file.

        Returns:
            The collection, checked.

        Raises:
            DataError: the file is missing, damaged, or something else."""
        try:
            arrays = load_file(regular(Path(path)))
            texts = json.loads(arrays.pop("texts").tobytes())
            columns: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in texts.items()}
            columns["targets"] = tuple((name, tuple(classes)) for name, classes in columns.get("targets", ()))
            return checked(cls(**(arrays | columns)))
        except FileNotFoundError:
            raise DataError(f"{path}: no such file") from None
        except (SafetensorError, DataError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{path}: not a collection of graphs saved by egocnn ({error})") from None

    def with_names(
        self, *, nodes: Names | None = None, edges: Names | None = None, classes: Names | None = None
    ) -> Graphs:
        """The same graphs with labels counted by other name lists, for example those of a trained model.

        A name that is not in the new list becomes -1: unseen.

        Arguments:
            nodes: New list of node labels; None leaves them as they are.
            edges: New list of edge labels.
            classes: New list of classes.

        Returns:
            The renamed collection; this one stays as it is."""
        return renamed(self, (nodes, edges, classes))


def _numbers(name: str, values: Any) -> NDArray[Any]:
    """An array or a list of numbers as an array"""
    try:
        found = np.asarray(values)
    except ValueError:  # rows of several lengths
        found = np.empty(0, object)
    hint = f"; {NAME_LISTS[name]} holds the texts that they stand for" if name in NAME_LISTS else ""
    rule(found.dtype.kind in "biuf", f"{name} must be an array of numbers, got {short(values)}{hint}")
    return found if found.size or found.dtype.kind != "f" or name in ("node_attr", "target") else found.astype(np.int64)


TEXTS = tuple(f.name for f in fields(Graphs) if f.name not in (*ARRAYS, "skipped", "node_names", "used", "left_out"))
