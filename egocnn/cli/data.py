"""The options of DATA -> its graphs, read, or left in their store."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from egocnn.cli.options import Options, from_options
from egocnn.config import ReadConfig

if TYPE_CHECKING:
    from egocnn.data.collection import Collection
    from egocnn.model import Model


def split_and_part(options: Options) -> tuple[str | None, str]:
    """``--split COLUMN=test`` -> the column, and the part to use ('' for all)"""
    column, _, part = (options.split or "").partition("=")
    return column or None, part


def open_graphs(options: Options, model: Model | None = None) -> Collection:
    """The graphs of DATA, or the part of them that --split names; those of a store stay there."""
    from egocnn.data.collection import choose_part
    from egocnn.data.read import read
    from egocnn.data.store import Stored
    from egocnn.show.streaming import open_store, read_as_trained

    column, part = split_and_part(options)
    said = {**vars(options), "split": column}
    usual = {} if model is not None else asdict(ReadConfig())  # with a model, its own settings are the usual ones
    settings = {f.name: said[f.name] for f in fields(ReadConfig) if said[f.name] not in (None, usual.get(f.name))}
    store = open_store(options.data, settings)
    collection: Collection
    if store is not None:
        collection = Stored.of(store)
    else:
        collection = (
            read(options.data, **settings) if model is None else read_as_trained(options.data, model, **settings)
        )
    return choose_part(collection, options.data, part, options.limit)


def read_with(options: Options, graphs: Collection) -> dict[str, Any]:
    """The settings that these graphs were read with: those of a store were given to ``egocnn prepare``."""
    from egocnn.data.store import Stored
    from egocnn.show.streaming import settings_of

    return asdict(settings_of(graphs.store) if isinstance(graphs, Stored) else from_options(options, ReadConfig))
