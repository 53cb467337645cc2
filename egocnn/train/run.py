"""Graphs + settings -> a run folder: trained, tested, resumable; by one process, or by all of torchrun."""

import csv
import hashlib
import json
import os
import platform
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.collection import Chosen, Collection, split_off
from egocnn.data.schema import PARTS
from egocnn.errors import DivergedError, RunError
from egocnn.files import csv_text, digest_of_file, digest_of_plain, regular, remove, to_toml, write_json, write_text
from egocnn.model import DIGESTS, MODEL, Model, check_finite, check_model, mean_output, read_config
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines.distributed import World
from egocnn.train.engines.distributed.engine import current
from egocnn.train.history import Epoch, History, Report
from egocnn.train.metrics import known_truth, recalls, scores_by_target
from egocnn.train.predictions import csv_row, prediction_kinds, prediction_rows
from egocnn.train.recipe import Test, learn, read_if_small
from egocnn.train.run_folder import LOG, check_free, clear, growing_place, locked, put_in_place, restore
from egocnn.train.validation import check_targets, part_numbers, with_known_target

SPLIT, TABLE = "split.csv", "test_predictions.csv"
Log = Callable[[Path, Report | None], AbstractContextManager[Report | None]]
"""A folder for logs and a report -> a report that also logs there, until the end of the context."""


