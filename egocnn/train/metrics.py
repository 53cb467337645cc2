"""Outputs + targets -> losses to be minimised, and scores: accuracy, log loss, R², mean absolute error."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, eq=False)
class SeveralTargets:
    r"""The loss of several targets, of which any may be unknown for a graph:

    .. math:: L = \frac1B \sum_g \frac1T \sum_t m_{gt} \, w_t \, \ell_{gt}, \qquad w_t = \frac{G}{\sum_g m_{gt}}

    with m = 1 where the target is known, else 0. Over all G graphs that is the mean over the targets of the mean loss
    where each is known; a known value counts the same in any batch of B. Classes that are weighed have a w each.
    """

    weights: tuple[Tensor, ...]  # (T) of each as many as it has columns: its classes, or 1 for a value

    @staticmethod
    def of(widths: Sequence[int], target: Tensor, *, balanced: bool) -> SeveralTargets:
        """For graphs with these targets (G, T); ``balanced``: all classes of a target count alike"""
        weights = tuple(torch.ones(width, device=target.device) for width in widths)
        for own, values in zip(weights, target.T, strict=True):
            if balanced and len(own) > 1:
                own /= torch.bincount(values[~values.isnan()].long(), minlength=len(own)).clamp(min=1)
        return SeveralTargets(weights).on(target)

    def on(self, target: Tensor) -> SeveralTargets:
        """The same for other graphs, so that the known values of each target weigh as much as all graphs together."""
        totals = [float(_weight(own, values).sum()) for own, values in zip(self.weights, target.T, strict=True)]
        scales = (len(target) / total if total else 0 for total in totals)
        return SeveralTargets(tuple(own * scale for own, scale in zip(self.weights, scales, strict=True)))

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Outputs (B, C), targets (B, T)"""
        total, blocks = outputs.new_zeros(()), torch.split(outputs, [len(own) for own in self.weights], dim=1)
        for own, logits, values in zip(self.weights, blocks, target.T, strict=True):
            known, is_class = values.nan_to_num(), len(own) > 1
            each = F.cross_entropy(logits, known.long(), reduction="none") if is_class else (logits[:, 0] - known) ** 2
            total = total + (each * _weight(own, values)).sum()
        return total / target.numel()


def _weight(own: Tensor, values: Tensor) -> Tensor:
    """(B) what the values of one target count, each by its column; nothing where they are not known"""
    return torch.where(values.isnan(), 0, own[values.nan_to_num().long().clamp(0, len(own) - 1)])


def loss_of(outputs: Tensor, target: Tensor, weights: Tensor | SeveralTargets | None = None) -> Tensor:
    """Cross-entropy for classes, mean squared error for (standardised) values; ``weights`` (C): of the classes."""
    if isinstance(weights, SeveralTargets):
        return weights.loss(outputs, target)
    if target.is_floating_point():
        return F.mse_loss(outputs[:, 0], target)
    return F.cross_entropy(outputs, target, weight=weights)


def weight_of(target: Tensor, weights: Tensor | SeveralTargets | None) -> Tensor | float:
    """What the graphs count together in the mean that the loss is."""
    return weights[target].sum() if isinstance(weights, Tensor) else len(target)


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
    if target.ndim == 2:  # (B, T), whose accuracies and R² have no common scale: the lower loss is better
        return float(loss) / len(target), -float(loss) / len(target)
    score = r2(outputs[:, 0], target) if target.is_floating_point() else accuracy(outputs, target)
    return float(loss) / len(target), score


@torch.no_grad()
def evaluate(
    network: EgoCNN, data: Batchable, *, weights: Tensor | SeveralTargets | None = None
) -> tuple[float, float]:
    """Loss and score (accuracy, or R²) in evaluation mode."""
    if data.target is None:
        raise DataError("these graphs have no target to compare with")
    outputs = predict(network, data)
    weights = weights.on(data.target) if isinstance(weights, SeveralTargets) else weights
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


def scores_by_target(predictor: Model, graphs: Graphs, outputs: NDArray[np.float32]) -> dict[str, float]:
    """Outputs (R, G, C) and what is true -> scores; see :func:`together`"""
    several = {}
    for name, one, own in predictor.each_target(outputs):
        known, truth = known_truth(graphs.of_target(name) if name else graphs, one.class_names)
        predicted = one.interpret(torch.from_numpy(own.mean(axis=0)))
        several[name] = scores_of(predicted[known], truth) if len(truth) else {}
    return together(several)


def together(several: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Scores of every target by its name -> NAME.SCORE of each, and SCORE, their mean; of one, called '', its own"""
    if "" in several:
        return dict(several[""])
    every = {f"{name}.{score}": value for name, own in several.items() for score, value in own.items()}
    names = dict.fromkeys(score for own in several.values() for score in own)
    return every | {score: float(np.mean([own[score] for own in several.values() if score in own])) for score in names}


def test_scores(predictor: Model, graphs: Graphs, *, device: str) -> dict[str, float]:
    """Accuracy and log loss of a classifier; R² and mean absolute error of a regressor; nothing without a truth.

    Graphs whose target is not known do not count; a class that the model was not trained on counts as missed.
    """
    return scores_by_target(predictor, graphs, predictor.outputs_of_each(graphs, device=device))


def known_truth(graphs: Graphs, class_names: tuple[str, ...]) -> tuple[Bools, NDArray[Any]]:
    """Which graphs (G) have a target that is known, and these targets, classes by their numbers in ``class_names``."""
    if graphs.target is None or graphs.is_classification != bool(class_names):
        return np.zeros(len(graphs), bool), np.zeros(0)
    known = graphs.target >= 0 if graphs.is_classification else np.isfinite(graphs.target)
    truth = graphs.with_names(classes=class_names or None).target
    assert truth is not None
    return known, truth[known]
