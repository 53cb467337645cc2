"""The tasks: motifs are where the truth says, rules over functional groups, and published recipes are as published."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rdkit")

from egocnn.data.sources.smiles import from_smiles, parse_smiles
from lab.truths.suite.catalogue import CATALOGUE
from lab.truths.suite.molecules.groups import GROUPS, Match, matches
from lab.truths.suite.molecules.pool import pooled_molecules
from lab.truths.suite.molecules.rule_tasks import RULE_TASKS, make_rule
from lab.truths.suite.molecules.rules import MOST_ALTERNATIVES, AllOf, AnyOf, AtLeast, Find, Once, Rule, Without
from lab.truths.suite.molecules.value_tasks import VALUE_TASKS, crippen, make_values, weighted_groups
from lab.truths.suite.motifs.labelled import LABEL_TASKS
from lab.truths.suite.motifs.published import BASES, MOTIFS, make_ba_2motifs, make_spmotif, spmotif_base
from lab.truths.suite.motifs.shapes import CRANE, HOUSE, Shape, balanced_tree, cycle, grid, ladder, wheel
from lab.truths.suite.motifs.unlabelled import MOTIF_TASKS
from lab.truths.suite.motifs.values import MOTIF_VALUE_TASKS
from lab.truths.suite.task import Example, Sizes, SuiteTask
from tests.support.samples import sure

SIZES = Sizes(train=16, validation=4, test=4, larger=4)
NOWHERE = Path("no data needed")


def degrees(nodes: set[int], edges: list[tuple[int, int]]) -> list[int]:
    return sorted(sum(node in edge for edge in edges) for node in nodes)


def shape_of(example: Example) -> tuple[int, list[int]]:
    """Nodes of the truth, and how many critical edges end at each."""
    (nodes,) = example.alternatives
    return len(nodes), degrees(set(nodes), list(sure(example.critical_edges)))


def plain(shape: Shape) -> tuple[int, list[int]]:
    return shape.n_nodes, degrees(set(range(shape.n_nodes)), list(shape.edges))


@pytest.mark.parametrize("task", [*MOTIF_TASKS, *LABEL_TASKS, *MOTIF_VALUE_TASKS], ids=lambda task: task.name)
def test_every_graph_is_connected_simple_and_as_large_as_it_says(task: SuiteTask) -> None:
    examples = task.examples(SIZES, NOWHERE)
    assert len(examples) == SIZES.same_size + SIZES.larger
    for example in examples:
        assert len(set(example.edges)) == len(example.edges)
        assert all(0 <= u < v < example.n_nodes for u, v in example.edges)
        reached = {0}
        for _ in range(example.n_nodes):
            reached |= {end for edge in example.edges if reached & set(edge) for end in edge}
        assert len(reached) == example.n_nodes
        assert example.part == "test" or not example.larger
        assert (example.values is not None) == (task in MOTIF_VALUE_TASKS)
        if example.values is not None:  # of the nodes, which add up to the value of the graph
            assert example.target == pytest.approx(sum(example.values), abs=1e-2)
    usual, larger = ([e.n_nodes for e in examples if e.larger == which] for which in (False, True))
    assert np.mean(larger) > 1.8 * np.mean(usual)


@pytest.mark.parametrize(
    ("name", "target", "motif"),
    [
        ("house-against-grid", "house", HOUSE),
        ("house-against-grid", "grid", grid(3, 3)),
        ("ring-on-tree", "yes", cycle(6)),
        ("triangle-of-three", "yes", cycle(3)),
        ("alternating-ring", "yes", cycle(6)),
    ],
)
def test_the_truth_of_a_motif_is_its_nodes_and_its_edges(name: str, target: str, motif: Shape) -> None:
    examples = [e for e in CATALOGUE[name].examples(SIZES, NOWHERE) if e.target == target]
    assert examples
    assert all(shape_of(example) == plain(motif) for example in examples)


def test_two_houses_are_one_truth_labels_stand_on_the_motif_and_rings_alternate_where_said() -> None:
    examples = CATALOGUE["two-houses"].examples(SIZES, NOWHERE)
    assert all(len(e.alternatives[0]) == 10 for e in examples if e.target == "yes")
    assert not any(e.alternatives for e in examples if e.target == "no")
    assert {e.nothing for e in examples if e.target == "no"} == {True, False}
    for example in CATALOGUE["chain-of-three"].examples(SIZES, NOWHERE):
        assert example.node_label is not None
        assert sorted(set(example.node_label) & set("XYZ")) == ["X", "Y", "Z"]
        middle = example.node_label.index("Y")
        ends = {example.node_label[u + v - middle] for u, v in example.edges if middle in (u, v)}
        assert ({"X", "Z"} <= ends) == (example.target == "yes")
    for example in CATALOGUE["alternating-ring"].examples(SIZES, NOWHERE):
        if example.target == "yes":
            kinds = dict(zip(example.edges, sure(example.edge_label), strict=True))
            for node in example.alternatives[0]:
                own = [kinds[edge] for edge in example.critical_edges or () if node in edge]
                assert sorted(own) == ["double", "single"]


def test_ba_2motifs_has_a_thousand_graphs_of_25_nodes_and_edges_as_published() -> None:
    examples = [e for e in make_ba_2motifs(SIZES, np.random.default_rng(0), NOWHERE) if not e.larger]
    assert len(examples) == 1000
    assert {e.n_nodes for e in examples} == {25}
    assert np.mean([len(e.edges) for e in examples]) == 25.5  # 51 directed ones
    assert all(shape_of(e) == plain(HOUSE if e.target == "house" else cycle(5)) for e in examples)
    assert {e.target for e in examples} == {"house", "cycle"}
    shapes = {(8, 10): ladder(4), (6, 10): wheel(6), (13, 12): balanced_tree(3, 2), (5, 6): CRANE}
    assert all((shape.n_nodes, len(shape.edges)) == sizes for sizes, shape in shapes.items())
    assert all(spmotif_base(kind, np.random.default_rng(0), test=True).n_nodes >= 15 for kind in BASES)


@pytest.mark.parametrize("bias", [0.5, 0.9])
def test_spmotif_ties_motifs_to_bases_while_learning_and_not_in_the_test(bias: float) -> None:
    sizes = Sizes(train=600, validation=30, test=60, larger=0)
    examples = make_spmotif(bias)(sizes, np.random.default_rng(0), NOWHERE)
    learned = [e for e in examples if e.part == "train"]
    # a wheel has a hub of fourteen spokes or more; no other base has a node like it
    hubs = [max(degrees(set(range(e.n_nodes)), list(e.edges))) >= 12 for e in learned]
    cranes = [e.target == "crane" for e in learned]
    assert np.mean([hub for hub, crane in zip(hubs, cranes, strict=True) if crane]) == pytest.approx(bias, abs=0.1)
    assert np.mean([e.n_nodes for e in learned]) < 25 < np.mean([e.n_nodes for e in examples if e.part == "test"])
    for example in examples:
        assert shape_of(example) == plain(MOTIFS[str(example.target)])
        assert {len(row) for row in sure(example.node_attr)} == {4}


FEW = Sizes(train=8, validation=2, test=2, larger=0)
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


ONE, TWO = {"A": [(0,)]}, {"A": [(0,), (1,)]}


@pytest.mark.parametrize(
    ("rule", "found", "alternatives"),
    [  # None: the rule does not hold
        (AllOf(("A", "B")), TWO | {"B": [(5, 6)]}, {(0, 1, 5, 6), (0, 5, 6), (1, 5, 6)}),
        (AllOf(("A", "B")), ONE, None),
        (AnyOf(("A", "B")), ONE | {"B": [(2,)]}, {(0,), (2,), (0, 2)}),
        (AtLeast("A"), {"A": [(0,), (1,), (2,)]}, {(0, 1), (0, 2), (1, 2), (0, 1, 2)}),
        (AtLeast("A"), ONE, None),
        (Without("A", "B"), ONE, {(0,)}),  # a negated group is no part of the truth
        (Without("A", "B"), ONE | {"B": [(1,)]}, None),
        (Once("A"), ONE, {(0,)}),
        (Once("A"), TWO, None),
    ],
)
def test_a_rule_holds_and_is_explained_by_every_choice_of_matches(
    rule: Rule, found: dict[str, Sequence[Match]], alternatives: set[Match] | None
) -> None:
    assert rule.holds(finder(**found)) == (alternatives is not None)
    if alternatives is not None:
        assert set(rule.alternatives(finder(**found))) == alternatives


def test_very_many_matches_leave_a_bounded_number_of_alternatives_and_among_them_all_matches_together() -> None:
    places = [(i,) for i in range(40)]
    found = AtLeast("A").alternatives(finder(A=places))
    assert len(found) == MOST_ALTERNATIVES
    assert tuple(range(40)) in found


def test_half_of_the_molecules_follow_the_rule_and_their_graphs_are_those_of_the_reader(folder: Path) -> None:
    examples = make_rule(AllOf(("phenol",), ("alcohol",)))(FEW, np.random.default_rng(0), folder)
    assert len(pooled_molecules(folder)) == len(PHENOLS) + len(OTHERS)  # each once, and nothing that is no molecule
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
            assert [sorted(labels[i] for i in atoms) for atoms in example.alternatives] == [["O|H1", "c"]]


def test_contributions_add_up_to_the_value_hydrogens_go_to_their_atoms_and_a_groups_atoms_share_its_weight(
    folder: Path,
) -> None:
    from rdkit.Chem.rdMolDescriptors import CalcCrippenDescriptors

    (molecule,) = (m for m in pooled_molecules(folder) if m.smiles == PHENOLS[0])
    assert weighted_groups({"phenol": -3.0})(molecule).tolist() == [-1.5, -1.5, 0, 0, 0, 0, 0]
    assert (len(RULE_TASKS), len(VALUE_TASKS)) == (20, 6)
    assert all(matches(parse_smiles("C"), group) == () for group in GROUPS)

    for example in make_values(crippen)(FEW, np.random.default_rng(0), folder):
        assert example.values is not None
        assert len(example.values) == example.n_nodes
        assert example.target == pytest.approx(sum(example.values), abs=1e-3)
        assert example.target == pytest.approx(CalcCrippenDescriptors(parse_smiles(example.smiles))[0], abs=5e-3)


def test_the_same_seed_draws_the_same_molecules_and_another_seed_others(folder: Path) -> None:
    task = RULE_TASKS[0]
    assert task.examples(FEW, folder, 1) == task.examples(FEW, folder, 1)
    make = make_rule(AllOf(("phenol",)))
    first, second = (make(FEW, np.random.default_rng(seed), folder) for seed in (1, 2))
    assert first != second
