"""Any source of graphs -> Graphs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from egocnn.config import ReadConfig
from egocnn.data.generated import read_compounds
from egocnn.data.graphs import Graphs
from egocnn.data.sources.graphml import GRAPH_SUFFIXES, read_graph_files
from egocnn.data.sources.jsonlines import JSON_SUFFIXES, read_jsonlines
from egocnn.data.sources.networkx import from_networkx
from egocnn.data.sources.pyg import from_pyg
from egocnn.data.sources.smiles import parse_smiles, read_smiles_table
from egocnn.data.sources.table import TABLE_SUFFIXES
from egocnn.data.sources.text import one_line, short
from egocnn.data.sources.tu import fetch_set, read_tu
from egocnn.data.store import Store, is_store
from egocnn.errors import DataError, MissingExtraError

ACCEPTED = (
    "graphs are read from the name of a TU data set, a TU folder or .zip, a .csv or .tsv with SMILES, .jsonl, "
    ".graphml, .gexf, .safetensors, a store that egocnn prepare wrote, compounds:NAME, networkx graphs, or objects "
    "with an edge_index"
)
AS_A_TABLE = "put it into a column of a .csv or .tsv file"


def read(source: Any, config: ReadConfig | None = None, **options: Any) -> Graphs:
    """Read graphs from a file, a folder, a name or Python objects.

    ==================================================  ==========================================================
    source                                              what it is
    ==================================================  ==========================================================
    ``"MUTAG"``                                         the name of a TU set: looked for under ``EGOCNN_DATA`` and in
                                                        the cache, else downloaded
    ``"folder/MUTAG"``, ``"MUTAG.zip"``                 a TU set as a folder or a zip
    ``"molecules.csv"``, ``.tsv``, ``.tab``             a table with a column of SMILES (needs RDKit)
    ``"graphs.jsonl"``, ``.ndjson``, ``.json``          JSON lines, one graph an object
    ``"network.graphml"``, ``.gexf``, a folder of them  files of other tools (needs networkx)
    ``"graphs.safetensors"``                            what ``graphs.save`` wrote
    ``"molecules.store"``                               a store that ``egocnn prepare`` wrote
    ``"compounds:alcohols:sizes=3-8"``                  generated molecules whose critical structure is known
    networkx graphs                                     one, or any iterable of them
    PyTorch Geometric data                              one, a batch, a data set, or any objects with an ``edge_index``
    ``Graphs``                                          given back as they are
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
        >>> egocnn.read([{"source": 0}])
        Traceback (most recent call last):
        egocnn.errors.DataError: a sequence of dict is not a source of graphs; ...
    """
    settings = replace(config or ReadConfig(), **options)
    if isinstance(source, Graphs):
        return source
    try:
        if isinstance(source, (str, Path)):
            return _read_named(str(source), settings)
        return _read_objects(source, settings)
    except DataError as error:
        # the last look at a message before it reaches a terminal: no text from the data may command that
        error.args = (one_line(str(error)),)
        raise


def _read_named(source: str, config: ReadConfig) -> Graphs:
    if source.startswith("compounds:"):
        return read_compounds(source)
    if not source:
        raise DataError(f"an empty text is not a source of graphs; {ACCEPTED}")
    try:
        path = Path(source).expanduser()
    except RuntimeError:  # the home of an unknown user
        path = Path(source)
    try:
        if path.is_dir():
            return _read_folder(path, config)
        if path.is_file():
            return _read_file(path, config)
    except OSError as error:
        raise DataError(f"{short(source)}: cannot be read ({error.strerror})") from None
    return read_tu(_find_by_name(source), config)


def _find_by_name(source: str) -> Path:
    """The files of a TU set; where the name is a SMILES, the error says how molecules are read."""
    try:
        if re.fullmatch(r"[\w-]+", source):
            return fetch_set(source)
        raise DataError(f"{source if source.isprintable() else short(source)}: no such file or folder")
    except DataError as error:
        if _is_smiles(source):
            raise DataError(f"{error}; a SMILES by itself is not read yet; {AS_A_TABLE}") from None
        raise


def _is_smiles(text: str) -> bool:
    try:
        parse_smiles(text)
    except (DataError, MissingExtraError):
        return False
    return True


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
    if suffix in TABLE_SUFFIXES:
        return read_smiles_table(path, config)
    if suffix in JSON_SUFFIXES:
        return read_jsonlines(path, config)
    if suffix in GRAPH_SUFFIXES:
        return read_graph_files([path], path.name, config)
    if suffix == ".safetensors":
        return Graphs.load(path)
    raise DataError(f"{path}: cannot tell what this is from its name; {ACCEPTED}")


def _read_objects(source: Any, config: ReadConfig) -> Graphs:
    # a data set of PyTorch Geometric computes an edge_index of all its graphs on access: look without accessing it
    is_data = inspect.getattr_static(source, "edge_index", None) is not None
    if is_data and hasattr(source, "to_data_list"):  # a batch of PyTorch Geometric
        source = source.to_data_list()
    elif is_data or _is_networkx(source):
        source = [source]
    if not isinstance(source, Iterable) or isinstance(source, (bytes, dict)):
        raise DataError(f"{short(source)} is not a source of graphs; {ACCEPTED}")
    items = list(source)
    if not items:
        raise DataError("no graphs are given")
    if all(map(_is_networkx, items)):
        return from_networkx(items, config)
    if all(hasattr(item, "edge_index") for item in items):
        return from_pyg(items, config)
    kinds = ", ".join(sorted({type(item).__name__ for item in items})[:5])
    raise DataError(f"a sequence of {kinds} is not a source of graphs; {ACCEPTED}")


def _is_networkx(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("nodes", "edges", "graph", "is_multigraph"))
