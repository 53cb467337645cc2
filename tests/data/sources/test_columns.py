"""The fields of graphs -> names, targets, splits, groups."""

import logging
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.config import ReadConfig, Task
from egocnn.data.arrays import LARGEST
from egocnn.data.sources.builder import (
    MISSING,
    GraphFields,
    choose_field,
    encode_groups,
    encode_labels,
    encode_parts,
    encode_targets,
    encode_values,
)
from egocnn.errors import DataError
from tests.support.samples import as_list, sure


def test_the_field_that_is_asked_for_must_exist_and_the_others_are_listed() -> None:
    assert choose_field(["id", "toxic"], "toxic", ("label",), "m.csv") == "toxic"
    with pytest.raises(DataError, match=r"m\.csv: no column or field is called 'Toxic'; there are id, toxic"):
        choose_field(["id", "toxic"], "Toxic", ("label",), "m.csv")


def test_default_fields_are_found_in_their_order_and_in_capitals_too() -> None:
    assert choose_field(["y", "LABEL"], None, ("target", "label", "y"), "m.csv") == "LABEL"
    assert choose_field(["Label", "label"], None, ("label",), "m.csv") == "label"
    assert choose_field(["a"], None, ("label",), "m.csv") is None
    with pytest.raises(DataError, match=r"m\.csv: Label and LABEL differ only in capitals"):
        choose_field(["Label", "LABEL"], None, ("label",), "m.csv")


def test_a_split_knows_the_usual_words() -> None:
    words = ["train", "Training", " VALID", "validation", "val", "dev", "Test"]
    assert encode_parts(words, words).tolist() == [0, 0, 1, 1, 1, 1, 2]
    for word in ("", "holdout", "0"):
        with pytest.raises(DataError, match=r"m\.csv, row 2: split .* must be one of train, validation, test"):
            encode_parts(["train", word], ["m.csv, row 1", "m.csv, row 2"])


def test_equal_group_values_share_a_group_and_labels_that_are_not_known_are_minus_one() -> None:
    assert encode_groups(["b", "a", "b", "", ""]).tolist() == [0, 1, 0, 2, 3]  # empty ones stand alone
    codes, names = encode_labels(["10", None, "9"])
    assert names == ("9", "10")
    assert codes.tolist() == [1, -1, 0]


def targets_of(values: list[Any], task: Task = "auto") -> tuple[Any, tuple[str, ...]]:
    return encode_targets(values, task, "m.csv", [f"m.csv, row {row}" for row in range(1, len(values) + 1)])


def columns_of(rows: list[dict[str, object]], **options: Any) -> dict[str, Any]:
    fields = GraphFields("g", ReadConfig(**options))
    for number, row in enumerate(rows):
        fields.add(f"graph {number}", str(number), row)
    columns = fields.columns()
    return {name: values.tolist() if isinstance(values, np.ndarray) else values for name, values in columns.items()}


def test_graphs_without_a_name_keep_the_one_they_have() -> None:
    assert columns_of([{"id": "a"}, {"id": None}, {}, {"id": 7}]) == {"names": ("a", "1", "2", "7")}


def test_split_and_group_are_read_only_where_they_are_named() -> None:
    rows: list[dict[str, object]] = [{"split": "train", "family": "x"}, {"split": "test", "family": "x"}]
    names = {"names": ("0", "1")}
    assert columns_of(rows) == names
    assert columns_of(rows, split="split", group="family") == names | {"part": [0, 2], "group": [0, 0]}


