"""A data set in the TU Dortmund text format, as a folder or a zip -> Graphs. ``NAME_A.txt`` lists pairs of nodes,
counted from 1, ``NAME_graph_indicator.txt`` the graph of every node; others have a line per node, edge or graph.

Fields are parted by commas, blanks around them free, or by blanks alone, equally many in every line; blank lines may
only follow the last one. Two engines read a piece: numpy the tidy ones, and what it declines ``_parse_lines``, line by
line, which defines the format and describes what is wrong."""

import io
import logging
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from egocnn.config import ReadConfig
from egocnn.data.arrays import LARGEST, Floats, Ints, pointers
from egocnn.data.graphs import Graphs
from egocnn.data.schema import rule
from egocnn.data.sources.text import short
from egocnn.data.sources.tu.archive import Files, open_files
from egocnn.errors import DataError, DuplicateEdgeError, MissingColumnError

logger = logging.getLogger("egocnn")
ATOMS_AND_BONDS = {
    "MUTAG": ("C N O F I Cl Br", "aromatic single double triple"),
    "PTC_MR": ("In P O N Na C Cl S Br F K Cu Zn I Ba Sn Pb Ca", "triple double single aromatic"),
    "Mutagenicity": ("C O Cl H N F Br S P I Na K Li Ca", "single double triple"),
}
"""What the node and edge labels 0, 1, ... stand for, in sets of the TU collection that say so."""
NEEDED = ("A", "graph_indicator")
TABLES = (*NEEDED, "graph_labels", "node_labels", "edge_labels", "node_attributes", "graph_attributes")
LONGEST_LINE = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TIDY = b"0123456789+-.eE, \t\r\n"


def read_tu(source: Path, config: ReadConfig) -> Graphs:
    """Read the one set in a folder or zip: its files stand directly in it, or in one folder inside."""
    for option in ("smiles", "name", "split", "group"):
        if getattr(config, option) is not None:
            raise MissingColumnError(f"{source}: {option} names a column, and a TU set has none; leave it out")
    with open_files(source) as files:
        try:
            return _read_set(_find_set(files), config)
        except DataError:
            files.verify()  # where a zip is damaged, that is the better reason for a line that makes no sense
            raise


@dataclass(frozen=True, slots=True)
class _Set:
    files: Files
    prefix: str  # everything before the kind of table in a path: ``MUTAG/MUTAG`` of ``MUTAG/MUTAG_A.txt``

    @property
    def name(self) -> str:
        return self.prefix.rpartition("/")[2]

    def has(self, table: str) -> bool:
        return f"{self.prefix}_{table}.txt" in self.files.paths

    def file(self, table: str) -> str:
        """What to call a table in a message."""
        return f"{self.name}_{table}.txt"

    def chunks(self, table: str) -> Iterator[bytes]:
        return self.files.chunks(f"{self.prefix}_{table}.txt")

    def numbers(self, table: str, lines: int, of: str) -> NDArray[Any]:
        """The numbers of a table that must have a line for each of so many nodes, edges or graphs."""
        kind = REAL if table.endswith("attributes") else WHOLE
        values = read_numbers(self.chunks(table), self.file(table), kind=kind)
        has = f"{self.file(table)} has {len(values)} lines for {lines} {of}"
        rule(len(values) == lines, f"{has}; it must have one for each")
        return values


def _find_set(files: Files) -> _Set:
    shown = [path for path in files.paths if not path.rpartition("/")[2].startswith(".")]
    endings = [f"_{table}.txt" for table in NEEDED]
    prefixes = {path.removesuffix(ending) for path in shown for ending in endings if path.endswith(ending)}
    # a set directly in the folder goes before one in a folder inside it; deeper ones are not looked at
    for depth in (0, 1):
        here = sorted(prefix for prefix in prefixes if prefix.count("/") == depth)
        several = f"holds several sets, {', '.join(here[:5])}; name a folder with one"
        rule(len(here) <= 1, f"{files.where}: {several}")
        if here:
            break
    rule(here, f"{files.where}: no NAME_A.txt in it, so it is not a set in the TU format")
    tables = _Set(files, here[0])
    for table in NEEDED:
        rule(tables.has(table), f"{files.where}: {tables.file(table)} is missing; a TU set needs it")
    if tables.has("edge_attributes"):
        logger.info("%s is left alone: edge attributes are not read", tables.file("edge_attributes"))
    return tables


