"""Trained models and tested graphs -> predictions, their scores by target, and the summary of those of all folds. Of an
object with ``fit`` and ``predict``, as scikit-learn has them, the whole run of a fold."""

import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from egocnn.config import LOWER_IS_BETTER, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.errors import DataError, rule
from egocnn.nn.batch import Batchable
from egocnn.nn.predict import predict_each
from egocnn.study.crossval.folds import FoldTask
from egocnn.study.crossval.record import Fold, FoldRun
from egocnn.study.statistics import summarise
from egocnn.train import recipe
from egocnn.train.metrics import OF_BOTH, accuracy, in_words, known_truth, r2, scores_of, where_known
from egocnn.train.validation import check_targets


def check_tasks(tasks: Sequence[FoldTask], graphs: Graphs, metric: str, *, networks: int) -> None:
    """Refuse, before the first of them is trained, folds that cannot be trained on or scored: they are compared by the
    mean over all targets, and where several ``networks`` vote, the validation part is scored, too."""
    least = 1 if metric in ("accuracy", "r2", "log_loss", "rmse", "mae", OF_BOTH) else 2
    several = {name: graphs.of_target(name) for name in graphs.target_names} or {"": graphs}
    for task in tasks:
        check_targets(graphs[task.learned])
        parts = {"tests": task.tested} | ({"validates on": task.validation} if networks > 1 and least > 1 else {})
        for (name, one), (does, numbers) in product(several.items(), parts.items()):
            _, known = known_truth(one[numbers], one.class_names)
            where = f"the {len(numbers)} graphs that fold {task.fold} {does}"
            lack = f"{in_words(metric)} says nothing of {where}, as all are alike"
            lack = lack if len(known) else f"target {name} is known of none of {where}"
            rule(len(np.unique(known)) >= least, f"{lack}; fewer --folds or a larger --validation may help")


def predictions_of(
    replica: recipe.Replica, data: Batchable, device: torch.device, *, of_each: bool = False
) -> list[Tensor]:
    """(G, C) probabilities, or (G, 1) standardised values, of the mean of the networks' outputs, or of each of them; of
    several targets these side by side"""
    outputs = predict_each([network.to(device) for network in replica.predictor.networks], data).double()
    several = [*outputs] if of_each else [outputs.mean(dim=0)]
    widths = replica.predictor.networks[0].widths or (replica.predictor.n_outputs,)
    blocks = ([torch.softmax(own, 1) if own.shape[1] > 1 else own for own in each.split(widths, 1)] for each in several)
    return [torch.cat(each, dim=1) for each in blocks]


def scores_by_target(
    predictions: Sequence[Tensor], data: Batchable, *, metric: str, encoder: Encoder
) -> dict[str, float]:
    """:func:`score_of` every target by its name, over the graphs where it is known, if any; of a single one as ''"""
    assert data.target is not None
    if not encoder.targets_of:
        return {"": score_of(predictions, data.target, metric, encoder.target_scale)}
    widths, mean = [len(one.class_names) or 1 for one in encoder.targets_of], torch.stack(list(predictions)).mean(dim=0)
    several = zip(encoder.targets_of, where_known(mean, data.target, widths), strict=True)
    return {one.name: score_of([own], truth, metric, one.target_scale) for one, (own, truth) in several if len(truth)}


def score_of(predictions: Sequence[Tensor], target: Tensor, metric: str = "", scale: float = 1.0) -> float:
    """Accuracy, or R², or what ``metric`` names, of the mean of several predictions; ``scale``: of standard values"""
    together = torch.stack(list(predictions)).mean(dim=0)
    if metric in ("", "accuracy", "r2", OF_BOTH):
        return accuracy(together, target) if together.shape[1] > 1 else r2(together[:, 0], target.double())
    found = scores_of((together if together.shape[1] > 1 else together[:, 0]).cpu().numpy(), target.cpu().numpy())
    alike = f"where all {len(target)} graphs of a fold or its validation part are alike"
    rule(metric in found, f"{in_words(metric)} says nothing {alike}; fewer --folds or a larger --validation may help")
    return found[metric] * (scale if metric in ("rmse", "mae") else 1)


def summary_of(scores: Sequence[float], metric: str) -> dict[str, Any]:
    """What is scored, mean, std and interval, which stays within what the score can be."""
    bounds = {} if metric in LOWER_IS_BETTER else {"most": 1.0}
    bounds |= {} if metric in ("r2", "spearman", "mcc", OF_BOTH) else {"least": 0.0}
    return {"score": metric, **asdict(summarise(scores, **bounds))}


@dataclass(frozen=True, slots=True)
class Refitted:
    """Fits a fresh copy of the model by ``fit(graphs, target)`` in every run of a fold, with its ``seed`` or
    ``random_state`` set; ``predict(graphs)`` gives class numbers and is shown no targets."""

    model: Any

    @property
    def name(self) -> str:
        """Its own, or that of its class."""
        return str(getattr(self.model, "name", type(self.model).__name__))

    def run_fold(self, graphs: Graphs, task: FoldTask, train: TrainConfig) -> Fold:  # noqa: ARG002 (its own settings)
        """One fit a run, tested once."""
        rule(graphs.is_classification, f"{self.name} tells classes apart; these graphs have none")
        runs, training, testing = list[FoldRun](), 0.0, 0.0
        for seed, *_ in task.seeds:
            started, fitted = time.perf_counter(), copy.deepcopy(self.model)
            for setting in {"seed", "random_state"} & set(dir(fitted)):
                setattr(fitted, setting, seed)
            fitted.fit(graphs[task.learned], graphs[task.learned].target)
            trained = time.perf_counter()
            chosen, score = (self._accuracy(fitted, graphs[part]) for part in (task.validation, task.tested))
            runs.append(FoldRun(score=score, validation_score=chosen, restart=1, seeds=(seed,)))
            training, testing = training + trained - started, testing + time.perf_counter() - trained
        return Fold.of(task, runs, None, (0.0, training, testing), None)

    def _accuracy(self, fitted: Any, graphs: Graphs) -> float:
        assert graphs.target is not None
        predicted = np.asarray(fitted.predict(graphs.replace(target=None)))
        if predicted.shape != graphs.target.shape:
            raise DataError(f"{self.name} gives {predicted.shape} predictions for {graphs.target.shape} graphs")
        return float((predicted == graphs.target).mean())
