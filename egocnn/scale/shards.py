"""Shards -> one Parquet file for each, written whole or not at all; called again, only those that are missing.

A file that is written says in its footer what it was made from, so that jobs which share a folder need not agree on
anything else; ``manifest.json`` is put together from the footers.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from egocnn import __version__
from egocnn.data.graphs import Graphs
from egocnn.data.rows import ROW_SUFFIXES, RowFile
from egocnn.data.sources.text import arrow, reading, suffix_of
from egocnn.data.store import is_store
from egocnn.errors import DataError
from egocnn.files import check_is_no_file, digest_of_file, digest_of_plain, finite_json, write_json
from egocnn.model import MODEL
from egocnn.scale.parse import read_portion
from egocnn.show.streaming import Echo
from egocnn.show.tables import Kinds, column_kinds, table_writer

NOTE = "egocnn"  # The key in the footer of a file.
MANIFEST = "manifest.json"


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
class ShardWork:
    """What is to be found for every row, and how the rows are read."""

    kinds: Kinds  # the columns that are found, and what they hold
    answer: Callable[[Graphs], Iterable[Mapping[str, Any]]]  # graphs -> those columns of each, in order
    about: Mapping[str, Any]  # what the answers follow from: command, digest of the model, settings
    usual: Mapping[str, Any]  # how rows are read, as :meth:`egocnn.data.rows.RowFile.open` takes it
    said: Mapping[str, Any]
    part: str = ""
    jobs: int = 1  # processes that parse rows

    def over(
        self, shards: Sequence[Path], out: Path, share: tuple[int, int] = (1, 1), report: Callable[[str], object] = str
    ) -> dict[str, Any]:
        """Write what is missing of the i-th of n shares of the shards; the manifest of all that is there then."""
        targets = {out / f"{shard.name.split('.', 1)[0]}.parquet": shard for shard in shards}
        if len(targets) < len(shards):
            raise DataError(
                f"{len(shards)} shards, and {len(targets)} names of what is written; give each its own name"
            )
        check_is_no_file(out)
        if any(shard.parent.resolve() == out.resolve() for shard in shards):
            raise DataError(f"{out}: holds the shards to be read; write to another folder")
        missing = {target for target, shard in targets.items() if not self._is_written(target, shard)}
        out.mkdir(exist_ok=True)
        try:
            for target in list(targets)[share[0] - 1 :: share[1]]:
                if target in missing:
                    self._write(targets[target], target)
                    report(str(target))
        finally:
            there = [_note(target) for target in targets if target.exists()]
            write_json(out / MANIFEST, manifest := {**self.about, "version": __version__, "shards": there})
        return manifest

    def _is_written(self, target: Path, shard: Path) -> bool:
        if not target.exists():
            return False
        note = _note(target)
        if note.get("about") != digest_of_plain(self.about):
            raise DataError(f"{target}: was written by another model or with other settings; write to another folder")
        if any(note.get(name) != value for name, value in _state(shard).items()):
            raise DataError(f"{shard}: has changed since {target} was written; remove that, or write to another folder")
        return True

    def _write(self, shard: Path, target: Path) -> None:
        from joblib import Parallel, delayed

        started, rows, failed, state = time.perf_counter(), 0, 0, _state(shard)
        file = RowFile.open(shard, self.usual, self.said, self.part)
        echo, footer = Echo.of(column_kinds(shard, file.echoed), self.kinds), dict[str, str]()
        # a few portions ahead: the processor that predicts never waits, and memory stays as it is
        parse = Parallel(n_jobs=self.jobs, return_as="generator", pre_dispatch=self.jobs + 1, batch_size=1)
        with table_writer(target, echo.kinds, footer) as write:
            for portion in parse(delayed(read_portion)(file.reader, chunk, os.getpid()) for chunk in file.chunks):
                found = () if portion.graphs is None else self.answer(portion.graphs)
                write(list(echo.rows(portion, found)))
                rows, failed = rows + len(portion.rows), failed + sum(map(bool, portion.errors))
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
