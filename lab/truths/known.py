"""Structures that are known to be critical: graphs, a CSV column or a file of marked edges -> Truth, Graphs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from egocnn.data.arrays import Bools, Floats, Ints
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.sources.builder import NAME_FIELDS, choose_field
from egocnn.data.sources.text import reading, short, table_rows
from egocnn.data.sources.tu.archive import Files, open_files
from egocnn.data.sources.tu.reader import read_numbers
from egocnn.errors import DataError, DuplicateEdgeError

PAIRS_OF_TU = "_A.txt"


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """What is known of one graph. Where several structures would each explain it, finding one of them is enough."""

    alternatives: tuple[Ints, ...] = ()  # node ids of every structure that would do, ascending
    edges: Bools | None = None  # (E) whether the edge is critical, in the order of ``graph.edges``; None: not known
    values: Floats | None = None  # (N) what each node adds to the value that is predicted; None: not known
    nothing: bool = False  # whether it is known that nothing in the graph speaks for its class or against it
    larger: bool = False  # whether the graph is of a size that no graph of the training part has

    @classmethod
    def of(cls, graph: Graph) -> Truth:
        """What a graph itself brings along: its critical nodes as the one alternative, and its critical edges."""
        nodes = np.flatnonzero(graph.node_truth) if graph.node_truth is not None else np.zeros(0, np.int64)
        return cls((nodes,) if len(nodes) else (), graph.edge_truth)


def read_alternatives(
    path: str | Path, graphs: Graphs, *, column: str = "critical_atoms", name: str | None = None
) -> list[Truth]:
    """One truth per graph from a CSV file: a JSON list of alternatives, each a list of atoms counted from 0.

    Rows are found by the graphs' names, which ``name`` (default: the column name or id) holds; without such a column
    a graph's name is its row, counted from 1. A name may stand in several rows if they agree.
    """
    where, table = Path(path).name, list(table_rows(Path(path)))
    if column not in table[0]:
        raise DataError(f"{where}: no column is called {short(column)}; there are {', '.join(table[0])}")
    rows = _rows_by_name(table, choose_field(list(table[0]), name, NAME_FIELDS, where))
    truths = []
    for graph, n_nodes in zip(graphs.names, graphs.node_counts.tolist(), strict=True):
        if graph not in rows:
            raise DataError(f"{where}: no row is called {short(graph)}; every graph needs one")
        first, *others = rows[graph]
        text = table[first][column]
        for other in others:
            if table[other][column] != text:
                raise DataError(
                    f"{where}, row {other + 1}: {short(graph)} has {column} {short(table[other][column])}, but "
                    f"{short(text)} in row {first + 1}; rows of one name must agree"
                )
        truths.append(Truth(_parse(text, n_nodes, f"{where}, row {first + 1}: {column}")))
    return truths


def _rows_by_name(table: Sequence[Mapping[str, str]], field: str | None) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for number, row in enumerate(table):
        # the reader of molecules calls a row without a name by its number
        own = row[field].strip() if field is not None else ""
        rows.setdefault(own or str(number + 1), []).append(number)
    return rows


def _parse(text: str, n_nodes: int, where: str) -> tuple[Ints, ...]:
    try:
        lists = json.loads(text)
    except (ValueError, RecursionError):
        lists = None
    if not isinstance(lists, list) or not all(isinstance(atoms, list) for atoms in lists):
        raise DataError(f"{where} {short(text)} must be a JSON list of lists of atoms, [] where there are none")
    for atom in (atom for atoms in lists for atom in atoms):
        if not isinstance(atom, int) or isinstance(atom, bool):
            raise DataError(f"{where} {short(text)} holds {short(atom)}; an atom must be a whole number")
        if not 0 <= atom < n_nodes:
            raise DataError(f"{where} {short(text)} names atom {atom}; the molecule's are 0 to {n_nodes - 1}")
    return tuple(np.unique(np.array(atoms, np.int64)) for atoms in lists)


def read_edge_marks(path: str | Path, graphs: Graphs, source: str | Path) -> Graphs:
    """The graphs of a whole TU set with their critical edges.

    ``path`` has a 0 or 1 for every line of ``NAME_A.txt``, which is looked up in ``source``, the folder or zip that
    the graphs were read from. Both directions of an edge must bear the same mark.
    """
    path = Path(path)
    with reading(path):
        marks = read_numbers([path.read_bytes()], path.name, 1)[:, 0]
    wrong = np.flatnonzero((marks != 0) & (marks != 1))
    if len(wrong):
        line = int(wrong[0])
        raise DataError(f"{path.name}, line {line + 1}: {marks[line]} is no mark; it must be 0 or 1")
    with open_files(Path(source)) as files:
        file = _pairs_file(files)
        pairs = read_numbers(files.chunks(file), file, 2) - 1
    if len(marks) != len(pairs):
        raise DataError(f"{path.name} has {len(marks)} lines for {len(pairs)} of {file}; it must have one for each")
    try:
        marked = Graphs.from_edges(node_counts=graphs.node_counts, edges=pairs, edge_truth=marks == 1)
    except DuplicateEdgeError as error:
        first, second = sorted(error.rows)
        raise DataError(
            f"{path.name}, line {second + 1}: edge {', '.join(map(str, pairs[second] + 1))} is marked {marks[second]}, "
            f"but {marks[first]} on line {first + 1}; both directions of an edge must be marked alike"
        ) from None
    except DataError as error:
        raise DataError(f"{file} does not fit the graphs: {error}; give the whole set it belongs to") from None
    if not (np.array_equal(marked.indptr, graphs.indptr) and np.array_equal(marked.indices, graphs.indices)):
        raise DataError(f"{file} has other edges than the graphs; give the whole set it belongs to")
    return graphs.replace(edge_truth=marked.edge_truth)


def _pairs_file(files: Files) -> str:
    found: Sequence[str] = [path for path in files.paths if path.endswith(PAIRS_OF_TU)]
    if len(found) != 1:
        raise DataError(f"{files.where}: {len(found)} files are called NAME{PAIRS_OF_TU}; there must be one")
    return found[0]


def has_marked_edge(graphs: Graphs) -> Bools:
    """(G) whether any edge of the graph is known to be critical"""
    if graphs.edge_truth is None:
        return np.zeros(len(graphs), bool)
    marked = graphs.graph_of[graphs.entry_node[graphs.edge_truth]]
    return np.bincount(marked, minlength=len(graphs)) > 0
