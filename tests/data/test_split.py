import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.data.arrays import Ints
from egocnn.data.collection import draw_parts, fill_parts, split_in_two
from egocnn.data.read import read
from egocnn.data.schema import PARTS
from egocnn.errors import DataError
from tests.support.samples import as_list, sure

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


def test_two_equal_classes_are_split_evenly_and_copies_of_one_molecule_stay_together() -> None:
    classes = np.array([0, 1] * 50)
    for seed in range(20):
        _, second = split_in_two(100, 0.2, classes=classes, groups=None, seed=seed)
        assert np.bincount(classes[second]).tolist() == [10, 10]
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


# ── drawn parts ───────────────────────────────────────────────────────────────────────────────────

RINGS = [f"c1ccc({'C' * n})cc1" for n in range(1, 9)] + ["C1CC1", "C1CC1C", "CCO", "C1CCC1", "C1CCCC1", "C1CCCCC1"]


def test_the_largest_groups_train_and_none_is_torn_apart() -> None:
    groups = np.array([5, 1, 1, 1, 1, 1, 2, 2, 3, 4])
    assert fill_parts(groups, 0.8, 0.1).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]
    assert fill_parts(np.array([1] * 9 + [2]), 0.8, 0.1).tolist() == [0] * 9 + [2]
    with pytest.raises(DataError, match="none is left for the test"):
        fill_parts(np.zeros(5, np.int64), 0.8, 0.1)


@given(st.lists(st.integers(0, 9), min_size=12, max_size=60))
def test_filled_parts_hold_whole_groups_and_the_first_no_more_than_its_share(groups: list[int]) -> None:
    of = np.array(groups)
    sizes = np.bincount(of)
    if sizes.max() == len(of):
        return
    part = fill_parts(of, 0.8, 0.1)
    assert all(len(set(part[of == group])) == 1 for group in set(groups))
    assert (part == 0).sum() <= max(0.8 * len(of), sizes.max())
    assert (part == 1).sum() <= 0.1 * len(of)
    assert (part == 2).any()


def test_a_random_split_has_80_10_and_10_per_cent_and_equal_shares_of_classes() -> None:
    graphs = read("compounds:alcohols").with_parts(None)
    graphs = graphs.replace(group=None)[:200]
    drawn = draw_parts(graphs, "random", seed=3)
    assert drawn.part is not None
    assert np.bincount(drawn.part).tolist() == [160, 20, 20]
    shares = [np.mean(as_list(drawn.select(part).target)) for part in PARTS]
    assert shares == pytest.approx([np.mean(as_list(graphs.target))] * 3, abs=0.06)
    again, other = (draw_parts(graphs, "random", seed=seed).part for seed in (3, 4))
    assert again is not None
    assert other is not None
    assert (again == drawn.part).all()
    assert (other != drawn.part).any()


def test_molecules_of_one_scaffold_stay_on_one_side() -> None:
    graphs = read(RINGS)
    train, test = graphs.split(test=0.2, by="scaffold")
    assert train.smiles is not None
    assert set(RINGS[:8]) < set(train.smiles)
    assert {"C1CC1", "C1CC1C"} < set(train.smiles)
    assert len(test) == 3
    drawn = draw_parts(graphs, "scaffold", seed=0)
    assert np.bincount(sure(drawn.part)).tolist() == [11, 1, 2]
    assert len(set(sure(drawn.group).tolist())) == 6
    with pytest.raises(DataError, match="drawn by random or scaffold, not by 'size'"):
        graphs.split(by="size")
    with pytest.raises(DataError, match="not all graphs have SMILES"):
        graphs.replace(smiles=None).split(by="scaffold")


def test_rdkit_says_nothing_on_the_terminal_while_scaffolds_are_found(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rdkit")
    read(["[HH]", "c1ccccc1", "CCO", "[H+].[Cl-]"]).split(test=0.5, by="scaffold")
    assert capfd.readouterr().err == ""
