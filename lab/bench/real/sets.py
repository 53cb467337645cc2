"""The name of a real data set -> its graphs with a test part, and the model of the default settings behind a seed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.config import PRESETS, ReadConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.errors import RunError
from egocnn.model import Model
from egocnn.train.run import fingerprint, train_run, with_test_part
from lab.truths.tasks import data_folder

MOLECULES = ("bbbp", "bace", "esol", "lipo")
SETS = (*MOLECULES, "MUTAG", "Mutagenicity", "PROTEINS", "REDDIT-BINARY")
SCAFFOLDS = ReadConfig(smiles="smiles", target="y", split="scaffold0")
TEST, SPLIT_SEED = 0.2, 0  # Of sets that bring no split: this share is tested, the same graphs in every training.
LIMIT_SEED = 0


def load_set(name: str) -> Graphs:
    """All graphs, a test part marked; any source that ``egocnn.read`` knows goes, too."""
    if name in MOLECULES:
        return read(data_folder() / "molecules" / f"{name}.csv", SCAFFOLDS)
    return with_test_part(read(name), TEST, SPLIT_SEED)


def some_of(graphs: Graphs, limit: int | None) -> Graphs:
    """All graphs, or so many of them, drawn by a seed: classes may stand one after the other in a set."""
    if limit is None or limit >= len(graphs):
        return graphs
    return graphs[np.sort(np.random.default_rng(LIMIT_SEED).permutation(len(graphs))[:limit])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainings:
    """Where trained models are, and how those that are missing are trained."""

    runs: Path  # run folders, SET-0 for the first training, SET-1 for the second, ...
    networks: int | None = None  # of one model; None: as by default
    epochs: int | None = None
    device: str = "auto"

    def model(self, name: str, graphs: Graphs, number: int) -> Model:
        """The model in its run folder; it is trained, with ``number`` as seed, where there is none that is complete."""
        folder = self.folder(name, number)
        if not (folder / "metrics.json").exists():
            train_run(graphs, folder, PRESETS["default"].model, self._settings(number), resume=folder.exists())
        model = Model.load(folder)
        _check_learned_from(model, graphs, folder)
        return model

    def folder(self, name: str, number: int) -> Path:
        return self.runs / f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}-{number}"

    def _settings(self, seed: int) -> TrainConfig:
        changes: dict[str, Any] = {"networks": self.networks, "epochs": self.epochs, "device": self.device}
        known = {key: value for key, value in changes.items() if value is not None}
        return replace(PRESETS["default"].train, seed=seed, **known)


def settings_of(model: Model) -> dict[str, Any]:
    """How a model was trained, and whether that is the default but for the seed."""
    train, default = TrainConfig(**model.about["train"]), PRESETS["default"]
    alike = replace(train, seed=default.train.seed, device=default.train.device)
    return {
        "seed": train.seed,
        "networks": len(model.networks),
        "epochs": train.epochs,
        "is_default": model.config == default.model and alike == default.train,
    }


def _check_learned_from(model: Model, graphs: Graphs, folder: Path) -> None:
    """Refuse a model that may have learned from graphs that are tested here."""
    train = TrainConfig(**model.about.get("train", {}))
    if model.about.get("fingerprint") != fingerprint(graphs, model.config, train):
        raise RunError(f"{folder}: was trained on other graphs or another split than are measured here")
