"""A trained model + graphs -> predictions, one record per graph, and their CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from egocnn.files import replacing
from egocnn.graphs import Graphs
from egocnn.predictor import Predictor


@dataclass(frozen=True, slots=True)
class Prediction:
    name: str
    predicted: str | float
    """the likeliest class, or the value"""
    probability: float | None
    """of the predicted class; None where a value is predicted"""
    true: str | float | None
    """what the data says, if it says"""


def predictions(predictor: Predictor, graphs: Graphs, *, device: str = "auto") -> Iterator[Prediction]:
    """Predictions in the order of the graphs."""
    truths = [graph.target for graph in graphs] if graphs.target is not None else [None] * len(graphs)
    if predictor.class_names:
        probability = predictor.probabilities(graphs, device=device)
        for name, row, truth in zip(graphs.names, probability, truths, strict=True):
            yield Prediction(name, predictor.class_names[int(row.argmax())], float(row.max()), truth)
    else:
        for name, value, truth in zip(graphs.names, predictor.values(graphs, device=device), truths, strict=True):
            yield Prediction(name, float(value), None, truth)


def write_csv(rows: Sequence[Prediction], path: Path) -> None:
    # Python before 3.13 leaves a lone \r unquoted, and readers take it for the end of the line
    returns = any("\r" in f"{row.name}{row.predicted}{row.true}" for row in rows)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
        writer.writerow([f.name for f in fields(Prediction)])
        writer.writerows(["" if value is None else value for value in astuple(row)] for row in rows)
