"""Any source of graphs -> Graphs."""

import errno
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from os.path import expanduser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from egocnn.config import ALL, ReadConfig, split_names
from egocnn.data.generated import read_compounds
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.schema import rule
from egocnn.data.sources.builder import GraphFields, choose_targets, sort_names
from egocnn.data.sources.columns import all_targets
from egocnn.data.sources.jsonlines import JSON_SUFFIXES, json_records, json_rows
from egocnn.data.sources.networkx import GRAPH_SUFFIXES, from_networkx, read_graph_files
from egocnn.data.sources.pyg import from_pyg, plain_fields
from egocnn.data.sources.records import GraphRecord, assemble, collect
from egocnn.data.sources.smiles import frame_rows, frame_targets, from_frame, from_smiles, is_molecule, smiles_records
from egocnn.data.sources.text import TABLE_SUFFIXES, one_line, short, suffix_of, table_rows
from egocnn.data.sources.tu import fetch_set, read_tu
from egocnn.data.store import GraphColumns, Store, is_store
from egocnn.errors import DataError, MissingExtraError
from egocnn.files import isfile, regular

ACCEPTED = (
    "graphs are read from the name of a TU data set, a TU folder or .zip, a .csv, .tsv, .smi or .parquet with SMILES, "
    ".sdf, .jsonl, .graphml, .gexf, .safetensors, a store that egocnn prepare wrote, compounds:NAME, SMILES, molecules "
    "of RDKit, a DataFrame, networkx graphs, or objects with an edge_index"
)
FILE_NAME = re.compile(r"[~./].*|.*[.]\w{2,}")
"""A text like this that is no file is a mistyped one: that it is no SMILES either goes without saying."""


def read(source: Any, config: ReadConfig | None = None, **options: Any) -> Graphs:
    """Read graphs from a file, a folder, a name or Python objects.

    ==================================================  ==========================================================
    source                                              what it is
    ==================================================  ==========================================================
    ``"MUTAG"``                                         the name of a TU set: looked for under ``EGOCNN_DATA`` and in
                                                        the cache, else downloaded
    ``"folder/MUTAG"``, ``"MUTAG.zip"``                 a TU set as a folder or a zip
    ``"molecules.csv"``, ``.tsv``, ``.tab``, ``.smi``   a table with a column of SMILES (needs RDKit), ``.gz`` too
    ``"molecules.parquet"``                             the same (needs pyarrow)
    ``"molecules.sdf"``                                 its records, properties as columns (needs RDKit), ``.gz`` too
    ``"graphs.jsonl"``, ``.ndjson``, ``.json``          JSON lines, one graph an object
    ``"network.graphml"``, ``.gexf``, a folder of them  files of other tools (needs networkx)
    ``"graphs.safetensors"``                            what ``graphs.save`` wrote
    ``"molecules.store"``                               a store that ``egocnn prepare`` wrote
    ``"compounds:alcohols:sizes=3-8"``                  generated molecules whose critical structure is known
    ``"CC(=O)O"``                                       one molecule, where it is neither a file nor a TU set
    ``["CCO", "CCN"]``                                  SMILES in a list, tuple, array or pandas Series
    RDKit molecules                                     one, or any iterable of them, their atoms in their order
    a pandas ``DataFrame``                              a table with a column of SMILES or RDKit molecules, as a CSV
    networkx graphs                                     one, or any iterable of them
    PyTorch Geometric data                              one, a batch, a data set, or any objects with an ``edge_index``
    ``Graphs``, ``Graph``                               given back as they are; one graph, or a list of some
    ==================================================  ==========================================================

    Arguments:
        source: One of the above.
        config: How to read it; every field has a default.
        options: Fields of :class:`~egocnn.config.ReadConfig`, which go before those of ``config``.

    Returns:
        All graphs of the source as one collection.

    Raises:
        DataError: the source is missing, damaged, or of no kind that is known. The message is one line that names
            file, line, value and rule.

    Example:
        >>> import egocnn
        >>> egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        Graphs(10 graphs, 151 nodes, 141 edges, classes alkane, alcohol)
        >>> egocnn.read(["CCO", "c1ccccc1"])
        Graphs(2 graphs, 9 nodes, 8 edges)
        >>> egocnn.read(["CCO", "c1ccc"])
        Traceback (most recent call last):
        egocnn.errors.DataError: molecule 1: SMILES 'c1ccc' does not parse (unclosed ring)
        >>> egocnn.read([{"source": 0}])
        Traceback (most recent call last):
        egocnn.errors.DataError: a sequence of dict is not a source of graphs; ..."""
    settings = replace(config or ReadConfig(), **options)
    if isinstance(source, Graphs):
        return source
    column, _, part = (settings.split or "").partition("=")
    if part:
        return read(source, replace(settings, split=column or None)).select(part)
    try:
        settings = with_named_targets(source, settings)
        if isinstance(source, (str, Path)):
            return _read_named(source, settings)
        return _from_objects(source, settings)
    except DataError as error:
        # the last look at a message before it reaches a terminal: no text from the data may command that
        error.args = (one_line(str(error)),)
        raise


