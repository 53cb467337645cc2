"""Finished (setting, fold) pairs <-> files of a folder, each written in one step: what stands there is whole.

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
from egocnn.study.crossval.record import read_plain
from egocnn.study.sweep.record import Scored
from egocnn.study.sweep.space import Setting

ABOUT = "about.json"
PAIRS = "folds"
CHOSEN = "chosen.json"
TABLES = ("sweep.json", "sweep.csv", "sweep.md")
GIVE_UP = "--overwrite starts anew, or name another folder"


@dataclass(frozen=True, slots=True)
class Kept:
    """The folder of one sweep."""

    folder: Path
    fingerprint: str
    """digest of data and folds"""

    @staticmethod
    def open(folder: Path, fingerprint: str, stated: Mapping[str, Any], *, overwrite: bool) -> Kept:
        """Make the folder, or go on with the one that is there; refuse that of other data or folds."""
        kept = Kept(folder, fingerprint)
        check_folder(folder)
        if overwrite:
            kept._clear()
        about = folder / ABOUT
        found = read_plain(about, frozenset({"fingerprint", "stated"}), "what a sweep says of itself")
        if found is not None and found["fingerprint"] != fingerprint:
            there = found["stated"] if isinstance(found["stated"], dict) else {}
            for name, value in stated.items():
                if there.get(name) != value:
                    raise RunError(f"{folder}: was made with {name} {there.get(name)}, now it is {value}; {GIVE_UP}")
            raise RunError(f"{folder}: was made with other data or folds; {GIVE_UP}")
        (folder / PAIRS).mkdir(parents=True, exist_ok=True)
        for left in (*folder.glob(".*.tmp"), *(folder / PAIRS).glob(".*.tmp")):
            left.unlink(missing_ok=True)
        if found is None:
            write_json(about, {"fingerprint": fingerprint, "stated": dict(stated)})
        return kept

    def find(self, setting: Setting, fold: int) -> Scored | None:
        path = self._path(setting, fold)
        found = read_plain(path, frozenset({"scored", "setting"}), "a finished fold of a sweep")
        if found is None:
            return None
        try:
            return Scored(**found["scored"])
        except TypeError:
            raise RunError(f"{path}: is damaged; remove it, and the fold is computed anew") from None

    def add(self, setting: Setting, scored: Scored) -> None:
        plain = {"setting": dict(setting.said), "scored": asdict(scored)}
        write_json(self._path(setting, scored.fold), plain)

    def _path(self, setting: Setting, fold: int) -> Path:
        decides = [self.fingerprint, asdict(setting.model), decisive(setting.train), fold]
        name = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]
        return self.folder / PAIRS / f"{name}.json"

    def _clear(self) -> None:
        for name in (ABOUT, CHOSEN, f"{CHOSEN}.partial", *TABLES):
            (self.folder / name).unlink(missing_ok=True)
        for file in (self.folder / PAIRS).glob("*.json"):
            file.unlink(missing_ok=True)


def check_folder(folder: Path) -> None:
    """Refuse, before anything is computed, a place where no sweep can be kept."""
    check_is_no_file(folder)
    if folder.exists() and not (folder / ABOUT).exists() and any(folder.iterdir()):
        raise RunError(f"{folder}: is not empty and holds no sweep; name another folder")


def decisive(train: TrainConfig) -> dict[str, Any]:
    """All of the settings that decides a score: where it is computed does not."""
    return {**asdict(train), "device": None}
