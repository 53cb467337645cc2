"""Conditions are read as they are meant, and nothing else is; the highest are the highest, of equals the first."""

import pytest

from egocnn.errors import ConfigError
from egocnn.scale.choose import Choice

KINDS = {"predicted": "string", "p_toxic": "double", "NR-AhR p_1": "double", "spread": "double"}
ROWS = [
    {"predicted": "toxic", "p_toxic": 0.95, "NR-AhR p_1": 0.1, "spread": 0.2},
    {"predicted": "toxic", "p_toxic": 0.9, "NR-AhR p_1": 0.3, "spread": 0.1},
    {"predicted": "not and never", "p_toxic": 0.2, "NR-AhR p_1": 0.3, "spread": None},
    {"predicted": "toxic", "p_toxic": 0.95, "NR-AhR p_1": 0.9, "spread": 0.1},
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p_toxic > 0.9", [0, 3]),
        ("p_toxic>=.9 and spread<1.5e-1", [1, 3]),
        ("NR-AhR p_1 == 0.3", [1, 2]),
        ("predicted != toxic", [2]),
        ("predicted == 'not and never' and p_toxic < 1", [2]),
        ("spread != 0.2", [1, 3]),
    ],
)
def test_a_condition_chooses_the_rows_of_which_all_terms_hold(text: str, expected: list[int]) -> None:
    assert Choice.parse(text, KINDS)(ROWS) == expected


@pytest.mark.parametrize(
    "text",
    ["", "p_toxic", "p_toxic = 1", "p_toxic > high", "predicted > a", "unknown == 1", "p_toxic > 1 or spread < 1",
     "p_toxic > 0.5 and", "__import__('os') == 1", "p_toxic > 0.5 and spread"],
)  # fmt: skip
def test_what_is_no_condition_on_these_columns_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="the columns are predicted, p_toxic"):
        Choice.parse(text, KINDS)


def test_the_highest_come_in_their_order_and_of_equals_the_first() -> None:
    assert Choice(highest=1, by="p_toxic")(ROWS) == [0]
    assert Choice(highest=3, by="p_toxic")(ROWS) == [0, 1, 3]
    assert Choice(highest=9, by="p_toxic")(iter(ROWS)) == [0, 1, 2, 3]
