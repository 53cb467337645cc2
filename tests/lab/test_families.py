"""The lab's families of molecules: their settings, their parts, their chemistry and their critical structure."""

from collections import Counter
from dataclasses import fields, replace
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import egocnn
from egocnn.data.generated import AlcoholsConfig, build_tree, canonical_text
from egocnn.data.generated import generate as alcohols_and_alkanes
from egocnn.data.graphs import Graph, Graphs
from egocnn.errors import DataError
from lab.families import FAMILIES, Family, FamilyName, generate, methylalkanes, read
from lab.truths.isomers import mirror
from tests.data.generated.molecules import (
    atoms,
    canonical,
    check_chemistry,
    check_distinct,
    incident,
    neighbours,
    parts_by,
    rdkit_smiles,
    size_of,
    truth,
    without,
)
from tests.data.generated.test_alcohols import configs
from tests.support.samples import sure


@st.composite
def families(draw: st.DrawFn, names: tuple[str, ...] = get_args(FamilyName)) -> Family:
    name = draw(st.sampled_from(names))
    family = FAMILIES[name]
    first = draw(st.integers(family.limits[0], family.limits[0] + 4))
    return replace(
        family,
        sizes=(first, first + draw(st.integers(3, 8 if name != "isomers" else 4))),
        hydrogens=draw(st.booleans()),
        per_size=draw(st.integers(1, 12)),
        hold_out=draw(st.sampled_from(["sizes", "molecules"])),
        seed=draw(st.integers(0, 1000)),
    )


Compounds = tuple[Graphs, bool, bool]
"""molecules of any family, whether they have their hydrogens, and whether sizes are held out"""


def of_family(family: Family) -> Compounds:
    return generate(family), family.hydrogens, family.hold_out == "sizes"


compounds = families().map(of_family) | configs().map(lambda config: (alcohols_and_alkanes(config), True, True))
each_name = pytest.mark.parametrize("name", ["alcohols", *get_args(FamilyName)])


def test_the_text_form_reads_every_option_and_all_else_is_read_as_the_product_reads_it() -> None:
    one = read("compounds:isomers:sizes=3-6,per-size=7,seed=5")
    other = generate(replace(FAMILIES["isomers"], sizes=(3, 6), per_size=7, seed=5))
    assert one.digest == other.digest
    alcohols = "compounds:alcohols:sizes=3-5"
    assert read(alcohols).digest == egocnn.read(alcohols).digest


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("compounds:isomers:size=3", "'size=3' is no option; write NAME=VALUE, with NAME one of sizes, per_size, seed"),
        ("compounds:isomers:sizes=8-3", "sizes must lie between 3 and 50, and be several, got 8-3"),
        ("compounds:methylalkanes:sizes=6-6", "sizes must lie between 5 and 501, and be several, got 6-6"),
        ("compounds:methylalkanes:sizes=7-7", "sizes must lie between 5 and 501, and be several, got 7-7"),
    ],
)
def test_a_text_that_breaks_a_rule_gets_one_line_that_teaches(source: str, message: str) -> None:
    with pytest.raises(DataError, match=f"^{source}: {message}$"):
        read(source)


@given(compounds)
def test_a_size_that_is_held_out_is_never_trained_on_and_no_molecule_comes_twice(made: Compounds) -> None:
    graphs, _, by_size = made
    check_distinct(graphs)
    parts = parts_by(graphs, lambda _, graph: size_of(graph))
    if by_size:
        assert all(found == {"test"} or "test" not in found for found in parts.values())
        assert parts[max(parts)] == {"test"}
        assert "train" in parts[min(parts)]


@settings(max_examples=20)
@given(families(("isomers",)))
def test_isomers_of_both_classes_are_equal_in_number_within_each_size_and_part(family: Family) -> None:
    graphs = generate(family)
    found = Counter((size_of(g), int(p), g.target) for g, p in zip(graphs, sure(graphs.part), strict=True))
    assert all(found[size, part, "symmetric"] == found[size, part, "asymmetric"] for size, part, _ in found)


