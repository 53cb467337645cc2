"""Losses and scores of outputs, whether they come in torch or numpy, in one piece or in batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

from egocnn.train.metrics import r2, r2_of_sums, scores_of, sum_of_squares

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


def test_where_nothing_varies_nothing_is_explained() -> None:
    assert r2(np.ones(3), np.ones(3)) == r2(torch.zeros(3), torch.ones(3)) == r2(np.arange(3), np.ones(3)) == 0


def test_a_class_that_the_model_does_not_know_is_missed() -> None:
    scores = scores_of(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, -1]))
    assert scores["accuracy"] == 0.5
    assert scores["log_loss"] == pytest.approx(-(np.log(0.9) + np.log(1e-12)) / 2)
