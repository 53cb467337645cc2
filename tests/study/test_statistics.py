"""Intervals and paired tests, against numbers worked out by hand and against scipy."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from egocnn.errors import ConfigError, DataError
from egocnn.study.statistics import corrected_t_test, summarise

SCORES = st.lists(st.integers(0, 200).map(lambda n: n / 200), min_size=2, max_size=12)


@given(SCORES.filter(lambda scores: len(set(scores)) > 1))
def test_mean_deviation_and_interval_are_those_that_scipy_gives(scores: list[float]) -> None:
    found, wanted = summarise(scores), stats.ttest_1samp(scores, 0)
    assert (found.mean, found.std) == pytest.approx((np.mean(scores), stats.tstd(scores)))
    assert found.interval == pytest.approx(tuple(wanted.confidence_interval(0.95)))


def test_the_corrected_test_of_five_folds_is_what_a_hand_computes() -> None:
    """Differences 0.02, 0.04, 0.00, 0.06, 0.03: mean 0.03, variance 0.0005, times 1/5 + 1/4 gives 0.000225."""
    one, other = [0.82, 0.90, 0.85, 0.91, 0.78], [0.80, 0.86, 0.85, 0.85, 0.75]
    found = corrected_t_test(one, other, test_over_train=1 / 4)
    assert found.folds == 5
    assert found.difference == pytest.approx(0.03)
    assert found.t == pytest.approx(0.03 / 0.015)
    assert found.p == pytest.approx(0.116117, abs=1e-6)  # 2 (1 - F(2)), F(t) = 1/2 + … of 4 degrees of freedom
    assert found.interval == pytest.approx((0.03 - 2.776445 * 0.015, 0.03 + 2.776445 * 0.015), abs=1e-6)


@given(SCORES, st.data())
def test_the_correction_only_widens_what_the_plain_paired_test_says(one: list[float], data: st.DataObject) -> None:
    other = data.draw(st.lists(st.integers(0, 200).map(lambda n: n / 200), min_size=len(one), max_size=len(one)))
    n, share = len(one), data.draw(st.floats(0.01, 2))
    if np.ptp(np.subtract(one, other)) < 1e-9:
        return
    found, plain = corrected_t_test(one, other, test_over_train=share), stats.ttest_rel(one, other)
    assert found.t == pytest.approx(plain.statistic / math.sqrt(1 + n * share), abs=1e-9)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(found.t), n - 1))
    assert found.p >= plain.pvalue - 1e-12
    back = corrected_t_test(other, one, test_over_train=share)
    assert (found.difference, found.t, found.p) == (-back.difference, -back.t, back.p)
    assert (found.interval[0] <= 0 <= found.interval[1]) == (found.p >= 0.05 - 1e-12)


def test_equal_differences_are_no_division_by_nothing_and_intervals_stay_within_bounds() -> None:
    same = corrected_t_test([0.5, 0.7, 0.9], [0.5, 0.7, 0.9], test_over_train=0.5)
    assert (same.difference, same.t, same.p, same.interval) == (0, 0, 1, (0, 0))
    ahead = corrected_t_test([0.6, 0.8, 1.0], [0.5, 0.7, 0.9], test_over_train=0.5)
    assert (ahead.t, ahead.p) == (math.inf, 0)
    assert json.loads(json.dumps(ahead.to_plain(), allow_nan=False))["t"] is None
    assert same.to_plain() == asdict(same)
    high, low = [1.0, 1.0, 0.8], [0.0, 0.0, 0.2]
    assert summarise(high).interval[1] > 1
    assert summarise(high, least=0, most=1).interval == (summarise(high).interval[0], 1)
    assert summarise(low, least=0, most=1).interval == (0, summarise(low).interval[1])


def test_false_alarms_stay_rare_where_the_plain_test_raises_many() -> None:
    """Fold scores of two equal systems share most of their training part: simulate that as a common error."""
    random = np.random.default_rng(0)
    plain = corrected = 0
    for _ in range(400):
        shared = random.normal(scale=0.01)
        differences = shared + random.normal(scale=0.03, size=10)
        plain += stats.ttest_1samp(differences, 0).pvalue < 0.05
        corrected += corrected_t_test(differences.tolist(), [0.0] * 10, test_over_train=1 / 9).p < 0.05
    assert plain > 0.1 * 400
    assert corrected < 0.06 * 400


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda: corrected_t_test([1, 2, 3], [1, 2], test_over_train=0.1), "3 scores against 2"),
        (lambda: corrected_t_test([1, 2], [1, 2], test_over_train=0), "test_over_train must be above 0"),
        (lambda: summarise([0.5]), "at least 2 folds"),
        (lambda: summarise([0.5, math.nan]), "not finite"),
    ],
)
def test_scores_that_cannot_be_compared_are_refused(call: Callable[[], object], wanted: str) -> None:
    with pytest.raises((ConfigError, DataError), match=wanted):
        call()
