"""Names and files -> how a cross-validation is carried out.

``plain``: stratified folds, a share of the training part validates, one training a fold unless ``restarts`` says more.

``paper``: what the authors' code does. Ten stratified folds; in each, 10% of the training part validates; five
restarts, of which the best in validation is tested, once.

``fair``: the published splits of Errica et al. (A fair comparison of graph neural networks for graph classification,
ICLR 2020). The given validation part chooses epoch and settings, and the score of a fold is the mean of three runs.
Departure: they draw another tenth for early stopping in those runs; here the given validation part serves again.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.schema import PARTS
from egocnn.errors import ConfigError, DataError

ProtocolName = Literal["plain", "paper", "fair"]
Combine = Literal["best", "average"]
PROTOCOLS: tuple[ProtocolName, ...] = get_args(ProtocolName)
PAPER_VALIDATION = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Graph numbers of one fold, all parts given."""

    train: Ints
    validation: Ints
    tested: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How often is trained, on what, and what chooses."""

    name: ProtocolName = "plain"
    folds: int = 10
    runs: int = 1  # per fold, each with its own look at the test fold; the score is their mean
    restarts: int = 1  # trainings per run
    combine: Combine = "best"
    """what predicts in a run: the restart that is best in validation, or all, their probabilities averaged"""
    splits: tuple[Split, ...] | None = None  # given; None: drawn by the seed

    def __post_init__(self) -> None:
        for name, least in (("folds", 2), ("runs", 1), ("restarts", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if (self.name == "fair") != (self.splits is not None):
            raise ConfigError("splits are given with the fair protocol, and only with it")
        if self.splits is not None and len(self.splits) != self.folds:
            raise ConfigError(f"{len(self.splits)} splits for {self.folds} folds")

    @property
    def trainings(self) -> int:
        """of all folds"""
        return self.folds * self.runs * self.restarts

    def check_validation(self, share: float) -> None:
        """Refuse another share of validation graphs than the protocol has."""
        if self.name == "paper" and share != PAPER_VALIDATION:
            paper = f"the paper's protocol validates on {PAPER_VALIDATION} of the training part"
            raise ConfigError(f"{paper}, not {share}; --protocol plain leaves that free")


def choose_protocol(
    name: ProtocolName,
    *,
    data: str = "",
    folds: int | None = None,
    restarts: int | None = None,
    runs: int | None = None,
    combine: Combine = "best",
    splits: Path | None = None,
) -> Protocol:
    """A protocol by name; None: its usual value. ``data`` names the published splits."""
    if name not in PROTOCOLS:
        raise ConfigError(f"no protocol is called {name!r}; there are {', '.join(PROTOCOLS)}")
    given = None
    if name == "fair":
        given = tuple(read_splits(published_splits(data) if splits is None else splits))
        if folds not in (None, len(given)):
            raise ConfigError(f"the given splits make {len(given)} folds, not {folds}; leave --folds out")
        folds = len(given)
    elif splits is not None:
        raise ConfigError(f"--splits belongs to --protocol fair, not to {name}")
    usual: dict[str, int] = {"plain": {}, "paper": {"restarts": 5}, "fair": {"runs": 3}}[name]
    asked = {"folds": folds, "runs": runs, "restarts": restarts}
    counts = usual | {count: number for count, number in asked.items() if number is not None}
    return Protocol(name=name, combine=combine, splits=given, **counts)


def published_splits(data: str) -> Path:
    """Where the published splits of a data set are on this machine."""
    name = Path(data).name.removesuffix(".zip")
    folder = os.environ.get("EGOCNN_DATA")
    if not folder:
        wanted = f"the fair protocol reads splits/{name}.json in the folder that EGOCNN_DATA names"
        raise DataError(f"{wanted}, and EGOCNN_DATA is not set; --splits names a file")
    path = Path(folder, "splits", f"{name}.json")
    if not path.is_file():
        raise DataError(f"{path}: no such file; the fair protocol needs the published splits of {name!r}")
    return path


def read_splits(path: Path) -> list[Split]:
    """Read ``[{"test": […], "model_selection": [{"train": […], "validation": […]}]}, …]``."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: is not JSON") from None
    if not isinstance(found, list) or len(found) < 2:
        raise DataError(f"{path}: must hold a list of at least 2 folds")
    return [_split(fold, f"{path}, fold {number}") for number, fold in enumerate(found, start=1)]


def _split(fold: Any, where: str) -> Split:
    inner = fold.get("model_selection") if isinstance(fold, dict) else None
    if not isinstance(inner, list) or len(inner) != 1 or not isinstance(inner[0], dict):
        raise DataError(f"{where}: must have a 'test' part and one 'model_selection' with 'train' and 'validation'")
    named = {**inner[0], "test": fold.get("test")}
    parts = {name: _numbers(named.get(name), name, where) for name in PARTS}
    together = np.concatenate(list(parts.values()))
    if len(np.unique(together)) < len(together):
        values, counts = np.unique(together, return_counts=True)
        raise DataError(f"{where}: graph {values[counts > 1][0]} stands twice; a graph belongs to one part")
    return Split(train=parts["train"], validation=parts["validation"], tested=parts["test"])


def _numbers(values: Any, name: str, where: str) -> Ints:
    if not isinstance(values, list) or not values:
        raise DataError(f"{where}: the part {name!r} has no graphs")
    for value in values:
        if type(value) is not int or not 0 <= value < 2**62:
            raise DataError(f"{where}: {value!r} in {name!r} is not the number of a graph, counted from 0")
    return np.sort(np.array(values, np.int64))
