"""Scores of all folds -> one record, a table for people, JSON for machines; back from JSON; two records compared.
Finished folds wait in ``FILE.partial``, rewritten whole after every fold and removed once FILE stands, so that an
interrupted cross-validation goes on; they are used again only where data and settings are the same."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.collection import Collection
from egocnn.data.sources.text import one_line
from egocnn.errors import RunError, rule
from egocnn.files import regular, write_json
from egocnn.study.crossval.folds import FoldTask
from egocnn.study.statistics import PairedTest, corrected_t_test
from egocnn.train.metrics import in_words

SECONDS = ("preparing_seconds", "training_seconds", "testing_seconds")
GIVE_UP = "--overwrite replaces it, or name another file"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldRun:
    """The model that the validation part chose, and its one look at the test fold."""

    score: float  # accuracy, R², or another that was asked for
    validation_score: float
    restart: int  # which of the restarts was chosen, from 1; 0 where all are averaged
    seeds: tuple[int, ...]  # of the restarts that were trained
    best_epoch: int | None = None  # None where it is not known
    epochs: int | None = None
    alone: float | None = None  # where several restarts or networks are averaged: the mean of the scores of each alone
    targets: dict[str, float] = field(default_factory=dict)  # of several the score of each, whose mean ``score`` is


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
    peak_megabytes: float | None  # of the GPU, or of the process where the CPU computes; None where not known
    targets: dict[str, float] = field(default_factory=dict)  # as those of its runs

    @staticmethod
    def of(
        task: FoldTask, runs: Sequence[FoldRun], parameters: int | None, timing: tuple[float, ...], peak: float | None
    ) -> "Fold":
        """From its runs; ``timing``: seconds of preparing, training and testing."""
        parts = {"train": task.learned, "validation": task.validation, "test": task.tested}
        found: dict[str, Any] = {f"{part}_graphs": len(numbers) for part, numbers in parts.items()}
        for name in ("score", "validation_score"):
            found[name] = float(np.mean([getattr(run, name) for run in runs]))
        found |= zip(SECONDS, timing, strict=True)
        found["targets"] = {name: float(np.mean([run.targets[name] for run in runs])) for name in runs[0].targets}
        return Fold(fold=task.fold, runs=tuple(runs), parameters=parameters, peak_megabytes=peak, **found)

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> "Fold":
        """From what JSON gives back; KeyError, TypeError or ValueError where that is something else."""
        runs = tuple(FoldRun(**{**run, "seeds": tuple(run["seeds"])}) for run in plain["runs"])
        return Fold(**{**plain, "runs": runs})


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation:
    """Scores over all folds, with what is needed to judge and to repeat them."""

    model: str
    data: str
    protocol: str
    score: str  # what is measured: accuracy, r2, or another that was asked for
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
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)
    """of several each with score, mean, std and interval"""

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> "CrossValidation":
        """From what JSON gives back; KeyError, TypeError or ValueError where that is something else."""
        low, high = plain["interval"]
        folds = tuple(Fold.from_plain(fold) for fold in plain["folds"])
        return CrossValidation(**{**plain, "interval": (low, high), "folds": folds})

    def check_paired(self, model: str, split: str, score: str) -> None:
        """Refuse to be compared with a model where folds or score are others."""
        apart = f"{model} and {self.model} are not tested on the same folds by the same score: no paired comparison"
        rule((split, score) == (self.split, self.score), apart)

    def lines(self) -> Iterator[str]:
        """A table for people."""
        yield "fold   test  validation  restart  best epoch  graphs"
        for f in self.folds:
            restarts = ",".join(str(run.restart) for run in f.runs)
            epochs = ",".join(str(run.best_epoch or "-") for run in f.runs)
            scores = f"{f.score:6.4f}  {f.validation_score:10.4f}"
            yield f"{f.fold:4} {scores}  {restarts:>7}  {epochs:>10}  {f.test_graphs:6}"
        low, high = self.interval
        found = f"{in_words(self.score)} {self.mean:.4f} ± {self.std:.4f}"
        yield f"{found} (95% interval of the mean: {low:.4f} to {high:.4f})"
        for name, own in self.targets.items():
            low, high = own["interval"]
            found = f"{in_words(own['score'])} {own['mean']:.4f} ± {own['std']:.4f}"
            yield f"  {one_line(name, 60)}: {found} ({low:.4f} to {high:.4f})"
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


def read_plain(path: Path, names: set[str], what: str) -> dict[str, Any] | None:
    """The JSON object in a file, which must have just these names; None where no file is."""
    try:
        found = json.loads(regular(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or 2 * len(names & found.keys()) < len(names):
        raise RunError(f"{path}: is not {what}")
    rule(found.keys() == names, f"{path}: was made by another version of egocnn; run it again", RunError)
    return found


def read_record(path: Path) -> CrossValidation | None:
    """The record that a cross-validation wrote; None where there is no file."""
    what = "the record of a cross-validation"
    found = read_plain(path, {f.name for f in fields(CrossValidation)}, what)
    try:
        return None if found is None else CrossValidation.from_plain(found)
    except (TypeError, ValueError, KeyError):
        raise RunError(f"{path}: is not {what}") from None


def compare(one: CrossValidation, other: CrossValidation) -> PairedTest:
    """The first minus the second, by the corrected resampled t-test. What trains and what validates both count as
    trained on: both decide the model that is tested."""
    other.check_paired(one.model, one.split, one.score)
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


@dataclass(slots=True)
class PartialRecord:
    """What has been computed so far, in memory and, where a file is named, on disk."""

    out: Path | None  # where the record is written in the end
    path: Path | None  # where folds are saved meanwhile; nothing can stand beside a pipe
    fingerprint: str
    stated: dict[str, Any]  # the settings, one level deep, to name the one that changed
    replaces: bool  # a record that is there stays until there is a new one
    folds: list[Fold] = field(default_factory=list)
    seconds: float = 0.0  # spent by earlier calls

    @staticmethod
    def open(out: Path | None, fingerprint: str, stated: Mapping[str, Any], *, overwrite: bool) -> "PartialRecord":
        """Find the folds that an earlier call finished; refuse those of other data or settings."""
        is_file = out is not None and (out.is_file() or not out.exists())
        path = out.with_name(f"{out.name}.partial") if out is not None and is_file else None
        partial = PartialRecord(out, path, fingerprint, json.loads(json.dumps(stated)), overwrite)  # as in a file
        names, what = {"fingerprint", "stated", "seconds", "folds"}, "what an interrupted cross-validation leaves"
        try:
            if path is not None and (found := read_plain(path, names, what)) is not None:
                partial._check(path, found["fingerprint"], found["stated"])
                partial.folds, partial.seconds = [*map(Fold.from_plain, found["folds"])], float(found["seconds"])
        except (TypeError, ValueError, KeyError, AttributeError, RunError) as error:
            if not overwrite:
                is_other = isinstance(error, RunError)
                reason = f"{error}; {GIVE_UP}" if is_other else f"{path}: is damaged; --overwrite starts anew"
                raise RunError(reason) from None
            partial._remove()
        return partial

    def finished(self) -> CrossValidation | None:
        """The whole record, where an earlier call wrote it."""
        if self.out is None or self.path is None or self.replaces:
            return None
        try:
            if (record := read_record(self.out)) is not None:
                counts = (len(record.folds), record.runs, record.restarts)
                stated = state(record.model, record.protocol, *counts, record.settings)
                self._check(self.out, record.fingerprint, stated)
                self._remove()
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
        if self.path is not None:
            plain = {"fingerprint": self.fingerprint, "stated": self.stated, "seconds": self.seconds + seconds}
            write_json(self.path, {**plain, "folds": [asdict(each) for each in self.folds]})

    def finish(self, record: CrossValidation) -> None:
        """Write the record; what was saved on the way is no longer needed."""
        if self.out is not None:
            write_json(self.out, asdict(record))
        self._remove()

    def _remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


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
    return counts | {name: value for group in settings.values() for name, value in group.items() if name != "device"}


def fingerprint(collection: Collection, split: str, stated: Mapping[str, Any]) -> str:
    """A digest of data, folds and settings."""
    return hashlib.sha256(json.dumps([split, stated, collection.digest], sort_keys=True).encode()).hexdigest()
