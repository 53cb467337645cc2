"""Graphs + settings -> a run folder: trained, tested, resumable."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import ARRAYS, TEXTS, Graphs
from egocnn.data.schema import PARTS
from egocnn.data.split import split_in_two
from egocnn.data.store import Stored
from egocnn.errors import DivergedError, RunError
from egocnn.files import write_json, write_text, write_toml
from egocnn.model import MODEL, Model, check_finite, check_model, read_config
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.loop import Epoch, History, Report
from egocnn.train.recipe import learn
from egocnn.train.recipe_stored import learn_stored
from egocnn.train.run_folder import (
    LOG,
    check_free,
    clear,
    clear_left,
    forget,
    growing_place,
    locked,
    put_in_place,
    restore,
)
from egocnn.train.validation import check_targets

Log = Callable[[Path, Report | None], AbstractContextManager[Report | None]]
"""A folder for logs and a report -> a report that also logs there, until the end of the context."""


def train_run(
    graphs: Graphs | Stored,
    folder: Path,
    model: ModelConfig,
    train: TrainConfig,
    *,
    test: float = 0.2,
    about: Mapping[str, Any] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: Report | None = None,
    log: Log | None = None,
) -> dict[str, Any]:
    """Train on all but the test part, score on it, and write the run folder; the metrics are returned too.

    ``metrics.json`` is written last: a folder that has it is complete. Graphs that stay in their store train to the
    same bits as those in memory, in memory that does not grow with the store. With ``overwrite`` the run grows beside
    the folder (:func:`egocnn.train.run_folder.growing_place`), goes on from what an earlier attempt at the same run
    left there, and takes the place of what is in the folder once it is complete. ``log`` writes to a folder of the run.

    ``settings``: what ``settings.toml`` is to say, in the form that ``egocnn train --config`` reads; by default the
    settings of network and training.
    """
    graphs = checked(graphs, test, train.seed)
    used = settings or {"model": asdict(model), "train": {**asdict(train), "test": test}}
    overwrite = overwrite and not resume
    place = growing_place(folder) if overwrite else folder
    checkpoint = Checkpoint(place / "checkpoint.safetensors", fingerprint(graphs, model, train))

    def find_finished() -> dict[str, Any] | None:
        finished = finished_metrics(folder, checkpoint.fingerprint) if resume else None
        if finished is None:
            check_free(folder, resume=resume, overwrite=overwrite)
        return finished

    restore(folder)
    if finished := find_finished():  # a run that may only be read cannot be locked, and need not be
        return finished
    with locked(folder), locked(place) if overwrite else nullcontext():
        if finished := find_finished():  # by another process, before this one had the lock
            return finished
        metrics = _finished_beside(checkpoint) if overwrite else None
        if metrics is None:
            try:
                with log(place / LOG, report) if log else nullcontext(report) as told:
                    metrics = _train(graphs, folder, model, train, about, used, checkpoint, told, is_new=not resume)
            except DivergedError:
                if overwrite:
                    forget(place)  # to go on from there would be to diverge again
                raise
        if overwrite and not metrics["interrupted"]:
            put_in_place(folder)
    return metrics


def _train(
    graphs: Graphs | Stored,
    folder: Path,
    model: ModelConfig,
    train: TrainConfig,
    about: Mapping[str, Any] | None,
    settings: Mapping[str, Mapping[str, Any]],
    checkpoint: Checkpoint,
    report: Report | None,
    *,
    is_new: bool,
) -> dict[str, Any]:
    """The run, written to the folder of its checkpoint, which is ``folder`` or grows beside it."""
    place, beside = checkpoint.path.parent, growing_place(folder)

    def keep_settings() -> None:
        if not (place / "settings.toml").exists():  # a run that is resumed has the same
            write_toml(place / "settings.toml", settings)

    def keep_reporting(history: History, config: TrainConfig) -> None:
        keep_settings()
        write_text(place / "history.csv", history_csv(history))
        if report is not None:
            report(history, config)

    def ready() -> None:
        if place == beside and not checkpoint.is_of_this_run:
            clear(place)
        elif place != beside and is_new and not (beside / MODEL).exists():
            forget(beside)  # left by a training that was killed before it came to a model
        clear_left(place)

    how: dict[str, Any] = {"checkpoint": checkpoint, "report": keep_reporting, "ready": ready}
    tested: Tensor | None = None
    if isinstance(graphs, Stored):
        predictor, history, tested = learn_stored(graphs, model, train, folder, **how)
    else:
        predictor, history = learn(graphs, model, train, **how)
    about = {
        **predictor.about,
        **(about or {}),
        "train": asdict(train),
        "fingerprint": checkpoint.fingerprint,
        "versions": versions(),
    }
    predictor = replace(predictor, about=about)
    predictor.save(place)  # before the test: a graph that cannot be tested must not cost the model
    write_text(place / "history.csv", history_csv(history))
    if not isinstance(graphs, Stored):
        scores = _test_part(predictor, graphs, device=train.device)
    else:
        scores = {} if tested is None else _stored_scores(predictor, graphs, tested)
    metrics = {**_facts(predictor, history, len(graphs)), **scores, "seed": train.seed}
    keep_settings()
    write_json(place / "metrics.json", metrics)
    if not history.interrupted:
        checkpoint.path.unlink(missing_ok=True)
    return metrics


def _finished_beside(checkpoint: Checkpoint) -> dict[str, Any] | None:
    """The metrics of this very run where it is complete, and was killed before it could take its place."""
    try:
        return finished_metrics(checkpoint.path.parent, checkpoint.fingerprint)
    except RunError:  # of other data or settings, or damaged: it is trained anew
        return None


def checked(graphs: Graphs | Stored, test: float, seed: int) -> Graphs | Stored:
    """The graphs with a test part marked, once there is something to learn from them."""
    if isinstance(graphs, Stored):
        check_targets(graphs.outline)
        return graphs.with_outline(with_test_part(graphs.outline, test, seed))
    check_targets(graphs)
    return with_test_part(graphs, test, seed)


def with_test_part(graphs: Graphs, share: float, seed: int) -> Graphs:
    """The graphs with a test part marked: the data's own, or one split off by the seed; a share of 0 means none."""
    if graphs.part is not None or share == 0:
        return graphs
    classes = graphs.target if graphs.is_classification else None
    _, tested = split_in_two(len(graphs), share, classes=classes, groups=graphs.group, seed=seed)
    part = np.full(len(graphs), PARTS.index("train"), np.int8)
    part[tested] = PARTS.index("test")
    return graphs.replace(part=part)


