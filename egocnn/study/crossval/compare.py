"""Two cross-validations on the same folds -> how much one is ahead, and whether that is more than chance."""

from __future__ import annotations

from egocnn.errors import DataError
from egocnn.study.crossval.record import CrossValidation
from egocnn.study.statistics import PairedTest, corrected_t_test


def compare(one: CrossValidation, other: CrossValidation) -> PairedTest:
    """The first minus the second, by the corrected resampled t-test.

    What trains and what validates both count as trained on: both decide the model that is tested.
    """
    if (one.split, one.score) != (other.split, other.score):
        raise DataError(f"{one.model} and {other.model} were not tested on the same folds: no paired comparison")
    tested = sum(fold.test_graphs for fold in one.folds)
    trained = sum(fold.train_graphs + fold.validation_graphs for fold in one.folds)
    scores = ([fold.score for fold in each.folds] for each in (one, other))
    return corrected_t_test(*scores, test_over_train=tested / trained)


def sentence(one: CrossValidation, other: CrossValidation) -> str:
    found = compare(one, other)
    low, high = found.interval
    return (
        f"{one.model} minus {other.model}: {found.difference:+.4f} (95% interval {low:+.4f} to {high:+.4f}, "
        f"p = {found.p:.3g}, corrected resampled t-test over {found.folds} folds)"
    )
