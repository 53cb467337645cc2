"""Finished folds <-> a file beside the later record, so that an interrupted cross-validation goes on.

``FILE.partial`` is rewritten whole after every fold and removed once FILE stands; both are replaced in one step, so
neither is ever found half-written. Folds are used again only where data and settings are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from glob import escape
from pathlib import Path
from typing import Any

from egocnn.data.collection import Collection
from egocnn.errors import RunError
from egocnn.files import write_json
from egocnn.study.crossval.record import CrossValidation, Fold, read_plain, read_record

NAMES = frozenset({"fingerprint", "stated", "seconds", "folds"})
ADDED_LATER = {
    **{"judgements": 1, "pool_norm": False, "count_inputs": False},
    **{"networks": 1, "parts": 0.0, "missing": 1.0},
}
"""Settings that older records do not have, at the values that they were made with."""
REMOVED_SINCE = {"rest": "none", "max_hops": 1, "wl_rounds": 3}
"""Settings that older records of an Ego-CNN have, at the values that every network has now."""

GIVE_UP = "--overwrite replaces it, or name another file"


@dataclass(slots=True)
class PartialRecord:
    """What has been computed so far, in memory and, where a file is named, on disk."""

    out: Path | None
    fingerprint: str
    stated: dict[str, Any]  # the settings, one level deep, to name the one that changed
    folds: list[Fold] = field(default_factory=list)
    seconds: float = 0.0  # spent by earlier calls

    @staticmethod
    def open(out: Path | None, fingerprint: str, stated: Mapping[str, Any], *, overwrite: bool) -> PartialRecord:
        """Find the folds that an earlier call finished; refuse those of other data or settings."""
        stated = json.loads(json.dumps(stated))  # as a file would give it back
        if out is None or (out.exists() and not out.is_file()):  # nothing can stand beside a pipe
            return PartialRecord(None, fingerprint, dict(stated))
        partial = PartialRecord(out, fingerprint, dict(stated))
        partial._clear(*([out, partial.path] if overwrite else []))
        if overwrite:
            return partial
        try:
            found = read_plain(partial.path, NAMES, "what an interrupted cross-validation leaves")
            if found is None:
                return partial
            partial._check(partial.path, found["fingerprint"], found["stated"])
            partial.folds = [Fold.from_plain(fold) for fold in found["folds"]]
            partial.seconds = float(found["seconds"])
        except (TypeError, ValueError, KeyError, AttributeError):
            raise RunError(f"{partial.path}: is damaged; --overwrite starts anew") from None
        except RunError as error:
            raise RunError(f"{error}; {GIVE_UP}") from None
        return partial

    @property
    def path(self) -> Path:
        assert self.out is not None
        return self.out.with_name(f"{self.out.name}.partial")

    def finished(self) -> CrossValidation | None:
        """The whole record, where an earlier call wrote it."""
        if self.out is None:
            return None
        try:
            record = read_record(self.out)
            if record is not None:
                counts = (len(record.folds), record.runs, record.restarts)
                self._check(
                    self.out, record.fingerprint, state(record.model, record.protocol, *counts, record.settings)
                )
                self._clear(self.path)
        except RunError as error:
            raise RunError(f"{error}; {GIVE_UP}") from None
        return record

    def _check(self, path: Path, fingerprint: str, stated: Mapping[str, Any]) -> None:
        if fingerprint != self.fingerprint:
            raise other_settings(path, stated, self.stated)

    def add(self, fold: Fold, seconds: float) -> None:
        """Save a fold; ``seconds`` have passed in this call."""
        self.folds.append(fold)
        self.folds.sort(key=lambda each: each.fold)
        if self.out is not None:
            plain = {
                "fingerprint": self.fingerprint,
                "stated": self.stated,
                "seconds": self.seconds + seconds,
                "folds": [asdict(each) for each in self.folds],
            }
            write_json(self.path, plain)

    def finish(self, record: CrossValidation) -> None:
        """Write the record; what was saved on the way is no longer needed."""
        if self.out is not None:
            write_json(self.out, record.to_plain())
            self._clear(self.path)

    def _clear(self, *paths: Path) -> None:
        """Remove these, and what a killed call left half-written."""
        assert self.out is not None
        for path in (*paths, *self.out.parent.glob(f".{escape(self.out.name)}.*.tmp")):
            path.unlink(missing_ok=True)


def other_settings(path: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> RunError:
    """The error of a file that was made with other settings, naming the first that differs."""
    absent = object()
    for name in (*here, *there):  # in order: another model explains all the rest
        if here.get(name, absent) != there.get(name, absent):
            was, now = (settings.get(name, "none") for settings in (there, here))
            return RunError(f"{path}: was made with {name.replace('_', ' ')} {was}, now it is {now}")
    return RunError(f"{path}: was made with other data or folds")


def state(
    model: str, protocol: str, folds: int, runs: int, restarts: int, settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Everything but the data that decides the scores; where they are computed does not count."""
    counts = {"model": model, "protocol": protocol, "folds": folds, "runs": runs, "restarts": restarts}
    flat = {name: value for group in settings.values() for name, value in group.items() if name != "device"}
    as_before = [name for name, value in ADDED_LATER.items() if flat.get(name) == value]
    removed = REMOVED_SINCE if "embedding" in flat else {}  # other models never had them
    return {**counts, **removed, **{name: value for name, value in flat.items() if name not in as_before}}


def fingerprint(collection: Collection, split: str, stated: Mapping[str, Any]) -> str:
    """A digest of data, folds and settings."""
    return hashlib.sha256(json.dumps([split, stated, collection.digest], sort_keys=True).encode()).hexdigest()