def measure(predictor: Model, graphs: Graphs, history: History, *, device: str) -> dict[str, Any]:
    """Scores of the best epoch on validation and test part, and the facts that go with them."""
    assert graphs.part is not None or history.best is not None
    return {**_facts(predictor, history, len(graphs)), **_test_part(predictor, graphs, device=device)}


def _facts(predictor: Model, history: History, graphs: int) -> dict[str, Any]:
    score = "accuracy" if predictor.class_names else "r2"
    return {
        "task": "classification" if predictor.class_names else "regression",
        f"validation_{score}": max(history.best.validation_score, -sys.float_info.max) if history.best else None,
        "validation_loss": history.best.validation_loss if history.best else None,
        "epochs": len(history.epochs),
        "best_epoch": history.best.epoch if history.best else None,
        "interrupted": history.interrupted,
        "seconds": round(sum(epoch.seconds for epoch in history.epochs), 3),
        "parameters": predictor.network.n_parameters,
        "graphs": graphs,
    }


def _test_part(predictor: Model, graphs: Graphs, *, device: str) -> dict[str, Any]:
    tested = graphs.select("test") if graphs.part is not None else graphs[:0]
    if len(tested) == 0:
        return {}
    return _named(len(tested), test_scores(predictor, tested, device=device))


def _stored_scores(predictor: Model, graphs: Stored, outputs: Tensor) -> dict[str, Any]:
    """What :func:`_test_part` gives, of graphs that have been through the network already."""
    tested = graphs.outline.select("test")
    assert tested.target is not None
    if not outputs.isfinite().all():  # the outline has no names
        chosen = graphs.choose(np.flatnonzero(graphs.outline.part == PARTS.index("test")))
        check_finite(outputs.numpy(), [name for some in chosen.portions() for name in some.names])
    if predictor.class_names:
        said = torch.softmax(outputs.double() / predictor.temperature, dim=1)
    else:
        said = predictor.encoder.to_value(outputs[:, 0].double())
    return _named(len(tested), scores_of(said.numpy(), tested.target))


