"""The options of DATA -> its graphs, read, or left in their store."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from egocnn.cli.options import Options, from_options
from egocnn.config import ReadConfig
from egocnn.errors import ConfigError, MissingColumnError

if TYPE_CHECKING:
    from egocnn.data.collection import Collection
    from egocnn.model import Model


def split_and_part(options: Options) -> tuple[str | None, str]:
    """``--split COLUMN=test`` -> the column, and the part to use ('' for all)"""
    column, _, part = (options.split or "").partition("=")
    return column or None, part


def open_graphs(options: Options, model: Model | None = None) -> Collection:
    """The graphs of DATA, or the part of them that --split names; a split is drawn without a model, for a training."""
    from egocnn.data.collection import choose_part, draw_parts
    from egocnn.data.read import read
    from egocnn.data.schema import DRAWN
    from egocnn.data.store import Stored
    from egocnn.show.streaming import open_store, read_as_trained

    reading = read if model is None else partial(read_as_trained, predictor=model)
    column, part = split_and_part(options)
    said = {**vars(options), "split": column}
    usual = {} if model is not None else asdict(ReadConfig())  # with a model, its own settings are the usual ones
    settings = {f.name: said[f.name] for f in fields(ReadConfig) if said[f.name] not in (None, usual.get(f.name))}
    store = open_store(options.data, settings)
    collection: Collection
    if store is not None:
        collection = Stored.of(store)
    else:
        try:
            collection = reading(options.data, **settings)
        except MissingColumnError:
            if column not in DRAWN:
                raise
            collection = reading(options.data, **settings | {"split": None})
    is_drawn = column in DRAWN and collection.outline.part is None
    if part and is_drawn:
        drawn = f"--split {options.split}: {column} parts are drawn when a model is trained"
        raise ConfigError(f"{drawn}; split.csv in the run folder says which graphs were in each")
    collection = choose_part(collection, options.data, part, options.limit)
    return draw_parts(collection, str(column), options.seed) if is_drawn and model is None else collection


def read_with(options: Options, graphs: Collection) -> dict[str, Any]:
    """The settings that these graphs were read with: those of a store were given to ``egocnn prepare``."""
    from egocnn.data.store import Stored
    from egocnn.show.streaming import settings_of

    return asdict(settings_of(graphs.store) if isinstance(graphs, Stored) else from_options(options, ReadConfig))
