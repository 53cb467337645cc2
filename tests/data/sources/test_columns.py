"""What is said about graphs -> names, targets, splits, groups."""

from __future__ import annotations

import pytest

from egocnn.config import ReadConfig
from egocnn.data.sources.columns import choose_field, encode_groups, encode_labels, encode_parts, graph_columns
from egocnn.errors import DataError


def test_the_field_that_is_asked_for_must_exist_and_the_others_are_listed() -> None:
    assert choose_field(["id", "toxic"], "toxic", ("label",), "m.csv") == "toxic"
    with pytest.raises(DataError, match=r"m\.csv: no column or field is called 'Toxic'; there are id, toxic"):
        choose_field(["id", "toxic"], "Toxic", ("label",), "m.csv")


def test_default_fields_are_found_in_their_order_and_in_capitals_too() -> None:
    assert choose_field(["y", "LABEL"], None, ("target", "label", "y"), "m.csv") == "LABEL"
    assert choose_field(["Label", "label"], None, ("label",), "m.csv") == "label"
    assert choose_field(["a"], None, ("label",), "m.csv") is None


def test_two_fields_that_differ_only_in_capitals_are_ambiguous() -> None:
    with pytest.raises(DataError, match=r"m\.csv: Label and LABEL differ only in capitals"):
        choose_field(["Label", "LABEL"], None, ("label",), "m.csv")


def test_a_split_knows_the_usual_words() -> None:
    words = ["train", "Training", " VALID", "validation", "val", "dev", "Test"]
    assert encode_parts(words, words).tolist() == [0, 0, 1, 1, 1, 1, 2]


@pytest.mark.parametrize("word", ["", "holdout", "0"])
def test_a_split_with_another_word_is_refused(word: str) -> None:
    with pytest.raises(DataError, match=r"m\.csv, row 2: split .* must be one of train, validation, test"):
        encode_parts(["train", word], ["m.csv, row 1", "m.csv, row 2"])


def test_equal_group_values_share_a_group_and_empty_ones_stand_alone() -> None:
    assert encode_groups(["b", "a", "b", "", ""]).tolist() == [0, 1, 0, 2, 3]


def test_labels_that_are_not_known_are_minus_one() -> None:
    codes, names = encode_labels(["10", None, "9"])
    assert names == ("9", "10")
    assert codes.tolist() == [1, -1, 0]


def test_graphs_without_a_name_keep_the_one_they_have() -> None:
    rows: list[dict[str, object]] = [{"id": "a"}, {"id": None}, {}, {"id": 7}]
    columns = graph_columns(rows, ReadConfig(), where="g", places=list("wxyz"), names=list("0123"))
    assert columns == {"names": ("a", "1", "2", "7")}


def test_split_and_group_are_read_only_where_they_are_named() -> None:
    rows = [{"split": "train", "family": "x"}, {"split": "test", "family": "x"}]
    config = ReadConfig(split="split", group="family")
    columns = graph_columns(rows, config, where="g", places=["a", "b"], names=["0", "1"])
    assert columns["part"].tolist() == [0, 2]
    assert columns["group"].tolist() == [0, 0]
    assert graph_columns(rows, ReadConfig(), where="g", places=["a", "b"], names=["0", "1"]) == {"names": ("0", "1")}
