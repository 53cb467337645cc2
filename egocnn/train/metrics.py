"""Outputs + targets -> losses to be minimised, and scores of classes and of values, each under one name."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from egocnn.config import CLASS_SCORES, LOWER_IS_BETTER, VALUE_SCORES
from egocnn.data.arrays import Bools
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DataError, rule
from egocnn.nn.batch import Batchable
from egocnn.nn.model import EgoCNN
from egocnn.nn.predict import predict_each

if TYPE_CHECKING:
    from egocnn.model import Model

OF_BOTH = "accuracy_and_r2"  # The score of targets of both kinds: of each the usual one.
IN_WORDS = {"roc_auc": "ROC AUC", "mcc": "MCC", "r2": "R²", "rmse": "RMSE", "mae": "MAE", "spearman": "Spearman"}
IN_WORDS[OF_BOTH] = "accuracy and R²"


def in_words(name: str) -> str:
    """A score as people write it: ROC AUC, average precision."""
    return IN_WORDS.get(name, name.replace("_", " "))


@dataclass(frozen=True, slots=True, eq=False)
class SeveralTargets:
    r"""The loss of several targets, of which any may be unknown for a graph:

    .. math:: L = \frac1B \sum_g \frac1T \sum_t m_{gt} \, w_t \, \ell_{gt}, \qquad w_t = \frac{G}{\sum_g m_{gt}}

    with m = 1 where the target is known, else 0. Over all G graphs that is the mean over the targets of the mean loss
    where each is known; a known value counts the same in any batch of B. Classes that are weighed have a w each."""

    weights: tuple[Tensor, ...]  # (T) of each as many as it has columns: its classes, or 1 for a value

    @staticmethod
    def of(widths: Sequence[int], target: Tensor, *, balanced: bool) -> "SeveralTargets":
        """For graphs with these targets (G, T); ``balanced``: all classes of a target count alike"""
        weights = tuple(torch.ones(width, device=target.device) for width in widths)
        for own, values in zip(weights, target.T, strict=True):
            if balanced and len(own) > 1:
                own /= torch.bincount(values[~values.isnan()].long(), minlength=len(own)).clamp(min=1)
        return SeveralTargets(weights).on(target)

    def on(self, target: Tensor) -> "SeveralTargets":
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


def loss_and_score(
    batches: Sequence[tuple[Tensor, Tensor, Tensor]], monitor: str = "", widths: Sequence[int] = ()
) -> tuple[float, float]:
    """Outputs (B, C), targets (B) and mean loss of every batch -> mean loss of all graphs, and :func:`monitored`."""
    outputs, target = (torch.cat([batch[side] for batch in batches]) for side in (0, 1))
    loss = float(torch.stack([loss * len(own) for _, own, loss in batches]).sum()) / len(target)
    return loss, monitored(monitor, outputs, target, loss, widths)


def where_known(outputs: Tensor, target: Tensor, widths: Sequence[int]) -> Iterator[tuple[Tensor, Tensor]]:
    """Of every target (B, T) its columns of the outputs and its values, for the graphs where it is known."""
    for block, values in zip(torch.split(outputs, list(widths), dim=1), target.T, strict=True):
        known = ~values.isnan()
        yield block[known], values[known].long() if block.shape[1] > 1 else values[known]


def monitored(name: str, outputs: Tensor, target: Tensor, loss: float, widths: Sequence[int] = ()) -> float:
    """The score that chooses the best epoch, negated where lower is better: '' for accuracy or R², of several targets
    for the loss as it is, 0 where it is undefined and the loss decides. ``widths``: the columns of several targets"""
    if name == "loss" or (target.ndim == 2 and not name):
        return -loss if name else loss
    if target.ndim == 2:  # (B, T): the mean over the targets, each where it is known
        each = [monitored(name, *own, loss) for own in where_known(outputs, target, widths) if len(own[1])]
        return sum(each) / max(len(each), 1)
    if name in ("", "accuracy", "r2"):
        return r2(outputs[:, 0], target) if target.is_floating_point() else accuracy(outputs, target)
    wide = outputs.detach().double().cpu()
    predictions = wide[:, 0] if target.is_floating_point() else torch.softmax(wide, dim=1)
    found = scores_of(predictions.numpy(), target.cpu().numpy()).get(name, 0.0)
    return -found if name in LOWER_IS_BETTER else found


def monitor_of(name: str, target: Tensor, widths: Sequence[int] = ()) -> str:
    """What chooses the best epoch, given targets (G), or (G, T) of these widths: ``name``, or what auto stands for."""
    if name == "loss" or (target.ndim == 2 and name == "auto"):
        return "loss"
    kinds = {width == 1 for width in widths} or {target.is_floating_point()}
    rule(len(kinds) <= 1, f"of classes beside values the loss chooses the best epoch, not {name}", ConfigError)
    if name == "auto" and not target.is_floating_point():
        return "roc_auc" if 3 * int(target.bincount().max()) > 2 * len(target) else "accuracy"
    return checked_score(None if name == "auto" else name, is_value=kinds.pop())


def checked_score(name: str | None, *, is_value: bool) -> str:
    """The name of a score, by default accuracy or R²; refused where it is one of the other kind of target."""
    mine, what = (VALUE_SCORES, "values") if is_value else (CLASS_SCORES, "classes")
    rule(name is None or name in mine, f"{what} are not scored by {name!r}; there are {', '.join(mine)}", ConfigError)
    return name or mine[0]


def score_for(graphs: Graphs, name: str | None) -> str:
    """The same for what these graphs have to predict; of several targets every one is scored by it."""
    if (kinds := {not names for _, names in graphs.targets} or {not graphs.is_classification}) != {True, False}:
        return checked_score(name, is_value=kinds.pop())
    if name is not None:
        raise ConfigError(f"classes are scored by accuracy beside values, and these by R²; leave out --metric {name}")
    return OF_BOTH


@torch.no_grad()
def evaluate(
    network: EgoCNN, data: Batchable, weights: Tensor | SeveralTargets | None = None, monitor: str = ""
) -> tuple[float, float]:
    """Loss and :func:`monitored` score in evaluation mode."""
    if data.target is None:
        raise DataError("these graphs have no target to compare with")
    outputs = predict_each([network], data)[0]
    weights = weights.on(data.target) if isinstance(weights, SeveralTargets) else weights
    return loss_and_score([(outputs, data.target, loss_of(outputs, data.target, weights))], monitor, network.widths)


def scores_of(predictions: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    """Probabilities (G, C) and class numbers (-1: a class that the model does not know), or values (G) and values. What
    is undefined is left out: most scores where all graphs are of one class, R² and Spearman where nothing varies."""
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
            from scipy.stats import spearmanr  # here: who trains a classifier would wait for it, too

            found["r2"] = r2(predictions, truth)
            found |= {"spearman": spearmanr(predictions, truth)[0]} if len(np.unique(predictions)) > 1 else {}
    return {name: float(value) for name, value in found.items() if math.isfinite(value)}


def recalls(predictions: NDArray[Any], truth: NDArray[Any], class_names: Sequence[str]) -> dict[str, float]:
    """For every class that is there, the share of its graphs that are predicted right."""
    there = ((c, name) for c, name in enumerate(class_names) if (truth == c).any())
    return {name: float((predictions[truth == c].argmax(axis=1) == c).mean()) for c, name in there}


def scores_by_target(predictor: "Model", graphs: Graphs, outputs: NDArray[np.float32]) -> dict[str, float]:
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


def test_scores(predictor: "Model", graphs: Graphs, *, device: str) -> dict[str, float]:
    """All scores of a classifier or of a regressor that are defined; nothing without a truth. Graphs whose target is
    not known do not count; a class that the model was not trained on counts as missed."""
    return scores_by_target(predictor, graphs, predictor.outputs_of_each(graphs, device=device))


def known_truth(graphs: Graphs, class_names: tuple[str, ...]) -> tuple[Bools, NDArray[Any]]:
    """Which graphs (G) have a target that is known, and these targets, classes by their numbers in ``class_names``."""
    if graphs.target is None or graphs.is_classification != bool(class_names):
        return np.zeros(len(graphs), bool), np.zeros(0)
    known = graphs.target >= 0 if graphs.is_classification else np.isfinite(graphs.target)
    truth = graphs.with_names(classes=class_names or None).target
    assert truth is not None
    return known, truth[known]
