"""The options of DATA -> its graphs: read whole, in portions, or left in their store."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from egocnn.config import ReadConfig
from egocnn.errors import DataError

if TYPE_CHECKING:
    from egocnn.data.graphs import Graphs
    from egocnn.data.store import Stored
    from egocnn.model import Model


def reading_settings(options: argparse.Namespace, predictor: Model | None = None) -> tuple[dict[str, Any], str]:
    """The settings for reading DATA that are not the usual ones, and the part of its split to use ('' for all)."""
    column, part = split_and_part(options)
    settings = {**vars(options), "split": column}
    usual = {} if predictor is not None else asdict(ReadConfig())  # with a model, its own settings are the usual ones
    named = {f.name: settings[f.name] for f in fields(ReadConfig)}
    return {name: value for name, value in named.items() if value is not None and value != usual.get(name)}, part


def split_and_part(options: argparse.Namespace) -> tuple[str | None, str]:
    """``--split COLUMN=test`` -> the column, and the part to use ('' for all)"""
    column, _, part = (options.split or "").partition("=")
    return column or None, part


def read_graphs(options: argparse.Namespace, predictor: Model | None = None) -> Graphs:
    """The graphs of DATA, or the part of them that the options name."""
    from egocnn.data.read import read
    from egocnn.show.as_trained import read_as_trained
    from egocnn.show.streaming import open_store

    settings, part = reading_settings(options, predictor)
    open_store(options.data, settings)
    if predictor is None:
        graphs = read(options.data, **settings)
    else:
        graphs = read_as_trained(options.data, predictor, **settings)
    if part:
        graphs = graphs.select(part)
    if len(graphs) == 0:
        raise DataError(f"{options.data}: no graph is in the part {part!r}")
    return graphs if options.limit is None else graphs[: options.limit]


def read_or_open_graphs(options: argparse.Namespace) -> Graphs | Stored:
    """The same, but those of a large store stay there."""
    from egocnn.show.streaming import for_training

    settings, part = reading_settings(options)
    return for_training(options.data, settings, part, options.limit) or read_graphs(options)


def read_portions(options: argparse.Namespace, predictor: Model | None = None) -> tuple[Iterable[Graphs], int]:
    """The graphs of DATA, those of a store in portions that are read one after the other; and how many at most"""
    from egocnn.data.store import choose_portions
    from egocnn.show.streaming import open_store

    settings, part = reading_settings(options, predictor)
    if (store := open_store(options.data, settings)) is None:
        graphs = read_graphs(options, predictor)
        return [graphs], len(graphs)
    return choose_portions(store.portions(), part, options.limit), min(len(store), options.limit or len(store))
