"""Finished (setting, fold) pairs <-> files of a folder, each written in one step.

A pair is found again by the digest of everything that decides its score, so a grid may be changed or made larger, and
only what is new is computed. Other data, folds or seeds make it another sweep, which the folder refuses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from egocnn.config import TrainConfig
from egocnn.errors import RunError
from egocnn.files import check_is_no_file, write_json
from egocnn.study.crossval.partial import other_settings
from egocnn.study.crossval.record import read_plain
from egocnn.study.sweep.grid import GridPoint
from egocnn.study.sweep.table import PairScore

ABOUT = "about.json"
PAIRS = "folds"
CHOSEN = "chosen.json"
TABLES = ("sweep.json", "sweep.csv")


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """The folder of one sweep."""

    folder: Path
    fingerprint: str  # digest of data and folds

    @staticmethod
    def open(folder: Path, fingerprint: str, stated: Mapping[str, Any], *, overwrite: bool) -> SweepFolder:
        """Make the folder, or go on with the one that is there; refuse that of other data or folds."""
        check_folder(folder)
        about, pairs = folder / ABOUT, folder / PAIRS
        if overwrite:
            names = (ABOUT, CHOSEN, f"{CHOSEN}.partial", *TABLES)
            for old in (*(folder / name for name in names), *pairs.glob("*.json")):
                old.unlink(missing_ok=True)
        found = read_plain(about, frozenset({"fingerprint", "stated"}), "what a sweep says of itself")
        if found is not None and found["fingerprint"] != fingerprint:
            there = found["stated"] if isinstance(found["stated"], dict) else {}
            reason = other_settings(folder, there, stated)
            raise RunError(f"{reason}; --overwrite starts anew, or name another folder")
        pairs.mkdir(parents=True, exist_ok=True)
        for left in (*folder.glob(".*.tmp"), *pairs.glob(".*.tmp")):
            left.unlink(missing_ok=True)
        if found is None:
            write_json(about, {"fingerprint": fingerprint, "stated": dict(stated)})
        return SweepFolder(folder, fingerprint)

    def find(self, point: GridPoint, fold: int) -> PairScore | None:
        """The score of an earlier call, None where there is none."""
        path = self._path(point, fold)
        found = read_plain(path, frozenset({"scored", "setting"}), "a finished fold of a sweep")
        try:
            return None if found is None else PairScore(**found["scored"])
        except TypeError:
            raise RunError(f"{path}: is damaged; remove it, and the fold is computed anew") from None

    def add(self, point: GridPoint, score: PairScore) -> None:
        """Save a score."""
        write_json(self._path(point, score.fold), {"setting": dict(point.values), "scored": asdict(score)})

    def _path(self, point: GridPoint, fold: int) -> Path:
        decides = [self.fingerprint, asdict(point.model), without_device(point.train), fold]
        name = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]
        return self.folder / PAIRS / f"{name}.json"


def check_folder(folder: Path) -> None:
    """Refuse, before anything is computed, a place where no sweep can be saved."""
    check_is_no_file(folder, RunError)
    if folder.exists() and not (folder / ABOUT).exists() and any(folder.iterdir()):
        raise RunError(f"{folder}: is not empty and holds no sweep; name another folder")


def without_device(train: TrainConfig) -> dict[str, Any]:
    """All settings that decide a score: where it is computed does not."""
    return {**asdict(train), "device": None}
