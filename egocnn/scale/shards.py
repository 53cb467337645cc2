"""Shards -> one Parquet file for each, written whole or not at all; called again, only those that are missing.

A file that is written says in its footer what it was made from, so that jobs which share a folder need not agree on
anything else; ``manifest.json`` is put together from the footers."""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from glob import glob
from pathlib import Path
from typing import Any

from egocnn import __version__
from egocnn.config import ExplainConfig
from egocnn.data.rows import ROW_SUFFIXES, Row, RowFile, RowPortion, RowReader
from egocnn.data.sources.text import arrow, reading, suffix_of
from egocnn.data.store import is_store
from egocnn.errors import DataError
from egocnn.files import check_is_no_file, digest_of_file, digest_of_plain, finite_json, write_json
from egocnn.model import MODEL, Model
from egocnn.nn.device import choose_device
from egocnn.scale.choose import Choice
from egocnn.show.streaming import Echo, explain_portions, explanation_row, prediction_rows
from egocnn.show.tables import Kinds, arrow_table, column_kinds, table_writer
from egocnn.study.cluster import one_thread, run_jobs

NOTE = "egocnn"  # The key in the footer of a file.
MANIFEST = "manifest.json"
HIGHEST = "highest.parquet"  # of all shards together, where such rows are asked for
WATCHER = "egocnn watches its parent"
load = cache(Model.load)


def find_shards(data: str) -> list[Path] | None:
    """The files that a folder holds or a pattern matches, in order; None where DATA is neither."""
    path, is_pattern = Path(data).expanduser(), any(sign in data for sign in "*?[")
    if path.is_dir() and not is_store(path) and not any(path.glob("*_A.txt")):
        found = list(path.iterdir())
    elif is_pattern and not path.exists():
        found = list(map(Path, glob(str(path))))  # noqa: PTH207 — pathlib's takes no absolute pattern
    else:
        return None
    shards = sorted(file for file in found if suffix_of(file) in ROW_SUFFIXES and file.is_file())
    if not shards and is_pattern and suffix_of(path) in ROW_SUFFIXES:
        raise DataError(f"{data}: no file matches")
    return shards or None