def with_named_targets(source: Any, config: ReadConfig, *, guess: bool = False) -> ReadConfig:
    """The settings, with all columns of a table or fields of JSON lines that could be targets in place of ``all``;
    ``guess``: where none is named or called so, with the only column of a table that could be one."""
    is_all, is_frame = config.target == ALL, _is_frame(source)
    if not (is_all or (guess and config.target is None)):
        return config
    path = Path(source) if isinstance(source, (str, Path)) else Path()
    suffix = suffix_of(path) if isfile(path) else ""
    if is_store(path) or not (is_all or is_frame or suffix in TABLE_SUFFIXES):  # those of a store were chosen before
        return replace(config, target=None)
    is_rows = is_frame or suffix in (*TABLE_SUFFIXES, *JSON_SUFFIXES)
    rule(is_rows, "target=all names the columns of a table or the fields of JSON lines; here name the target itself")
    where, of_table = ("DataFrame", frame_rows(source)) if is_frame else (path.name, table_rows(path))
    rows = (row for _, row, _ in json_rows(path)) if suffix in JSON_SUFFIXES else of_table
    first = next(rows, {})
    if not is_all and choose_targets(list(first), None, where)[0]:
        return config
    return replace(config, target=all_targets(chain([first], rows), config, where))


def _read_named(given: str | Path, config: ReadConfig) -> Graphs:
    source = str(given)
    if source.startswith("compounds:"):
        return read_compounds(source)
    rule(source, f"an empty text is not a source of graphs; {ACCEPTED}")
    path = Path(expanduser(source))  # noqa: PTH111 — unlike pathlib's, it lets ~somebody pass
    try:
        if path.is_dir():
            return _read_folder(path, config)
        if path.is_file():
            return _read_file(path, config)
        regular(path)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:  # a large molecule, say
            raise DataError(f"{one_line(source, 200)}: cannot be read ({error.strerror})") from None
    try:
        if not re.fullmatch(r"[\w-]+", source):
            raise DataError(f"{source if source.isprintable() else short(source)}: no such file or folder")
        path = fetch_set(source)
    except DataError as error:
        if isinstance(given, Path):
            raise
        return _read_molecule(source, config, error)
    return read_tu(path, config)


def _read_molecule(source: str, config: ReadConfig, error: DataError) -> Graphs:
    """One SMILES; where the text is none, the error that there was before, with the reason if it looks like one."""
    try:
        return from_smiles([source], config=replace(config, skip_invalid=False, strict=True))
    except (DataError, MissingExtraError) as reason:
        if FILE_NAME.fullmatch(source) or not re.search(r"[]()=#\d]", source):
            raise error from None
        raise DataError(f"{error}; read as a molecule: {str(reason).removeprefix('molecule 0: ')}") from None


def _read_folder(path: Path, config: ReadConfig) -> Graphs:
    if is_store(path):
        return Store.open(path).graphs()
    graph_files = sorted(file for file in path.iterdir() if file.suffix.lower() in GRAPH_SUFFIXES)
    if graph_files and not any(path.glob("*_A.txt")):
        return read_graph_files(graph_files, str(path), config)
    return read_tu(path, config)


def _read_file(path: Path, config: ReadConfig) -> Graphs:
    suffix = path.suffix.lower()
    if suffix == ".zip":
        return read_tu(path, config)
    if suffix_of(path) in (*TABLE_SUFFIXES, *JSON_SUFFIXES):
        return collect(*_records(path, config))
    if suffix in GRAPH_SUFFIXES:
        return read_graph_files([path], path.name, config)
    if suffix == ".safetensors":
        return Graphs.load(path)
    raise DataError(f"{path}: cannot tell what this is from its name; {ACCEPTED}")


def _records(path: Path, config: ReadConfig) -> tuple[Iterator[GraphRecord], GraphFields]:
    """The graphs of a table of SMILES or of JSON lines one at a time, and their other fields, added on the way."""
    is_table = suffix_of(path) in TABLE_SUFFIXES
    fields = GraphFields(path.name, config, typed=not is_table)
    return (smiles_records if is_table else json_records)(path, fields), fields


def _from_objects(source: Any, config: ReadConfig) -> Graphs:
    """Read one object, or an iterable of objects of one kind."""
    if _is_frame(source):
        return from_frame(source, config)
    items = _items(source)
    kinds = [next((name for name, (is_one, _) in KINDS.items() if is_one(item)), None) for item in items]
    first = next((i for i, kind in enumerate(kinds) if kind is not None), None)
    if first is None:
        types = ", ".join(sorted({type(item).__name__ for item in items})[:5])
        raise DataError(f"a sequence of {types} is not a source of graphs; {ACCEPTED}")
    for i, kind in enumerate(kinds):
        if kind != kinds[first]:
            other = f"item {i} is {kind or short(items[i])} and item {first} {kinds[first]}"
            raise DataError(f"{other}; all must be of one kind")
    return KINDS[str(kinds[first])][1](items, config)


