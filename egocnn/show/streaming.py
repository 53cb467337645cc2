"""A trained model and graphs, in portions where they are many -> a store, predictions as CSV, critical structures."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from egocnn.config import ExplainConfig, ReadConfig
from egocnn.data.collection import choose_part
from egocnn.data.graphs import Graphs
from egocnn.data.read import Source, read, stream_source
from egocnn.data.store import Store, Stored, is_store, write_store
from egocnn.data.store.manifest import Manifest
from egocnn.data.store.write import check_place
from egocnn.errors import ConfigError, DataError, MissingColumnError
from egocnn.files import replacing

if TYPE_CHECKING:
    from egocnn.explain.structure import CriticalStructure
    from egocnn.model import Model

ON_PAGE = 1000
"""Critical structures of a store that are shown on the page of a report; the file beside it holds them all."""


def read_as_trained(source: Any, predictor: Model, **said: Any) -> Graphs:
    """The graphs of a source, read as the model's training data were where the user does not say otherwise."""
    if isinstance(source, Graphs):
        return source
    if isinstance(source, Iterator):  # which can be gone through once
        source = list(source)
    trained = predictor.about.get("read", {})
    usual = {name: trained.get(name) for name in ("smiles", "target", "name", "hydrogens") if trained.get(name)}
    if predictor.targets:
        usual |= {"task": trained.get("task", "auto"), "target": ",".join(predictor.targets)}
    else:
        usual["task"] = "classification" if predictor.class_names else "regression"
    # new data need not have the target, nor name its graphs as the training data did
    for absent in ((), ("name",), ("target",), ("name", "target")):
        try:
            graphs = read(source, **{name: value for name, value in usual.items() if name not in absent} | said)
        except MissingColumnError as error:
            missing = error
            there = [name for name in predictor.targets if name not in error.missing]
            if error.missing and there and "target" not in said:  # of several targets some are known
                return read_as_trained(source, predictor, **said, target=",".join(there))
            continue
        if predictor.targets and "target" in said and graphs.target is not None and not graphs.targets:
            graphs = _as_one_of_several(graphs, said["target"])
        is_other = "target" in absent and "target" in usual and "target" not in said
        return graphs.replace(target=None, class_names=(), targets=()) if is_other else graphs
    raise missing


def _as_one_of_several(graphs: Graphs, name: str) -> Graphs:
    assert graphs.target is not None
    values = np.where(graphs.target < 0, np.nan, graphs.target) if graphs.class_names else graphs.target
    return graphs.replace(target=values[:, None], class_names=(), targets=((name, graphs.class_names),))


def open_store(data: str, said: Mapping[str, Any] | None = None) -> Store | None:
    """The store that DATA names, if it names one; ``said``: how it is to be read, which must be how it was."""
    path = Path(os.path.expanduser(data))  # noqa: PTH111 — unlike pathlib's, it lets ~somebody pass
    if not is_store(path):
        return None
    store, said = Store.open(path), said or {}
    for name, usual in asdict(ReadConfig()).items():
        was = store.manifest.read.get(name, usual)
        # whatever the column of the split is called, it says what the part of each graph is
        if name in said and said[name] != was and not (name == "split" and "part" in store.manifest.columns):
            flag = f"--{name.replace('_', '-')}"
            how = f"without {flag}" if was == usual else f"with {flag}" if was is True else f"with {flag} {was}"
            raise ConfigError(f"{store.folder}: holds graphs that were read {how}; {flag} is said to egocnn prepare")
    return store


def settings_of(store: Store) -> ReadConfig:
    """The settings that the graphs of a store were read with."""
    known = {f.name for f in fields(ReadConfig)}
    return ReadConfig(**{name: value for name, value in store.manifest.read.items() if name in known})


