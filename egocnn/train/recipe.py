"""Graphs + settings -> a trained predictor: split off a validation part, fit, choose the best epoch, calibrate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.scalefree import Judgement, decide_tie
from egocnn.encode.encoder import Encoder
from egocnn.errors import ConfigError, DivergedError
from egocnn.model import Model
from egocnn.nn.batch import Batchable
from egocnn.nn.model import EgoCNN
from egocnn.nn.stacked.network import check_stackable
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines.distributed.fit import fit_together
from egocnn.train.engines.distributed.world import current
from egocnn.train.engines.recorded.alone import fit_alone
from egocnn.train.loop import History, Report, choose_device, fit, loss_of, predict
from egocnn.train.validation import training_parts, with_own_labels


def learn(
    graphs: Graphs,
    model: ModelConfig,
    train: TrainConfig,
    *,
    embed: nn.Module | None = None,
    embed_width: int | None = None,
    stack: bool | None = None,
    checkpoint: Checkpoint | None = None,
    report: Report | None = None,
    ready: Callable[[], None] | None = None,
) -> tuple[Model, History]:
    """Train on ``graphs``; their own validation part chooses the best epoch, else a part split off by the seed.

    Graphs that the data marks as its test part are never looked at. ``stack``: train as a stack of one, in steps that a
    GPU records and replays; by default where a GPU computes and the node embedding is one of ours. The processes of a
    group (:mod:`egocnn.train.engines.distributed.world`) all call this, and train together. ``ready`` is called once graphs and
    settings have proved fit for training, before the checkpoint is touched. Ctrl-C before the first epoch has ended is
    passed on; later it ends the training with the best weights so far.
    """
    device = choose_device(train.device)  # first, to refuse early one that is not there
    fitted, chosen_by = training_parts(graphs, train)
    fitted = with_own_labels(fitted)
    model, judgement = decide_tie(model, fitted)
    encoder = Encoder.fit(fitted, model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(train.seed)
        predictor = Model.build(model, encoder, embed=embed, embed_width=embed_width)
    prepared, validation = predictor.encode(fitted), predictor.encode(chosen_by)
    is_one_of_several = current() is not None
    if stack and is_one_of_several:
        raise ConfigError("a stack trains in one process; leave out either the stack or torchrun")
    is_stacked = not is_one_of_several and (is_best_stacked(predictor.network, device) if stack is None else stack)
    if is_stacked:
        check_stackable([predictor.network])
    if ready is not None:
        ready()
    history = (fit_together if is_one_of_several else fit_alone if is_stacked else fit)(
        predictor.network,
        prepared,
        validation,
        train,
        resume=None if checkpoint is None else checkpoint.resume,
        keep=None if checkpoint is None else checkpoint.keep,
        report=report,
    )
    return with_conclusion(predictor, history, validation, judgement, device), history


def with_conclusion(
    predictor: Model,
    history: History,
    validation: Batchable,
    judgement: Judgement | None,
    device: torch.device,
) -> Model:
    """What is left to do after a training: refuse one that came to nothing, calibrate, note why layers are tied."""
    if history.best is None and history.interrupted:
        raise KeyboardInterrupt
    if history.best is None:
        raise DivergedError(
            "training diverged: no epoch gave a finite loss; try a smaller --learning-rate, with --overwrite"
        )
    if predictor.class_names and validation.target is not None:
        logits = predict(predictor.network, validation.to(device)).cpu()
        predictor = replace(predictor, temperature=calibrate(logits, validation.target.cpu()))
    if judgement is not None:
        predictor = replace(
            predictor, about={"tie": {"scale_free": judgement.is_scale_free, "reason": judgement.reason}}
        )
    return predictor


def is_best_stacked(network: EgoCNN, device: torch.device) -> bool:
    """A GPU gains from recorded steps; a module in place of the node embedding may do what cannot be recorded."""
    return device.type == "cuda" and not network.custom_embedding


def calibrate(logits: Tensor, target: Tensor) -> float:
    """The temperature from 1 to 10 under which the validation part is most likely.

    A temperature below 1 would make a model that errs on none of a few graphs claim certainty: never sharpen.
    """
    candidates = torch.logspace(0, 1, 41).tolist()
    losses = [float(loss_of(logits / t, target)) for t in candidates]
    return float(candidates[int(np.argmin(losses))])
