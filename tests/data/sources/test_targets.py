"""Targets as text -> classes or numbers."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.data.arrays import LARGEST
from egocnn.data.sources.targets import encode_targets, encode_values
from egocnn.errors import DataError


def test_words_are_classes_in_alphabetical_order() -> None:
    target, names = encode_targets(["toxic", "harmless", "toxic"], "auto", "m.csv")
    assert names == ("harmless", "toxic")
    assert target is not None
    assert target.tolist() == [1, 0, 1]


def test_missing_values_are_class_minus_one() -> None:
    target, names = encode_targets(["b", None, "", "  ", "a"], "auto", "m.csv")
    assert names == ("a", "b")
    assert target is not None
    assert target.tolist() == [1, -1, -1, -1, 0]


def test_missing_values_are_not_a_number_where_numbers_are_predicted() -> None:
    target, names = encode_targets(["1.5", None, "2"], "auto", "m.csv")
    assert names == ()
    assert target is not None
    assert np.array_equal(target, [1.5, np.nan, 2.0], equal_nan=True)


@pytest.mark.parametrize("values", [[], [None, ""], ["   "]])
def test_nothing_known_is_no_target(values: list[str | None]) -> None:
    assert encode_targets(values, "auto", "m.csv") == (None, ())


def test_classes_that_are_numbers_are_sorted_as_numbers() -> None:
    _, names = encode_targets(["10", "9", "-1"] * 5, "auto", "m.csv")
    assert names == ("-1", "9", "10")


def test_a_number_is_one_class_however_it_is_written() -> None:
    target, names = encode_targets(["1.0", "1", "0", "0.00", "1.0"], "classification", "m.csv")
    assert names == ("0", "1")
    assert target is not None
    assert target.tolist() == [1, 1, 0, 0, 1]


def test_a_class_has_the_same_name_in_a_file_that_writes_it_with_a_point() -> None:
    assert encode_targets(["1.0", "0.0"], "auto", "a.csv")[1] == encode_targets(["1", "0"], "auto", "b.csv")[1]


def test_large_whole_numbers_stay_apart() -> None:
    _, names = encode_targets(["9007199254740992", "9007199254740993"], "classification", "m.csv")
    assert names == ("9007199254740992", "9007199254740993")


@pytest.mark.parametrize(
    ("values", "are_classes"),
    [
        (["0", "1"], True),
        (["1"], True),
        (["-1", "+1", "1"], True),
        (["True", "False"], True),
        ([str(i % 20) for i in range(100)], True),
        ([str(i % 21) for i in range(100)], False),
        (["1", "2", "3"], False),
        (["1", "2", "3"] * 3, True),
        (["0.5", "1"] * 50, False),
        (["1e400", "1"], False),
    ],
)
def test_what_is_to_be_predicted_is_guessed_as_documented(values: list[str], are_classes: bool) -> None:
    if "1e400" in values:
        with pytest.raises(DataError, match="row 1: target '1e400' is not a finite number"):
            encode_targets(values, "auto", "m.csv")
    else:
        assert bool(encode_targets(values, "auto", "m.csv")[1]) == are_classes


def test_the_guess_is_told_and_how_to_overrule_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="egocnn"):
        encode_targets(["0", "1"], "auto", "m.csv")
        encode_targets(["0.5", "1"], "auto", "m.csv")
        encode_targets(["0", "1"], "classification", "m.csv")
    assert len(caplog.messages) == 2
    assert "m.csv: 2 classes" in caplog.messages[0]
    assert "--task regression" in caplog.messages[0]
    assert "--task classification" in caplog.messages[1]


@pytest.mark.parametrize("word", ["nan", "-inf", "Infinity", "many", "1,5", "1_000", "١", "0x10", "1e999"])
def test_a_value_to_predict_must_be_a_finite_number(word: str) -> None:
    with pytest.raises(DataError, match=r"m\.csv, row 2: target .* is not a finite number"):
        encode_targets(["1", word], "regression", "m.csv")


def test_a_number_that_is_not_finite_is_not_taken_for_a_class() -> None:
    with pytest.raises(DataError, match="row 3"):
        encode_targets(["0", "1", "nan"], "auto", "m.csv")


def test_the_place_of_a_bad_value_can_be_given() -> None:
    with pytest.raises(DataError, match=r"^graph 7: target"):
        encode_targets(["x"], "regression", "m.csv", ["graph 7"])


def test_texts_and_booleans_with_a_type_are_classes() -> None:
    assert encode_values(["1", "2", "3"], "auto", "g", ["a", "b", "c"])[1] == ("1", "2", "3")
    assert encode_values([True, False, None], "auto", "g", ["a", "b", "c"])[1] == ("False", "True")


def test_a_number_with_a_point_and_a_type_is_a_value_to_predict() -> None:
    target, names = encode_values([1.0, 0, np.float32(0.5)], "auto", "g", ["a", "b", "c"])
    assert names == ()
    assert target is not None
    assert target.tolist() == [1.0, 0.0, 0.5]


def test_the_task_that_is_asked_for_wins_over_the_type() -> None:
    assert encode_values([1.0, 0.0], "classification", "g", ["a", "b"])[1] == ("0", "1")


def test_a_target_that_is_neither_text_nor_number_is_refused() -> None:
    with pytest.raises(DataError, match=r"^b: target .* must be a text or a number"):
        encode_values([1, [2]], "auto", "g", ["a", "b"])


@given(st.lists(st.none() | st.text(max_size=8)))
def test_classes_give_back_the_texts_they_came_from(values: list[str | None]) -> None:
    target, names = encode_targets(values, "classification", "m.csv")
    assert list(names) == sorted(set(names), key=names.index)
    for row, value in enumerate(values):
        if value is None or not value.strip():
            assert target is None or target[row] == -1
        else:
            assert target is not None
            name = names[target[row]]
            assert name == value.strip() or float(name) == float(value)


@given(st.lists(st.floats(-LARGEST, LARGEST), min_size=1))
def test_values_to_predict_are_kept_exactly(values: list[float]) -> None:
    target, names = encode_targets([repr(value) for value in values], "regression", "m.csv")
    assert names == ()
    assert target is not None
    assert target.tolist() == values