def prepare(
    data: str, folder: Path, config: ReadConfig, *, part: str = "", limit: int | None = None, **settings: Any
) -> Manifest:
    """Write the graphs of DATA as a store, from a source that can be read in portions without holding it whole.

    ``settings``: ``overwrite`` and ``report``, as :func:`egocnn.data.store.write_store` takes them.
    """
    check_place(folder, overwrite=settings.get("overwrite", False))
    if (store := open_store(data)) is not None:
        source = Source(choose_part(Stored.of(store), data, part, limit).portions())
    else:
        try:
            # only all graphs together have the names that a part of them is counted by
            stream = None if part or limit is not None else stream_source(Path(data), config)
        except OSError as error:
            raise DataError(f"{data}: cannot be read ({error.strerror})") from None
        source = stream or Source(choose_part(read(data, config), data, part, limit).portions())
    return write_store(source.portions, folder, source=data, read=asdict(config), facts=source.facts, **settings)


@dataclass(frozen=True, slots=True)
class Prediction:
    name: str
    predicted: str | float  # the likeliest class, or the value
    probability: float | None  # of the predicted class; None where a value is predicted
    true: str | float | None  # what the data says, if it says
    spread: float | None = None
    """the model's doubt, where it has several networks; see :meth:`egocnn.model.Model.spread`"""


def predictions(
    predictor: Model,
    graphs: Graphs,
    found: tuple[NDArray[Any], NDArray[Any] | None] | None = None,
    *,
    device: str = "auto",
) -> Iterator[Prediction]:
    """Predictions in the order of the graphs; ``found``: what ``predictions_and_spread`` of the model has given."""
    predicted, spread = found or predictor.predictions_and_spread(graphs, device=device)
    doubts = [None] * len(graphs) if spread is None else spread.tolist()
    for g, (one, doubt) in enumerate(zip(predicted, doubts, strict=True)):
        known = graphs.names[g], graphs.target_of(g)
        if predictor.class_names:
            yield Prediction(known[0], predictor.class_names[int(one.argmax())], float(one.max()), known[1], doubt)
        else:
            yield Prediction(known[0], float(one), None, known[1], doubt)


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
                numbers = [x for x in (row.predicted, row.probability, row.spread) if isinstance(x, float)]
                if not all(map(math.isfinite, numbers)):
                    raise DataError(f"graph {row.name!r}: what is predicted is not a finite number")
            # Python before 3.13 leaves a lone \r unquoted, and readers take it for the end of the line
            returns = any("\r" in f"{row.name}{row.predicted}{row.true}" for row in rows)
            writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
            several = ([getattr(row, column) for column in columns] for row in rows)
            writer.writerows(["" if value is None else value for value in values] for values in several)

        yield write


def predict_to_csv(predictor: Model, portions: Iterable[Graphs], path: Path, *, device: str = "auto") -> dict[str, Any]:
    """Write the predictions of all portions to one file; how many there are, and their scores where the truth is known.

    Of every graph its prediction is kept for the scores, and nothing else.
    """
    from egocnn.train.metrics import known_truth, scores_of

    done, doubt = 0, 0.0
    kept: list[tuple[NDArray[Any], NDArray[Any]]] = []
    with csv_writer(path, spread=len(predictor.networks) > 1) as write:
        for graphs in portions:
            predicted, spread = predictor.predictions_and_spread(graphs, device=device)
            doubt += 0.0 if spread is None else float(spread.sum())
            done += len(graphs)
            if graphs.target is not None and graphs.is_classification == bool(predictor.class_names):
                known, truth = known_truth(graphs, predictor.class_names)
                kept.append((predicted[known], truth))
            write(list(predictions(predictor, graphs, (predicted, spread))))
    result: dict[str, Any] = {"graphs": done, "file": str(path)}
    if len(predictor.networks) > 1 and done:
        result["mean_spread"] = doubt / done
    if any(len(truth) for _, truth in kept):
        result |= scores_of(*map(np.concatenate, zip(*kept, strict=True)))
    return result


def explain_portions(
    predictor: Model,
    portions: Iterable[Graphs],
    config: ExplainConfig,
    report: Callable[[int], None] | None = None,
    **settings: Any,
) -> Iterator[CriticalStructure]:
    """The critical structures of all portions in order; ``settings`` are those of :func:`egocnn.explain.explain`."""
    from egocnn.explain import explain

    done = 0

    def tell(some: int) -> None:
        if report is not None:
            report(done + some)

    for graphs in portions:
        found = explain(predictor, graphs, config, report=tell, **settings)
        done += len(found)
        yield from found
