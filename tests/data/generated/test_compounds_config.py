"""Generated compounds: their settings, their parts, and the chemistry and critical structure of every family."""

from collections import Counter
from dataclasses import fields
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.generated import CompoundsConfig, generate, read_compounds
from egocnn.data.generated.compounds import FAMILIES, FamilyName
from egocnn.data.generated.families import build_tree, canonical_text, methylalkanes
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.schema import PARTS
from egocnn.errors import ConfigError, DataError
from lab.truths.isomers import mirror
from tests.data.generated.molecules import (
    atoms,
    canonical,
    configs,
    incident,
    is_tree,
    neighbours,
    size_of,
    truth,
    without,
)


def test_the_text_form_reads_every_option() -> None:
    text = "compounds:isomers:sizes=3-6,hydrogens=yes,per-size=7,per_test_size=3,copies=2,hold_out=sizes,seed=5"
    config = CompoundsConfig(
        family="isomers", sizes=(3, 6), hydrogens=True, per_size=7, per_test_size=3, copies=2, hold_out="sizes", seed=5
    )
    one, other = read_compounds(text), generate(config)
    assert one.names == other.names
    assert np.array_equal(one.indices, other.indices)
    assert set(one.node_label_names) == {"C", "H"}


ODD = "carbons of the chain, an odd number"
OPTIONS = "write NAME=VALUE, with NAME one of sizes, hydrogens, per_size, per_test_size, copies, hold_out, seed"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("compounds:", "compounds:: no family is called ''; there are alcohols, isomers, methylalkanes"),
        ("compounds:alcohol", ".*: no family is called 'alcohol'; there are alcohols, isomers, methylalkanes"),
        ("compounds:isomers:size=3", f"compounds:isomers:size=3: 'size=3' is no option; {OPTIONS}"),
        ("compounds:isomers:", f"compounds:isomers:: '' is no option; {OPTIONS}"),
        ("compounds:isomers:family=alcohols", ".* 'family=alcohols' is no option; .*"),
        ("compounds:isomers:sizes=3-8-9", ".*: sizes must be two whole numbers such as 3-8, got '3-8-9'"),
        ("compounds:isomers:sizes=", ".*: sizes must be two whole numbers such as 3-8, got ''"),
        (
            "compounds:isomers:sizes=8-3",
            r".*: sizes of isomers \(carbons of an arm\) must lie between 3 and 50, got 8-3",
        ),
        (
            "compounds:methylalkanes:sizes=6-6",
            rf".*: sizes of methylalkanes \({ODD}\) must lie between 5 and 501, got 6-6",
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
    with pytest.raises(ConfigError, match="copies must lie between 1 and 1000, got 0"):
        CompoundsConfig(family="alcohols", copies=0)


def parts_by(graphs: Graphs, key: Any) -> dict[Any, set[str]]:
    assert graphs.part is not None
    found: dict[Any, set[str]] = {}
    for which, (graph, part) in enumerate(zip(graphs, graphs.part, strict=True)):
        found.setdefault(key(which, graph), set()).add(PARTS[part])
    return found


@given(configs())
def test_copies_are_the_same_molecule_and_never_leave_its_part(config: CompoundsConfig) -> None:
    graphs = generate(config)
    assert graphs.group is not None
    group = graphs.group
    assert set(np.bincount(group)) == {config.copies}
    assert all(len(parts) == 1 for parts in parts_by(graphs, lambda which, _: group[which]).values())
    texts = [canonical(graph) for graph in graphs]
    assert len(set(texts)) == len(set(group))
    assert len(set(zip(texts, group, strict=True))) == len(set(group))
    assert len(set(graphs.names)) == len(graphs)


@given(configs())
def test_a_size_that_is_held_out_is_never_trained_on(config: CompoundsConfig) -> None:
    graphs = generate(config)
    parts = parts_by(graphs, lambda _, graph: size_of(graph))
    if config.settings.hold_out == "sizes":
        assert all(found == {"test"} or "test" not in found for found in parts.values())
        assert parts[max(parts)] == {"test"}
        assert "train" in parts[min(parts)]


@settings(max_examples=20)
@given(configs(("alcohols", "isomers")))
def test_classes_are_equal_within_each_size_and_part(config: CompoundsConfig) -> None:
    graphs = generate(config)
    assert graphs.part is not None
    found = Counter((size_of(g), int(p), g.target) for g, p in zip(graphs, graphs.part, strict=True))
    one, other = FAMILIES[config.family].class_names
    assert all(found[size, part, one] == found[size, part, other] for size, part, _ in found)


def test_isomers_of_both_classes_have_equally_many_methyls() -> None:
    graphs = read_compounds("compounds:isomers")
    found = Counter((size_of(g), g.n_nodes, g.target) for g in graphs)
    assert all(found[arm, n, "symmetric"] == found[arm, n, "asymmetric"] for arm, n, _ in found)
    for graph in graphs:
        left, right = graph.name.split(" | ")
        assert 1 <= left.count("+") == right.count("+") < 2 * (size_of(graph) - 1)


def test_default_alcohols_train_on_small_sizes_and_are_tested_on_others_up_to_c82() -> None:
    parts = parts_by(read_compounds("compounds:alcohols"), lambda _, graph: size_of(graph))
    held_out = {size for size, found in parts.items() if found == {"test"}}
    assert {14, 82} | set(range(31, 83)) <= held_out
    assert held_out & set(range(3, 31)) == {6, 10, 14, 18, 22, 26, 30}


def test_default_isomers_are_thousands_with_a_fifth_held_out_in_every_class_and_arm_length() -> None:
    graphs = read_compounds("compounds:isomers")
    assert len(graphs) > 2000
    assert graphs.part is not None
    for arm in range(5, 9):
        for kind in graphs.class_names:
            chosen = [size_of(g) == arm and g.target == kind for g in graphs]
            share = np.bincount(graphs.part[chosen], minlength=3) / sum(chosen)
            assert share == pytest.approx([0.7, 0.1, 0.2], abs=1.5 / sum(chosen))


def test_more_methylalkanes_per_size_give_every_place_off_the_centre() -> None:
    one, others = methylalkanes(11, 100, np.random.default_rng(0))
    assert [m.name for m in one] == ["C12H26 6-methyl"]
    assert sorted(m.name for m in others) == [f"C12H26 {place}-methyl" for place in range(2, 6)]


@settings(max_examples=10)
@given(configs())
def test_the_same_seed_gives_the_same_arrays(config: CompoundsConfig) -> None:
    one, other = generate(config), generate(config)
    for field in fields(Graphs):
        assert np.array_equal(getattr(one, field.name), getattr(other, field.name))


@pytest.mark.parametrize("family", get_args(FamilyName))
def test_another_seed_gives_other_molecules_in_another_order(family: FamilyName) -> None:
    one, other = (generate(CompoundsConfig(family=family, per_size=5, seed=seed)) for seed in (0, 1))
    assert one.smiles != other.smiles
    assert not np.array_equal(one.indices, other.indices)


def test_the_order_of_the_nodes_tells_nothing() -> None:
    graphs = read_compounds("compounds:alcohols:sizes=8-30,copies=4")
    alcohols = [graph for graph in graphs if graph.target == "alcohol"]
    place = np.array([atoms(graph).index("O") / (graph.n_nodes - 1) for graph in alcohols])
    assert abs(place.mean() - 0.5) < 0.03
    assert abs(place.std() - np.sqrt(1 / 12)) < 0.03
    assert all(one.edges.tolist() != other.edges.tolist() for one, other in pairwise(alcohols[:4]))


VALENCE = {"C": 4, "O": 2, "H": 1}


@pytest.fixture(scope="module", params=get_args(FamilyName))
def default_family(request: pytest.FixtureRequest) -> Graphs:
    return read_compounds(f"compounds:{request.param}")


def rdkit_smiles(graph: Graph) -> str:
    from rdkit import Chem

    molecule = Chem.RWMol()
    for letter in atoms(graph):
        molecule.AddAtom(Chem.Atom(letter))
    for u, v in graph.edges:
        molecule.AddBond(int(u), int(v), Chem.BondType.SINGLE)
    Chem.SanitizeMol(molecule)
    return str(Chem.MolToSmiles(Chem.RemoveHs(molecule)))


@given(configs())
def test_every_graph_is_a_tree_of_atoms_with_the_right_valence_and_formula(config: CompoundsConfig) -> None:
    hydrogens = config.settings.hydrogens
    for graph in generate(config):
        assert is_tree(graph)
        assert set(graph.edge_label or ()) <= {"single"}
        degree = [len(around) for around in neighbours(graph)]
        count = Counter(atoms(graph))
        free = [VALENCE[letter] - d for d, letter in zip(degree, atoms(graph), strict=True)]
        assert set(free) == {0} if hydrogens else min(free) >= 0
        assert count["H"] == (2 * count["C"] + 2 if hydrogens else 0)
        assert count["O"] == (1 if graph.target == "alcohol" else 0)
        if config.family == "alcohols":
            n = count["C"]
            formula = f"C{n if n > 1 else ''}H" + (f"{2 * n + 1}OH" if count["O"] else f"{2 * n + 2}")
            assert graph.name.split(" ")[0] == formula


@settings(max_examples=15)
@given(configs())
def test_rdkit_reads_the_smiles_as_the_molecule_of_the_graph(config: CompoundsConfig) -> None:
    chem = pytest.importorskip("rdkit.Chem", exc_type=ImportError)
    for graph in generate(config):
        assert chem.CanonSmiles(graph.smiles) == rdkit_smiles(graph)


def test_rdkit_finds_all_molecules_of_a_family_valid_and_distinct(default_family: Graphs) -> None:
    chem = pytest.importorskip("rdkit.Chem", exc_type=ImportError)
    assert default_family.smiles is not None
    assert len({chem.CanonSmiles(smiles) for smiles in default_family.smiles}) == len(default_family)
    assert len(set(default_family.names)) == len(default_family)


@given(st.data(), st.integers(1, 25))
def test_the_canonical_text_of_a_tree_does_not_depend_on_its_numbering(data: st.DataObject, n: int) -> None:
    bonds = [(data.draw(st.integers(0, node - 1)), node) for node in range(1, n)]
    labels = data.draw(st.text("CO", min_size=n, max_size=n))
    place = data.draw(st.permutations(range(n)))
    moved_labels = "".join(labels[place.index(node)] for node in range(n))
    moved = build_tree(n, [(place[v], place[u]) for u, v in reversed(bonds)])
    assert canonical_text(labels, build_tree(n, bonds)) == canonical_text(moved_labels, moved)


def test_small_sizes_give_all_alkanes_and_the_first_alcohol_of_a_size_is_the_straight_chain() -> None:
    graphs = read_compounds("compounds:alcohols:sizes=1-8,per_size=100,hold_out=molecules")
    alkanes = Counter(size_of(graph) for graph in graphs if graph.target == "alkane")
    assert [alkanes[n] for n in range(1, 9)] == [1, 1, 1, 2, 3, 5, 9, 18]
    graphs = read_compounds("compounds:alcohols:sizes=3-20")
    straight = [graph.smiles for graph in graphs if graph.name.endswith("OH #1")]
    assert straight == ["C" * n + "O" for n in range(3, 21)]


def test_an_alcohol_stands_on_the_skeleton_of_the_alkane_with_its_number() -> None:
    graphs = read_compounds("compounds:alcohols:hydrogens=no")
    assert graphs.part is not None
    assert (graphs.part[::2] == graphs.part[1::2]).all()
    for alkane, alcohol in zip(graphs[::2], graphs[1::2], strict=True):
        assert canonical(without(alcohol, truth(alcohol)[0])) == canonical(alkane)


@settings(max_examples=25)
@given(configs(("alcohols",)))
def test_an_alcohol_is_its_oh_group_and_an_alkane_has_no_critical_structure(config: CompoundsConfig) -> None:
    for graph in generate(config):
        nodes, edges = truth(graph)
        if graph.target == "alkane":
            assert not nodes
            assert not edges
            continue
        oxygen = atoms(graph).index("O")
        around = neighbours(graph)[oxygen]
        assert nodes == {oxygen, *(n for n in around if atoms(graph)[n] == "H")}
        assert edges == incident(graph, {oxygen})
        assert len(edges) == (2 if config.settings.hydrogens else 1)


def methyls(graph: Graph) -> set[int]:
    """Critical carbons that hang on one other carbon alone."""
    around = neighbours(graph)
    critical = {n for n in truth(graph)[0] if atoms(graph)[n] == "C"}
    return {n for n in critical if sum(atoms(graph)[m] == "C" for m in around[n]) == 1}


def hydrogens_of(graph: Graph, nodes: set[int]) -> set[int]:
    around = neighbours(graph)
    return {m for n in nodes for m in around[n] if atoms(graph)[m] == "H"}


def carbons_without(graph: Graph, nodes: set[int]) -> Graph:
    return without(graph, nodes | {n for n, letter in enumerate(atoms(graph)) if letter == "H"})


def bare_chain(graph: Graph) -> str:
    length = 2 * size_of(graph) + 1 if graph.name.startswith("isomer") else size_of(graph)
    return canonical_text("C" * length, build_tree(length, pairwise(range(length))))


@settings(max_examples=25)
@given(configs(("isomers",)))
def test_a_symmetric_isomer_is_its_centre_and_all_its_methyls(config: CompoundsConfig) -> None:
    for graph in generate(config):
        if graph.target == "symmetric":
            nodes, edges = truth(graph)
            groups = methyls(graph)
            (centre,) = nodes - groups - hydrogens_of(graph, groups)
            assert edges == incident(graph, groups)
            assert canonical(carbons_without(graph, groups)) == bare_chain(graph)
            assert len(neighbours(graph)[centre]) == (4 if config.settings.hydrogens else 3)
            assert mirror(graph)[centre] == centre
            assert set(mirror(graph)[list(nodes)].tolist()) == nodes


@settings(max_examples=8)
@given(configs(("isomers",)))
def test_an_asymmetric_isomer_is_the_two_methyls_without_which_it_would_be_symmetric(config: CompoundsConfig) -> None:
    for graph in generate(config):
        if graph.target == "asymmetric":
            nodes, edges = truth(graph)
            groups = methyls(graph)
            assert len(groups) == 2
            assert nodes == groups | hydrogens_of(graph, groups)
            assert edges == incident(graph, groups)
            mirror(carbons_without(graph, groups))
            for one in groups:
                with pytest.raises(DataError, match="two arms differ"):
                    mirror(carbons_without(graph, {one}))


@settings(max_examples=25)
@given(configs(("methylalkanes",)))
def test_a_methylalkane_is_its_methyl_and_the_carbon_that_holds_it(config: CompoundsConfig) -> None:
    for graph in generate(config):
        nodes, edges = truth(graph)
        (methyl,) = methyls(graph)
        (holder,) = (n for n in neighbours(graph)[methyl] if atoms(graph)[n] == "C")
        assert nodes == {methyl, holder} | hydrogens_of(graph, {methyl})
        assert edges == incident(graph, {methyl})
        assert canonical(carbons_without(graph, {methyl})) == bare_chain(graph)
        if graph.target == "symmetric":
            assert mirror(graph)[holder] == holder
        else:
            with pytest.raises(DataError, match="two arms differ"):
                mirror(graph)
