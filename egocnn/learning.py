"""Graphs + settings -> a trained predictor: split off a validation part, fit, choose the best epoch, calibrate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from egocnn.arrays import Ints
from egocnn.checkpoint import Checkpoint
from egocnn.config import ModelConfig, TrainConfig
from egocnn.errors import DataError
from egocnn.graphs import Graphs
from egocnn.predictor import Predictor
from egocnn.preparation import Preparation
from egocnn.schema import PARTS
from egocnn.training import History, Report, choose_device, fit, loss_of, predict


def learn(
    graphs: Graphs,
    model: ModelConfig,
    train: TrainConfig,
    *,
    embed: nn.Module | None = None,
    embed_width: int | None = None,
    checkpoint: Checkpoint | None = None,
    report: Report | None = None,
    ready: Callable[[], None] | None = None,
) -> tuple[Predictor, History]:
    """Train on ``graphs``; their own validation part chooses the best epoch, else a part split off by the seed.

    Graphs that the data marks as its test part are never looked at. ``ready`` is called once graphs and settings
    have proved fit for training, before the checkpoint is touched. Ctrl-C before the first epoch has ended is passed
    on; later it ends the training with the best weights so far.
    """
    choose_device(train.device)  # to refuse early a device that is not there
    fitted, chosen_by = training_parts(graphs, train)
    fitted = with_own_labels(fitted)
    preparation = Preparation.fit(fitted, model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(train.seed)
        predictor = Predictor.build(model, preparation, embed=embed, embed_width=embed_width)
    prepared, validation = predictor.prepare(fitted), predictor.prepare(chosen_by)
    if ready is not None:
        ready()
    history = fit(
        predictor.network,
        prepared,
        validation,
        train,
        resume=None if checkpoint is None else checkpoint.resume,
        keep=None if checkpoint is None else checkpoint.keep,
        report=report,
    )
    if history.best is None and history.interrupted:
        raise KeyboardInterrupt
    if history.best is None:
        raise DataError(
            "training diverged: no epoch gave a finite loss; try a smaller --learning-rate, with --overwrite"
        )
    if preparation.class_names and validation.target is not None:
        device = next(predictor.network.parameters()).device
        logits = predict(predictor.network, validation.to(device)).cpu()
        predictor = replace(predictor, temperature=calibrate(logits, validation.target))
    return predictor, history


def training_parts(graphs: Graphs, config: TrainConfig) -> tuple[Graphs, Graphs]:
    """The graphs to learn from and those that choose the best epoch, all of them fit to be used."""
    check_targets(graphs)
    if graphs.part is None:
        return graphs.split(test=config.validation, seed=config.seed)
    learned, validation = graphs.select("train"), graphs.select("validation")
    if len(learned) == 0:
        raise DataError(f"no graph is marked {PARTS[0]!r} in the data's own split")
    check_targets(learned)
    return (learned, validation) if len(validation) else learned.split(test=config.validation, seed=config.seed)


def with_own_labels(graphs: Graphs) -> Graphs:
    """The graphs with those label names alone that they use.

    A label that only the test part has must be to the model what it is in any new data: unseen.
    """

    def used(codes: Ints | None, names: tuple[str, ...]) -> tuple[str, ...]:
        return names if codes is None else tuple(names[code] for code in np.unique(codes[codes >= 0]))

    return graphs.with_names(
        nodes=used(graphs.node_label, graphs.node_label_names), edges=used(graphs.edge_label, graphs.edge_label_names)
    )


def check_targets(graphs: Graphs) -> None:
    """Raise unless there is something to learn: a target for every graph, and more than one of them."""
    if len(graphs) < 2:
        raise DataError(f"training needs at least 2 graphs, got {len(graphs)}")
    if graphs.target is None:
        raise DataError("these graphs have no target to learn; name its column with --target")
    missing = graphs.target < 0 if graphs.is_classification else ~np.isfinite(graphs.target)
    if missing.any():
        name = graphs.names[int(np.flatnonzero(missing)[0])]
        raise DataError(f"{int(missing.sum())} graphs have no target, {name!r} the first; training needs all")
    if len(np.unique(graphs.target)) < 2:
        only = graphs.class_names[int(graphs.target[0])] if graphs.is_classification else graphs.target[0]
        raise DataError(f"every graph has the same target, {only}; there is nothing to tell apart")


def calibrate(logits: Tensor, target: Tensor) -> float:
    """The temperature from 1 to 10 under which the validation part is most likely.

    A temperature below 1 would make a model that errs on none of a few graphs claim certainty: never sharpen.
    """
    candidates = torch.logspace(0, 1, 41).tolist()
    losses = [float(loss_of(logits / t, target)) for t in candidates]
    return float(candidates[int(np.argmin(losses))])