def test_isomers_of_both_classes_have_equally_many_methyls() -> None:
    graphs = read("compounds:isomers")
    found = Counter((size_of(g), g.n_nodes, g.target) for g in graphs)
    assert all(found[arm, n, "symmetric"] == found[arm, n, "asymmetric"] for arm, n, _ in found)
    for graph in graphs:
        left, right = graph.name.split(" | ")
        assert 1 <= left.count("+") == right.count("+") < 2 * (size_of(graph) - 1)


def test_default_isomers_are_thousands_with_a_fifth_held_out_in_every_class_and_arm_length() -> None:
    graphs = read("compounds:isomers")
    assert len(graphs) > 2000
    for arm in range(5, 9):
        for kind in graphs.class_names:
            chosen = [size_of(g) == arm and g.target == kind for g in graphs]
            share = np.bincount(sure(graphs.part)[chosen], minlength=3) / sum(chosen)
            assert share == pytest.approx([0.7, 0.1, 0.2], abs=1.5 / sum(chosen))


def test_more_methylalkanes_per_size_give_every_place_off_the_centre() -> None:
    one, others = methylalkanes(11, 100, np.random.default_rng(0))
    assert [m.name for m in one] == ["C12H26 6-methyl"]
    assert sorted(m.name for m in others) == [f"C12H26 {place}-methyl" for place in range(2, 6)]


@settings(max_examples=10)
@given(families(), configs())
def test_the_same_seed_gives_the_same_arrays(family: Family, config: AlcoholsConfig) -> None:
    for one, other in zip(*([generate(family), alcohols_and_alkanes(config)] for _ in range(2)), strict=True):
        for field in fields(Graphs):
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name))


@each_name
def test_another_seed_gives_other_molecules_in_another_order(name: str) -> None:
    one, other = (read(f"compounds:{name}:per_size=5,seed={seed}") for seed in (0, 1))
    assert one.smiles != other.smiles
    assert not np.array_equal(one.indices, other.indices)


@given(compounds)
def test_every_graph_is_a_tree_of_atoms_with_the_right_valence_and_formula(made: Compounds) -> None:
    graphs, hydrogens, _ = made
    for graph in graphs:
        check_chemistry(graph, hydrogens=hydrogens)
        if graph.target in ("alkane", "alcohol"):
            n = atoms(graph).count("C")
            formula = f"C{n if n > 1 else ''}H" + (f"{2 * n + 1}OH" if "O" in atoms(graph) else f"{2 * n + 2}")
            assert graph.name.split(" ")[0] == formula


@settings(max_examples=25)
@given(compounds)
def test_rdkit_reads_the_smiles_as_the_molecule_of_the_graph(made: Compounds) -> None:
    chem = pytest.importorskip("rdkit.Chem", exc_type=ImportError)
    for graph in made[0]:
        assert chem.CanonSmiles(graph.smiles) == rdkit_smiles(graph)


@each_name
def test_rdkit_finds_all_molecules_of_a_family_valid_and_distinct(name: str) -> None:
    chem = pytest.importorskip("rdkit.Chem", exc_type=ImportError)
    graphs = read(f"compounds:{name}")
    assert len({chem.CanonSmiles(smiles) for smiles in sure(graphs.smiles)}) == len(set(graphs.names)) == len(graphs)


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
@given(families(("isomers",)))
def test_a_symmetric_isomer_is_its_centre_and_all_its_methyls(family: Family) -> None:
    for graph in generate(family):
        if graph.target == "symmetric":
            nodes, edges = truth(graph)
            groups = methyls(graph)
            (centre,) = nodes - groups - hydrogens_of(graph, groups)
            assert edges == incident(graph, groups)
            assert canonical(carbons_without(graph, groups)) == bare_chain(graph)
            assert len(neighbours(graph)[centre]) == (4 if family.hydrogens else 3)
            assert mirror(graph)[centre] == centre
            assert set(mirror(graph)[list(nodes)].tolist()) == nodes


@settings(max_examples=8)
@given(families(("isomers",)))
def test_an_asymmetric_isomer_is_the_two_methyls_without_which_it_would_be_symmetric(family: Family) -> None:
    for graph in generate(family):
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
@given(families(("methylalkanes",)))
def test_a_methylalkane_is_its_methyl_and_the_carbon_that_holds_it(family: Family) -> None:
    for graph in generate(family):
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
