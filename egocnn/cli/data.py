"""The options of DATA -> its graphs, read, or left in their store."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from functools import partial
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egocnn.cli.options import Options, from_options
from egocnn.cli.output import print_result, remarks
from egocnn.config import ReadConfig
from egocnn.errors import ConfigError, MissingColumnError, rule
from egocnn.files import isfile

if TYPE_CHECKING:
    from egocnn.data.collection import Collection
    from egocnn.data.rows import RowPortion
    from egocnn.model import Model


def split_and_part(options: Options) -> tuple[str | None, str]:
    """``--split COLUMN=test`` -> the column, and the part to use ('' for all)"""
    column, _, part = (options.split or "").partition("=")
    return column or None, part


def open_graphs(options: Options, model: "Model | None" = None) -> "Collection":
    """The graphs of DATA, or the part of them that --split names; a split is drawn without a model, for a training."""
    from egocnn.data.collection import choose_part, draw_parts
    from egocnn.data.read import read
    from egocnn.data.schema import DRAWN
    from egocnn.data.store import Stored
    from egocnn.show.streaming import open_store, read_as_trained

    reading = read if model is None else partial(read_as_trained, predictor=model)
    column, part = split_and_part(options)
    settings = said_settings(options, model)
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
        raise _drawn_later(options)
    collection = choose_part(collection, options.data, part, options.limit)
    return draw_parts(collection, str(column), options.seed) if is_drawn and model is None else collection


def _drawn_later(options: Options) -> ConfigError:
    drawn = f"--split {options.split}: {split_and_part(options)[0]} parts are drawn when a model is trained"
    return ConfigError(f"{drawn}; split.csv in the run folder says which graphs were in each")


def said_settings(options: Options, model: "Model | None" = None) -> dict[str, Any]:
    """The settings of reading that are typed or in a file, and not the usual ones."""
    said = {**vars(options), "split": split_and_part(options)[0]}
    usual = {} if model is not None else asdict(ReadConfig())  # with a model, its own settings are the usual ones
    return {f.name: said[f.name] for f in fields(ReadConfig) if said[f.name] not in (None, usual.get(f.name))}


def open_rows(options: Options, model: "Model") -> "tuple[dict[str, Any], Iterator[RowPortion]]":
    """The columns of DATA, with what they hold, and its rows in portions; those that do not parse keep their place."""
    from egocnn.data.rows import ROW_SUFFIXES, RowFile, RowPortion
    from egocnn.data.schema import DRAWN
    from egocnn.data.sources.text import suffix_of
    from egocnn.show.streaming import usual_settings
    from egocnn.show.tables import column_kinds

    path = Path(options.data)
    if not isfile(path) or suffix_of(path) not in ROW_SUFFIXES:
        graphs = open_graphs(options, model)
        has_smiles = graphs.outline.smiles is not None
        return {"smiles": "string"} if has_smiles else {}, map(RowPortion.of, graphs.portions())
    column, part = split_and_part(options)
    file = RowFile.open(path, usual_settings(model), said_settings(options, model), part)
    if column in DRAWN and column not in file.echoed:
        raise _drawn_later(options)
    return column_kinds(path, file.echoed), _first_rows(map(file.reader, file.chunks), options.limit)


def answer_shards(
    options: Options, model: "Model", shards: list[Path], settings: Mapping[str, Any], **how: Any
) -> None:
    """Write what the model says of the rows of all shards, and print how many there are; ``how``: as Answer has it."""
    from joblib import cpu_count

    from egocnn.model import model_digest
    from egocnn.scale.shards import Answer, ShardWork
    from egocnn.show.streaming import usual_settings

    rule(options.limit is None, "--limit is for one file, not for a folder of shards", ConfigError)
    said, part = said_settings(options, model), split_and_part(options)[1]
    about = {"command": options.command, "model": model_digest(options.run_folder)}
    about["settings"] = {**said, "part": part, **settings}
    jobs = options.jobs or (None if options.ray else cpu_count())
    answer = Answer(folder=Path(realpath(options.run_folder)), device=options.device, **how)
    read: dict[str, Any] = {"usual": usual_settings(model), "said": said, "part": part}
    work = ShardWork(answer=answer, about=about, **read, jobs=jobs, ray=options.ray)
    manifest = work.over(shards, options.out, options.shard, remarks(options))
    rows, failed = (sum(shard[what] for shard in manifest["shards"]) for what in ("rows", "failed"))
    result = {"shards": len(manifest["shards"]), "rows": rows, "failed": failed, "folder": str(options.out)}
    text = f"{result['shards']} of {len(shards)} shards in {options.out}: {rows} rows, {failed} without a graph"
    print_result(options, result, [text])


def _first_rows(portions: "Iterable[RowPortion]", limit: int | None) -> "Iterator[RowPortion]":
    for portion in portions:
        some = portion if limit is None else portion.choose(range(min(limit, len(portion.rows))))
        yield some
        limit = None if limit is None else limit - len(some.rows)
        if limit == 0:
            return


def read_with(options: Options, graphs: "Collection") -> dict[str, Any]:
    """The settings that these graphs were read with: those of a store were given to ``egocnn prepare``."""
    from egocnn.data.store import Stored

    if not isinstance(graphs, Stored):
        return asdict(from_options(options, ReadConfig))
    usual, was = asdict(ReadConfig()), graphs.store.manifest.read
    return {name: was.get(name, value) for name, value in usual.items()}
