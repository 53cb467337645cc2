"""Outputs + targets -> losses to be minimised, and scores: accuracy, log loss, R², mean absolute error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from egocnn.data.arrays import Bools
from egocnn.data.graphs import Graphs
from egocnn.errors import DataError
from egocnn.nn.batch import Batchable
from egocnn.nn.model import EgoCNN
from egocnn.nn.predict import predict

if TYPE_CHECKING:
    from egocnn.model import Model


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


def loss_and_score(batches: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[float, float]:
    """Outputs (B, C), targets (B) and mean loss of every batch -> mean loss of all graphs, and accuracy or R²."""
    outputs, target = (torch.cat([batch[side] for batch in batches]) for side in (0, 1))
    loss = torch.stack([loss * len(own) for _, own, loss in batches]).sum()
    score = r2(outputs[:, 0], target) if target.is_floating_point() else accuracy(outputs, target)
    return float(loss) / len(target), score


@torch.no_grad()
def evaluate(network: EgoCNN, data: Batchable, *, weights: Tensor | None = None) -> tuple[float, float]:
    """Loss and score (accuracy, or R²) in evaluation mode."""
    if data.target is None:
        raise DataError("these graphs have no target to compare with")
    outputs = predict(network, data)
    return loss_and_score([(outputs, data.target, loss_of(outputs, data.target, weights))])


def scores_of(predictions: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    """Probabilities (G, C) and class numbers (-1: a class that the model does not know), or values (G) and values"""
    if predictions.ndim == 2:
        of_truth = np.where(truth >= 0, predictions[np.arange(len(truth)), truth], 0)
        return {
            "accuracy": float((predictions.argmax(axis=1) == truth).mean()),
            "log_loss": float(-np.log(np.maximum(of_truth, 1e-12)).mean()),
        }
    return {"r2": r2(predictions, truth), "mean_absolute_error": float(np.abs(predictions - truth).mean())}


def test_scores(predictor: Model, graphs: Graphs, *, device: str) -> dict[str, float]:
    """Accuracy and log loss of a classifier; R² and mean absolute error of a regressor; nothing without a truth.

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