def model_digest(folder: Path) -> str:
    """Of a run folder: changes with the weights and with all that goes before and after them."""
    return digest_of_plain({name: digest_of_file(folder / name) for name in ("config.json", MODEL)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is found for every row; plain data, so that it can be sent to other processes."""

    folder: Path  # of the model
    kinds: Kinds  # the columns that are found, and what they hold
    device: str = "auto"
    explains: ExplainConfig | None = None  # how, where more than predictions is asked for
    explained: str | None = None  # the class, by default the predicted one
    choice: Choice | None = None  # of the rows that are written, by what is predicted; None: all

    def __call__(self, portion: RowPortion, echo: Echo) -> Any:
        """A table of Arrow."""
        found: list[Mapping[str, Any]] = []
        with one_thread():  # processes share the cores; and the same bits, however many they are
            if portion.graphs is not None and (self.explains is None or self.choice):
                found = list(prediction_rows(load(self.folder), portion.graphs, device=self.device))
            if self.choice:
                chosen, valid = self.choice(found), [n for n, error in enumerate(portion.errors) if not error]
                portion, found = portion.choose([valid[n] for n in chosen]), [found[n] for n in chosen]
            if portion.graphs is not None and self.explains is not None:
                how: dict[str, Any] = {"classes": self.explained, "fidelity": False, "device": self.device}
                more = map(explanation_row, explain_portions(load(self.folder), [portion.graphs], self.explains, **how))
                found = [{**own, **row} for own, row in zip(more, found, strict=True)] if found else list(more)
        return arrow_table(list(echo.rows(portion, found)), echo.kinds)


def answer_rows(reader: RowReader, answer: Answer | None, echo: Echo, rows: Sequence[Row], *, parent: int) -> Any:
    """Rows read, those without a graph, and the table, or the portion where nothing is answered here; ``parent``: the
    process that asks, which may be this one."""
    if parent != os.getpid() and all(thread.name != WATCHER for thread in threading.enumerate()):
        threading.Thread(target=_end_with, args=(parent,), name=WATCHER, daemon=True).start()
    portion = reader(rows)
    counts = len(portion.rows), sum(map(bool, portion.errors))
    return *counts, portion if answer is None else answer(portion, echo)


def _end_with(parent: int) -> None:
    """A worker whose parent was killed would wait for rows for ever."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardWork:
    """What is to be found for every row, and how the rows are read."""

    answer: Answer
    about: Mapping[str, Any]  # what the answers follow from: command, digest of the model, settings
    usual: Mapping[str, Any]  # how rows are read, as :meth:`egocnn.data.rows.RowFile.open` takes it
    said: Mapping[str, Any]
    part: str = ""
    jobs: int | None = 1  # processes that share the rows of a shard; of a cluster, shards at a time
    ray: str | None = None  # the address of a cluster, each of whose processes takes whole shards

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
        if any(shard.parent.resolve() == out.resolve() for shard in shards):
            raise DataError(f"{out}: holds the shards to be read; write to another folder")
        missing = {target for target, shard in targets.items() if not self._is_written(target, shard)}
        out.mkdir(exist_ok=True)
        own = list(targets)[share[0] - 1 :: share[1]]
        calls = [(targets[target].resolve(), target.resolve()) for target in own if target in missing]
        alone = self if self.ray is None else replace(self, jobs=1)
        try:
            for written in run_jobs(alone.write, calls, jobs=self.jobs if self.ray else 1, ray=self.ray):
                report(written)
        finally:
            there = [_note(target) for target in targets if target.exists()]
            write_json(out / MANIFEST, manifest := {**self.about, "version": __version__, "shards": there})
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
            write(replace(self.answer, choice=None)(found, echo))

    def _is_written(self, target: Path, shard: Path) -> bool:
        if not target.exists():
            return False
        note = _note(target)
        if note.get("about") != digest_of_plain(self.about):
            raise DataError(f"{target}: was written by another model or with other settings; write to another folder")
        if any(note.get(name) != value for name, value in _state(shard).items()):
            raise DataError(f"{shard}: has changed since {target} was written; remove that, or write to another folder")
        return True

    def write(self, shard: Path, target: Path) -> str:
        """Write the file of one shard, whole or not at all; its name."""
        from joblib import Parallel, delayed

        started, rows, failed, state = time.perf_counter(), 0, 0, _state(shard)
        file = RowFile.open(shard, self.usual, self.said, self.part)
        echo, footer = Echo.of(column_kinds(shard, file.echoed), self.answer.kinds), dict[str, str]()
        on_gpu = choose_device(self.answer.device).type == "cuda"  # which one process uses, the others parse
        # the highest of a shard may not be among those of all: they are explained at the end
        answer = replace(self.answer, explains=None) if self.highest else self.answer
        call = partial(answer_rows, file.reader, None if on_gpu else answer, echo, parent=os.getpid())
        # a few portions ahead: no process waits, and memory stays as it is
        several = Parallel(n_jobs=self.jobs, return_as="generator", pre_dispatch="2*n_jobs", batch_size=1)
        best = arrow_table([], echo.kinds)
        with table_writer(target, echo.kinds, footer) as write:
            for read, without, found in several(delayed(call)(chunk) for chunk in file.chunks):
                rows, failed = rows + read, failed + without
                table = answer(found, echo) if on_gpu else found
                if self.highest:
                    best = self.highest.cut([best, table])
                elif table.num_rows:
                    write(table)
            write(best)  # without a row where all are written
            counts = {"rows": rows, "failed": failed, "seconds": round(time.perf_counter() - started, 3)}
            footer[NOTE] = finite_json({"about": digest_of_plain(self.about), **state, "output": target.name, **counts})
        return str(target)


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
