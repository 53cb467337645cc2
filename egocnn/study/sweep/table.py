"""Scores of all settings -> one record, and its table: for people, and as CSV and JSON."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from egocnn.study.sweep.grid import GridPoint, in_words, shown

DIVERGED = "diverged"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScore:
    """One setting on one fold, judged by graphs that are not the fold's test graphs."""

    fold: int  # from 1
    score: float | None  # accuracy, or R² where a value is predicted; None: the training diverged
    parameters: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting on all folds."""

    rank: int  # from 1, the best first
    setting: dict[str, Any]
    mean: float | None  # None where a training diverged
    std: float | None  # of the folds around their mean (n - 1)
    seconds: float  # of all folds together, also of those that ran at the same time
    parameters: int | None
    scores: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All settings in order of merit, with what is needed to judge and to repeat it."""

    data: str
    protocol: str
    folds: int
    restarts: int
    score: str  # what is measured: accuracy or r2
    over: dict[str, list[Any]]
    sampled: int | None  # settings drawn from the grid; None: all of it
    rows: tuple[Row, ...]
    chosen: dict[str, Any]  # all settings of the best row, ``model`` and ``train``
    flags: str  # the same as typed for ``egocnn train``; what is at its usual value is left out
    test: dict[str, Any] | None
    """of the chosen setting on the test folds: mean, std, interval; None: they have not been looked at"""
    seed: int
    seconds: float  # of all trainings together
    command: str
    date: str
    machine: str
    versions: dict[str, str]

    def lines(self) -> Iterator[str]:
        """A table for a terminal."""
        score = "accuracy" if self.score == "accuracy" else "R²"
        names = (name.replace("_", " ") for name in self.over)
        table = [["", *names, f"validation {score}", "seconds", "parameters"], *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            yield "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        yield from _conclusion(self)

    def csv(self) -> str:
        """The table, unrounded."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["rank", *self.over, "mean", "std", "seconds", "parameters"])
        for row in self.rows:
            values = [shown(row.setting[name]) for name in self.over]
            writer.writerow([row.rank, *values, row.mean, row.std, row.seconds, row.parameters])
        return text.getvalue()


def ranked(points: Sequence[GridPoint], scores: Sequence[Sequence[PairScore]]) -> list[tuple[GridPoint, Row]]:
    """The best first: by mean, of equals the smaller, then the one first in the grid; those that diverged last."""
    rows = [(point, _row(point, own)) for point, own in zip(points, scores, strict=True)]
    rows.sort(key=lambda pair: (pair[1].mean is None, -(pair[1].mean or 0.0), pair[1].parameters or 0))
    return [(point, replace(row, rank=rank)) for rank, (point, row) in enumerate(rows, start=1)]


def _row(point: GridPoint, own: Sequence[PairScore]) -> Row:
    own = sorted(own, key=lambda each: each.fold)
    known = [each.score for each in own if each.score is not None]
    is_whole = len(known) == len(own)
    return Row(
        rank=0,
        setting=dict(point.values),
        mean=float(np.mean(known)) if is_whole else None,
        std=float(np.std(known, ddof=1)) if is_whole and len(known) > 1 else None,
        seconds=sum(each.seconds for each in own),
        parameters=max((each.parameters for each in own if each.parameters is not None), default=None),
        scores=tuple(each.score for each in own),
    )


def _cells(row: Row) -> list[str]:
    score = DIVERGED if row.mean is None else f"{row.mean:.4f}" + ("" if row.std is None else f" ± {row.std:.4f}")
    size = "" if row.parameters is None else f"{row.parameters:,}"
    return [f"{row.rank}", *(shown(value) for value in row.setting.values()), score, f"{row.seconds:.1f}", size]


def _conclusion(sweep: Sweep) -> Iterator[str]:
    best = sweep.rows[0]
    if best.mean is None:
        yield "Every setting diverged; try smaller learning rates."
        return
    drawn = "" if sweep.sampled is None else " drawn"
    yield f"Best of {len(sweep.rows)}{drawn} settings over {sweep.folds} folds: {in_words(best.setting.items())}."
    if sweep.test is None:
        yield "The best of many is flattered by the choice; --test-chosen gives its one look at the test folds."
    else:
        low, high = sweep.test["interval"]
        yield (
            f"On the test folds: {sweep.test['mean']:.4f} ± {sweep.test['std']:.4f} "
            f"(95% interval of the mean: {low:.4f} to {high:.4f})."
        )
    yield f"Train with it: egocnn train {shlex.quote(sweep.data)} -o RUN {sweep.flags}"
