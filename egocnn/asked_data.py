"""What is typed of DATA -> its graphs: read whole, in portions, or left in their store."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from egocnn.config import ReadConfig
from egocnn.errors import DataError

if TYPE_CHECKING:
    from egocnn.graphs import Graphs
    from egocnn.predictor import Predictor
    from egocnn.store import Stored


def said_of(options: argparse.Namespace, predictor: Predictor | None = None) -> tuple[dict[str, Any], str]:
    """What is typed of how to read DATA, and the part of its split that is asked for."""
    column, _, part = (options.split or "").partition("=")
    settings = {**vars(options), "split": column or None}
    unsaid = {} if predictor is not None else asdict(ReadConfig())  # with a model, its own settings are the usual ones
    named = {f.name: settings[f.name] for f in fields(ReadConfig)}
    return {name: value for name, value in named.items() if value is not None and value != unsaid.get(name)}, part


def read_data(options: argparse.Namespace, predictor: Predictor | None = None) -> Graphs:
    """The graphs of DATA, or the part of them that is asked for."""
    from egocnn.as_trained import read_as_trained
    from egocnn.reading import read
    from egocnn.streaming import open_store

    said, part = said_of(options, predictor)
    open_store(options.data, said)
    graphs = read(options.data, **said) if predictor is None else read_as_trained(options.data, predictor, **said)
    if part:
        graphs = graphs.select(part)
    if len(graphs) == 0:
        raise DataError(f"{options.data}: no graph is in the part {part!r}")
    return graphs if options.limit is None else graphs[: options.limit]


def read_or_leave(options: argparse.Namespace) -> Graphs | Stored:
    """The same, but those of a large store stay there."""
    from egocnn.streaming import for_training

    said, part = said_of(options)
    return for_training(options.data, said, part, options.limit) or read_data(options)


def read_portions(options: argparse.Namespace, predictor: Predictor | None = None) -> tuple[Iterable[Graphs], int]:
    """The graphs of DATA, those of a store in portions that are read one after the other; and how many at most"""
    from egocnn.store import choose_portions
    from egocnn.streaming import open_store

    said, part = said_of(options, predictor)
    if (store := open_store(options.data, said)) is None:
        graphs = read_data(options, predictor)
        return [graphs], len(graphs)
    return choose_portions(store.portions(), part, options.limit), min(len(store), options.limit or len(store))
