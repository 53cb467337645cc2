"""A file with a molecule or a graph per row -> portions of rows in order, each with its graph or why it has none."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from egocnn.config import IF_THERE, ReadConfig
from egocnn.data.collection import graphs_of_part
from egocnn.data.graphs import Graphs
from egocnn.data.sources.builder import GraphFields
from egocnn.data.sources.jsonlines import JSON_SUFFIXES, json_rows
from egocnn.data.sources.records import GraphRecord, assemble, misfits, refusals
from egocnn.data.sources.smiles import assemble_molecules, molecule_and_smiles, molecule_record, smiles_column
from egocnn.data.sources.text import AT_ONCE, MOLECULE, TABLE_SUFFIXES, MolBlock, arrow, one_line, suffix_of, table_rows
from egocnn.errors import DataError

ROW_SUFFIXES = (*TABLE_SUFFIXES, *JSON_SUFFIXES)
NO_COLUMNS = ("hydrogens", "salts", "task")  # Settings of reading that name no column.

Row: TypeAlias = tuple[int, dict[str, Any], GraphRecord | MolBlock | DataError | None]
"""number, fields, and its graph, or the record to read it from, or why it has none; None: read it from its SMILES"""


@dataclass(frozen=True, slots=True)
class RowPortion:
    """Some rows of a source in their order, and the graphs of those that have one, in the same order."""

    rows: Sequence[Mapping[str, Any]]  # the columns that came in
    names: Sequence[str]
    errors: Sequence[str]  # why a row has no graph; empty where it has one
    graphs: Graphs | None  # None where no row has one

    @staticmethod
    def of(graphs: Graphs) -> "RowPortion":
        """Graphs of a source that has no rows with other columns."""
        rows = [{} if graphs.smiles is None else {"smiles": graphs.smiles[g]} for g in range(len(graphs))]
        return RowPortion(rows, graphs.names, [""] * len(graphs), graphs)

    def answered(self, answer: Callable[[Graphs], Any]) -> "tuple[RowPortion, Any]":
        """What is answered to its graphs. Where that is refused, to those to which each alone is not, None if there are
        none; in the portion that comes back the others have the reason in place of a graph."""
        if self.graphs is None:
            return self, None
        try:
            return self, answer(self.graphs)
        except DataError:
            if not any(whys := refusals(self.graphs, answer)):
                raise
        fine, own = [g for g, why in enumerate(whys) if not why], iter(whys)
        errors = [error or next(own) for error in self.errors]
        return RowPortion(self.rows, self.names, errors, self.graphs[fine] if fine else None).answered(answer)

    def choose(self, which: Sequence[int]) -> "RowPortion":
        """The rows with these positions, ascending."""
        number = np.cumsum([not error for error in self.errors]) - 1
        graphs = [int(number[row]) for row in which if not self.errors[row]]
        rows, names = [self.rows[row] for row in which], [self.names[row] for row in which]
        chosen = self.graphs[graphs] if self.graphs is not None and graphs else None
        return RowPortion(rows, names, [self.errors[row] for row in which], chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Makes portions from rows; plain data, so that it can be sent to other processes."""

    where: str
    config: ReadConfig
    unit: str  # what the numbers of the rows count
    part: str = ""  # of the data's own split: other rows are left out
    smiles: str | None = None  # the column; '' where rows bring their molecules, None where they bring their graphs
    has_truth: bool = True  # whether the target is the one that the model predicts

    def __call__(self, rows: Sequence[Row]) -> RowPortion:
        if not rows:  # which cannot say that a column is missing
            return RowPortion((), (), (), None)
        fields = GraphFields(self.where, self.config, typed=self.smiles is None, lenient=True)
        found: list[Any] = []  # molecules of RDKit, or records where rows bring their graphs
        errors: list[str] = []
        for number, row, graph in rows:
            place, smiles = f"{self.where}, {self.unit} {number}", row.get(self.smiles or "smiles")
            try:
                if not isinstance(graph, GraphRecord):
                    graph, smiles = molecule_and_smiles(smiles if graph is None else graph, self.config)
                    graph = graph if self.smiles else molecule_record(graph, place)  # not made from a text
                found.append(graph)
                errors.append("")
            except DataError as error:
                if self.config.strict:
                    raise DataError(f"{place}: {error}") from None
                errors.append(one_line(str(error)))
            fields.add(place, str(number), row, smiles if self.smiles is None else str(smiles or ""))
        columns = fields.columns()
        names, part = columns["names"], columns.get("part")
        valid = [row for row, error in enumerate(errors) if not error]
        for name, values in list(columns.items()):
            if isinstance(values, np.ndarray):
                columns[name] = values[valid]
            elif name not in ("class_names", "targets") and values is not None:
                columns[name] = tuple(values[row] for row in valid)
        if not self.has_truth:
            columns |= {"target": None, "class_names": (), "targets": ()}
        put_together = assemble_molecules if self.smiles else assemble
        try:
            graphs = put_together(found, self.where, **columns) if found else None
        except DataError:
            if self.smiles or self.config.strict or not any(wrong := misfits(found, self.where)):
                raise
            whys = {row: why for row, why in zip(valid, wrong, strict=True) if why}
            return self([(n, own, DataError(whys[at]) if at in whys else g) for at, (n, own, g) in enumerate(rows)])
        portion = RowPortion([row for _, row, _ in rows], names, errors, graphs)
        return portion.choose(graphs_of_part(part, self.part).tolist()) if self.part else portion


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file of rows, opened: its columns, what makes portions, and the rows that these are made from."""

    columns: tuple[str, ...]
    reader: RowReader
    chunks: Iterator[list[Row]]

    @property
    def echoed(self) -> list[str]:
        """The columns besides the one with the names, which stand in every table under this name anyhow."""
        return [name for name in self.columns if name != "name" or self.reader.config.name not in (None, name)]

    @staticmethod
    def open(path: Path, usual: Mapping[str, Any], said: Mapping[str, Any], part: str = "") -> "RowFile":
        """``usual``: settings of reading where ``said`` says nothing else; columns that are not there do not count."""
        is_table = suffix_of(path) in TABLE_SUFFIXES
        table = ((n, row, row.pop(MOLECULE, None)) for n, row in enumerate(table_rows(path), 1))
        rows: Iterator[Row] = table if is_table else json_rows(path)
        chunks = iter(lambda: list(islice(rows, AT_ONCE)), [])
        first = next(chunks, [])
        columns = tuple(dict.fromkeys(name for _, row, _ in first for name in row))
        if not first and suffix_of(path) == ".parquet":
            columns = tuple(arrow().parquet.read_schema(path).names)
        there = (*columns, *(text for text in usual.values() if str(text).endswith(IF_THERE)))
        known = {name: value for name, value in usual.items() if name in NO_COLUMNS or value in there}
        config = ReadConfig(**{**known, **said})
        smiles = "" if suffix_of(path) == ".sdf" else None
        if columns and smiles is None and (is_table or all(isinstance(graph, DataError) for *_, graph in first)):
            smiles = smiles_column(columns, config, path.name, "--smiles")
        has_truth = "target" not in usual or "target" in known or "target" in said
        own = {"where": path.name, "unit": "row" if is_table else "line"}
        reader = RowReader(**own, config=config, part=part, smiles=smiles, has_truth=has_truth)
        several: Iterator[list[Row]] = chain([first] if first else [], chunks)
        if smiles:  # a line of JSON that is an object without a graph has a SMILES
            several = ([(n, row, None if row else graph) for n, row, graph in some] for some in several)
        return RowFile(columns, reader, several)
