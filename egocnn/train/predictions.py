"""What a model says of graphs -> a row of named columns for each, the same in every table that is written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from egocnn.data.graphs import Graphs
from egocnn.data.sources.builder import is_value
from egocnn.errors import DataError
from egocnn.model import Model


def as_predicted(graphs: Graphs, predictor: Model) -> Graphs:
    """Several targets as words -> those that the model predicts as values as numbers, NaN where they are none."""
    if graphs.target is None or not graphs.targets or not predictor.targets:
        return graphs
    target, kinds = graphs.target.copy(), dict(graphs.targets)
    for t, (name, words) in enumerate(graphs.targets):
        if words and not predictor.of_target(name).class_names:
            numbers = [float(word) if is_value(word) else np.nan for word in words]
            target[:, t] = np.array([*numbers, np.nan])[np.nan_to_num(target[:, t], nan=-1).astype(np.int64)]
            kinds[name] = ()
    return graphs.replace(target=target, targets=tuple(kinds.items()))


def prediction_kinds(predictor: Model) -> dict[str, Any]:
    """The columns of a prediction, and what each holds; of several targets those of each, after its name."""
    if predictor.targets:
        several = {name: prediction_kinds(predictor.of_target(name)) for name in predictor.targets}
        return {f"{name} {column}": kind for name, kinds in several.items() for column, kind in kinds.items()}
    predicted = "string" if predictor.class_names else "double"
    probabilities = ["probability", *(f"p_{name}" for name in predictor.class_names)] if predictor.class_names else []
    numbers = [*probabilities, *(["spread"] if len(predictor.networks) > 1 else [])]
    return {"predicted": predicted, **dict.fromkeys(numbers, "double"), "true": predicted}


def csv_row(row: Mapping[str, Any], kinds: Mapping[str, Any]) -> list[Any]:
    """The values of these columns as people read them: what is computed to six digits, what came in as it was. Other
    formats hold every digit."""
    computed = {name for name, kind in kinds.items() if kind == "double" and name.rpartition(" ")[2] != "true"}
    values = {name: row.get(name) for name in kinds}
    return [float(f"{v:.6g}") if name in computed and isinstance(v, float) else v for name, v in values.items()]


def prediction_rows(
    predictor: Model, graphs: Graphs, found: Sequence[Any] | None = None, *, device: str = "auto"
) -> Iterator[dict[str, Any]]:
    """The same columns of every graph, in order; ``found``: what ``by_target`` of the model has given."""
    graphs = as_predicted(graphs, predictor)
    found = found or list(predictor.by_target(graphs, device=device))
    of_each = [graphs.of_target(name) if name else graphs for name, *_ in found]
    for g in range(len(graphs)):
        row: dict[str, Any] = {}
        for (name, one, predicted, spread), own in zip(found, of_each, strict=True):
            if not np.isfinite(predicted[g]).all():
                raise DataError(f"graph {graphs.names[g]!r}: what is predicted is not a finite number")
            columns: dict[str, Any] = {"predicted": predicted[g].tolist()}
            if classes := one.class_names:
                likeliest = int(predicted[g].argmax())
                columns = {"predicted": classes[likeliest], "probability": float(predicted[g, likeliest])}
                columns |= {f"p_{label}": p for label, p in zip(classes, predicted[g].tolist(), strict=True)}
            columns |= {**({} if spread is None else {"spread": float(spread[g])}), "true": own.target_of(g)}
            row |= {f"{name} {column}" if name else column: value for column, value in columns.items()}
        yield row
