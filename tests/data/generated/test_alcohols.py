"""Generated alkanes and alcohols; what holds for molecules of every family is tested in tests/lab/test_families.py."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.generated import (
    AlcoholsConfig,
    alkanes_and_alcohols,
    build_tree,
    canonical_text,
    generate,
    read_compounds,
)
from egocnn.errors import ConfigError, DataError
from tests.data.generated.molecules import (
    atoms,
    canonical,
    incident,
    neighbours,
    parts_by,
    size_of,
    truth,
    without,
)


@st.composite
def configs(draw: st.DrawFn) -> AlcoholsConfig:
    first = draw(st.integers(1, 5))
    return AlcoholsConfig(
        sizes=(first, first + draw(st.integers(3, 8))),
        per_size=draw(st.integers(1, 12)),
        seed=draw(st.integers(0, 1000)),
    )


def test_the_text_form_reads_every_option() -> None:
    one = read_compounds("compounds:alcohols:sizes=3-6,per-size=7,seed=5")
    other = generate(AlcoholsConfig(sizes=(3, 6), per_size=7, seed=5))
    assert one.names == other.names
    assert np.array_equal(one.indices, other.indices)
    assert set(one.node_label_names) == {"C", "H", "O"}


OPTIONS = "write NAME=VALUE, with NAME one of sizes, per_size, seed"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("compounds:", "compounds:: no family is called ''; there are alcohols"),
        ("compounds:alcohol", ".*: no family is called 'alcohol'; there are alcohols"),
        ("compounds:isomers:sizes=3-8", ".*: isomers belong to the paper's experiments and live in the lab: .*"),
        ("compounds:methylalkanes", ".*: methylalkanes belong to .* live in the lab: lab.families, in a clone"),
        ("compounds:alcohols:size=3", f"compounds:alcohols:size=3: 'size=3' is no option; {OPTIONS}"),
        ("compounds:alcohols:", f"compounds:alcohols:: '' is no option; {OPTIONS}"),
        ("compounds:alcohols:family=alcohols", ".* 'family=alcohols' is no option; .*"),
        ("compounds:alcohols:sizes=3-8-9", ".*: sizes must be two whole numbers such as 3-8, got '3-8-9'"),
        ("compounds:alcohols:sizes=", ".*: sizes must be two whole numbers such as 3-8, got ''"),
        ("compounds:alcohols:sizes=8-3", r".*: sizes \(carbons\) must lie between 1 and 500, got 8-3"),
        ("compounds:alcohols:sizes=0-501", r".*: sizes \(carbons\) must lie between 1 and 500, got 0-501"),
        ("compounds:alcohols:sizes=9", ".*: sizes 9-9 leave none to hold out; give more"),
        ("compounds:alcohols:seed=-1", ".*: seed must be a whole number, got '-1'"),
        ("compounds:alcohols:seed=1,seed=2", ".*: seed is given twice"),
        ("compounds:alcohols:per_size=0", ".*: per_size must lie between 1 and 10000, got 0"),
    ],
)
def test_a_text_that_breaks_a_rule_gets_one_line_that_teaches(source: str, message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}$"):
        read_compounds(source)
    with pytest.raises(ConfigError, match="per_size must lie between 1 and 10000, got 0"):
        AlcoholsConfig(per_size=0)


@settings(max_examples=20)
@given(configs())
def test_classes_are_equal_within_each_size_and_part(config: AlcoholsConfig) -> None:
    graphs = generate(config)
    assert graphs.part is not None
    found = Counter((size_of(g), int(p), g.target) for g, p in zip(graphs, graphs.part, strict=True))
    assert all(found[size, part, "alkane"] == found[size, part, "alcohol"] for size, part, _ in found)


def test_default_alcohols_train_on_small_sizes_and_are_tested_on_others_up_to_c82() -> None:
    parts = parts_by(read_compounds("compounds:alcohols"), lambda _, graph: size_of(graph))
    held_out = {size for size, found in parts.items() if found == {"test"}}
    assert {14, 82} | set(range(31, 83)) <= held_out
    assert held_out & set(range(3, 31)) == {6, 10, 14, 18, 22, 26, 30}


def test_the_order_of_the_nodes_tells_nothing() -> None:
    graphs = read_compounds("compounds:alcohols:sizes=8-82,per_size=64")
    alcohols = [graph for graph in graphs if graph.target == "alcohol"]
    place = np.array([atoms(graph).index("O") / (graph.n_nodes - 1) for graph in alcohols])
    assert abs(place.mean() - 0.5) < 0.03
    assert abs(place.std() - np.sqrt(1 / 12)) < 0.03
    assert all(one.edges.tolist() != other.edges.tolist() for one, other in pairwise(alcohols[:4]))


@given(st.data(), st.integers(1, 25))
def test_the_canonical_text_of_a_tree_does_not_depend_on_its_numbering(data: st.DataObject, n: int) -> None:
    bonds = [(data.draw(st.integers(0, node - 1)), node) for node in range(1, n)]
    labels = data.draw(st.text("CO", min_size=n, max_size=n))
    place = data.draw(st.permutations(range(n)))
    moved_labels = "".join(labels[place.index(node)] for node in range(n))
    moved = build_tree(n, [(place[v], place[u]) for u, v in reversed(bonds)])
    assert canonical_text(labels, build_tree(n, bonds)) == canonical_text(moved_labels, moved)


def test_small_sizes_give_all_alkanes_and_the_first_alcohol_of_a_size_is_the_straight_chain() -> None:
    counts = [len(alkanes_and_alcohols(size, 100, np.random.default_rng(size))) for size in range(1, 9)]
    assert counts == [1, 1, 1, 2, 3, 5, 9, 18]
    graphs = read_compounds("compounds:alcohols:sizes=3-20")
    straight = [graph.smiles for graph in graphs if graph.name.endswith("OH #1")]
    assert straight == ["C" * n + "O" for n in range(3, 21)]


def test_an_alcohol_stands_on_the_skeleton_of_the_alkane_with_its_number() -> None:
    graphs = read_compounds("compounds:alcohols:sizes=3-40")
    assert graphs.part is not None
    assert (graphs.part[::2] == graphs.part[1::2]).all()
    for pair in zip(graphs[::2], graphs[1::2], strict=True):
        alkane, alcohol = (without(each, {n for n, atom in enumerate(atoms(each)) if atom != "C"}) for each in pair)
        assert canonical(alcohol) == canonical(alkane)


@settings(max_examples=25)
@given(configs())
def test_an_alcohol_is_its_oh_group_and_an_alkane_has_no_critical_structure(config: AlcoholsConfig) -> None:
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
        assert len(edges) == 2