def train_run(
    collection: Collection, folder: Path, model: ModelConfig, train: TrainConfig, *, test: float = 0.2,
    about: Mapping[str, Any] | None = None, settings: Mapping[str, Mapping[str, Any]] | None = None,
    resume: bool = False, overwrite: bool = False, report: Report | None = None, log: Log | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train on all but the test part, score on it, and write the run folder; the metrics are returned too.

    ``metrics.json`` is written last: a folder that has it is complete. With ``overwrite`` the run grows beside the
    folder, goes on from what an earlier attempt at the same run left there, and takes the place of what is in the
    folder once it is complete. ``log`` writes to a folder of the run. ``settings``: what ``settings.toml`` is to say.

    In a group of processes all of them call this and train together; rank 0 writes and returns, the others end. What
    torchrun starts anew after a process has died goes on from the last checkpoint, as with ``resume``."""
    collection = with_test_part(with_known_target(read_if_small(collection)), test, train.seed)
    used = to_toml(settings or {"model": asdict(model), "train": {**asdict(train), "test": test}})
    digest = fingerprint(collection, model, train)
    world, group = World.here(), current()
    if group is not None:
        group.check_alike(digest)
    if group is not None and world.rank > 0:
        _, history = learn(collection, model, train, folder=folder)
        raise SystemExit(130 if history.interrupted else 0)
    if world.restarts > 0 and not resume:  # what is to be overwritten is not this very run, in its place already
        resume = not overwrite or (not growing_place(folder).exists() and _finished(folder, digest) is not None)
    overwrite = overwrite and not resume
    place = growing_place(folder) if overwrite else folder
    checkpoint = Checkpoint(place / "checkpoint.safetensors", digest)

    def find_finished() -> dict[str, Any] | None:
        finished = finished_metrics(folder, digest) if resume else None
        if finished is None:
            check_free(folder, resume=resume, overwrite=overwrite)
        return finished

    restore(folder)
    if finished := find_finished():  # a run that may only be read cannot be locked, and need not be
        return finished
    with locked(folder), locked(place) if overwrite else nullcontext():
        if finished := find_finished():  # by another process, before this one had the lock
            return finished
        metrics = _finished(place, digest) if overwrite else None  # killed before it could take its place
        if metrics is None:
            try:
                with log(place / LOG, report) if log else nullcontext(report) as logged:
                    given = (collection, folder, model, train, checkpoint, about or {}, used, logged)
                    metrics = _train(*given, is_new=not resume)
            except DivergedError:
                if overwrite:
                    remove(place)  # to go on from there would be to diverge again
                raise
        if overwrite and not metrics["interrupted"]:
            put_in_place(folder)
    return metrics


def _train(
    collection: Collection, folder: Path, model: ModelConfig, train: TrainConfig, checkpoint: Checkpoint,
    about: Mapping[str, Any], settings: str, report: Report | None, *, is_new: bool,
) -> dict[str, Any]:  # fmt: skip
    """One training, written to the folder of its checkpoint, which is ``folder`` or grows beside it; the metrics."""
    place, beside, metrics = checkpoint.path.parent, growing_place(folder), dict[str, Any]()

    def make_ready() -> None:
        if place != beside and is_new and not (beside / MODEL).exists():
            remove(beside)  # left by a training that was killed before it came to a model
        clear(place, all_of_it=place == beside and not checkpoint.is_of_this_run)

    def write_history(history: History) -> None:
        if not (place / "settings.toml").exists():  # a run that is resumed has the same
            write_text(place / "settings.toml", settings)
        if skipped := collection.outline.skipped:
            write_text(place / "invalid.csv", csv_text([("row", "smiles", "reason"), *skipped]))
        write_text(place / "history.csv", history_csv(history))

    def tell(history: History, config: TrainConfig) -> None:
        write_history(history)
        if report is not None:
            report(history, config)

    def conclude(predictor: Model, history: History, test: Test) -> None:
        part = np.full(len(collection), PARTS.index("test"))  # what neither trained nor validated
        for number, members in enumerate(part_numbers(collection.outline, train)):
            part[members] = number
        names = (name for some in collection.portions() for name in some.names)
        rows = zip(names, (PARTS[number] for number in part), strict=True)
        write_text(place / SPLIT, csv_text([("name", "part"), *rows]))
        own = {"train": asdict(train), "fingerprint": checkpoint.fingerprint, "versions": versions()}
        own |= {"split": digest_of_file(place / SPLIT)}
        replace(predictor, about={**predictor.about, **about, **own}).save(place)
        write_history(history)
        outputs = test()  # last: a graph that cannot be tested must not cost the model
        scores = {} if outputs is None else _test(predictor, collection, outputs, place / TABLE)
        metrics.update(facts(predictor, history), graphs=len(collection), **scores, seed=train.seed)
        metrics[DIGESTS] = digests(place, metrics)
        write_json(place / "metrics.json", metrics)
        if not history.interrupted:
            checkpoint.path.unlink(missing_ok=True)

    called: dict[str, Any] = {"report": tell, "ready": make_ready, "trained": conclude}
    learn(collection, model, train, folder=folder, checkpoint=checkpoint, **called)
    return metrics


def _finished(folder: Path, digest: str) -> dict[str, Any] | None:
    """The metrics of this very run where it is complete; one of other data or settings, or damaged, is trained anew."""
    with suppress(RunError):
        return finished_metrics(folder, digest)
    return None


def with_test_part(collection: Chosen, share: float, seed: int) -> Chosen:
    """The graphs with a test part marked: the data's own, or one split off by the seed; a share of 0 means none."""
    outline = collection.outline
    check_targets(outline)
    if outline.part is not None or share == 0:
        return collection
    _, tested = split_off(outline, share, seed)
    part = np.full(len(outline), PARTS.index("train"), np.int8)
    part[tested] = PARTS.index("test")
    return collection.with_parts(part)


def facts(predictor: Model, history: History) -> dict[str, Any]:
    """How the training went; of several networks: the mean of their scores, the most epochs, the best epoch of each."""
    best = [each.best for each in history.of_each if each.best is not None]
    epochs = [each.epoch for each in best]
    task: dict[str, Any] = {"task": "several targets", "targets": predictor.targets}
    if not predictor.targets:
        task = {"task": "classification" if predictor.class_names else "regression"}
    return {
        **task,
        f"validation_{history.monitor}": fmean(each.validation_score for each in best) if best else None,
        "validation_loss": fmean(each.validation_loss for each in best) if best else None,
        "networks": len(predictor.networks),
        "epochs": len(history.epochs),
        "best_epoch": epochs if len(history.of_each) > 1 else next(iter(epochs), None),
        "interrupted": history.interrupted,
        "seconds": round(sum(epoch.seconds for epoch in history.epochs), 3),
        "parameters": predictor.n_parameters,
    }


def _test(predictor: Model, collection: Collection, outputs: Tensor, table: Path) -> dict[str, Any]:
    """The outputs (R, T, C) for the test part, as scores, and written to a table."""
    tested, each = collection.outline.select("test"), outputs.numpy()
    assert tested.target is not None
    chosen = collection.choose(np.flatnonzero(collection.outline.part == PARTS.index("test")))
    names = [name for some in chosen.portions() for name in some.names]  # the outline need not have them
    check_finite(mean_output(each), names)
    scores: dict[str, Any] = scores_by_target(predictor, tested, each)
    found = list(predictor.of_outputs(each))
    for name, one, predictions, _ in found:
        if classes := one.class_names:
            known, numbers = known_truth(tested.of_target(name) if name else tested, classes)
            scores[f"{name}.recall" if name else "recall"] = recalls(predictions[known], numbers, classes)
    smiles = [text for some in chosen.portions() for text in some.smiles or ()]
    came_in = {"name": names, **({"smiles": smiles} if smiles else {})}
    columns, answers = prediction_kinds(predictor), prediction_rows(predictor, tested, found)
    rows = ((*own, *csv_row(answer, columns)) for *own, answer in zip(*came_in.values(), answers, strict=True))
    write_text(table, csv_text([(*came_in, *columns), *rows]))
    of_test = {re.sub(r"[^.]*$", r"test_\g<0>", name, count=1): value for name, value in scores.items()}
    return {"test_graphs": len(tested), **of_test}  # test_accuracy; of one of several targets, NAME.test_accuracy


def read_parts(folder: Path, about: Mapping[str, Any], data: str) -> dict[str, str]:
    """The part that every graph of a run was in, by name; none where DATA is not what the run was trained on."""
    if os.path.realpath(str(about.get("data"))) != os.path.realpath(data) or not (folder / SPLIT).exists():
        return {}
    if about.get("split", own := digest_of_file(folder / SPLIT)) != own:
        raise RunError(f"{folder / SPLIT}: is damaged: its checksum differs; egocnn train writes it anew")
    with (folder / SPLIT).open(encoding="utf-8", newline="") as file:
        rows = {(name, part) for name, part in list(csv.reader(file))[1:]}
    times = Counter(name for name, _ in rows)  # a name that stands in several parts says nothing
    # an apostrophe may stand before a name that a spreadsheet would take for a formula
    return {own: part for name, part in rows if times[name] == 1 for own in (name, name.removeprefix("'"))}


def fingerprint(collection: Collection, model: ModelConfig, train: TrainConfig) -> str:
    """A digest of data and settings; where it is computed does not count."""
    settings = {**asdict(model), **asdict(train), "device": None}
    return hashlib.sha256(json.dumps([settings, collection.digest], sort_keys=True).encode()).hexdigest()


def finished_metrics(folder: Path, expected: str) -> dict[str, Any] | None:
    """The metrics of a run that is complete already, else None; a model of another run is refused, with or without."""
    if not any((folder / name).exists() for name in ("config.json", "metrics.json")):
        return None
    config = read_config(folder)
    if config.get("fingerprint") != expected:
        raise RunError(f"{folder}: was started with other data or settings; use them, or --overwrite")
    try:
        metrics = json.loads(regular(folder / "metrics.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{folder}/metrics.json: {error}; --overwrite starts the run anew") from None
    if not isinstance(metrics, dict) or not metrics.keys() >= {"interrupted", "parameters", "epochs", "best_epoch"}:
        raise RunError(f"{folder}/metrics.json: does not hold the metrics of a run; --overwrite starts the run anew")
    if metrics["interrupted"]:
        return None
    try:
        check_model(folder, config)
        if "split" in config and digest_of_file(folder / SPLIT) != config["split"]:
            raise RunError(f"{SPLIT} is damaged: its checksum differs")
        if metrics.get(DIGESTS, own := digests(folder, metrics)) != own:  # older versions wrote none
            raise RunError("metrics.json or history.csv is damaged, or of another run: its checksum differs")
    except (OSError, RunError) as error:
        raise RunError(f"{folder}: {error}; --overwrite starts the run anew") from None
    return metrics


def digests(folder: Path, metrics: Mapping[str, Any]) -> dict[str, str]:
    """Checksums of metrics and history.csv beside this model, but for the seconds: no two runs take as many."""
    plain = {name: value for name, value in metrics.items() if name not in (DIGESTS, "seconds")}
    rows = regular(folder / "history.csv").read_text(encoding="utf-8", errors="replace").splitlines()
    model, bare = digest_of_file(folder / MODEL), {"rows": [row.rpartition(",")[0] for row in rows]}
    return {"metrics.json": digest_of_plain({**plain, MODEL: model}), "history.csv": digest_of_plain(bare)}


def history_csv(history: History) -> str:
    rows = [(n, *asdict(epoch).values()) for n, each in enumerate(history.of_each, start=1) for epoch in each.epochs]
    return csv_text([("network", *(f.name for f in fields(Epoch))), *rows])


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}


def machine() -> str:
    """The processor in a few words."""
    model = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):  # not Linux: the short name must do
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return f"{model}, {os.cpu_count()} cores"
