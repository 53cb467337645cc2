"""Scores of all folds -> one record, a table for people, JSON for machines; back from JSON; two records compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.errors import DataError, RunError
from egocnn.study.crossval.folds import FoldTask
from egocnn.study.statistics import PairedTest, corrected_t_test

Timing = tuple[float, float, float]  # seconds of preparing, training and testing


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldRun:
    """The model that the validation part chose, and its one look at the test fold."""

    score: float  # accuracy, or R² where a value is predicted
    validation_score: float
    restart: int  # which of the restarts was chosen, from 1; 0 where all are averaged
    seeds: tuple[int, ...]  # of the restarts that were trained
    best_epoch: int | None = None  # None where it is not known
    epochs: int | None = None
    alone: float | None = None
    """where all restarts are averaged, or a model has several networks: the mean of their scores, each by itself"""

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> FoldRun:
        """From what JSON gives back; KeyError, TypeError or ValueError where that is something else."""
        return FoldRun(**{**plain, "seeds": tuple(plain["seeds"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One fold: its runs, and the mean of their scores."""

    fold: int  # from 1
    score: float
    validation_score: float
    runs: tuple[FoldRun, ...]
    train_graphs: int
    validation_graphs: int
    test_graphs: int
    parameters: int | None  # None where the question makes no sense
    preparing_seconds: float  # as all seconds of a fold: its share, where folds are trained as one model
    training_seconds: float
    testing_seconds: float
    peak_megabytes: float | None
    """of the GPU's memory, or of the process where the CPU computes; None where it is not known"""

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Fold:
        """From what JSON gives back; KeyError, TypeError or ValueError where that is something else."""
        return Fold(**{**plain, "runs": tuple(FoldRun.from_plain(run) for run in plain["runs"])})


def make_fold(
    task: FoldTask, runs: Sequence[FoldRun], parameters: int | None, timing: Timing, peak_megabytes: float | None
) -> Fold:
    """A finished fold from its runs."""
    preparing, training, testing = timing
    return Fold(
        fold=task.fold,
        score=float(np.mean([run.score for run in runs])),
        validation_score=float(np.mean([run.validation_score for run in runs])),
        runs=tuple(runs),
        train_graphs=len(task.learned),
        validation_graphs=len(task.validation),
        test_graphs=len(task.tested),
        parameters=parameters,
        preparing_seconds=preparing,
        training_seconds=training,
        testing_seconds=testing,
        peak_megabytes=peak_megabytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation:
    """Scores over all folds, with what is needed to judge and to repeat them."""

    model: str
    data: str
    protocol: str
    score: str  # what is measured: accuracy or r2
    mean: float
    std: float  # of the folds around their mean (n - 1)
    interval: tuple[float, float]  # 95% confidence interval of the mean, by Student's t over the folds
    folds: tuple[Fold, ...]
    seconds: float  # from start to end; of earlier, interrupted calls what led to their last finished fold
    preparing_seconds: float  # as training and testing: added up over folds, also those that ran at the same time
    training_seconds: float
    testing_seconds: float
    parameters: int | None  # of the largest model: folds may differ in the labels they know
    seed: int
    restarts: int
    runs: int
    stacked: bool
    peak_megabytes: float | None
    settings: dict[str, Any]
    split: str  # digest of the graphs that each fold tests: results compare only where it is the same
    fingerprint: str  # digest of data and settings
    machine: str
    versions: dict[str, str]

    def to_plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> CrossValidation:
        """From what JSON gives back; KeyError, TypeError or ValueError where that is something else."""
        low, high = plain["interval"]
        folds = tuple(Fold.from_plain(fold) for fold in plain["folds"])
        return CrossValidation(**{**plain, "interval": (low, high), "folds": folds})

    def lines(self) -> Iterator[str]:
        """A table for people."""
        yield "fold   test  validation  restart  best epoch  graphs"
        for f in self.folds:
            restarts = ",".join(str(run.restart) for run in f.runs)
            epochs = ",".join("-" if run.best_epoch is None else str(run.best_epoch) for run in f.runs)
            scores = f"{f.score:6.4f}  {f.validation_score:10.4f}"
            yield f"{f.fold:4} {scores}  {restarts:>7}  {epochs:>10}  {f.test_graphs:6}"
        low, high = self.interval
        name = "accuracy" if self.score == "accuracy" else "R²"
        yield f"{name} {self.mean:.4f} ± {self.std:.4f} (95% interval of the mean: {low:.4f} to {high:.4f})"
        # a model without weights to start anew is fitted once, whatever the protocol says
        n_runs = max(len(f.runs) for f in self.folds)
        n_restarts = max(len(run.seeds) for f in self.folds for run in f.runs)
        runs = f" × {n_runs} runs" if n_runs > 1 else ""
        size = "" if self.parameters is None else f", {self.parameters:,} parameters"
        yield (
            f"{len(self.folds)} folds{runs} × {n_restarts} restart{'' if n_restarts == 1 else 's'}"
            f" in {self.seconds:.1f} s ({self.preparing_seconds:.1f} preparing, {self.training_seconds:.1f} training"
            f"{', stacked' if self.stacked else ''}){size}"
        )


def read_plain(path: Path, names: frozenset[str], what: str) -> dict[str, Any] | None:
    """The JSON object in a file, which must have just these names; None where there is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.keys() != names:
        raise RunError(f"{path}: is not {what}")
    return found


def read_record(path: Path) -> CrossValidation | None:
    """The record that a cross-validation wrote; None where there is no file."""
    what = "the record of a cross-validation"
    found = read_plain(path, frozenset(f.name for f in fields(CrossValidation)), what)
    try:
        return None if found is None else CrossValidation.from_plain(found)
    except (TypeError, ValueError, KeyError):
        raise RunError(f"{path}: is not {what}") from None


def compare(one: CrossValidation, other: CrossValidation) -> PairedTest:
    """The first minus the second, by the corrected resampled t-test.

    What trains and what validates both count as trained on: both decide the model that is tested.
    """
    if (one.split, one.score) != (other.split, other.score):
        raise DataError(f"{one.model} and {other.model} were not tested on the same folds: no paired comparison")
    tested = sum(fold.test_graphs for fold in one.folds)
    trained = sum(fold.train_graphs + fold.validation_graphs for fold in one.folds)
    scores = ([fold.score for fold in each.folds] for each in (one, other))
    return corrected_t_test(*scores, test_over_train=tested / trained)


def sentence(one: CrossValidation, other: CrossValidation) -> str:
    """The comparison in words."""
    found = compare(one, other)
    low, high = found.interval
    return (
        f"{one.model} minus {other.model}: {found.difference:+.4f} (95% interval {low:+.4f} to {high:+.4f}, "
        f"p = {found.p:.3g}, corrected resampled t-test over {found.folds} folds)"
    )