def _named(graphs: int, scores: Mapping[str, float]) -> dict[str, Any]:
    return {"test_graphs": graphs, **{f"test_{name}": value for name, value in scores.items()}}


def test_scores(predictor: Model, graphs: Graphs, *, device: str) -> dict[str, float]:
    """Accuracy and log loss of a classifier; R² and mean absolute error of a regressor; nothing without a truth.

    Graphs whose target is not known do not count; a class that the model was not trained on counts as missed.
    """
    assert graphs.target is not None
    known = graphs.target >= 0 if graphs.is_classification else np.isfinite(graphs.target)
    if not known.any():
        return {}
    graphs = graphs if known.all() else graphs[known]
    assert graphs.target is not None
    if not predictor.class_names:
        return scores_of(predictor.values(graphs, device=device), graphs.target)
    truth = graphs.with_names(classes=predictor.class_names).target
    assert truth is not None
    return scores_of(predictor.probabilities(graphs, device=device), truth)


def scores_of(said: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    """Probabilities (G, C) and class numbers (-1: a class that the model does not know), or values (G) and values"""
    if said.ndim == 2:
        of_truth = np.where(truth >= 0, said[np.arange(len(truth)), truth], 0)
        return {
            "accuracy": float((said.argmax(axis=1) == truth).mean()),
            "log_loss": float(-np.log(np.maximum(of_truth, 1e-12)).mean()),
        }
    error = said - truth
    spread = float(np.square(truth - truth.mean()).sum())
    return {
        # of a truth that hardly varies even a small error is beyond all numbers
        "r2": max(1 - float(np.square(error).sum()) / spread, -sys.float_info.max) if spread > 0 else 0.0,
        "mean_absolute_error": float(np.abs(error).mean()),
    }


def fingerprint(graphs: Graphs | Stored, model: ModelConfig, train: TrainConfig) -> str:
    """A digest of data and settings; where it is computed does not count."""
    digest = hashlib.sha256()
    settings = {**asdict(model), **asdict(train), "device": None}
    if isinstance(graphs, Stored):
        digest.update(json.dumps([settings, graphs.digest], sort_keys=True).encode())
        return digest.hexdigest()
    for name in ARRAYS:
        values = getattr(graphs, name)
        digest.update(name.encode() if values is None else np.ascontiguousarray(values).tobytes())
    texts = {name: getattr(graphs, name) for name in TEXTS}
    digest.update(json.dumps([settings, texts], sort_keys=True).encode())
    return digest.hexdigest()


def finished_metrics(folder: Path, expected: str) -> dict[str, Any] | None:
    """The metrics of a run that is complete already, else None."""
    try:
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{folder}/metrics.json: {error}; --overwrite starts the run anew") from None
    config = read_config(folder)
    if config.get("fingerprint") != expected:
        raise RunError(f"{folder}: was started with other data or settings; use them, or --overwrite")
    if not isinstance(metrics, dict) or not metrics.keys() >= {"interrupted", "parameters", "epochs", "best_epoch"}:
        raise RunError(f"{folder}/metrics.json: does not hold the metrics of a run; --overwrite starts the run anew")
    if metrics["interrupted"]:
        return None
    try:
        check_model(folder, config)
    except (OSError, RunError) as error:
        raise RunError(f"{folder}: {error}; --overwrite starts the run anew") from None
    return metrics


def history_csv(history: History) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, [f.name for f in fields(Epoch)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(epoch) for epoch in history.epochs)
    return text.getvalue()


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}


def machine() -> str:
    """The processor in a few words."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass  # not Linux: the short name must do
    return f"{model}, {os.cpu_count()} cores"
