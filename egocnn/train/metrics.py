"""Outputs + targets -> losses to be minimised, and scores of classes and of values, each under one name."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from egocnn.config import CLASS_SCORES, VALUE_SCORES
from egocnn.data.arrays import Bools
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DataError
from egocnn.nn.batch import Batchable
from egocnn.nn.model import EgoCNN
from egocnn.nn.predict import predict

if TYPE_CHECKING:
    from egocnn.model import Model

LOWER_IS_BETTER = ("log_loss", "rmse", "mae")
IN_WORDS = {"roc_auc": "ROC AUC", "mcc": "MCC", "r2": "R²", "rmse": "RMSE", "mae": "MAE", "spearman": "Spearman"}


def in_words(name: str) -> str:
    """A score as people write it: ROC AUC, average precision."""
    return IN_WORDS.get(name, name.replace("_", " "))


def loss_of(outputs: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy for classes, mean squared error for (standardised) values."""
    if target.is_floating_point():
        return F.mse_loss(outputs[:, 0], target)
    return F.cross_entropy(outputs, target, weight=weights)


def weight_of(target: Tensor, weights: Tensor | None) -> Tensor | float:
    """What the graphs count together in the mean that the loss is."""
    return len(target) if weights is None else weights[target].sum()


def r2(predicted: Tensor | NDArray[Any], target: Tensor | NDArray[Any]) -> float:
    """Share of the variance of the target (G) that is explained; 0 where nothing varies."""
    return r2_of_sums(sum_of_squares(predicted - target), sum_of_squares(target - target.mean()))


def r2_of_sums(residual: float, spread: float) -> float:
    """The same from sums of squares: of the errors, and of the distances from the mean."""
    # where the truth hardly varies, even a small error is beyond all numbers
    return max(1 - residual / spread, -sys.float_info.max) if spread > 0 else 0.0


def sum_of_squares(values: Tensor | NDArray[Any]) -> float:
    """Added up in double precision."""
    wide = values.double() if isinstance(values, Tensor) else values.astype(np.float64)
    return float((wide * wide).sum())


def accuracy(outputs: Tensor, target: Tensor) -> float:
    """Share of graphs whose likeliest class is the right one; outputs (G, C)"""
    return float((outputs.argmax(1) == target).double().mean())


def loss_and_score(batches: Sequence[tuple[Tensor, Tensor, Tensor]], monitor: str = "") -> tuple[float, float]:
    """Outputs (B, C), targets (B) and mean loss of every batch -> mean loss of all graphs, and :func:`monitored`."""
    outputs, target = (torch.cat([batch[side] for batch in batches]) for side in (0, 1))
    loss = torch.stack([loss * len(own) for _, own, loss in batches]).sum()
    return float(loss) / len(target), monitored(monitor, outputs, target)


def monitored(name: str, outputs: Tensor, target: Tensor) -> float:
    """The score that chooses the best epoch: '' for accuracy or R², 0 where it is undefined and the loss decides."""
    if name in ("", "accuracy", "r2"):
        return r2(outputs[:, 0], target) if target.is_floating_point() else accuracy(outputs, target)
    wide = outputs.detach().double().cpu()
    predictions = wide[:, 0] if target.is_floating_point() else torch.softmax(wide, dim=1)
    return scores_of(predictions.numpy(), target.cpu().numpy()).get(name, 0.0)


def monitor_of(name: str, target: Tensor) -> str:
    """What chooses the best epoch of a training on these targets (G): ``name``, or what auto stands for."""
    if name == "auto" and not target.is_floating_point():
        return "roc_auc" if 3 * int(target.bincount().max()) > 2 * len(target) else "accuracy"
    return checked_score(None if name == "auto" else name, is_value=target.is_floating_point())


def checked_score(name: str | None, *, is_value: bool) -> str:
    """The name of a score, by default accuracy or R²; refused where it is one of the other kind of target."""
    mine, what = (VALUE_SCORES, "values") if is_value else (CLASS_SCORES, "classes")
    if name is not None and name not in mine:
        raise ConfigError(f"{what} are not scored by {name!r}; there are {', '.join(mine)}")
    return name or mine[0]


@torch.no_grad()
def evaluate(network: EgoCNN, data: Batchable, weights: Tensor | None = None, monitor: str = "") -> tuple[float, float]:
    """Loss and :func:`monitored` score in evaluation mode."""
    if data.target is None:
        raise DataError("these graphs have no target to compare with")
    outputs = predict(network, data)
    return loss_and_score([(outputs, data.target, loss_of(outputs, data.target, weights))], monitor)


def scores_of(predictions: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    """Probabilities (G, C) and class numbers (-1: a class that the model does not know), or values (G) and values

    What is undefined is left out: most scores where all graphs are of one class, R² and Spearman where nothing varies.
    """
    from scipy.stats import spearmanr
    from sklearn.metrics import average_precision_score, matthews_corrcoef, roc_auc_score

    if predictions.ndim == 2:
        predicted, known = predictions.argmax(axis=1), truth >= 0
        of_truth = np.where(known, predictions[np.arange(len(truth)), truth], 0)
        found = {"accuracy": (predicted == truth).mean(), "log_loss": -np.log(np.maximum(of_truth, 1e-12)).mean()}
        there = np.unique(truth[known]).tolist()
        if len(there) > 1 and np.isfinite(predictions).all():
            ranked = there if predictions.shape[1] > 2 else [1]  # of two classes the second; of more each in turn
            for name, score in (("roc_auc", roc_auc_score), ("average_precision", average_precision_score)):
                found[name] = np.mean([score(truth[known] == c, predictions[known, c]) for c in ranked])
            found["mcc"] = matthews_corrcoef(truth, predicted)
            found["balanced_accuracy"] = np.mean([(predicted[truth == c] == c).mean() for c in np.unique(truth)])
    else:
        error = np.abs(predictions - truth)
        found = {"rmse": math.sqrt(sum_of_squares(error) / len(error)), "mae": error.mean()}
        if len(np.unique(truth)) > 1:
            found["r2"] = r2(predictions, truth)
            found |= {"spearman": spearmanr(predictions, truth)[0]} if len(np.unique(predictions)) > 1 else {}
    return {name: float(value) for name, value in found.items() if math.isfinite(value)}


def recalls(predictions: NDArray[Any], truth: NDArray[Any], class_names: Sequence[str]) -> dict[str, float]:
    """For every class that is there, the share of its graphs that are predicted right."""
    there = ((c, name) for c, name in enumerate(class_names) if (truth == c).any())
    return {name: float((predictions[truth == c].argmax(axis=1) == c).mean()) for c, name in there}


def test_scores(predictor: Model, graphs: Graphs, *, device: str) -> dict[str, float]:
    """All scores of a classifier or of a regressor that are defined; nothing without a truth.

    Graphs whose target is not known do not count; a class that the model was not trained on counts as missed.
    """
    known, truth = known_truth(graphs, predictor.class_names)
    if not known.any():
        return {}
    return scores_of(predictor.predictions(graphs if known.all() else graphs[known], device=device), truth)


def known_truth(graphs: Graphs, class_names: tuple[str, ...]) -> tuple[Bools, NDArray[Any]]:
    """Which graphs (G) have a target that is known, and these targets, classes by their numbers in ``class_names``."""
    assert graphs.target is not None
    known = graphs.target >= 0 if graphs.is_classification else np.isfinite(graphs.target)
    truth = graphs.with_names(classes=class_names or None).target
    assert truth is not None
    return known, truth[known]