@pytest.mark.parametrize(
    ("values", "target", "names"),
    [
        (["toxic", "harmless", "toxic"], [1, 0, 1], ("harmless", "toxic")),  # in alphabetical order
        (["b", None, "", "  ", "a"], [1, -1, -1, -1, 0], ("a", "b")),  # -1: missing
        (["10", "9", "-1"] * 5, [2, 1, 0] * 5, ("-1", "9", "10")),  # numbers in their own order
        (["1.0", "1", "0", "0.00", "1.0"], [1, 1, 0, 0, 1], ("0", "1")),  # one class however it is written
        (["1.0", "0.0"], [1, 0], ("0", "1")),  # the same names in a file that writes them with a point
        (["9007199254740992", "9007199254740993"], [0, 1], ("9007199254740992", "9007199254740993")),
    ],
)
def test_classes_are_sorted_and_named(values: list[str | None], target: list[int], names: tuple[str, ...]) -> None:
    codes, class_names = targets_of(values)
    assert class_names == names
    assert as_list(codes) == target


def test_missing_values_are_not_a_number_where_numbers_are_predicted() -> None:
    target, names = targets_of(["1.5", None, "2"])
    assert names == ()
    assert target is not None
    assert np.array_equal(target, [1.5, np.nan, 2.0], equal_nan=True)


@pytest.mark.parametrize("values", [[], [None, ""], ["   "]])
def test_nothing_known_is_no_target(values: list[str | None]) -> None:
    assert targets_of(values) == (None, ())


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
    ],
)
def test_what_is_to_be_predicted_is_guessed_as_documented(values: list[str], are_classes: bool) -> None:
    assert bool(targets_of(values)[1]) == are_classes


def test_the_guess_is_told_and_how_to_overrule_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="egocnn"):
        targets_of(["0", "1"])
        targets_of(["0.5", "1"])
        targets_of(["0", "1"], "classification")
    assert len(caplog.messages) == 2
    assert "m.csv: 2 classes" in caplog.messages[0]
    assert "--task regression" in caplog.messages[0]
    assert "--task classification" in caplog.messages[1]


def test_what_several_targets_are_taken_for_is_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    told = ["g: 2 targets are classes; --task regression for numbers"]
    told += ["g: numbers to predict: logP; classes to predict: A, B"]
    for targets in ("A,B", "A,logP,B"):
        with caplog.at_level(logging.INFO, logger="egocnn"):
            columns_of([{"A": "0", "B": "1", "logP": 0.5}, {"A": "1", "B": "0", "logP": 1.5}], target=targets)
    assert caplog.messages == told


@pytest.mark.parametrize("word", [">100", "-inf", "Infinity", "many", "1,5", "1_000", "١", "0x10", "1e999"])
def test_a_value_to_predict_must_be_a_finite_number(word: str) -> None:
    with pytest.raises(DataError, match=r"m\.csv, row 2: target .* is not a finite number"):
        targets_of(["1", word], "regression")


def test_a_number_that_is_not_finite_is_not_taken_for_a_class() -> None:
    with pytest.raises(DataError, match="row 3: target '1e400' is not a finite number"):
        targets_of(["0", "1", "1e400"])


@pytest.mark.parametrize("word", ["", "NA", "n/a", "NaN", "null", "None", " - ", "#N/A", " ? ", "#DIV/0!", "<NA>"])
def test_words_for_what_is_not_known_are_no_values_and_no_classes(word: str) -> None:
    assert np.isnan(targets_of(["0.5", word, "1.5"])[0]).tolist() == [False, True, False]
    target, names = targets_of(["a", word, "b"])
    assert (target.tolist(), names) == ([0, -1, 1], ("a", "b"))


@pytest.mark.parametrize("word", [" n.d. ", ".", "..", "--", "nd"])
def test_other_such_words_are_missing_among_numbers_and_classes_among_words(word: str) -> None:
    values, names = targets_of(["0.5", word, "1.5", word, "2.5"])
    assert (np.isnan(values).tolist(), names) == ([False, True, False, True, False], ())
    assert targets_of(["0", word, "1"])[0].tolist() == [0, -1, 1]
    assert targets_of([word, word]) == (None, ())
    assert set(targets_of(["a", word, "b"])[1]) == {"a", "b", word.strip()}
    typed = sure(encode_values([0.5, word, 1.5], "auto", "g", ["a", "b", "c"])[0])
    assert np.isnan(typed).tolist() == [False, True, False]
    with pytest.raises(DataError, match="row 4: target '>9' is not a finite number; write the limit"):
        targets_of(["0.5", word, "1.5", ">9"])


