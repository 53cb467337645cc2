"""A fold + any model with ``fit`` and ``predict`` -> the finished fold: fitted, chosen by validation, tested."""

import copy
import inspect
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from egocnn.nn.device import choose_device
from egocnn.study.cluster import peak_megabytes
from egocnn.study.crossval.folds import FoldTask
from egocnn.study.crossval.record import Fold, FoldRun


@runtime_checkable
class Classifier(Protocol):
    """Learns the classes of graphs, by ``fit(graphs, target)`` as in scikit-learn, or, where ``fit`` has a parameter of
    that name, by ``fit(graphs, validation=graphs_to_choose_by)``: these choose between settings or epochs, and all else
    is fitted on the first. The tested graphs are seen by ``predict`` alone. Where it has ``parameters`` (a number once
    it is fitted, or the method of a torch module), it is trained anew for every restart and run of the protocol;
    without, one fit a fold is enough. The record calls it by its ``name``, or by the name of its class."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Training graphs, and their targets or validation graphs -> the fitted model"""

    def predict(self, graphs: Graphs, /) -> Any:
        """(G) class numbers, as in ``target`` of the training graphs"""


@runtime_checkable
class Builder(Protocol):
    """A name, and a function that builds such a model from a seed."""

    @property
    def name(self) -> str:
        """What the record calls the model."""

    @property
    def build(self) -> Callable[[int], Classifier]:
        """seed -> an untrained model"""


AnyModel: TypeAlias = ModelConfig | Classifier | Builder  # the settings of an Ego-CNN, or another model
EGO_CNN = "ego-cnn"  # What our own model is called, beside the names of others.


def name_of(model: AnyModel) -> str:
    """Of another model its ``name``, or the name of its class."""
    return EGO_CNN if isinstance(model, ModelConfig) else str(getattr(model, "name", type(model).__name__))


def classifier_fold(graphs: Graphs, task: FoldTask, model: Classifier | Builder, train: TrainConfig) -> Fold:
    """One fold of a model that is not an Ego-CNN, one training after the other. A model without parameters, a kernel
    with its support vectors say, has no weights to start anew: it is fitted once."""
    if not graphs.is_classification:
        raise DataError(f"{name_of(model)} tells classes apart; these graphs have none")
    device = choose_device(train.device)
    learned, validation, tested = (graphs[part] for part in (task.learned, task.validation, task.tested))
    runs: list[FoldRun] = []
    parameters, training, testing = None, 0.0, 0.0
    for seeds in task.seeds:
        started = time.perf_counter()
        restarts: list[tuple[float, Classifier]] = []
        for seed in seeds:
            with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
                torch.manual_seed(seed)
                fitted = _untrained(model, seed)
                if "validation" in inspect.signature(fitted.fit).parameters:
                    fitted.fit(learned, validation=validation)
                else:
                    fitted.fit(learned, learned.target)
            restarts.append((_accuracy(fitted, validation, name_of(model)), fitted))
            if getattr(fitted, "parameters", None) is None:
                break
        best = max(range(len(restarts)), key=lambda number: restarts[number][0])  # of equals the first
        trained = time.perf_counter()
        score, own = _accuracy(restarts[best][1], tested, name_of(model)), seeds[: len(restarts)]
        runs.append(FoldRun(score=score, validation_score=restarts[best][0], restart=best + 1, seeds=own))
        training, testing = training + trained - started, testing + time.perf_counter() - trained
        if (parameters := getattr(restarts[best][1], "parameters", None)) is None:
            break
    count = sum(weight.numel() for weight in parameters()) if callable(parameters) else parameters
    return Fold.of(task, runs, count, (0.0, training, testing), peak_megabytes(device))


def _untrained(model: Classifier | Builder, seed: int) -> Classifier:
    """What the builder builds, or a copy of the model with its ``seed`` or ``random_state`` set."""
    if isinstance(model, Builder):
        return model.build(seed)
    fresh = copy.deepcopy(model)
    for setting in ("seed", "random_state"):
        if hasattr(fresh, setting):
            setattr(fresh, setting, seed)
    return fresh


def _accuracy(model: Classifier, graphs: Graphs, name: str) -> float:
    """Of its predictions for graphs whose targets it does not see."""
    assert graphs.target is not None
    predicted = np.asarray(model.predict(graphs.replace(target=None)))
    if predicted.shape != graphs.target.shape:
        raise DataError(f"{name} gives {predicted.shape} predictions for {graphs.target.shape} graphs")
    return float((predicted == graphs.target).mean())
