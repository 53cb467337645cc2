"""Rules over functional groups, and the tasks that are drawn by them from a pool of molecules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from egocnn.data.sources.smiles import from_smiles, parse_smiles
from lab.truths.suite.molecules.groups import GROUPS, Match, matches
from lab.truths.suite.molecules.pool import pooled_molecules
from lab.truths.suite.molecules.rule_tasks import RULE_TASKS, make_rule
from lab.truths.suite.molecules.rules import MOST_ALTERNATIVES, AllOf, AnyOf, AtLeast, Find, Once, Without
from lab.truths.suite.molecules.value_tasks import VALUE_TASKS, crippen, make_values, weighted_groups
from lab.truths.suite.task import Sizes

pytest.importorskip("rdkit")

SIZES = Sizes(train=8, validation=2, test=2, larger=0)
PHENOLS = ["Oc1ccccc1" + "C" * n for n in range(8)]
OTHERS = ["OCc1ccccc1" + "C" * n for n in range(4)] + ["CCCCCC" + "C" * n for n in range(4)]


def finder(**found: Sequence[Match]) -> Find:
    return lambda group: tuple(found.get(group, ()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder of a few molecules, some of them twice, one in two pieces, one that is none."""
    (tmp_path / "molecules").mkdir()
    (tmp_path / "explain").mkdir()
    rows = [*PHENOLS, "c1ccccc1O", "[Na+].[Cl-]", "c1cc", *OTHERS]
    (tmp_path / "molecules" / "few.csv").write_text("smiles,y\n" + "".join(f"{row},1\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize(
    ("group", "smiles", "atoms"),
    [
        ("nitro", "C[N+](=O)[O-]", [(1, 2, 3)]),
        ("phenol", "Oc1ccccc1CO", [(0, 1)]),
        ("ester", "CC(=O)OCC(=O)O", [(1, 2, 3, 4)]),
        ("acid", "CC(=O)OCC(=O)O", [(5, 6, 7)]),
        ("tertiary amine", "CN(C)CC(=O)N(C)C", [(0, 1, 2, 3)]),
        ("fused five-six", "c1ccc2[nH]ccc2c1", [tuple(range(9))]),
        ("fused six-six", "c1ccc2[nH]ccc2c1", []),
        ("cyclopropane", "C1CC1C1CCC1", [(0, 1, 2)]),
        ("saturated six-ring", "C1CCNCC1", [tuple(range(6))]),
        ("saturated six-ring", "c1ccccc1", []),
    ],
)
def test_a_group_is_found_where_a_chemist_would_look(group: str, smiles: str, atoms: list[Match]) -> None:
    assert list(matches(parse_smiles(smiles), group)) == atoms


def test_every_group_of_every_rule_is_known() -> None:
    assert len(RULE_TASKS) == 20
    assert all(matches(parse_smiles("C"), group) == () for group in GROUPS)


def test_any_choice_of_matches_explains_a_conjunction() -> None:
    find = finder(A=[(0,), (1,)], B=[(5, 6)])
    rule = AllOf(("A", "B"))
    assert rule.holds(find)
    assert sorted(rule.alternatives(find)) == [(0, 1, 5, 6), (0, 5, 6), (1, 5, 6)]
    assert not rule.holds(finder(A=[(0,)]))


def test_each_match_explains_a_disjunction_and_two_matches_a_count_of_two() -> None:
    find = finder(A=[(0,), (1,)], B=[(2,)])
    assert {(0,), (1,), (2,)} <= set(AnyOf(("A", "B")).alternatives(find))
    pairs = AtLeast("A").alternatives(finder(A=[(0,), (1,), (2,)]))
    assert pairs == [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert not AtLeast("A").holds(finder(A=[(0,)]))


def test_a_negated_group_is_no_part_of_the_truth() -> None:
    rule = Without("A", "B")
    assert rule.holds(finder(A=[(0,)]))
    assert not rule.holds(finder(A=[(0,)], B=[(1,)]))
    assert rule.alternatives(finder(A=[(0,)])) == [(0,)]
    assert Once("A").alternatives(finder(A=[(3,)])) == [(3,)]
    assert not Once("A").holds(finder(A=[(3,), (4,)]))


def test_very_many_matches_leave_a_bounded_number_of_alternatives_and_among_them_all_matches_together() -> None:
    places = [(i,) for i in range(40)]
    found = AtLeast("A").alternatives(finder(A=places))
    assert len(found) == MOST_ALTERNATIVES
    assert tuple(range(40)) in found


def test_the_pool_holds_every_molecule_once_and_nothing_that_is_none(folder: Path) -> None:
    assert len(pooled_molecules(folder)) == len(PHENOLS) + len(OTHERS)


def test_half_of_the_molecules_follow_the_rule_and_their_graphs_are_those_of_the_reader(folder: Path) -> None:
    examples = make_rule(AllOf(("phenol",), ("alcohol",)))(SIZES, np.random.default_rng(0), folder)
    assert [example.target for example in examples].count("yes") == 6
    assert sorted({example.part for example in examples}) == ["test", "train", "validation"]
    others = [example for example in examples if example.target == "no"]
    with_alcohol = [example for example in others if example.smiles in OTHERS[:4]]
    assert len(with_alcohol) == 3  # those that look alike are drawn as often as those that do not
    assert all(example.nothing and not example.alternatives for example in others)
    graphs = from_smiles([str(example.smiles) for example in examples])
    for example, graph in zip(examples, graphs, strict=True):
        assert example.node_label == graph.node_label
        assert example.edge_label == graph.edge_label
        assert list(example.edges) == list(map(tuple, graph.edges.tolist()))
        if example.target == "yes":
            labels = example.node_label or ()
            assert [sorted(labels[i] for i in atoms) for atoms in example.alternatives] == [["O", "c"]]


def test_contributions_add_up_to_the_value_and_hydrogens_go_to_their_atoms(folder: Path) -> None:
    from rdkit.Chem.rdMolDescriptors import CalcCrippenDescriptors

    for example in make_values(crippen)(SIZES, np.random.default_rng(0), folder):
        assert example.values is not None
        assert len(example.values) == example.n_nodes
        assert example.target == pytest.approx(sum(example.values), abs=1e-3)
        assert example.target == pytest.approx(CalcCrippenDescriptors(parse_smiles(example.smiles))[0], abs=5e-3)


def test_the_atoms_of_a_group_share_its_weight(folder: Path) -> None:
    (molecule,) = (m for m in pooled_molecules(folder) if m.smiles == PHENOLS[0])
    assert weighted_groups({"phenol": -3.0})(molecule).tolist() == [-1.5, -1.5, 0, 0, 0, 0, 0]
    assert len(VALUE_TASKS) == 6


def test_the_same_seed_draws_the_same_molecules_and_another_seed_others(folder: Path) -> None:
    task = RULE_TASKS[0]
    assert task.examples(SIZES, folder, 1) == task.examples(SIZES, folder, 1)
    make = make_rule(AllOf(("phenol",)))
    first, second = (make(SIZES, np.random.default_rng(seed), folder) for seed in (1, 2))
    assert first != second
