"""A source of graphs too large for memory -> portions of it, in order, as a reader would read the whole.

JSON lines and tables of SMILES are read line by line, stores portion by portion; all other sources are for
:func:`egocnn.data.read.read`, which reads them whole. What is said about each graph besides its structure (name,
target, split, group, SMILES) is kept until the end, as only all targets together show whether they are classes.
"""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.sources.builder import GraphRecord, Rejects, assemble
from egocnn.data.sources.columns import NAME_FIELDS, TARGET_FIELDS, choose_field, graph_columns
from egocnn.data.sources.jsonlines import STRUCTURE, NodeBudget, parse_graph, parse_line
from egocnn.data.sources.smiles import canonical_of, parse_smiles, record_of
from egocnn.data.sources.table import TAB_SUFFIXES
from egocnn.data.sources.targets import sort_names
from egocnn.data.sources.text import is_sound, listed, one_line, short
from egocnn.data.store.read import Store, is_store
from egocnn.data.store.write import Facts
from egocnn.errors import DataError

AT_ONCE = 1 << 18
"""Nodes and edges of a portion, unless one graph has more: as Python objects they take hundreds of bytes each."""

TABLES = (".csv", ".tsv", ".tab")
LINES = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, slots=True)
class Source:
    portions: Iterable[Graphs]
    facts: Facts | None = None  # as :func:`egocnn.data.store.write.write_store` takes them


def stream_source(path: Path, config: ReadConfig) -> Source | None:
    """The portions of a file or store; None where the source has to be read whole."""
    if is_store(path):
        return Source(Store.open(path).portions())
    suffix = path.suffix.lower()
    if not path.is_file() or suffix not in (*TABLES, *LINES):
        return None
    said = _Said(path.name, config, typed=suffix in LINES)
    return Source(_portions((_molecules if suffix in TABLES else _lines)(path, config, said), said), said.columns)


@dataclass(slots=True)
class _Said:
    """What is said about every graph read so far."""

    where: str
    config: ReadConfig
    typed: bool
    places: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    fields: list[Mapping[str, Any]] = field(default_factory=list)
    smiles: list[Any] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)  # of molecules: copies of one have one number
    labels: dict[str, dict[str, None]] = field(default_factory=lambda: {"node": {}, "edge": {}})

    def add(self, place: str, number: int, fields: Mapping[str, Any], smiles: Any) -> None:
        self.places.append(place)
        self.numbers.append(str(number))
        self.fields.append({key: value for key, value in fields.items() if self._is_read(key)})
        self.smiles.append(smiles)

    def _is_read(self, key: str) -> bool:
        """Whether the field may be one that is asked for; a table may have a thousand others."""
        config = self.config
        named = (config.name, config.target, config.split, config.group)
        return key in named or key.lower() in (*NAME_FIELDS, *TARGET_FIELDS)

    def columns(self) -> dict[str, Any]:
        columns = graph_columns(
            self.fields, self.config, where=self.where, places=self.places, names=self.numbers, typed=self.typed
        )
        if all(isinstance(text, str) for text in self.smiles):
            columns["smiles"] = tuple(self.smiles)
        if self.groups:
            columns["group"] = self.groups
        for name in ("names", "smiles", "class_names"):
            for text in columns.get(name, ()):
                if not is_sound(text):
                    raise DataError(f"{self.where}: {short(text)} is not text that can be written as UTF-8")
        labels = {f"{kind}_label_names": sort_names(list(names)) for kind, names in self.labels.items() if names}
        return {**columns, **labels}


def _portions(records: Iterator[GraphRecord], said: _Said) -> Iterator[Graphs]:
    some: list[GraphRecord] = []
    size = 0

    def together() -> Graphs:
        graphs = assemble(some, said.where, names=[record.place for record in some])
        said.labels["node"].update(dict.fromkeys(graphs.node_label_names))
        said.labels["edge"].update(dict.fromkeys(graphs.edge_label_names))
        return graphs

    for record in records:
        some.append(record)
        size += record.n_nodes + len(record.edges)
        if size >= AT_ONCE:
            yield together()
            some, size = [], 0
    if some:
        yield together()
    if not said.places:
        raise DataError(f"{said.where}: no graphs in it")


