"""The options of DATA -> its graphs: read whole, in portions, or left in their store."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from egocnn.cli.options import from_options
from egocnn.config import ReadConfig

if TYPE_CHECKING:
    from egocnn.data.collection import Collection
    from egocnn.data.graphs import Graphs
    from egocnn.data.store import Store
    from egocnn.model import Model


def reading_settings(options: argparse.Namespace, model: Model | None = None) -> tuple[dict[str, Any], str]:
    """The settings for reading DATA that are not the usual ones, and the part of its split to use ('' for all)."""
    column, part = split_and_part(options)
    settings = {**vars(options), "split": column}
    usual = {} if model is not None else asdict(ReadConfig())  # with a model, its own settings are the usual ones
    named = {f.name: settings[f.name] for f in fields(ReadConfig)}
    return {name: value for name, value in named.items() if value is not None and value != usual.get(name)}, part


def split_and_part(options: argparse.Namespace) -> tuple[str | None, str]:
    """``--split COLUMN=test`` -> the column, and the part to use ('' for all)"""
    column, _, part = (options.split or "").partition("=")
    return column or None, part


def read_graphs(options: argparse.Namespace, model: Model | None = None) -> Graphs:
    """The graphs of DATA, or the part of them that --split names, in memory."""
    return _opened(options, model)[0].whole()


def read_or_open_graphs(options: argparse.Namespace) -> Collection:
    """The same, but graphs that are in a store stay there."""
    return _opened(options, None)[0]


def read_for_training(options: argparse.Namespace) -> tuple[Collection, dict[str, Any]]:
    """The same, and the settings that the graphs were read with: those of a store were given to ``egocnn prepare``."""
    from egocnn.show.streaming import settings_of

    collection, store = _opened(options, None)
    return collection, asdict(from_options(options, ReadConfig) if store is None else settings_of(store))


def read_portions(options: argparse.Namespace, model: Model | None = None) -> tuple[Iterable[Graphs], int]:
    """The graphs of DATA, those of a store in portions that are read one after the other; and how many there are"""
    collection, _ = _opened(options, model)
    return collection.portions(), len(collection)


def _opened(options: argparse.Namespace, model: Model | None) -> tuple[Collection, Store | None]:
    """The graphs of DATA, and the store that they are in, if they are in one."""
    from egocnn.data.collection import choose_part
    from egocnn.data.read import read
    from egocnn.data.store import Stored
    from egocnn.show.streaming import open_store, read_as_trained

    settings, part = reading_settings(options, model)
    store = open_store(options.data, settings)
    collection: Collection
    if store is not None:
        collection = Stored.of(store)
    elif model is None:
        collection = read(options.data, **settings)
    else:
        collection = read_as_trained(options.data, model, **settings)
    return choose_part(collection, options.data, part, options.limit), store
