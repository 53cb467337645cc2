"""Graphs in portions -> a store, predictions, critical structures: never all of them in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
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
from egocnn.errors import ConfigError, DataError

if TYPE_CHECKING:
    from egocnn.explain.structure import CriticalStructure
    from egocnn.model import Model

ON_PAGE = 1000
"""Critical structures of a store that are shown on the page of a report; the file beside it holds them all."""


def open_store(data: str, said: Mapping[str, Any] | None = None) -> Store | None:
    """The store that DATA names, if it names one; ``said``: how it is to be read, which must be how it was."""
    path = Path(os.path.expanduser(data))  # noqa: PTH111 — unlike pathlib's, it lets ~somebody pass
    store = Store.open(path) if is_store(path) else None
    if store is not None:
        _check_said(store, said or {})
    return store


def _check_said(store: Store, said: Mapping[str, Any]) -> None:
    """Refuse settings of reading that a store, which has been read already, would not heed."""
    for name, usual in asdict(ReadConfig()).items():
        was = store.manifest.read.get(name, usual)
        if name not in said or said[name] == was:
            continue
        if name == "split" and "part" in store.manifest.columns:
            continue  # whatever the column is called, this is what it says
        flag = f"--{name.replace('_', '-')}"
        how = f"without {flag}" if was == usual else f"with {flag}" if was is True else f"with {flag} {was}"
        raise ConfigError(f"{store.folder}: holds graphs that were read {how}; {flag} is said to egocnn prepare")


def settings_of(store: Store) -> ReadConfig:
    """The settings that the graphs of a store were read with."""
    known = {f.name for f in fields(ReadConfig)}
    return ReadConfig(**{name: value for name, value in store.manifest.read.items() if name in known})


def prepare(
    data: str,
    folder: Path,
    config: ReadConfig,
    *,
    part: str = "",
    limit: int | None = None,
    overwrite: bool = False,
    report: Callable[[int], None] | None = None,
) -> Manifest:
    """Write the graphs of DATA as a store, from a source that can be read in portions without holding it whole."""
    check_place(folder, overwrite=overwrite)
    source = _source(data, config, part, limit)
    return write_store(
        source.portions,
        folder,
        source=data,
        read=asdict(config),
        facts=source.facts,
        overwrite=overwrite,
        report=report,
    )


def _source(data: str, config: ReadConfig, part: str, limit: int | None) -> Source:
    if (store := open_store(data)) is not None:
        return Source(choose_part(Stored.of(store), data, part, limit).portions())
    try:
        # only all graphs together have the names that a part of them is counted by
        source = None if part or limit is not None else stream_source(Path(data), config)
    except OSError as error:
        raise DataError(f"{data}: cannot be read ({error.strerror})") from None
    return source or Source(choose_part(read(data, config), data, part, limit).portions())


def predict_to_csv(predictor: Model, portions: Iterable[Graphs], path: Path, *, device: str = "auto") -> dict[str, Any]:
    """Write the predictions of all portions to one file; how many there are, and their scores where the truth is known.

    Of every graph its prediction is kept for the scores, and nothing else.
    """
    from egocnn.show.predictions import as_records, csv_writer
    from egocnn.train.metrics import known_truth, scores_of

    done = 0
    predictions: list[NDArray[Any]] = []
    truths: list[NDArray[Any]] = []
    doubt = 0.0
    with csv_writer(path, spread=len(predictor.networks) > 1) as write:
        for graphs in portions:
            predicted, spread = predictor.predictions_and_spread(graphs, device=device)
            doubt += 0.0 if spread is None else float(spread.sum())
            done += len(graphs)
            if graphs.target is not None and graphs.is_classification == bool(predictor.class_names):
                known, truth = known_truth(graphs, predictor.class_names)
                predictions.append(predicted[known])
                truths.append(truth)
            write(list(as_records(predictor, graphs, predicted, spread)))
    result: dict[str, Any] = {"graphs": done, "file": str(path)}
    if len(predictor.networks) > 1 and done:
        result["mean_spread"] = doubt / done
    if sum(map(len, truths)):
        result |= scores_of(np.concatenate(predictions), np.concatenate(truths))
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
