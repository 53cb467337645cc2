"""Any source of graphs -> Graphs."""

from __future__ import annotations

import errno
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from egocnn.config import ReadConfig
from egocnn.data.generated import read_compounds
from egocnn.data.graphs import Graphs
from egocnn.data.sources.jsonlines import JSON_SUFFIXES, read_jsonlines
from egocnn.data.sources.networkx import GRAPH_SUFFIXES, read_graph_files
from egocnn.data.sources.objects import ACCEPTED, from_objects
from egocnn.data.sources.smiles import from_smiles, read_smiles_table
from egocnn.data.sources.text import TABLE_SUFFIXES, one_line, short, suffix_of
from egocnn.data.sources.tu import fetch_set, read_tu
from egocnn.data.store import Store, is_store
from egocnn.errors import DataError, MissingExtraError

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
        egocnn.errors.DataError: a sequence of dict is not a source of graphs; ...
    """
    settings = replace(config or ReadConfig(), **options)
    if isinstance(source, Graphs):
        return source
    try:
        if isinstance(source, (str, Path)):
            return _read_named(source, settings)
        return from_objects(source, settings)
    except DataError as error:
        # the last look at a message before it reaches a terminal: no text from the data may command that
        error.args = (one_line(str(error)),)
        raise


def _read_named(given: str | Path, config: ReadConfig) -> Graphs:
    source = str(given)
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
        if error.errno != errno.ENAMETOOLONG:  # a large molecule, say
            raise DataError(f"{short(source)}: cannot be read ({error.strerror})") from None
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
        return from_smiles([source], config=replace(config, skip_invalid=False))
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
    if suffix_of(path) in TABLE_SUFFIXES:
        return read_smiles_table(path, config)
    if suffix_of(path) in JSON_SUFFIXES:
        return read_jsonlines(path, config)
    if suffix in GRAPH_SUFFIXES:
        return read_graph_files([path], path.name, config)
    if suffix == ".safetensors":
        return Graphs.load(path)
    raise DataError(f"{path}: cannot tell what this is from its name; {ACCEPTED}")