def _lines(path: Path, config: ReadConfig, said: _Said) -> Iterator[GraphRecord]:
    rejects = Rejects(skip=config.skip_invalid, where=path.name)
    budget = NodeBudget()
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            place = f"{path.name}, line {number}"
            line = _decoded(data.removeprefix(codecs.BOM_UTF8) if number == 1 else data, place)
            if not line.strip():
                continue
            try:
                value = parse_line(line)
                budget.check(value.get("nodes"), len(line))
                record = parse_graph(value, place)
            except DataError as error:
                rejects.add(DataError(f"{place}: {error}"))
                continue
            said.add(place, number, {k: v for k, v in value.items() if k not in STRUCTURE}, value.get("smiles"))
            yield record
    rejects.tell()


def _decoded(data: bytes, place: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        byte = f"0x{data[error.start]:02x}"
        raise DataError(f"{place}: byte {byte} is not UTF-8 text; save the file as UTF-8") from None
    if "\0" in text:
        raise DataError(f"{place}: holds a NUL byte; this is not a text file")
    return text


def _molecules(path: Path, config: ReadConfig, said: _Said) -> Iterator[GraphRecord]:
    rejects = Rejects(skip=config.skip_invalid, where=path.name)
    molecules: dict[str, int] = {}
    column: str | None = None
    for number, row in enumerate(_rows(path), 1):
        place = f"{path.name}, row {number}"
        if number == 1:
            column = choose_field(list(row), config.smiles, ("smiles",), path.name)
            if column is None:
                there_are = listed(row)
                raise DataError(
                    f"{path.name}: no column is called smiles; there are {there_are}; name one with --smiles"
                )
        assert column is not None
        try:
            molecule = parse_smiles(row[column], hydrogens=config.hydrogens)
        except DataError as error:
            rejects.add(DataError(f"{place}: {error}; --skip-invalid leaves such rows out"))
            continue
        said.add(place, number, row, row[column].strip())
        if config.group is None:
            said.groups.append(molecules.setdefault(canonical_of(molecule), len(molecules)))
        yield record_of(molecule, place)
    rejects.tell()


def _rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a table, one at a time; the rules are those of :mod:`egocnn.data.sources.table`."""
    delimiter = "\t" if path.suffix.lower() in TAB_SUFFIXES else ","
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(_without_nul(file, path.name), delimiter=delimiter, strict=True)
        columns: tuple[str, ...] | None = None
        row = 0
        try:
            for line in lines:
                if not line:
                    continue
                if columns is None:
                    columns = _header(line, path.name)
                    continue
                row += 1
                if len(line) != len(columns):
                    raise DataError(f"{path.name}, row {row}: {len(line)} fields where the header has {len(columns)}")
                yield dict(zip(columns, line, strict=True))
        except csv.Error as error:
            raise DataError(f"{path.name}, line {lines.line_num}: {one_line(str(error))}") from None
        except UnicodeDecodeError:
            raise DataError(
                f"{path.name}, after line {lines.line_num}: not UTF-8 text; save the file as UTF-8"
            ) from None
    if columns is None:
        raise DataError(f"{path.name}: is empty; a header with the names of the columns is needed")
    if row == 0:
        raise DataError(f"{path.name}: has a header and no rows")


def _header(line: list[str], where: str) -> tuple[str, ...]:
    columns = tuple(name.strip() for name in line)
    for name, times in Counter(columns).items():
        if times > 1 and name:
            raise DataError(f"{where}: two columns are called {short(name)}")
    return columns


def _without_nul(lines: Iterable[str], where: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise DataError(f"{where}, line {number}: holds a NUL byte; this is not a text file")
        yield line