def _read_set(tables: _Set, config: ReadConfig) -> Graphs:
    counts = _read_node_counts(tables)
    node_ptr = pointers(counts)
    columns: dict[str, Any] = {"names": tuple(f"{tables.name} {graph}" for graph in range(1, len(counts) + 1))}
    columns["node_label"], columns["node_label_names"] = _read_labels(tables, "node_labels", int(node_ptr[-1]), "nodes")
    columns["target"], columns["class_names"] = _read_target(tables, len(counts), config)
    columns["node_attr"] = _read_node_attributes(tables, int(node_ptr[-1]))
    if not tables.has("edge_labels"):
        try:
            indptr, indices = _adjacency_by_graph(_edge_blocks(tables, counts), counts)
            return Graphs(node_ptr=node_ptr, indptr=indptr, indices=indices, **columns)
        except _UnorderedError:
            pass
    edges = np.concatenate([np.empty((0, 2), np.int32), *(edges for edges, _ in _edge_blocks(tables, counts))])
    labels, names = _read_labels(tables, "edge_labels", len(edges), f"lines of {tables.file('A')}")
    columns |= {"edge_label": labels, "edge_label_names": names}
    try:
        return _in_words(Graphs.from_edges(node_counts=counts, edges=edges, **columns), tables.name)
    except DuplicateEdgeError as error:
        assert labels is not None
        first, second = sorted(error.rows)
        (u, v), one, other = edges[second] + 1, names[labels[second]], names[labels[first]]
        has = f"edge {u}, {v} has label {one!r}, but {other!r} on line {first + 1}"
        place = f"{tables.file('edge_labels')}, line {second + 1}"
        raise DataError(f"{place}: {has}; an edge must have one label, the same in both directions") from None


def _in_words(graphs: Graphs, name: str) -> Graphs:
    """Elements and kinds of bonds instead of the numbers that stand for them, where the set says what they mean."""
    known, (atoms, bonds) = (graphs.node_label_names, graphs.edge_label_names), ATOMS_AND_BONDS.get(name, ("", ""))
    meant = [{str(number): word for number, word in enumerate(words.split())} for words in (atoms, bonds)]
    if not all(words.keys() >= set(numbers) for words, numbers in zip(meant, known, strict=True)):
        return graphs
    nodes, edges = (tuple(words[n] for n in numbers) for words, numbers in zip(meant, known, strict=True))
    return replace(graphs, node_label_names=nodes, edge_label_names=edges)


def _read_node_counts(tables: _Set) -> Ints:
    """(G) nodes of every graph; the ids must be 1, ..., 1, 2, ..., 2 and so on."""
    graph = read_numbers(tables.chunks("graph_indicator"), tables.file("graph_indicator"), 1)[:, 0]
    rule(len(graph), f"{tables.file('graph_indicator')} is empty: the set has no graphs")
    before = np.concatenate([np.zeros(1, np.int64), graph[:-1]])
    wrong = np.flatnonzero((graph < 1) | ((graph != before) & (graph - 1 != before)))
    if len(wrong):
        row = int(wrong[0])
        this, last = int(graph[row]), int(before[row])
        if this < 1:
            broken = f"graph {this}; graphs are counted from 1"
        elif this < last:
            broken = f"graph {this} after graph {last}; the nodes of a graph must follow one another, graphs ascending"
        else:
            broken = f"graph {this} comes where graph {last + 1} should, which has no nodes; every graph must have one"
        raise DataError(f"{tables.file('graph_indicator')}, line {row + 1}: {broken}")
    return np.bincount(graph)[1:]


