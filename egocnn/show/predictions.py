"""A trained model + graphs -> predictions, one record per graph, and their CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from egocnn.files import replacing
from egocnn.model import Model


@dataclass(frozen=True, slots=True)
class Prediction:
    name: str
    predicted: str | float
    """the likeliest class, or the value"""
    probability: float | None
    """of the predicted class; None where a value is predicted"""
    true: str | float | None
    """what the data says, if it says"""


def predictions(predictor: Model, graphs: Graphs, *, device: str = "auto") -> Iterator[Prediction]:
    """Predictions in the order of the graphs."""
    yield from as_records(predictor, graphs, predictor.predictions(graphs, device=device))


def as_records(predictor: Model, graphs: Graphs, predicted: NDArray[Any]) -> Iterator[Prediction]:
    """``predicted``: what :meth:`egocnn.model.Model.predictions` gives"""
    truths = [graphs.target_of(g) for g in range(len(graphs))]
    for name, one, truth in zip(graphs.names, predicted, truths, strict=True):
        if predictor.class_names:
            yield Prediction(name, predictor.class_names[int(one.argmax())], float(one.max()), truth)
        else:
            yield Prediction(name, float(one), None, truth)


def _check_finite(rows: Sequence[Prediction]) -> None:
    for row in rows:
        for value in (row.predicted, row.probability):
            if isinstance(value, float) and not math.isfinite(value):
                raise DataError(f"graph {row.name!r}: what is predicted is not a finite number")


def write_csv(rows: Sequence[Prediction], path: Path) -> None:
    with csv_writer(path) as write:
        write(rows)


@contextmanager
def csv_writer(path: Path) -> Iterator[Callable[[Sequence[Prediction]], None]]:
    """What appends rows to a file, which is put in place at the end: not all of them need to be in memory together."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow([f.name for f in fields(Prediction)])

        def write(rows: Sequence[Prediction]) -> None:
            _check_finite(rows)
            # Python before 3.13 leaves a lone \r unquoted, and readers take it for the end of the line
            returns = any("\r" in f"{row.name}{row.predicted}{row.true}" for row in rows)
            writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
            writer.writerows(["" if value is None else value for value in astuple(row)] for row in rows)

        yield write
