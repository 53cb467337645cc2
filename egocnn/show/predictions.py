"""A trained model + graphs -> predictions, one record per graph, and their CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
    predicted: str | float  # the likeliest class, or the value
    probability: float | None  # of the predicted class; None where a value is predicted
    true: str | float | None  # what the data says, if it says
    spread: float | None = None
    """the model's doubt, where it has several networks; see :meth:`egocnn.model.Model.spread`"""


def predictions(predictor: Model, graphs: Graphs, *, device: str = "auto") -> Iterator[Prediction]:
    """Predictions in the order of the graphs."""
    yield from as_records(predictor, graphs, *predictor.predictions_and_spread(graphs, device=device))


def as_records(
    predictor: Model, graphs: Graphs, predicted: NDArray[Any], spread: NDArray[Any] | None = None
) -> Iterator[Prediction]:
    """``predicted`` and ``spread``: what :meth:`egocnn.model.Model.predictions_and_spread` gives"""
    truths = [graphs.target_of(g) for g in range(len(graphs))]
    doubts = [None] * len(graphs) if spread is None else spread.tolist()
    for name, one, truth, doubt in zip(graphs.names, predicted, truths, doubts, strict=True):
        if predictor.class_names:
            yield Prediction(name, predictor.class_names[int(one.argmax())], float(one.max()), truth, doubt)
        else:
            yield Prediction(name, float(one), None, truth, doubt)


def write_csv(rows: Sequence[Prediction], path: Path) -> None:
    with csv_writer(path, spread=any(row.spread is not None for row in rows)) as write:
        write(rows)


@contextmanager
def csv_writer(path: Path, *, spread: bool = False) -> Iterator[Callable[[Sequence[Prediction]], None]]:
    """What appends rows to a file, which is put in place at the end: not all of them need to be in memory together.

    ``spread``: whether there is a column for it
    """
    columns = ("name", "predicted", "probability", *(["spread"] if spread else []), "true")
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(columns)

        def write(rows: Sequence[Prediction]) -> None:
            for row in rows:
                if not all(
                    math.isfinite(x) for x in (row.predicted, row.probability, row.spread) if isinstance(x, float)
                ):
                    raise DataError(f"graph {row.name!r}: what is predicted is not a finite number")
            # Python before 3.13 leaves a lone \r unquoted, and readers take it for the end of the line
            returns = any("\r" in f"{row.name}{row.predicted}{row.true}" for row in rows)
            writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
            several = ([getattr(row, column) for column in columns] for row in rows)
            writer.writerows(["" if value is None else value for value in values] for values in several)

        yield write
