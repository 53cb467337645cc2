"""Graphs -> JSON lines, networkx, PyTorch Geometric -> the same Graphs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.config import ReadConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.data.schema import EDGE_COLUMNS, NODE_COLUMNS
from egocnn.data.sources.networkx import from_networkx
from egocnn.data.sources.pyg import from_pyg, to_pyg
from tests.support.writers import to_networkx, write_jsonlines

EVERYTHING = ReadConfig(split="split", group="group")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
names = texts.map(str.strip).filter(bool)
numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@st.composite
def collections(draw: st.DrawFn) -> Graphs:
    """Small collections with any of the columns, isolated nodes, self-loops, unused names and unknown labels."""
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    G, N = len(counts), sum(counts)
    first = np.cumsum([0, *counts])
    pairs = [(u, v) for g in range(G) for u in range(first[g], first[g + 1]) for v in range(u, first[g + 1])]
    edges = np.array(draw(st.lists(st.sampled_from(pairs), unique=True)), np.int64).reshape(-1, 2)
    E = len(edges)
    columns: dict[str, Any] = {"names": draw(_lists(names, G))}
    for column, length in (("node_label", N), ("edge_label", E)):
        if draw(st.booleans()):
            label_names = draw(st.lists(texts, unique=True, max_size=3))
            columns[column] = np.array(draw(_lists(st.integers(-1, len(label_names) - 1), length)), np.int32)
            columns[f"{column}_names"] = tuple(label_names)
    if draw(st.booleans()):
        columns["edge_weight"] = np.array(draw(_lists(numbers, E)), np.float32)
    if draw(st.booleans()):
        width = draw(st.integers(1, 2))
        columns["node_attr"] = np.array(draw(_lists(_lists(numbers, width), N)), np.float32)
    if draw(st.booleans()):
        columns["node_truth"] = np.array(draw(_lists(st.booleans(), N)), bool)
        columns["edge_truth"] = np.array(draw(_lists(st.booleans(), E)), bool)
    kind = draw(st.sampled_from(["classes", "values", "none"]))
    if kind == "classes":
        columns["class_names"] = tuple(draw(st.sampled_from([("toxic",), ("no", "yes"), ("2", "11"), ("b", "a")])))
        columns["target"] = np.array(draw(_lists(st.integers(-1, len(columns["class_names"]) - 1), G)), np.int64)
    if kind == "values":
        columns["target"] = np.array(draw(_lists(numbers | st.just(np.nan), G)), np.float64)
    if draw(st.booleans()):
        columns["part"] = np.array(draw(_lists(st.integers(0, 2), G)), np.int64)
        columns["group"] = np.array(draw(_lists(st.integers(0, 5), G)), np.int64)
        columns["smiles"] = tuple(draw(_lists(texts, G)))
    return Graphs.from_edges(node_counts=counts, edges=edges, **columns)


def _lists(values: st.SearchStrategy[Any], length: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=length, max_size=length)


def plain(graphs: Graphs, g: int, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Graph ``g`` as plain values; labels by name, None where not known, and no labels on no edges."""
    one = graphs[[g]]
    columns = {"nodes": one.n_nodes, "edges": one.edges.tolist(), "name": one.names[0], "smiles": one.smiles}
    once = one.entry_node <= one.indices
    for column in (*NODE_COLUMNS, *EDGE_COLUMNS):
        values = getattr(one, column)
        if values is not None and column in EDGE_COLUMNS:
            values = values[once] if len(one.indices) else None
        if values is not None and column.endswith("label"):
            label_names = (*getattr(one, f"{column}_names"), None)
            values = np.array([label_names[code] for code in values], object)
        columns[column] = None if values is None else values.tolist()
    columns["part"] = None if one.part is None else one.part.tolist()
    columns["target"] = one[0].target
    return {key: value for key, value in columns.items() if key not in without}


def assert_alike(again: Graphs, graphs: Graphs, without: tuple[str, ...] = ()) -> None:
    assert [plain(again, g, without) for g in range(len(again))] == [
        plain(graphs, g, without) for g in range(len(graphs))
    ]
    if "part" not in without:
        pairs = [None if g.group is None else (g.group[:, None] == g.group).tolist() for g in (again, graphs)]
        assert pairs[0] == pairs[1]


@given(collections())
def test_json_lines_give_back_the_collection(tmp_path_factory: pytest.TempPathFactory, graphs: Graphs) -> None:
    path = tmp_path_factory.mktemp("graphs") / "g.jsonl"
    write_jsonlines(graphs, path)
    again = read(path, EVERYTHING if graphs.part is not None else ReadConfig())
    assert_alike(again, graphs)


@given(collections())
def test_json_lines_written_twice_are_the_same_bytes(tmp_path_factory: pytest.TempPathFactory, graphs: Graphs) -> None:
    first, second = (tmp_path_factory.mktemp("graphs") / name for name in ("first.jsonl", "second.jsonl"))
    # a target that is unknown everywhere is not written the second time
    known = graphs.target is not None and any(graph.target is not None for graph in graphs)
    changes = {} if known else {"target": None, "class_names": ()}
    write_jsonlines(graphs.replace(part=None, group=None, **changes), first)
    write_jsonlines(read(first, ReadConfig()), second)
    assert first.read_bytes() == second.read_bytes()


@given(collections())
def test_networkx_gives_back_the_collection(graphs: Graphs) -> None:
    pytest.importorskip("networkx")
    again = from_networkx(to_networkx(graphs), EVERYTHING if graphs.part is not None else None)
    assert_alike(again, graphs, ("node_truth", "edge_truth"))


@given(collections())
def test_pytorch_geometric_gives_back_the_collection_with_numbers_for_names(graphs: Graphs) -> None:
    pytest.importorskip("torch_geometric")
    # values that are all 0.0 or 1.0 would be taken for classes
    values = graphs.target is not None and not graphs.is_classification
    again = from_pyg(to_pyg(graphs), ReadConfig(task="regression") if values else None)
    lists = ("node_label_names", "edge_label_names", "class_names")
    numbered = graphs.replace(**{name: tuple(map(str, range(len(getattr(graphs, name))))) for name in lists})
    assert_alike(again, numbered, ("node_truth", "edge_truth", "part", "smiles"))
