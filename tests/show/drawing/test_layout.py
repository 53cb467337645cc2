"""Layouts are repeatable, finite and to scale; molecules look as chemists draw them."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ReadConfig
from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graph
from egocnn.data.read import read
from egocnn.data.sources.smiles import from_smiles
from egocnn.show.drawing.layout import MOST_FOR_STRESS, MOST_RINGS, molecule_of, positions
from tests.support.samples import cycle, one_graph, sure

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def lengths(graph: Graph, placed: Floats) -> Floats:
    ends = placed[graph.edges[graph.edges[:, 0] != graph.edges[:, 1]]]
    found: Floats = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    return found


def thread(n_nodes: int) -> Graph:
    """A discussion: half of all answer the first, the others answer whom they like."""
    generator = np.random.default_rng(0)
    to_first = generator.random(n_nodes) < 0.5
    answered = np.where(to_first, 0, (np.arange(n_nodes) * generator.random(n_nodes)).astype(int))
    return one_graph(n_nodes, [(int(answered[node]), node) for node in range(1, n_nodes)])[0]


@st.composite
def any_graph(draw: st.DrawFn) -> Graph:
    n_nodes = draw(st.integers(0, 25))
    node = st.integers(0, max(n_nodes - 1, 0))
    edges = draw(st.lists(st.tuples(node, node), max_size=50)) if n_nodes else []
    return one_graph(n_nodes, edges)[0]


@given(any_graph())
@settings(max_examples=60)
def test_nodes_of_any_graph_get_finite_places_of_their_own_and_edges_a_unit_of_length(graph: Graph) -> None:
    placed = positions(graph)
    assert placed.shape == (graph.n_nodes, 2)
    assert np.isfinite(placed).all()
    np.testing.assert_array_equal(placed, positions(graph))
    apart = np.linalg.norm(placed[:, None] - placed[None], axis=2) + np.eye(graph.n_nodes)
    assert apart.min(initial=1.0) > 0.05
    if len(lengths(graph, placed)):
        assert lengths(graph, placed).mean() == pytest.approx(1.0)


def test_a_ring_is_round_and_a_path_is_nearly_straight() -> None:
    ring = positions(one_graph(8, cycle(*range(8)))[0])
    radius = np.linalg.norm(ring - ring.mean(axis=0), axis=1)
    assert radius.std() < 0.01 * radius.mean()
    path = positions(one_graph(6, [(n, n + 1) for n in range(5)])[0])
    assert np.ptp(path[:, 0]) == pytest.approx(5.0, rel=0.02)


def test_components_stand_side_by_side_and_single_nodes_stay_near() -> None:
    graph = one_graph(40, [*cycle(0, 1, 2, 3, 4), *cycle(5, 6, 7), (8, 9)])[0]
    placed = positions(graph)
    parts = [range(5), range(5, 8), range(8, 10), *([n] for n in range(10, 40))]
    boxes = [(placed[list(part)].min(axis=0), placed[list(part)].max(axis=0)) for part in parts]
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert (low > other_high).any() or (high < other_low).any()
    width, height = np.ptp(placed, axis=0)
    assert max(width, height) < 15


def test_another_seed_is_another_picture_of_a_graph_and_the_same_of_a_molecule() -> None:
    graph = thread(MOST_FOR_STRESS + 50)
    assert np.abs(positions(graph) - positions(graph, seed=1)).max() > 0.1
    molecule = from_smiles([ASPIRIN])[0]
    np.testing.assert_array_equal(positions(molecule), positions(molecule, seed=1))


@pytest.mark.parametrize("nodes", [MOST_FOR_STRESS, 2000])
def test_a_discussion_keeps_neighbours_near(nodes: int) -> None:
    graph = thread(nodes)
    placed = positions(graph)
    generator = np.random.default_rng(1)
    strangers = generator.integers(0, graph.n_nodes, (5000, 2))
    away = np.linalg.norm(placed[strangers[:, 0]] - placed[strangers[:, 1]], axis=1).mean()
    assert lengths(graph, placed).mean() < 0.6 * away


# ── molecules ─────────────────────────────────────────────────────────────────────────────────────


def test_benzene_is_a_regular_hexagon() -> None:
    graph = from_smiles(["c1ccccc1"])[0]
    placed = positions(graph)
    np.testing.assert_allclose(lengths(graph, placed), 1.0, atol=0.02)
    np.testing.assert_allclose(np.linalg.norm(placed - placed.mean(axis=0), axis=1), 1.0, atol=0.02)


def test_nodes_in_any_order_find_their_atoms() -> None:
    for graph in read("compounds:alcohols")[[5, 40]]:
        molecule = sure(molecule_of(graph))
        assert tuple(atom.GetSymbol() for atom in molecule.GetAtoms()) == graph.node_label
        bonds = {tuple(sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx()))) for b in molecule.GetBonds()}
        assert bonds == {tuple(edge) for edge in graph.edges.tolist()}
        # RDKit shortens bonds a little where atoms crowd
        assert 0.6 < lengths(graph, positions(graph)).min() <= lengths(graph, positions(graph)).max() < 1.6


@given(st.permutations(range(13)))
@settings(max_examples=20)
def test_a_shuffled_drug_keeps_its_double_bonds(order: list[int]) -> None:
    graph = from_smiles([ASPIRIN])[0]
    place = np.argsort(order)
    labels = tuple(sure(graph.node_label)[node] for node in order)
    shuffled = one_graph(13, place[graph.edges].tolist(), node_label=labels, smiles=(ASPIRIN,))[0]
    molecule = sure(molecule_of(shuffled))
    assert [atom.GetSymbol().upper() for atom in molecule.GetAtoms()] == [
        label.partition("|")[0].upper() for label in labels
    ]
    doubled = [b for b in molecule.GetBonds() if b.GetBondType().name == "DOUBLE"]
    assert [{b.GetBeginAtom().GetSymbol(), b.GetEndAtom().GetSymbol()} for b in doubled] == [{"C", "O"}] * 2


@pytest.mark.parametrize(
    ("smiles", "edges", "labels"),
    [
        ("CCCO", [(0, 1), (0, 2), (0, 3)], ["C", "C", "C", "O"]),
        ("CCCO", [(0, 1), (1, 2), (2, 3)], ["C", "O", "C", "C"]),
        ("CCCCC", [(0, 1), (1, 2), (2, 3)], ["C"] * 4),
        ("nonsense(", [(0, 1), (1, 2), (2, 3)], ["C"] * 4),
        ("C1CC1C", [(0, 1), (0, 2), (1, 2), (3, 3)], ["C"] * 4),
    ],
    ids=["other bonds", "other atoms", "other size", "no SMILES", "a self-loop"],
)
def test_smiles_that_say_something_else_than_the_graph_do_not_count(
    smiles: str, edges: list[tuple[int, int]], labels: list[str]
) -> None:
    graph = one_graph(4, edges, node_label=labels, smiles=(smiles,))[0]
    assert molecule_of(graph) is None
    assert np.isfinite(positions(graph)).all()


def test_a_molecule_of_more_rings_than_rdkit_places_in_time_is_laid_out_as_any_graph() -> None:
    few, many = from_smiles(["C1CC1" * MOST_RINGS, "C1CC1" * (MOST_RINGS + 1)])
    assert molecule_of(few) is not None
    assert molecule_of(many) is None
    assert lengths(many, positions(many)).mean() == pytest.approx(1.0)


def test_a_chain_of_82_carbons_is_folded_to_fit_a_page() -> None:
    graph = from_smiles(["C" * 82 + "O"], config=ReadConfig(hydrogens=True))[0]
    assert graph.n_nodes > 240
    placed = positions(graph)
    width, height = np.ptp(placed, axis=0)
    assert 0.5 < width / height < 3
    assert lengths(graph, placed).min() > 0.6
    assert lengths(graph, placed).max() < 1.7
    apart = np.linalg.norm(placed[:, None] - placed[None], axis=2) + np.eye(graph.n_nodes)
    assert apart.min() > 0.4


@pytest.mark.parametrize(
    "smiles", ["C[C@H](N)C(=O)O", *("C" * before + "[C@@H](N)" + "C" * (70 - before) for before in range(5, 70, 6))]
)
def test_a_molecule_is_turned_and_folded_but_never_mirrored(smiles: str) -> None:
    from rdkit import Chem
    from rdkit.Geometry import Point3D

    graph = from_smiles([smiles])[0]
    placed = positions(graph)
    molecule = sure(molecule_of(graph))
    shape = Chem.Conformer(graph.n_nodes)
    for atom, (x, y) in enumerate(placed.tolist()):
        shape.SetAtomPosition(atom, Point3D(x, y, 0.0))
    molecule.RemoveAllConformers()
    molecule.AddConformer(shape)
    again = Chem.MolFromMolBlock(Chem.MolToMolBlock(molecule))
    assert Chem.MolToSmiles(again) == Chem.MolToSmiles(Chem.MolFromSmiles(smiles))


def test_without_rdkit_a_molecule_is_laid_out_as_any_graph_which_needs_no_networkx(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = from_smiles(["c1ccccc1O"])[0]
    for library in ("rdkit", "networkx"):
        monkeypatch.setitem(sys.modules, library, None)
    assert molecule_of(graph) is None
    assert lengths(graph, positions(graph)).mean() == pytest.approx(1.0)
