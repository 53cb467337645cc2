"""Shards -> one Parquet file for each, written whole or not at all; called again, only those that are missing.

A file that is written says in its footer what it was made from, so that jobs which share a folder need not agree on
anything else; ``manifest.json`` is put together from the footers."""

import heapq
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from glob import glob
from itertools import chain, groupby
from operator import eq, ge, gt, itemgetter, le, lt, ne
from os.path import expanduser, realpath
from pathlib import Path
from typing import Any, TypeAlias

from egocnn import __version__
from egocnn.config import ExplainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.rows import ROW_SUFFIXES, Row, RowFile, RowPortion, RowReader
from egocnn.data.sources.builder import NUMBER
from egocnn.data.sources.text import arrow, listed, reading, short, suffix_of
from egocnn.data.store import is_store
from egocnn.encode.familiar import check_familiar
from egocnn.errors import ConfigError, DataError, rule
from egocnn.files import check_is_no_file, digest_of_plain, exists, finite_json, isdir, regular, write_json
from egocnn.model import Model
from egocnn.nn.device import choose_device
from egocnn.show.streaming import Echo, explain_portions, explanation_row
from egocnn.show.tables import Kinds, arrow_table, column_kinds, table_writer
from egocnn.study.cluster import in_order, one_thread
from egocnn.train.predictions import prediction_rows

TERM = re.compile(r"""\s*([^<>=!]+?)\s*(<=|>=|==|!=|<|>)\s*("[^"]*"|'[^']*'|[^\s<>=!"']+)\s*(and\s|$)""")
COMPARE = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
RULE = "a condition is COLUMN, < <= > >= == or !=, and a number, or a text after == or !=; more of these after and"
NOTE = "egocnn"  # The key in the footer of a file.
MANIFEST = "manifest.json"
HIGHEST = "highest.parquet"  # of all shards together, where such rows are asked for
Opened: TypeAlias = dict[Path, tuple[Echo, dict[str, Any], float]]
"""by the file to write: its columns, what the shard was when it was opened, and when that was"""
load = cache(Model.load)


@dataclass(frozen=True, slots=True)
class Choice:
    """Rows of which all terms are true, each a column, a sign and a value; of these those with the highest values."""

    terms: tuple[tuple[str, str, float | str], ...] = ()
    highest: int | None = None
    by: str = ""

    @staticmethod
    def parse(text: str, columns: Mapping[str, Any]) -> "Choice":
        """By a condition on these columns; of each is said what it holds."""
        terms: list[tuple[str, str, float | str]] = []
        at, goes_on = 0, "and"
        while goes_on:
            found = TERM.match(text, at)
            column, sign, value, goes_on = found.groups() if found else ("", "", "", "")
            is_number = columns.get(column) == "double"
            fits = NUMBER.fullmatch(value) if is_number else column in columns and sign in ("==", "!=")
            if found is None or not fits:
                raise ConfigError(f"--where {short(text)}: {RULE}; the columns are {listed(columns)}")
            terms.append((column, sign, float(value) if is_number else value.strip("\"'")))
            at = found.end()
        return Choice(tuple(terms))

    def __call__(self, rows: Iterable[Mapping[str, Any]]) -> list[int]:
        """The numbers of these rows, ascending; of equals the first, and none of which something asked is not known."""
        terms, by = self.terms, self.by if self.highest else None
        known = (
            (row[by] if by else 0, -n)
            for n, row in enumerate(rows)
            if all((own := row.get(column)) is not None and COMPARE[sign](own, v) for column, sign, v in terms)
        )
        return sorted(-n for _, n in (heapq.nlargest(self.highest, known) if self.highest else known))

    def cut(self, tables: Sequence[Any]) -> Any:
        """Of tables of Arrow, one after the other, the rows with the highest values."""
        together = arrow().concat_tables(tables, promote_options="permissive")
        return together.take(self(together.select([self.by]).to_pylist()))


