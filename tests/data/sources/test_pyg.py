"""Objects with an edge_index -> Graphs, and back."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from egocnn.config import ReadConfig
from egocnn.data.sources.pyg import from_pyg, to_pyg
from egocnn.errors import DataError
from tests.support.samples import as_list, sure


def triangle(**columns: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"edge_index": np.array([[0, 1, 2], [1, 2, 0]]), **columns})


def test_structure_attributes_and_labels_are_read() -> None:
    item = triangle(
        x=torch.tensor([[1.0], [2.0], [3.0]], requires_grad=True),
        node_label=torch.tensor([6, 8, -1]),
        edge_label=[0, 1, 0],
        edge_weight=torch.tensor([1.0, 0.5, 2.0]),
        y=torch.tensor([1]),
        name="ring",
    )
    graphs = from_pyg([item, item])
    graph = graphs[0]
    assert graph.name == "ring"
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert graph.node_label == ("6", "8", "?")
    assert graph.edge_label == ("0", "0", "1")
    assert as_list(graph.edge_weight) == [1.0, 2.0, 0.5]
    assert as_list(graph.node_attr) == [[1], [2], [3]]
    assert graph.target == "1"


def test_atomic_numbers_and_whole_or_one_hot_attributes_are_labels_and_fields_follow_the_settings() -> None:
    assert from_pyg([triangle(z=torch.tensor([6, 6, 8]))])[0].node_label == ("6", "6", "8")
    assert from_pyg([triangle(z=torch.randn(3, 4))]).node_label is None
    assert from_pyg([triangle()]).n_nodes == 3
    assert from_pyg([triangle(num_nodes=5)]).n_nodes == 5
    assert from_pyg([triangle(x=np.zeros(4))]).n_nodes == 4
    assert from_pyg([SimpleNamespace(edge_index=torch.zeros(2, 0), num_nodes=2)]).n_edges == 0
    hot = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    for labels in (torch.tensor([1, 0, 1]), torch.tensor([[1], [0], [1]]), hot):
        assert from_pyg([triangle(edge_attr=labels)])[0].edge_label == ("1", "1", "0")
    for weights in (torch.tensor([0.5, 1.0, 2.0]), torch.tensor([[0.5], [1.0], [2.0]])):
        assert as_list(from_pyg([triangle(edge_attr=weights)])[0].edge_weight) == [0.5, 2.0, 1.0]
    items = [triangle(homo=torch.tensor([0.5]), part="train", family=1), triangle(homo=1.5, part="test", family=1)]
    graphs = from_pyg(items, ReadConfig(target="homo", split="part", group="family"))
    assert [as_list(column) for column in (graphs.target, graphs.part, graphs.group)] == [[0.5, 1.5], [0, 2], [0, 0]]


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([torch.tensor([2]), torch.tensor([[0]]), None], ("0", "2")),
        ([7, np.int64(-1), 3], ("-1", "3", "7")),
        (["toxic", "harmless", None], ("harmless", "toxic")),
        ([torch.tensor(1.0), 2.5, None], ()),
    ],
)
def test_a_whole_target_is_a_class_and_a_real_one_a_value(values: list[Any], classes: tuple[str, ...]) -> None:
    graphs = from_pyg([triangle(y=value) for value in values])
    assert graphs.class_names == classes
    assert graphs.target is not None


class Stubborn:
    edge_index = np.array([[0], [1]])

    @property
    def num_nodes(self) -> int:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (SimpleNamespace(), "has no edge_index"),
        (SimpleNamespace(edge_index=None), "has no edge_index"),
        (triangle(edge_index=np.array([0, 1])), "edge_index must have the shape (2, E), got (2,)"),
        (triangle(edge_index=np.array([[0, 1, 2]])), "edge_index must have the shape (2, E), got (1, 3)"),
        (triangle(edge_index=[[0, 1], [1]]), "edge_index must be an array of numbers"),
        (triangle(edge_index="ab"), "edge_index must be an array of numbers, got 'ab'"),
        (triangle(edge_index=np.array([[0.0], [1.0]])), "edge_index must be whole numbers, got float64"),
        (triangle(edge_index=np.array([[0], [-1]]), num_nodes=2), "edge 0, -1 leaves the graph; its nodes are 0 to 1"),
        (triangle(num_nodes=3.7), "num_nodes must be a whole number, got 3.7"),
        (triangle(num_nodes=2), "edge 1, 2 leaves the graph; its nodes are 0 to 1"),
        (triangle(edge_index=np.array([[2**64 - 1], [0]], np.uint64)), "edge_index names node 18446744073709551615"),
        (triangle(edge_index=np.array([[2**40], [0]])), "1099511627777 nodes; a graph may have 10000000"),
        (triangle(edge_index=np.zeros((2, 0), int)), "a graph must have at least one node"),
        (triangle(num_nodes=3, x=np.zeros((4, 1))), "num_nodes, x and the node labels disagree: 3 and 4 nodes"),
        (triangle(node_label=[1, 2]), "edge 1, 2 leaves the graph"),
        (triangle(num_nodes="many"), "num_nodes must be a whole number, got 'many'"),
        (triangle(num_nodes=float("inf")), "num_nodes must be a whole number, got inf"),
        (Stubborn(), "num_nodes cannot be had (RuntimeError('no'))"),
        (triangle(x=np.array(3.0)), "x must be an array of numbers"),
        (triangle(x=np.full((3, 1), np.nan)), "x must be finite numbers, got nan"),
        (triangle(x=np.full((3, 1), 1e300)), "x must be finite numbers, got 1e+300"),
        (triangle(x=np.zeros((3, 1), complex)), "x must be an array of numbers"),
        (triangle(x=np.zeros((3, 2, 2))), "x must have one row of numbers per node, got the shape (3, 2, 2)"),
        (triangle(x=torch.zeros(3, 2).to_sparse()), "x must be an array of numbers"),
        (triangle(node_label=[1.5, 2.0, 3.0]), "node_label must be whole numbers, got float64"),
        (triangle(node_label=np.zeros((3, 2), int)), "node_label must be one number each, got the shape (3, 2)"),
        (triangle(edge_label=[1, 2]), "edge_label must have one entry for each of 3 edges, got (2,)"),
        (triangle(edge_weight=[1.0]), "edge_weight must have one entry for each of 3 edges, got (1,)"),
        (triangle(edge_weight=[1.0, np.inf, 1.0]), "edge weights must be finite numbers, got inf"),
        (triangle(edge_attr=np.full((3, 2), 0.5)), "edge_attr of shape (3, 2) is neither a label nor a weight"),
        (triangle(y=torch.zeros(12)), "y must be one number or text, got the shape (12,)"),
        (triangle(y=torch.tensor(float("inf"))), "target 'inf' is not a finite number"),
        (triangle(y={}), "target {} must be a text or a number"),
    ],
)
def test_what_is_wrong_with_an_object_is_said_with_its_position(item: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        from_pyg([triangle(), item])
    text = str(caught.value)
    assert text.startswith("graph 1: ")
    assert message in text
    assert "\n" not in text
    with pytest.raises(DataError, match="no graphs"):
        from_pyg([])


def test_data_of_pytorch_geometric_is_read_without_warnings_and_written_in_both_directions() -> None:
    Data = pytest.importorskip("torch_geometric.data").Data
    graphs = from_pyg([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0.5]))])
    assert graphs.n_nodes == 2
    assert as_list(graphs.target) == [0.5]
    graphs = from_pyg([triangle(edge_index=np.array([[0, 1], [1, 1]]), y=3, node_label=[4, 5])])
    (item,) = to_pyg(graphs)
    assert item.edge_index.tolist() == [[0, 1, 1], [1, 0, 1]]
    assert item.edge_index.dtype == torch.int64
    assert item.node_label.tolist() == [0, 1]
    assert item.y.tolist() == [0]
    assert item.num_nodes == 2
    assert "x" not in item


def test_whole_numbers_in_x_and_edge_attr_are_words_of_labels_whatever_graph_stands_beside() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    one = SimpleNamespace(
        x=torch.tensor([[6, 0], [8, 1]]), edge_index=edges, edge_attr=torch.tensor([[1, 0, 0], [1, 0, 0]])
    )
    other = SimpleNamespace(
        x=torch.tensor([[6, 0], [-1, 1]]), edge_index=edges, edge_attr=torch.tensor([[12, 0, 1], [12, 0, 1]])
    )
    both, alone = from_pyg([one, other]), from_pyg([one])
    assert both[0].node_label == alone[0].node_label == ("6|1=0", "8|1=1")
    assert both[0].edge_label == alone[0].edge_label == ("1|1=0|2=0",)
    assert both[1].node_label == ("6|1=0", "?")
    assert both.node_attr is None
    assert from_pyg([SimpleNamespace(x=torch.tensor([[6], [8]]), edge_index=edges)])[0].node_label == ("6", "8")


def test_a_one_hot_x_is_a_label_where_it_is_one_in_all_graphs() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    hot = SimpleNamespace(x=torch.tensor([[0.0, 1.0], [1.0, 0.0]]), edge_index=edges)
    assert from_pyg([hot])[0].node_label == ("1", "0")
    mixed = from_pyg([hot, SimpleNamespace(x=torch.tensor([[0.5, 0.5], [1.0, 0.0]]), edge_index=edges)])
    assert mixed.node_label is None
    assert mixed.node_attr is not None


def molecule(smiles: str, y: Any) -> SimpleNamespace:
    """As OGB lays molecules out: whole numbers in x (N, 9) and edge_attr (M, 3), every bond in both directions."""
    chem = pytest.importorskip("rdkit.Chem")
    made = chem.MolFromSmiles(smiles)
    facts = (
        "ChiralTag",
        "TotalDegree",
        "FormalCharge",
        "TotalNumHs",
        "NumRadicalElectrons",
        "Hybridization",
        "IsAromatic",
    )
    x = [
        [atom.GetAtomicNum() - 1, *(int(getattr(atom, f"Get{fact}")()) for fact in facts), int(atom.IsInRing())]
        for atom in made.GetAtoms()
    ]
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx(), int(b.GetIsConjugated())) for b in made.GetBonds()]
    edges = [pair for u, v, _ in bonds for pair in ((u, v), (v, u))]
    kinds = [[0, 0, conjugated] for _, _, conjugated in bonds for _ in range(2)]
    index, kind = torch.tensor(edges, dtype=torch.int64).view(-1, 2).T, torch.tensor(kinds).view(-1, 3).long()
    return SimpleNamespace(x=torch.tensor(x), edge_index=index, edge_attr=kind, y=y, num_nodes=len(x))


def test_molecules_as_ogb_and_moleculenet_lay_them_out_are_read_with_their_classes_and_values() -> None:
    smiles = ["CCO", "c1ccccc1", "[Na+]", "CC(=O)N", "CCN"]
    one = from_pyg([molecule(text, torch.tensor([[float(n % 2)]])) for n, text in enumerate(smiles)])
    assert (one.class_names, sure(one.target).tolist()) == (("0", "1"), [0, 1, 0, 1, 0])
    assert {name.split("|")[0] for name in one.node_label_names} == {"5", "6", "7", "10"}
    assert one.edge_label_names == ("0|1=0|2=0", "0|1=0|2=1")
    assert one.node_attr is None
    value = from_pyg([molecule(text, torch.tensor([[n + 0.5]])) for n, text in enumerate(smiles)])
    assert (value.class_names, sure(value.target).tolist()) == ((), [0.5, 1.5, 2.5, 3.5, 4.5])
    many = [
        molecule(text, torch.tensor([[n % 2, float("nan") if n == 1 else float(n % 3 == 0), n / 2]]))
        for n, text in enumerate(smiles)
    ]
    several = from_pyg(many)
    assert several.targets == (("y0", ("0", "1")), ("y1", ("0", "1")), ("y2", ()))
    np.testing.assert_array_equal(sure(several.target)[:, 1], [1, np.nan, 0, 1, 0])
    assert not from_pyg([molecule(smiles[0], torch.tensor([[1.0]]))]).is_classification  # of one 1.0 nothing is known
    # as a model asks for them that was trained on these, and on whom it may ask for more
    asked = from_pyg(many[:2], ReadConfig(target="y0,y2,y7,…", task="classification"))
    assert asked.target_names == ("y0", "y2")
