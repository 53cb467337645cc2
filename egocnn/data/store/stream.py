"""A source of graphs too large for memory -> portions of it, in order, as a reader would read the whole.

JSON lines and tables of SMILES are read line by line, stores portion by portion; all other sources are for
:func:`egocnn.data.read.read`, which reads them whole. The fields of each graph besides its structure (name, target,
split, group, SMILES) stay in memory until the end, as only all targets together show whether they are classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.schema import rule
from egocnn.data.sources.builder import GraphFields, GraphRecord, assemble, sort_names
from egocnn.data.sources.jsonlines import JSON_SUFFIXES, json_records
from egocnn.data.sources.smiles import smiles_records
from egocnn.data.sources.text import TABLE_SUFFIXES, suffix_of
from egocnn.data.store.read import Store, is_store
from egocnn.data.store.write import GraphColumns

AT_ONCE = 1 << 18
"""Nodes and edges of a portion, unless one graph has more: as Python objects they take hundreds of bytes each."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source that is read in portions."""

    portions: Iterable[Graphs]
    facts: GraphColumns | None = None  # as :func:`egocnn.data.store.write.write_store` takes them


def stream_source(path: Path, config: ReadConfig) -> Source | None:
    """The portions of a file or store; None where the source has to be read whole."""
    if is_store(path):
        return Source(Store.open(path).portions())
    suffix = suffix_of(path)
    if not path.is_file() or suffix not in (*TABLE_SUFFIXES, *JSON_SUFFIXES):
        return None
    fields = GraphFields(path.name, config, typed=suffix in JSON_SUFFIXES)
    records = (smiles_records if suffix in TABLE_SUFFIXES else json_records)(path, fields)
    labels: dict[str, dict[str, None]] = {"node_label_names": {}, "edge_label_names": {}}

    def columns() -> dict[str, Any]:
        return fields.columns() | {kind: sort_names(list(names)) for kind, names in labels.items() if names}

    return Source(_portions(records, path.name, labels), columns)


def _portions(records: Iterator[GraphRecord], where: str, labels: dict[str, dict[str, None]]) -> Iterator[Graphs]:
    """Put the records together, a portion at a time; the names of their labels are added to ``labels``."""
    some: list[GraphRecord] = []
    size, is_empty = 0, True
    for record in chain(records, [None]):
        if some and (record is None or size >= AT_ONCE):
            graphs = assemble(some, where, names=[record.place for record in some])
            for kind, names in labels.items():
                names.update(dict.fromkeys(getattr(graphs, kind)))
            yield graphs
            some, size, is_empty = [], 0, False
        if record is not None:
            some.append(record)
            size += record.n_nodes + len(record.edges)
    rule(not is_empty, f"{where}: no graphs in it")
