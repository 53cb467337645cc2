"""Losses and scores of outputs, whether they come in torch or numpy, in one piece or in batches."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn import metrics as peer
from sklearn.metrics import r2_score

from egocnn.errors import ConfigError
from egocnn.train.metrics import monitor_of, monitored, r2, r2_of_sums, recalls, scores_of, sum_of_squares

values = st.lists(st.floats(-1e3, 1e3, width=32), min_size=2, max_size=20)


@given(values, st.integers(0, 1000))
def test_r2_is_that_of_scikit_learn_for_numpy_and_torch(target: list[float], seed: int) -> None:
    truth = np.array(target)
    predicted = truth + np.random.default_rng(seed).normal(size=len(truth))
    found = [r2(predicted, truth), r2(torch.from_numpy(predicted), torch.from_numpy(truth))]
    assert found[0] == pytest.approx(found[1])
    if np.square(truth - truth.mean()).sum() > 1e-6:
        assert found[0] == pytest.approx(r2_score(truth, predicted))
    assert found[0] == pytest.approx(
        r2_of_sums(sum_of_squares(predicted - truth), sum_of_squares(truth - truth.mean()))
    )


def test_what_is_undefined_is_left_out_unknown_classes_are_missed_and_what_never_varies_is_not_explained() -> None:
    assert r2(np.ones(3), np.ones(3)) == r2(torch.zeros(3), torch.ones(3)) == r2(np.arange(3), np.ones(3)) == 0
    scores = scores_of(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, -1]))
    assert scores["accuracy"] == 0.5
    assert scores["log_loss"] == pytest.approx(-(np.log(0.9) + np.log(1e-12)) / 2)
    likely = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert scores_of(likely, np.array([0, 0])).keys() == {"accuracy", "log_loss"}
    assert recalls(likely, np.array([0, 0]), ("a", "b")) == {"a": 0.5}
    assert scores_of(np.array([1.0, 2.0]), np.array([1.0, 1.0])).keys() == {"rmse", "mae"}
    assert scores_of(np.array([1.0, 1.0]), np.array([1.0, 2.0])).keys() == {"rmse", "mae", "r2"}
    assert monitored("roc_auc", torch.zeros(2, 2), torch.tensor([1, 1]), 9.0) == 0  # then the loss alone chooses
    assert monitored("roc_auc", torch.full((2, 2), torch.nan), torch.tensor([0, 1]), 9.0) == 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_scikit_learn(n_classes: int) -> None:
    random = np.random.default_rng(0)
    truth = random.integers(n_classes, size=60)
    likely = random.dirichlet(np.ones(n_classes), size=60)
    said, several = likely.argmax(axis=1), np.eye(n_classes)[truth]
    pair = (truth, likely[:, 1]) if n_classes == 2 else (several, likely)
    assert scores_of(likely, truth) == pytest.approx(
        {
            "accuracy": peer.accuracy_score(truth, said),
            "log_loss": peer.log_loss(truth, likely),
            "roc_auc": peer.roc_auc_score(*pair),
            "average_precision": peer.average_precision_score(*pair),
            "mcc": peer.matthews_corrcoef(truth, said),
            "balanced_accuracy": peer.balanced_accuracy_score(truth, said),
        }
    )
    by_name = recalls(likely, truth, ("a", "b", "c")[:n_classes])
    assert list(by_name.values()) == pytest.approx(peer.recall_score(truth, said, average=None))


def test_scores_of_values_are_those_of_scikit_learn_and_scipy() -> None:
    random = np.random.default_rng(0)
    truth = random.normal(size=40)
    values = truth + random.normal(size=40)
    assert scores_of(values, truth) == pytest.approx(
        {
            "rmse": peer.root_mean_squared_error(truth, values),
            "mae": peer.mean_absolute_error(truth, values),
            "r2": r2_score(truth, values),
            "spearman": spearmanr(truth, values)[0],
        }
    )


def test_roc_auc_chooses_where_one_class_has_more_than_two_thirds() -> None:
    assert monitor_of("auto", torch.tensor([0, 0, 1])) == "accuracy"
    assert monitor_of("auto", torch.tensor([0, 0, 0, 0, 0, 1, 1])) == "roc_auc"
    assert monitor_of("auto", torch.tensor([0.0, 0.0, 0.0, 1.0])) == "r2"
    assert monitor_of("mcc", torch.tensor([0, 0, 0, 1])) == "mcc"
    assert [monitor_of(name, torch.zeros(2, 2), (2, 3)) for name in ("auto", "loss", "mcc")] == ["loss", "loss", "mcc"]
    with pytest.raises(ConfigError, match="values are not scored by 'roc_auc'; there are r2, rmse, mae, spearman"):
        monitor_of("roc_auc", torch.tensor([0.0, 1.0]))
    with pytest.raises(ConfigError, match="of classes beside values the loss chooses the best epoch, not rmse"):
        monitor_of("rmse", torch.zeros(2, 2), (2, 1))