def _edge_blocks(tables: _Set, counts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """The lines of NAME_A.txt: edges (E, 2), nodes counted from 0, and the graph of each; checked block by block."""
    graph_of = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    file = tables.file("A")
    for first_line, pairs in number_blocks(tables.chunks("A"), file, 2):
        outside = ((pairs < 1) | (pairs > len(graph_of))).ravel()
        if outside.any():
            place = int(outside.argmax())
            line, node = first_line + place // 2, f"node {pairs.flat[place]}"
            raise DataError(f"{file}, line {line}: {node} is out of range; nodes are numbered 1 to {len(graph_of)}")
        edges = (pairs - 1).astype(np.int32)
        graph, other = graph_of[edges].T
        crosses = graph != other
        if crosses.any():
            row = int(crosses.argmax())
            joins = f"edge {pairs[row, 0]}, {pairs[row, 1]} joins graph {graph[row] + 1} to graph {other[row] + 1}"
            raise DataError(f"{file}, line {first_line + row}: {joins}; an edge must stay inside one graph")
        yield edges, graph


class _UnorderedError(Exception):
    """The edges of a graph do not follow one another, or the graphs do not ascend."""


def _adjacency_by_graph(blocks: Iterable[tuple[Ints, Ints]], counts: Ints) -> tuple[Ints, Ints]:
    """Build and validate a few graphs at a time, so that the edges never stand in memory all at once."""
    degrees, indices = [], []
    first, start = 0, 0
    for last, edges in _whole_graphs(blocks, len(counts)):
        part = Graphs.from_edges(node_counts=counts[first:last], edges=edges - np.int32(start))
        degrees.append(part.degree)
        indices.append(part.indices + np.int32(start))
        first, start = last, start + part.n_nodes
    return pointers(np.concatenate(degrees)), np.concatenate(indices)


def _whole_graphs(blocks: Iterable[tuple[Ints, Ints]], n_graphs: int) -> Iterator[tuple[int, Ints]]:
    """Cut the edges anew where a graph begins: the first graph that is not in the piece, the piece."""
    waiting: list[Ints] = [np.empty((0, 2), np.int32)]
    current = 0
    for edges, graph in blocks:
        if graph[0] < current or (graph[1:] < graph[:-1]).any():
            raise _UnorderedError
        if graph[-1] > current:
            current = int(graph[-1])
            cut = int(np.searchsorted(graph, current))
            yield current, np.concatenate([*waiting, edges[:cut]])
            waiting, edges = [], edges[cut:]
        waiting.append(edges)
    yield n_graphs, np.concatenate(waiting)


def _read_labels(tables: _Set, table: str, n: int, what: str) -> tuple[Ints | None, tuple[str, ...]]:
    """Codes (n) and the texts they stand for, in numeric order; a row of several columns is one label."""
    if not tables.has(table):
        return None, ()
    codes, names = _encode(tables.numbers(table, n, what))
    return codes.astype(np.int32), names


def _encode(rows: Ints) -> tuple[Ints, tuple[str, ...]]:
    order = np.lexsort(rows.T[::-1])  # far faster than numpy's unique rows
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (np.diff(rows[order], axis=0) != 0).any(axis=1)
    codes = np.empty(len(rows), np.int64)
    codes[order] = np.cumsum(fresh) - 1
    return codes, tuple(", ".join(map(str, row)) for row in rows[order[fresh]].tolist())


def _read_node_attributes(tables: _Set, n_nodes: int) -> Floats | None:
    if not tables.has(table := "node_attributes"):
        return None
    values = tables.numbers(table, n_nodes, "nodes")
    too_large = (np.abs(values) > LARGEST).any(axis=1)
    if too_large.any():
        row = int(too_large.argmax())
        rest = f"{np.abs(values[row]).max():g} is too large; it must fit in 32 bits"
        raise DataError(f"{tables.file(table)}, line {row + 1}: {rest}")
    return values.astype(np.float32)


def _read_target(tables: _Set, n_graphs: int, config: ReadConfig) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """The classes of the graphs, or numbers where there are no classes or regression is set."""
    has_labels, has_numbers = tables.has("graph_labels"), tables.has("graph_attributes")
    if not has_labels and not has_numbers:
        if config.target is not None:
            broken = f"{tables.name} has neither graph labels nor graph attributes"
            raise MissingColumnError(f"{tables.files.where}: no column {short(config.target)} to predict; {broken}")
        return None, ()
    if has_numbers and (config.task == "regression" or not has_labels):
        no_classes = f"{tables.files.where}: no classes: {tables.file('graph_labels')} is missing"
        rule(config.task != "classification", no_classes)
        return _pick_column(tables, "graph_attributes", n_graphs, config), ()
    labels = _pick_column(tables, "graph_labels", n_graphs, config)
    return (labels.astype(np.float64), ()) if config.task == "regression" else _encode(labels[:, None])


def _pick_column(tables: _Set, table: str, n_graphs: int, config: ReadConfig) -> NDArray[Any]:
    """The column with the number ``config.target``, counted from 0; the only one where there is but one."""
    values = tables.numbers(table, n_graphs, "graphs")
    columns = [str(column) for column in range(values.shape[1])]
    wanted = config.target if config.target is not None or len(columns) > 1 else "0"
    if wanted not in columns:
        chosen = f"{len(columns)} columns" if wanted is None else f"no column {short(wanted)}"
        raise MissingColumnError(f"{tables.file(table)}: {chosen}; target must be 0 to {len(columns) - 1}")
    return values[:, columns.index(wanted)]


class _Kind(NamedTuple):
    noun: str
    dtype: type[np.generic]
    pattern: re.Pattern[bytes]


WHOLE = _Kind("a whole number", np.int64, re.compile(rb"[+-]?[0-9]+"))
REAL = _Kind("a finite number", np.float64, re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"))


def read_numbers(chunks: Iterable[bytes], where: str, columns: int | None = None, kind: _Kind = WHOLE) -> NDArray[Any]:
    """(rows, columns) of 64-bit numbers, all finite; without ``columns`` the first line decides how many there are."""
    blocks = [block for _, block in number_blocks(chunks, where, columns, kind)]
    return np.concatenate(blocks) if blocks else np.empty((0, columns or 1), kind.dtype)


def number_blocks(
    chunks: Iterable[bytes], where: str, columns: int | None = None, kind: _Kind = WHOLE
) -> Iterator[tuple[int, NDArray[Any]]]:
    """The same piece by piece: number of its first line (from 1), rows."""
    line = 1
    for piece in whole_lines(chunks, where):
        if columns is None:
            columns = max(1, len(_fields(piece[: piece.index(b"\n")])))
        block = _parse_tidy(piece, columns, kind)
        block = _parse_lines(piece, columns, kind, where, line) if block is None else block
        yield line, block
        line += len(block)


def whole_lines(chunks: Iterable[bytes], where: str) -> Iterator[bytes]:
    """Cut the text anew so that every piece ends with a line end; the mark at its start and blanks at its end go."""
    rest, lines, first = b"", 0, True
    for chunk in chunks:
        rest += chunk
        if first:
            if len(rest) < len(BYTE_ORDER_MARK):
                continue
            rest, first = rest.removeprefix(BYTE_ORDER_MARK), False
        # the last line that is not blank stays behind: it may go on, or only blank lines may follow
        end = rest.rfind(b"\n", 0, len(rest.rstrip())) + 1
        if end:
            piece, rest = rest[:end], rest[end:]
            yield piece
            lines += int(np.count_nonzero(np.frombuffer(piece, np.uint8) == ord("\n")))
        if len(rest) > LONGEST_LINE:
            raise DataError(f"{where}, line {lines + 1}: longer than {LONGEST_LINE} bytes; a line must be shorter")
    if last := rest.rstrip():
        yield last + b"\n"


def _parse_tidy(piece: bytes, columns: int, kind: _Kind) -> NDArray[Any] | None:
    """Lines of finite numbers that numpy reads as this module does; None where it might not."""
    if piece.translate(None, TIDY):  # other blanks, say, which numpy knows and this format does not
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a whole number that is written as a real one numpy only warns
        try:
            delimiter = "," if b"," in piece else None
            values = np.loadtxt(io.StringIO(piece.decode()), kind.dtype, None, delimiter, ndmin=2)
        except (ValueError, OverflowError, Warning):
            return None
    is_whole = values.shape == (piece.count(b"\n"), columns)  # numpy leaves blank lines out
    return values if is_whole and np.isfinite(values).all() else None


def _parse_lines(piece: bytes, columns: int, kind: _Kind, where: str, first_line: int) -> NDArray[Any]:
    rows = []
    for number, line in enumerate(piece[:-1].split(b"\n"), first_line):
        fields = _fields(line)
        try:
            is_text = "\0" not in line.decode("utf-8")
        except UnicodeDecodeError:
            is_text = False
        if not is_text:
            raise _refusal(where, number, line, "is not text; the file must be plain UTF-8")
        if len(fields) != columns:
            plural = "field" if len(fields) == 1 else "fields"
            raise _refusal(where, number, line, f"has {len(fields)} {plural}; every line must have {columns}")
        for field in fields:
            if not kind.pattern.fullmatch(field):
                raise _refusal(where, number, field, f"is not {kind.noun}; every field must be one")
            if not (np.isfinite(float(field)) if kind is REAL else len(field) <= 20 and -(2**63) <= int(field) < 2**63):
                raise _refusal(where, number, field, "is too large; it must fit in 64 bits")
        rows.append([float(field) if kind is REAL else int(field) for field in fields])
    return np.array(rows, kind.dtype).reshape(-1, columns)


def _fields(line: bytes) -> list[bytes]:
    return [field.strip() for field in line.split(b",")] if b"," in line else line.split()


def _refusal(where: str, line: int, value: bytes, broken: str) -> DataError:
    return DataError(f"{where}, line {line}: {short(value[:200].decode('utf-8', 'replace').strip(), 40)} {broken}")
