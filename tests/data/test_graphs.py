"""Graphs: built, indexed, split, put together, relabelled, saved and loaded."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from egocnn.data.graphs import Graphs
from egocnn.errors import DataError, DuplicateEdgeError
from tests.support.samples import as_list, assert_equal, assert_same, molecules, one_graph
from tests.support.strategies import random_graphs


def test_an_edge_stands_once_in_the_rows_of_both_ends_and_a_loop_once() -> None:
    graphs = molecules()
    rows = [graphs.indices[graphs.indptr[n] : graphs.indptr[n + 1]].tolist() for n in range(graphs.n_nodes)]
    assert rows == [[1], [0, 2], [1], [], [5, 6], [4, 6], [4, 5], [7]]
    assert graphs.n_edges == 6
    assert graphs.edges.tolist() == [[0, 1], [1, 2], [4, 5], [4, 6], [5, 6], [7, 7]]
    assert graphs.degree.tolist() == [1, 2, 1, 0, 2, 2, 2, 1]


@pytest.mark.parametrize("what", ["edge_label", "edge_weight", "edge_truth"])
def test_an_edge_given_twice_with_different_values_is_an_error_that_names_both_rows(what: str) -> None:
    columns: dict[str, Any] = {what: np.array([0, 1, 1]), "edge_label_names": ("a", "b")}
    with pytest.raises(DuplicateEdgeError, match="edge 1, 0 is given twice with different") as caught:
        Graphs.from_edges(node_counts=[3], edges=np.array([[0, 1], [1, 2], [1, 0]]), **columns)
    assert caught.value.rows == (0, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": np.array([[0, 3]])}, "node 3 of 3"),
        ({"edges": np.array([[-1, 0]])}, "node -1 of 3"),
        ({"edges": np.array([[0, 1, 2], [1, 2, 0]])}, "pairs of nodes"),
        ({"node_counts": [-1]}, "cannot have -1 nodes"),
        ({"node_counts": [4, -1]}, "cannot have -1 nodes"),
        ({"node_counts": [1, 2]}, "inside one graph"),
        ({"edge_weight": np.array([1.0])}, "1 edge weights for 2 edges"),
        ({"edge_label": np.zeros(3, int), "edge_label_names": ("a",)}, "3 edge labels for 2 edges"),
        ({"node_label": ["a", "b"]}, r"node_label must be .* numbers, got \['a', 'b'\]; node_label_names holds"),
        ({"edge_label": ["a"]}, r"edge_label must be an array of numbers, got \['a'\]; edge_label_names holds"),
        ({"target": ["x"]}, "class_names holds the texts"),
        ({"node_attr": [["a"], ["b"]]}, "node_attr must be an array of numbers"),
        ({"edges": [[0, 1], [1]]}, r"edges must be an array of numbers, got \[\[0, 1\], \[1\]\]"),
        ({"edges": [["a", "b"]]}, "edges must be an array of numbers"),
        ({"edges": [[0.5, 1]]}, "a list of whole numbers, and edges pairs of them"),
        ({"node_counts": 2}, "node_counts must be a list of whole numbers"),
        ({"colour": [1]}, "a collection of graphs has no colour"),
        ({"indptr": [1]}, "a collection of graphs has no indptr"),
        ({"names": 5}, "names must be a list, got 5"),
        ({"names": [5]}, "names must be texts"),
        ({"edge_weight": [[1], [2]]}, r"edge_weight has shape \(4, 1\)"),
        ({"node_names": ["a"]}, "node_names has 1 entries for 3 nodes"),
    ],
)
def test_columns_that_do_not_fit_or_hold_no_numbers_are_refused(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"node_counts": [3], "edges": np.array([[0, 1], [1, 2]])}
    with pytest.raises(DataError, match=message) as caught:
        Graphs.from_edges(**(given | changes))
    assert "\n" not in str(caught.value)


def test_a_collection_cannot_be_changed_in_place() -> None:
    field = "names"
    with pytest.raises(FrozenInstanceError):
        setattr(molecules(), field, ())


def test_a_collection_says_what_it_holds() -> None:
    assert repr(molecules()) == "Graphs(3 graphs, 8 nodes, 6 edges, classes no, yes)"
    assert repr(one_graph(2, [(0, 1)])) == "Graphs(1 graphs, 2 nodes, 1 edges)"
    many = ("\x1b[2J", *(f"c{n}" for n in range(99)))
    assert repr(molecules().replace(class_names=many)).endswith("c9, c10 and 88 more)")
    assert "classes '\\x1b[2J', c0, " in repr(molecules().replace(class_names=many))


def test_a_collection_may_be_empty_and_names_default_to_numbers() -> None:
    graphs = Graphs.from_edges(node_counts=[], edges=np.zeros((0, 2), int))
    assert (len(graphs), graphs.n_edges, list(graphs)) == (0, 0, [])
    assert Graphs.from_edges(node_counts=[1, 2], edges=np.zeros((0, 2), int)).names == ("0", "1")


def test_a_graph_counts_its_nodes_from_0_and_names_its_labels_and_class() -> None:
    ring = molecules()[2]
    assert (ring.name, ring.n_nodes, ring.smiles, ring.target) == ("ring", 4, "CCC", "no")
    assert ring.edges.tolist() == [[0, 1], [0, 2], [1, 2], [3, 3]]
    assert ring.node_label == ("O", "O", "O", "C")
    assert ring.edge_label == ("single", "single", "double", "?")
    assert as_list(ring.edge_weight) == [4, 6, 5, 7]
    assert as_list(ring.edge_truth) == [False, False, False, True]
    assert as_list(ring.node_truth) == [False, False, False, True]
    assert as_list(ring.node_attr) == [[8, 9], [10, 11], [12, 13], [14, 15]]


def test_an_unknown_class_or_value_is_none_and_a_value_is_a_number() -> None:
    assert molecules()[1].target is None
    numbers = molecules().replace(target=np.array([0.5, np.nan, 2.0]), class_names=())
    assert [graph.target for graph in numbers] == [0.5, None, 2.0]
    assert molecules().replace(target=None)[0].target is None


def test_graphs_are_counted_from_either_end_and_no_further() -> None:
    graphs = molecules()
    assert_same(graphs[-1], graphs[2])
    assert_same(graphs[np.int64(-3)], graphs[0])
    for number in (3, -4, 100):
        with pytest.raises(IndexError, match="of a collection of 3"):
            graphs[number]


@settings(max_examples=60)
@given(random_graphs(), st.data())
def test_chosen_graphs_are_the_same_graphs_in_the_chosen_order(graphs: Graphs, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(-len(graphs), len(graphs) - 1), max_size=6))
    some = graphs[chosen]
    some.validate()
    assert len(some) == len(chosen)
    for position, number in enumerate(chosen):
        assert_same(some[position], graphs[number])


@given(random_graphs(max_graphs=6), st.data())
def test_slices_and_masks_choose_as_lists_do(graphs: Graphs, data: st.DataObject) -> None:
    part = data.draw(st.slices(len(graphs)))
    some = graphs[part]
    some.validate()
    for one, number in zip(some, range(len(graphs))[part], strict=True):
        assert_same(one, graphs[number])
    mask = data.draw(st.lists(st.booleans(), min_size=len(graphs), max_size=len(graphs)))
    assert_equal(graphs[np.array(mask)], graphs[np.flatnonzero(mask)])
    assert_equal(graphs[mask], graphs[np.flatnonzero(mask)])


def test_groups_and_parts_come_along_and_iterating_gives_every_graph_once() -> None:
    graphs = molecules()
    some = graphs[[2, 0]]
    assert (as_list(some.group), as_list(some.part), some.names) == ([1, 0], [2, 0], ("ring", graphs.names[0]))
    some = graphs[1:]
    assert (as_list(some.group), as_list(some.part), some.names) == ([1, 1], [1, 2], graphs.names[1:])
    some = graphs[[2, 0]]
    for graph, same in zip([*some, *graphs], [graphs[2], graphs[0], graphs[0], graphs[1], graphs[2]], strict=True):
        assert_same(graph, same)


@pytest.mark.parametrize("which", [[3], [-4], [True], [0.5], np.zeros((1, 1), int), ["water"], [0, 10**12]], ids=repr)
def test_a_choice_that_names_no_graph_is_an_index_error(which: Any) -> None:
    with pytest.raises(IndexError):
        molecules()[which]


def test_select_takes_the_graphs_of_the_part_that_the_data_names_and_no_other() -> None:
    assert molecules().select("validation").names == ("atom",)
    assert len(molecules()[:2].select("test")) == 0
    with pytest.raises(DataError, match="no part is called 'dev'; there are train, validation, test"):
        molecules().select("dev")
    with pytest.raises(DataError, match="no split of their own"):
        molecules().replace(part=None).select("train")
    for seed in (-1, 1.5, None, "0"):
        with pytest.raises(DataError, match=f"a seed is a whole number of at least 0, got {seed}"):
            molecules().split(seed=seed)  # type: ignore[arg-type]
    for test in (None, "a", np.array([0.1, 0.2])):
        with pytest.raises(DataError, match="the share to split off must be between 0 and 1"):
            molecules().split(test=test)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="target must be an array of numpy"):
        molecules().replace(target=[1, 2, 3])


def test_a_split_keeps_the_shares_of_the_classes_and_the_groups_whole() -> None:
    nodes: dict[str, Any] = {"node_counts": np.ones(200, int), "edges": np.zeros((0, 2), int)}
    graphs = Graphs.from_edges(**nodes, target=np.arange(200) % 10 // 9, class_names=("common", "rare"))
    train, test = graphs.split(test=0.2, seed=3)
    assert (len(train), len(test)) == (160, 40)
    assert (sum(as_list(train.target)), sum(as_list(test.target))) == (16, 4)
    assert sorted(train.names + test.names, key=int) == list(graphs.names)
    train, test = graphs.replace(group=np.arange(200) // 4).split(test=0.2, seed=3)
    assert not set(as_list(train.group)) & set(as_list(test.group))
    values = Graphs.from_edges(**nodes, target=np.linspace(0, 1, 200))
    assert [len(part) for part in values.split(test=0.3)] == [140, 60]


@settings(max_examples=60)
@given(random_graphs(max_graphs=6), st.integers(0, 6), st.integers(0, 6))
def test_cutting_apart_and_putting_together_gives_the_same_graphs(graphs: Graphs, one: int, other: int) -> None:
    first, last = sorted((one, other))
    parts = [graphs[:first], graphs[first:last], graphs[last:]]
    assert_equal(Graphs.concat(parts), graphs)


def test_label_and_class_names_are_united() -> None:
    one = one_graph(2, [(0, 1)], node_label=["C", "O"], edge_label=["single"], target=np.array([0]), class_names=("a",))
    labels: dict[str, Any] = {"node_label": ["O", "N", "C"], "edge_label": ["double", "single"]}
    other = one_graph(3, [(0, 1), (1, 2)], **labels, target=np.array([1]), class_names=("b", "c"))
    both = Graphs.concat([one, other])
    assert both.node_label_names == ("C", "O", "N")
    assert both.edge_label_names == ("single", "double")
    assert both.class_names == ("a", "b", "c")
    for graph, same in zip(both, (one[0], other[0]), strict=True):
        assert graph.edges.tolist() == same.edges.tolist()
        for name in ("node_label", "edge_label", "target"):
            assert getattr(graph, name) == getattr(same, name)


def test_groups_are_kept_apart_and_smiles_kept_only_where_every_graph_has_them() -> None:
    graphs = molecules()
    assert as_list(Graphs.concat([graphs, graphs]).group) == [0, 1, 1, 2, 3, 3]
    assert Graphs.concat([graphs, graphs]).smiles == ("O", "C", "CCC") * 2
    assert Graphs.concat([graphs, graphs.replace(smiles=None)]).smiles is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_label": None}, "some of these collections have node_label"),
        ({"target": None}, "some of these collections have target"),
        ({"target": np.array([0.5, 1, 2]), "class_names": ()}, "some have values to predict"),
        ({"node_attr": np.zeros((8, 3))}, "2, 3 node attributes"),
    ],
)
def test_collections_that_do_not_fit_together_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Graphs.concat([molecules(), molecules().replace(**changes)])
    with pytest.raises(DataError, match="nothing to put together"):
        Graphs.concat([])


def test_labels_counted_by_other_names_keep_their_meaning_and_unseen_ones_become_minus_one() -> None:
    renamed = molecules().with_names(nodes=("N", "H", "O"), edges=("double",), classes=("yes", "maybe", "no"))
    assert as_list(renamed.node_label) == [1, 2, 1, -1, 2, 2, 2, -1]
    assert renamed[0].edge_label == ("?", "double")
    assert as_list(renamed.target) == [0, -1, 2]
    assert renamed.class_names == ("yes", "maybe", "no")
    renamed.validate()


@given(random_graphs(unseen=True), st.permutations(("C", "N", "O", "S")))
def test_renaming_there_and_back_changes_nothing(graphs: Graphs, names: list[str]) -> None:
    there = graphs.with_names(nodes=tuple(names))
    assert_equal(there.with_names(nodes=graphs.node_label_names), graphs)


def test_values_to_predict_are_not_taken_for_classes() -> None:
    numbers = molecules().replace(target=np.array([0.0, 1.0, np.nan]), class_names=())
    renamed = numbers.with_names(classes=("no", "yes"))
    assert not renamed.is_classification
    assert renamed[1].target == 1.0


@settings(max_examples=40)
@given(graphs=random_graphs(min_graphs=0, min_nodes=0, unseen=True))
@example(graphs=molecules().replace(names=("größer", "a\nb", '"')))  # with every kind of column
def test_what_is_saved_is_loaded_again(graphs: Graphs, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("saved") / "graphs.safetensors"
    graphs.save(path)
    assert_equal(Graphs.load(path), graphs)


def test_a_missing_file_is_named_and_a_folder_is_no_collection(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.safetensors: no such file"):
        Graphs.load(tmp_path / "absent.safetensors")
    with pytest.raises(DataError, match="not a collection of graphs"):
        Graphs.load(tmp_path)


@settings(max_examples=100)
@given(data=st.data())
def test_a_damaged_file_is_a_data_error_or_still_a_valid_collection(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    molecules().save(path)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), label="cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    message = str(path)
    try:
        Graphs.load(path).validate()
    except DataError as error:
        message = str(error)
    assert message.startswith(str(path))


TEXTS = (b"{]", b"[1, 2]", b"\xff\xfe", b'{"names": ["a"]}', b'{"names": null}')


@pytest.mark.parametrize(
    "changes",
    [
        {"texts": None},
        *({"texts": np.frombuffer(text, np.uint8)} for text in TEXTS),
        {"colour": np.zeros(3)},
        {"node_ptr": None},
        {"node_ptr": np.zeros((), np.int64)},
        {"node_ptr": np.array([0.0, 3, 4, 8])},
        {"indices": np.zeros(3, np.int32)},
        {"node_attr": np.zeros(8, np.float32)},
    ],
    ids=lambda changes: f"{next(iter(changes))}-{next(iter(changes.values()))!r:.30}",
)
def test_a_file_whose_arrays_make_no_collection_is_a_data_error(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "graphs.safetensors"
    molecules().save(path)
    arrays = load_file(path) | changes
    save_file({name: values for name, values in arrays.items() if values is not None}, path)
    with pytest.raises(DataError, match="not a collection of graphs") as caught:
        Graphs.load(path)
    assert "\n" not in str(caught.value)


def test_lists_serve_as_arrays() -> None:
    columns: Any = {"node_label": [0, 1], "node_label_names": ["a", "b"], "target": [0], "class_names": ["x"]}
    graphs = Graphs.from_edges(node_counts=[2], edges=[[0, 1]], edge_label=[0], edge_label_names=["e"], **columns)
    assert (graphs[0].node_label, graphs[0].edge_label, graphs[0].target) == (("a", "b"), ("e",), "x")
    assert Graphs.from_edges(node_counts=[1], edges=[], edge_weight=[]).n_edges == 0
    assert Graphs.from_edges(node_counts=[2], edges=[], node_names=["a", "b"])[:1][0].node_names == ("a", "b")
