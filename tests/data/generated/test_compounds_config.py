"""The settings of generated compounds and their text form: what is read, and what is refused in which words."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from egocnn.config import field_help
from egocnn.data.generated import CompoundsConfig, generate, read_compounds
from egocnn.errors import ConfigError, DataError


def test_the_text_form_reads_every_option() -> None:
    text = "compounds:isomers:sizes=3-6,hydrogens=yes,per-size=7,per_test_size=3,copies=2,hold_out=sizes,seed=5"
    config = CompoundsConfig(
        family="isomers", sizes=(3, 6), hydrogens=True, per_size=7, per_test_size=3, copies=2, hold_out="sizes", seed=5
    )
    one, other = read_compounds(text), generate(config)
    assert one.names == other.names
    assert np.array_equal(one.indices, other.indices)
    assert set(one.node_label_names) == {"C", "H"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("alcohols", "'alcohols' names no compounds; write compounds:FAMILY, for instance compounds:alcohols"),
        ("compounds:", "compounds:: no family is called ''; there are alcohols, isomers, methylalkanes"),
        (
            "compounds:alcohol",
            "compounds:alcohol: no family is called 'alcohol'; there are alcohols, isomers, methylalkanes",
        ),
        (
            "compounds:isomers:size=3",
            "compounds:isomers:size=3: 'size=3' is no option; write NAME=VALUE, with NAME one of "
            "sizes, hydrogens, per_size, per_test_size, copies, hold_out, seed",
        ),
        ("compounds:isomers:", "compounds:isomers:: '' is no option; write NAME=VALUE, with NAME one of sizes, .*"),
        ("compounds:isomers:family=alcohols", ".* 'family=alcohols' is no option; .*"),
        ("compounds:isomers:sizes=3-8-9", ".*: sizes must be two whole numbers such as 3-8, got '3-8-9'"),
        ("compounds:isomers:sizes=", ".*: sizes must be two whole numbers such as 3-8, got ''"),
        (
            "compounds:isomers:sizes=8-3",
            r".*: sizes of isomers \(carbons of an arm\) must lie between 3 and 50, got 8-3",
        ),
        (
            "compounds:methylalkanes:sizes=6-6",
            r".*: sizes of methylalkanes \(carbons of the chain, an odd number\) must lie between 5 and 501, got 6-6",
        ),
        ("compounds:alcohols:sizes=9", ".*: sizes 9-9 leave none to hold out; give more, or hold_out=molecules"),
        ("compounds:alcohols:seed=-1", ".*: seed must be a whole number, got '-1'"),
        ("compounds:alcohols:seed=1,seed=2", ".*: seed is given twice"),
        ("compounds:alcohols:copies=0", ".*: copies must lie between 1 and 1000, got 0"),
        ("compounds:alcohols:per_size=0", ".*: per_size must lie between 1 and 10000, got 0"),
        ("compounds:alcohols:hydrogens=maybe", ".*: hydrogens must be yes or no, got 'maybe'"),
        ("compounds:alcohols:hold_out=all", ".*: hold_out must be one of sizes, molecules, got 'all'"),
    ],
)
def test_a_text_that_breaks_a_rule_gets_one_line_that_teaches(source: str, message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}$"):
        read_compounds(source)


def test_a_setting_outside_its_range_is_refused_in_python_too() -> None:
    with pytest.raises(ConfigError, match="copies must lie between 1 and 1000, got 0"):
        CompoundsConfig(family="alcohols", copies=0)


def test_every_setting_has_a_line_of_meaning() -> None:
    assert list(field_help(CompoundsConfig)) == [field.name for field in fields(CompoundsConfig)]
