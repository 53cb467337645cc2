from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.data.arrays import Ints
from egocnn.data.collection import split_in_two
from egocnn.errors import DataError

SHARES = st.floats(0.01, 0.99)
SEEDS = st.integers(0, 100)


@given(st.integers(2, 60), SHARES, SEEDS)
def test_both_sides_together_are_all_graphs_each_once_in_order(n_graphs: int, share: float, seed: int) -> None:
    first, second = split_in_two(n_graphs, share, classes=None, groups=None, seed=seed)
    assert sorted([*first, *second]) == list(range(n_graphs))
    assert list(first) == sorted(first)
    assert list(second) == sorted(second)
    assert len(second) == min(max(round(share * n_graphs), 1), n_graphs - 1)


@given(st.lists(st.integers(0, 6), min_size=2, max_size=40), SHARES, SEEDS)
def test_a_group_is_never_torn_apart_and_both_sides_get_one(groups: list[int], share: float, seed: int) -> None:
    of = np.array(groups)
    if len(set(groups)) == 1:
        with pytest.raises(DataError, match="one and the same group"):
            split_in_two(len(of), share, classes=None, groups=of, seed=seed)
        return
    first, second = split_in_two(len(of), share, classes=None, groups=of, seed=seed)
    assert not set(of[first]) & set(of[second])
    assert len(first)
    assert len(second)
    assert sorted([*first, *second]) == list(range(len(of)))


@given(st.lists(st.integers(5, 40), min_size=1, max_size=4), st.floats(0.1, 0.9), SEEDS)
def test_every_class_gets_its_share_up_to_one_or_two_graphs(sizes: list[int], share: float, seed: int) -> None:
    classes: Ints = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    _, second = split_in_two(len(classes), share, classes=classes, groups=None, seed=seed)
    for number, size in enumerate(sizes):
        # the cut may move by less than one graph of every class, of which this one takes its part
        slack = 1 + (len(sizes) + 0.5) * size / len(classes)
        assert abs((classes[second] == number).sum() - share * size) <= slack


def test_two_equal_classes_are_split_evenly_whatever_the_seed() -> None:
    classes = np.array([0, 1] * 50)
    for seed in range(20):
        _, second = split_in_two(100, 0.2, classes=classes, groups=None, seed=seed)
        assert np.bincount(classes[second]).tolist() == [10, 10]


def test_copies_of_one_molecule_stay_together_while_classes_keep_their_shares() -> None:
    groups = np.repeat(np.arange(40), 3)
    classes = groups % 2
    _, second = split_in_two(120, 0.25, classes=classes, groups=groups, seed=1)
    assert len(second) == 30
    assert np.bincount(classes[second]).tolist() == [15, 15]


@given(st.integers(4, 30), SEEDS)
def test_the_same_seed_gives_the_same_split(n_graphs: int, seed: int) -> None:
    classes = np.arange(n_graphs) % 3
    once, again = (split_in_two(n_graphs, 0.4, classes=classes, groups=None, seed=seed) for _ in range(2))
    assert np.array_equal(once[1], again[1])


def test_different_seeds_give_different_splits() -> None:
    splits = {tuple(split_in_two(50, 0.5, classes=None, groups=None, seed=seed)[1]) for seed in range(10)}
    assert len(splits) == 10


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_share_that_is_not_between_0_and_1_is_refused(share: float) -> None:
    with pytest.raises(DataError, match="between 0 and 1"):
        split_in_two(10, share, classes=None, groups=None, seed=0)


@pytest.mark.parametrize("n_graphs", [0, 1])
def test_fewer_than_two_graphs_cannot_be_split(n_graphs: int) -> None:
    with pytest.raises(DataError, match="cannot be split"):
        split_in_two(n_graphs, 0.5, classes=None, groups=None, seed=0)