def find_shards(data: str) -> list[Path] | None:
    """The files that a folder holds or a pattern matches, in order; None where DATA is neither."""
    path, is_pattern = Path(expanduser(data)), any(sign in data for sign in "*?[")  # noqa: PTH111 — as read has it
    if data and isdir(path) and not is_store(path) and not any(path.glob("*_A.txt")):
        found = list(path.iterdir())
    elif is_pattern and not exists(path):
        found = list(map(Path, glob(str(path))))  # noqa: PTH207 — pathlib's takes no absolute pattern
    else:
        return None
    shards = sorted(regular(file) for file in found if suffix_of(file) in ROW_SUFFIXES and not file.is_dir())
    rule(shards or not is_pattern or suffix_of(path) not in ROW_SUFFIXES, f"{data}: no file matches")
    return shards or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is found for every row; plain data, so that it can be sent to other processes."""

    folder: Path  # of the model
    kinds: Kinds  # the columns that are found, and what they hold
    device: str = "auto"
    explains: ExplainConfig | None = None  # how, where more than predictions is asked for
    explained: str | None = None  # the class, by default the predicted one
    target: str | None = None  # of several, by default the first
    choice: Choice | None = None  # of the rows that are written, by what is predicted; None: all

    def __call__(self, portion: RowPortion, echo: Echo) -> tuple[int, Any]:
        """How many rows have no answer, and a table of Arrow."""
        with one_thread():  # processes share the cores; and the same bits, however many they are
            portion, found = portion.answered(self._predict)
            failed, found = sum(map(bool, portion.errors)), found or []
            if self.choice:
                chosen, valid = self.choice(found), [n for n, error in enumerate(portion.errors) if not error]
                portion, found = portion.choose([valid[n] for n in chosen]), [found[n] for n in chosen]
            if portion.graphs is not None and self.explains is not None:
                how: dict[str, Any] = {"classes": self.explained, "target": self.target}
                how |= {"fidelity": False, "device": self.device}
                more = map(explanation_row, explain_portions(load(self.folder), [portion.graphs], self.explains, **how))
                found = [{**own, **row} for own, row in zip(more, found, strict=True)]
        return failed, arrow_table(list(echo.rows(portion, found)), echo.kinds)

    def _predict(self, graphs: Graphs) -> list[dict[str, Any]]:
        model = load(self.folder)
        return list(prediction_rows(model, check_familiar(model.encoder, graphs, warn=False), device=self.device))


def answer_rows(
    target: Path, reader: RowReader, answer: Answer | None, echo: Echo, rows: Sequence[Row] | DataError
) -> tuple[Path, Any]:
    """The file to write, and for it: rows read, and what the answer gives, or the portion where nothing is answered
    here; or why there are none, so that other shards can go on."""
    if isinstance(rows, DataError):
        return target, rows
    try:
        portion = reader(rows)
        return target, (len(portion.rows), portion if answer is None else answer(portion, echo))
    except DataError as error:
        return target, error


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardWork:
    """What is to be found for every row, and how the rows are read."""

    answer: Answer
    about: Mapping[str, Any]  # what the answers follow from: command, digest of the model, settings
    usual: Mapping[str, Any]  # how rows are read, as :meth:`egocnn.data.rows.RowFile.open` takes it
    said: Mapping[str, Any]
    part: str = ""
    jobs: int | None = 1  # processes that share the rows
    ray: str | None = None  # the address of a cluster, whose processes these are then

    def over(
        self, shards: Sequence[Path], out: Path, share: tuple[int, int] = (1, 1), report: Callable[[str], object] = str
    ) -> dict[str, Any]:
        """Write what is missing of the i-th of n shares of the shards; the manifest of all that is there then."""
        targets = {out / f"{shard.name.split('.', 1)[0]}.parquet": shard for shard in shards}
        if len(targets) < len(shards):
            raise DataError(f"{len(shards)} shards, and {len(targets)} names of files to write; give each its own name")
        if self.highest and out / HIGHEST in targets:
            raise DataError(f"{targets[out / HIGHEST]}: its file would be called {HIGHEST}, as that of all shards is")
        check_is_no_file(out)
        if any(realpath(shard.parent) == realpath(out) for shard in shards):
            raise DataError(f"{out}: holds the shards to be read; write to another folder")
        missing = {target for target, shard in targets.items() if not self._is_written(target, shard)}
        out.mkdir(exist_ok=True)
        own = {target: targets[target] for target in list(targets)[share[0] - 1 :: share[1]] if target in missing}
        failed: list[DataError] = []
        on_gpu = choose_device(self.answer.device).type == "cuda"  # which this process uses, the others parse
        opened: Opened = {}
        how: dict[str, Any] = {"jobs": self.jobs, "ray": self.ray if own else None}  # nobody is asked for nothing
        batches = in_order(answer_rows, self._batches(own, opened, on_gpu=on_gpu), **how)
        try:
            for target, found in groupby(batches, itemgetter(0)):
                try:
                    self._write(targets[target], target, (outcome for _, outcome in found), opened)
                    report(str(target))
                except DataError as error:  # one of very many shards must not keep the others from their answers
                    failed.append(error)
        finally:
            there = [_note(target) for target in targets if target.exists()]
            write_json(out / MANIFEST, manifest := {**self.about, "version": __version__, "shards": there})
        if failed:
            more = f"; {len(failed) - 1} more of the shards cannot be read either" if len(failed) > 1 else ""
            raise DataError(f"{failed[0]}{more}")
        if 0 < (rows := sum(shard["rows"] for shard in there)) == sum(shard["failed"] for shard in there):
            raise DataError(f"none of {rows} rows has an answer; the column error in {out} says why")
        if self.highest and len(there) == len(shards):
            best = self.highest.cut([arrow().parquet.read_table(target) for target in targets])
            self._explain(best, next(iter(targets)))
            report(str(out / HIGHEST))
        return manifest

    @property
    def highest(self) -> Choice | None:
        """The choice, where it compares all rows with each other."""
        return self.answer.choice if self.answer.choice and self.answer.choice.highest else None

    def _explain(self, table: Any, like: Path) -> None:
        """Write the explanations of rows that were chosen from all shards; ``like``: a file with such rows."""
        echo = Echo({field.name: field.type for field in table.schema}, {name: name for name in table.column_names})
        rows = [(number, row, None) for number, row in enumerate(table.to_pylist(), 1)]
        found = RowFile.open(like, self.usual, self.said).reader(rows)
        with table_writer(like.with_name(HIGHEST), echo.kinds) as write:
            write(replace(self.answer, choice=None)(found, echo)[1])

    def _is_written(self, target: Path, shard: Path) -> bool:
        if not target.exists():
            return False
        note = _note(target)
        if note.get("about") != digest_of_plain(self.about):
            raise DataError(f"{target}: was written by another model or with other settings; write to another folder")
        if any(note.get(name) != value for name, value in _state(shard).items()):
            raise DataError(f"{shard}: has changed since {target} was written; remove that, or write to another folder")
        return True

    def _batches(self, shards: Mapping[Path, Path], opened: Opened, *, on_gpu: bool) -> Iterator[tuple[Any, ...]]:
        """The calls of :func:`answer_rows` for all shards by their targets, one or more for each; of those whose rows
        are being read ``opened`` tells more."""
        # the highest of a shard may not be among those of all: they are explained at the end
        answer = None if on_gpu else self._of_shards
        for target, shard in shards.items():
            call: tuple[Any, ...] = (target, None, None, None)
            try:
                state = _state(shard)
                file = RowFile.open(shard, self.usual, self.said, self.part)
                echo = Echo.of(column_kinds(shard, file.echoed), self.answer.kinds)
                opened[target], call = (echo, state, time.perf_counter()), (target, file.reader, answer, echo)
                yield *call, next(file.chunks, [])
                yield from ((*call, chunk) for chunk in file.chunks)
            except DataError as error:
                yield *call, error

    @property
    def _of_shards(self) -> Answer:
        return replace(self.answer, explains=None) if self.highest else self.answer

    def _write(self, shard: Path, target: Path, found: Iterator[Any], opened: Opened) -> None:
        """Write the file of one shard, whole or not at all."""
        first, rows, failed = next(found), 0, 0
        if isinstance(first, DataError):
            raise first
        echo, state, started = opened.pop(target)
        footer, best = dict[str, str](), arrow_table([], echo.kinds)
        with table_writer(target, echo.kinds, footer) as write:
            for outcome in chain([first], found):
                if isinstance(outcome, DataError):
                    raise outcome
                read, answer = outcome
                without, table = self._of_shards(answer, echo) if isinstance(answer, RowPortion) else answer
                rows, failed = rows + read, failed + without
                if self.highest:
                    best = self.highest.cut([best, table])
                elif table.num_rows:
                    write(table)
            write(best)  # without a row where all are written
            rule(_state(shard) == state, f"{shard}: has changed while it was read; call again when nobody writes to it")
            counts = {"rows": rows, "failed": failed, "seconds": round(time.perf_counter() - started, 3)}
            footer[NOTE] = finite_json({"about": digest_of_plain(self.about), **state, "output": target.name, **counts})


def _state(shard: Path) -> dict[str, Any]:
    with reading(shard):
        facts = shard.stat()
    return {"input": shard.name, "bytes": facts.st_size, "modified": facts.st_mtime_ns}


def _note(target: Path) -> dict[str, Any]:
    with reading(target):
        kept = arrow().parquet.read_metadata(target).metadata or {}
    try:
        return dict(json.loads(kept[NOTE.encode()]))
    except (KeyError, ValueError, TypeError):
        raise DataError(f"{target}: is in the way, it was not written from a shard; write to another folder") from None
