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


@pytest.mark.parametrize("classes", [None, np.arange(50) % 3])
def test_the_same_seed_gives_the_same_split_and_another_seed_another(classes: Ints | None) -> None:
    seeds = [*range(10), *range(10)]
    assert len({tuple(split_in_two(50, 0.5, classes=classes, groups=None, seed=seed)[1]) for seed in seeds}) == 10


@pytest.mark.parametrize(
    ("n_graphs", "share"), [*((10, share) for share in (0.0, 1.0, -0.1, 1.5, np.nan)), (0, 0.5), (1, 0.5)]
)
def test_a_share_that_is_not_between_0_and_1_and_fewer_than_two_graphs_are_refused(n_graphs: int, share: float) -> None:
    with pytest.raises(DataError, match="between 0 and 1" if n_graphs == 10 else "cannot be split"):
        split_in_two(n_graphs, share, classes=None, groups=None, seed=0)