def test_a_column_of_almost_only_numbers_stays_one_and_names_what_is_no_number() -> None:
    numbers = [f"{n}.5" for n in range(96)]
    nor = "row 97: target '>100' is not a finite number (nor '<1' in row 98, 'x' in row 99 and 1 more); write the"
    with pytest.raises(DataError, match=re.escape(nor)):
        targets_of([*numbers, ">100", "<1", "x", "y"])
    assert len(targets_of([*numbers, *"abcdef"])[1]) == 102
    with pytest.raises(DataError, match="row 3: target '>1' is not a finite number"):
        encode_values([0.5, 1.5, ">1"] + [0.5] * 30, "auto", "m.csv", [f"m.csv, row {n}" for n in range(1, 34)])
    assert encode_values([0.5, "NA", None], "auto", "g", ["a", "b", "c"])[1] == ()


def test_numbers_some_of_which_are_bounds_are_no_classes_however_many_those_are() -> None:
    numbers, bounds = [f"{n}.5" for n in range(6)], [">100", "< 1", ">=7"]
    wanted = "row 7: target '>100' is not a finite number .*; write the limit itself, or leave it empty, or use --task"
    places = [f"m.csv, row {n}" for n in range(1, 10)]
    for encoded in (targets_of, lambda values: encode_values(values, "auto", "m.csv", places)):
        with pytest.raises(DataError, match=wanted):
            encoded([*numbers, *bounds])
    with pytest.raises(
        DataError, match=r"row 1: target '>100' is not a finite number .*, or use --task classification"
    ):
        targets_of([">100"] * 90 + ["12", "33.5"])  # an assay that is mostly beyond its range
    with pytest.raises(DataError, match=r"^target A: graph 0: target '>100' is not a finite number"):
        columns_of([{"A": ">100", "B": 1.5}, {"A": 12, "B": 2.5}, {"A": ">100", "B": 2.5}], target="A,B")
    assert targets_of(["<5", ">5"] * 3)[1] == ("<5", ">5")  # classes that are called so
    assert targets_of(["<1", "1-10", ">10"])[1] == ("1-10", "<1", ">10")


def test_texts_and_booleans_with_a_type_are_classes_and_a_number_with_a_point_is_a_value() -> None:
    assert encode_values(["1", "2", "3"], "auto", "g", ["a", "b", "c"])[1] == ("1", "2", "3")
    assert encode_values([True, False, None], "auto", "g", ["a", "b", "c"])[1] == ("False", "True")
    target, names = encode_values([1.0, 0, np.float32(0.5)], "auto", "g", ["a", "b", "c"])
    assert (names, as_list(target)) == ((), [1.0, 0.0, 0.5])
    assert encode_values([1.0, 0.0], "classification", "g", ["a", "b"])[1] == ("0", "1")  # what is asked for wins
    with pytest.raises(DataError, match=r"^b: target .* must be a text or a number"):
        encode_values([1, [2]], "auto", "g", ["a", "b"])


@given(st.lists(st.none() | st.text(max_size=8)))
def test_classes_give_back_the_texts_they_came_from(values: list[str | None]) -> None:
    target, names = targets_of(values, "classification")
    assert list(names) == sorted(set(names), key=names.index)
    for row, value in enumerate(values):
        if value is None or value.strip().lower() in MISSING:
            assert target is None or target[row] == -1
        else:
            assert target is not None
            name = names[target[row]]
            assert name == value.strip() or float(name) == float(value)


@given(st.lists(st.floats(-LARGEST, LARGEST), min_size=1))
def test_values_to_predict_are_kept_exactly(values: list[float]) -> None:
    target, names = targets_of([repr(value) for value in values], "regression")
    assert names == ()
    assert as_list(target) == values