def targets_inside(source: Any, config: ReadConfig) -> dict[str, Any]:
    """What is to be predicted by name, typed as a table, networkx graphs or data with an edge_index hold it."""
    if _is_frame(source):
        return frame_targets(source, config)
    items = _items(source)
    if _is_networkx(items[0]):
        rows: list[dict[str, Any]] = [item.graph for item in items]
    elif hasattr(items[0], "edge_index"):
        rows = [plain_fields(item, {config.target or "y", *split_names(config.target)}, "data") for item in items]
    else:
        return {}
    names = dict.fromkeys(str(name) for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in choose_targets(list(names), config.target, "graphs")[0]}


def _is_frame(source: Any) -> bool:
    """Whether it is a table with named columns, of pandas say; no such library is imported to find out."""
    shape = getattr(source, "shape", None)
    return hasattr(source, "columns") and isinstance(shape, tuple) and len(shape) == 2


def _from_graphs(graphs: Sequence[Graph], config: ReadConfig) -> Graphs:
    """Put single graphs of collections into one again; column names in ``config`` do not count."""
    settings = replace(config, target=None, name=None, split=None, group=None)
    fields, records = GraphFields("graphs", settings), []
    for i, graph in enumerate(graphs):
        fields.add(f"graph {i}", graph.name, {"target": graph.target}, graph.smiles)
        own: dict[str, Any] = {name: getattr(graph, name) for name in ("n_nodes", "edges", "edge_weight", "node_attr")}
        for name in ("node_label", "edge_label", "node_truth", "edge_truth"):
            values = getattr(graph, name)
            own[name] = None if values is None else [None if str(value) == "?" else value for value in values]
        records.append(GraphRecord(place=f"graph {i}", **own))
    return collect(records, fields)


def _items(source: Any) -> list[Any]:
    # a data set of PyTorch Geometric computes an edge_index of all its graphs on access: look without accessing it
    is_data = inspect.getattr_static(source, "edge_index", None) is not None
    if is_data and hasattr(source, "to_data_list"):  # a batch of PyTorch Geometric
        source = source.to_data_list()
    elif is_data or isinstance(source, Graph) or is_molecule(source) or _is_networkx(source):
        return [source]
    if not isinstance(source, Iterable) or isinstance(source, (bytes, dict)):
        raise DataError(f"{short(source)} is not a source of graphs; {ACCEPTED}")
    rule(not isinstance(source, (set, frozenset)), "a set of graphs has no order; give a list")
    if isinstance(source, np.ndarray) and source.ndim != 1:
        raise DataError(f"an array of shape {source.shape} is not a source of graphs; give it one dimension")
    items = list(source)
    rule(items, "no graphs are given")
    return items


def _is_networkx(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("nodes", "edges", "graph", "is_multigraph"))


KINDS: dict[str, tuple[Callable[[Any], bool], Callable[[Sequence[Any], ReadConfig], Graphs]]] = {
    "a SMILES": (lambda item: isinstance(item, str), lambda items, config: from_smiles(items, config=config)),
    "an RDKit molecule": (is_molecule, lambda items, config: from_smiles(items, config=config)),
    "a Graph": (lambda item: isinstance(item, Graph), _from_graphs),
    "a networkx graph": (_is_networkx, from_networkx),
    "data with an edge_index": (lambda item: hasattr(item, "edge_index"), from_pyg),
}
"""Kind of object -> how to tell it, and its reader."""

AT_ONCE = 1 << 18
"""Nodes and edges of a portion, unless one graph has more: as Python objects they take hundreds of bytes each."""


class Source(NamedTuple):
    """A source that is read in portions: its graphs, and what :func:`write_store` takes as ``facts``."""

    portions: Iterable[Graphs]
    facts: GraphColumns | None = None


def stream_source(path: Path, config: ReadConfig) -> Source | None:
    """The portions of JSON lines, a table of SMILES or a store; None where the source has to be read whole."""
    # fields besides the structure stay in memory: only all targets together show whether they are classes
    if is_store(path):
        return Source(Store.open(path).portions())
    if not isfile(path) or suffix_of(path) not in (*TABLE_SUFFIXES, *JSON_SUFFIXES):
        return None
    records, fields = _records(path, config)
    labels: dict[str, dict[str, None]] = {"node_label_names": {}, "edge_label_names": {}}

    def columns() -> dict[str, Any]:
        return fields.columns() | {kind: sort_names(list(names)) for kind, names in labels.items() if names}

    return Source(_portions(records, path.name, labels), columns)


def _portions(records: Iterator[GraphRecord], where: str, labels: dict[str, dict[str, None]]) -> Iterator[Graphs]:
    """Put the records together, a portion at a time; the names of their labels are added to ``labels``."""
    some: list[GraphRecord] = []
    size = 0
    for record in chain(records, [None]):
        if some and (record is None or size >= AT_ONCE):
            graphs = assemble(some, where, names=[record.place for record in some])
            for kind, names in labels.items():
                names.update(dict.fromkeys(getattr(graphs, kind)))
            yield graphs
            some, size = [], 0
        if record is not None:
            some.append(record)
            size += record.n_nodes + len(record.edges)
