import copy
import json
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graph
from egocnn.errors import DataError
from egocnn.explain.structure import (
    CriticalStructure,
    Fidelity,
    Structures,
    Trace,
    read_structures,
    wording,
    write_structures,
)
from tests.support.samples import assert_same, molecules, one_graph, sure
from tests.support.strategies import random_graphs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses what torch has deprecated, already when it is imported
    import torch_geometric.explain  # noqa: F401


def structure_of(graph: Graph, **changes: Any) -> CriticalStructure:
    """Made-up importances, the first half of the nodes critical."""
    random = np.random.default_rng(len(graph.edges))
    critical = np.arange((graph.n_nodes + 1) // 2)
    whole = CriticalStructure(
        graph=graph,
        predicted="yes",
        probability=0.75,
        explained="yes",
        technique="relevance",
        base=-0.5,
        output=1.5,
        node_importance=random.normal(size=graph.n_nodes),
        edge_importance=random.normal(size=len(graph.edges)),
        critical_nodes=critical,
        critical_edges=np.flatnonzero(np.isin(graph.edges, critical).all(axis=1)),
        fidelity=Fidelity(0.25, 0.5, 0.75, None),
        trace=Trace(random.normal(size=(4, graph.n_nodes)), random.normal(size=(4, len(graph.edges)))),
    )
    return replace(whole, **changes)


def water() -> CriticalStructure:
    return structure_of(molecules()[0])


def ring() -> CriticalStructure:
    """A triangle and, apart from it, a node with a loop."""
    return structure_of(molecules()[2])


def value() -> CriticalStructure:
    """What a regressor's prediction is explained by."""
    graph = one_graph(2, [(0, 1)], target=np.array([3.5]))[0]
    return structure_of(graph, predicted=3.25, probability=None, explained=None, fidelity=Fidelity(1.0, 3.0))


EXAMPLES: list[Callable[[], CriticalStructure]] = [water, ring, value]


def assert_structures_equal(one: CriticalStructure, other: CriticalStructure, *, trace: bool) -> None:
    for name in ("predicted", "probability", "explained", "technique", "fidelity"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("node_importance", "edge_importance", "critical_nodes", "critical_edges"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        assert getattr(one, name).dtype.kind == getattr(other, name).dtype.kind
    bare: dict[str, Any] = {"edge_weight": None, "node_attr": None, "node_truth": None, "edge_truth": None}
    assert_same(replace(one.graph, **bare), replace(other.graph, **bare))
    assert (other.trace is not None) == (trace and one.trace is not None)
    if one.trace is not None and other.trace is not None:
        np.testing.assert_array_equal(one.trace.nodes, other.trace.nodes)
        np.testing.assert_array_equal(one.trace.edges, other.trace.edges)


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(graphs=random_graphs(max_graphs=1, min_nodes=0, unseen=True))
def test_the_structure_of_any_graph_survives_json(graphs: Any) -> None:
    whole = structure_of(graphs[0])
    text = json.dumps(whole.to_plain(trace=True), allow_nan=False)
    assert_structures_equal(whole, CriticalStructure.from_plain(json.loads(text)), trace=True)


def test_the_fields_of_a_line_are_those_that_are_promised() -> None:
    plain = ring().to_plain()
    assert list(plain)[:5] == ["name", "predicted", "probability", "true", "class"]
    assert plain["true"] == "no"
    assert len(plain["node_importance"]) == 4
    assert [(u, v) for u, v, _ in plain["edge_importance"]] == [(0, 1), (0, 2), (1, 2), (3, 3)]
    assert plain["critical_nodes"] == [0, 1]
    assert plain["critical_edges"] == [[0, 1]]
    assert (plain["base"], plain["output"], plain["spread"]) == (-0.5, 1.5, None)
    assert plain["fidelity"] == {"removed": 0.25, "kept": 0.5, "evidence_lost": 0.75, "evidence_kept": None}
    assert plain["smiles"] == "CCC"
    assert "trace" not in plain
    summed = replace(water(), node_importance=np.array([0.5, 2.5, -1.0])).to_plain()
    assert (summed["base"], summed["for"], summed["against"], summed["output"]) == (-0.5, 3.0, -1.0, 1.5)
    assert replace(ring(), fidelity=None).to_plain()["fidelity"] is None


def test_structures_are_written_one_a_line_in_order_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "structures.jsonl"
    written = [make() for make in EXAMPLES]
    write_structures(iter(written), path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["water", "ring", "0"]
    for one, other in zip(written, read_structures(path), strict=True):
        assert_structures_equal(one, other, trace=False)
    write_structures([], path)
    assert list(read_structures(path)) == []


def test_names_in_any_script_are_written_and_read(tmp_path: Path) -> None:
    name = 'a "b"\n☠ \ud800'  # half of a pair, as a careless reader may leave it
    write_structures([replace(water(), graph=replace(water().graph, name=name))], tmp_path / "s.jsonl")
    (found,) = read_structures(tmp_path / "s.jsonl")
    assert found.name == name


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write_structures([water()], path)
    before = path.read_bytes()
    with pytest.raises(DataError, match="not a finite number"):
        write_structures([water(), replace(water(), probability=float("nan"))], path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["s.jsonl"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n", "line 1: "),
        (b"[]\n", "line 1: not a critical structure"),
        (b"null\n", "line 1: not a critical structure"),
        (b"{}\n", "line 1: not a critical structure: it has no 'node_importance'"),
        (b'{"node_importance": 1}\n', "line 1: not a critical structure"),
        (b'{"node_importance": [1' + b"0" * 400 + b"]}\n", "line 1: not a critical structure"),
        (b'{"node_importance": [NaN]}\n', "line 1: not a critical structure: 'nan' is not a finite number"),
        (b"\xff\xfe\xff\n", "line 1: "),
        (b"[" * 100_000, "line 1: "),
        (b"{", "line 1: "),
    ],
)
def test_a_line_that_holds_no_structure_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError) as refusal:
        list(read_structures(path))
    assert str(refusal.value).startswith(f"s.jsonl, {message}")
    assert "\n" not in str(refusal.value)


def test_lines_before_a_wrong_one_are_read_and_an_error_of_the_reader_is_not_taken_for_one_of_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.jsonl"
    write_structures([water()], path)
    path.write_text(path.read_text() + "{}\n")
    first, second = read_structures(path), read_structures(path)
    assert next(first).name == next(second).name == "water"
    with pytest.raises(DataError, match="line 2: "):
        next(first)
    assert isinstance(second, Generator)
    with pytest.raises(ValueError, match="mine"):
        second.throw(ValueError("mine"))


WRONG: dict[str, list[Any]] = {
    "node_importance": [[1.0, float("inf"), 0.0, 0.0], ["1", "2", "3", "4"], [True, False, True, True], [1.0]],
    "edge_importance": [
        *([[0, 9, 1.0]], [[-1, 0, 1.0]], [[0.5, 1, 1.0]], [[1, 0, 1.0]]),
        *([[0, 1, 1.0], [0, 1, 2.0]], [[0, 1]], None),
    ],
    "critical_nodes": [[4], [0.5], [[0], [1]]],
    "critical_edges": [[[0, 3]], [[[], 0]]],
    "predicted": [None, ["yes"], float("nan")],
    "probability": ["high"],
    "class": [3],
    "base": [None, "low", float("inf")],
    "output": [None, [1.0], float("nan")],
    "spread": ["wide", float("nan")],
    "true": [[1]],
    "smiles": [7],
    "node_label": [["C"]],
    "edge_label": [5],
    "fidelity": [
        *({"kept": 1.0}, {"kept": float("nan"), "removed": 0.0}, [0.5, 0.5]),
        {"kept": 1.0, "removed": 0.0, "evidence_kept": "all"},
    ],
    "trace": [
        *({"nodes": [[1.0] * 4], "edges": []}, {"nodes": [[1.0] * 3], "edges": [[1.0] * 4]}),
        *({"nodes": [], "edges": []}, 1),
    ],
}


def test_a_list_of_structures_is_short_in_a_terminal() -> None:
    several = Structures([ring(), ring()])
    assert repr(several) == f"[{', '.join(f'CriticalStructure({one.caption!r})' for one in several)}]"


@pytest.mark.parametrize(("key", "wrong"), [(key, wrong) for key, values in WRONG.items() for wrong in values])
def test_wrong_values_are_refused_in_one_line(key: str, wrong: Any) -> None:
    plain = ring().to_plain(trace=True) | {key: wrong}
    with pytest.raises(DataError) as refusal:
        CriticalStructure.from_plain(plain)
    assert str(refusal.value).startswith("not a critical structure: ")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "key", [*("name", "predicted", "probability", "class", "base", "output"), "critical_nodes", "critical_edges"]
)
def test_a_missing_field_is_named(key: str) -> None:
    plain = ring().to_plain()
    del plain[key]
    with pytest.raises(DataError, match=f"it has no '{key}'"):
        CriticalStructure.from_plain(plain)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=400)
@given(data=st.data())
def test_any_value_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    """What is read can be used: as text, for other libraries, and as JSON again."""
    plain: Any = copy.deepcopy(ring().to_plain(trace=True))
    place: Any = plain
    key: Any = data.draw(st.sampled_from(sorted(plain)))
    while isinstance(place[key], (dict, list, tuple)) and place[key] and data.draw(st.booleans()):
        if isinstance(place[key], tuple):
            place[key] = list(place[key])
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[key] = data.draw(PLAIN)
    refusal = ""
    try:
        found = CriticalStructure.from_plain(plain)
        assert str(found)
        assert found.caption
        assert len(found.to_networkx()) == len(found.node_importance)
        json.dumps(found.to_plain(trace=True), allow_nan=False)
    except DataError as error:
        refusal = str(error)
    assert "\n" not in refusal


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), insert=st.binary(max_size=4), remove=st.integers(0, 4))
def test_any_bytes_in_the_file_are_read_or_refused(place: float, insert: bytes, remove: int, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write_structures([water(), ring()], path)
    content = path.read_bytes()
    at = int(place * len(content))
    path.write_bytes(content[:at] + insert + content[at + remove :])
    refusal = "s.jsonl, line "
    try:
        assert all(isinstance(found, CriticalStructure) for found in read_structures(path))
    except DataError as error:
        refusal = str(error)
    assert refusal.startswith("s.jsonl, line ")
    assert "\n" not in refusal


# ── as text ───────────────────────────────────────────────────────────────────────────────────────


def test_the_text_names_prediction_critical_nodes_by_importance_and_evidence() -> None:
    labelled = replace(
        water(),
        node_importance=np.array([0.5, 2.5, -1.0]),
        critical_nodes=np.array([0, 1]),
        spread=0.025,
        fidelity=Fidelity(0.25, 0.5, evidence_lost=0.75, evidence_kept=0.9),
    )
    assert str(labelled) == (
        "water: yes (75.0% ± 2.5%)\n  critical: O1, H0\n  base -0.50, for +3.00, against -1.00, output 1.50 log-odds\n"
        "  the structure alone keeps 90% of the evidence (probability 50%); "
        "75% goes with it (probability 25% without it)"
    )


def test_the_text_says_when_another_class_was_explained_and_when_nothing_was_found() -> None:
    nothing = np.zeros(0, np.int64)
    other = replace(water(), explained="no", critical_nodes=nothing, node_importance=np.array([1.0, 0.5, 0.5]))
    assert str(other) == (  # how true nothing is to the prediction is no news
        "water: yes (75.0%), explained for no\n"
        "  no part of this molecule stands out for no: what speaks for it is spread over all of it, or "
        "what would have spoken against it is absent\n"
        "  base -0.50, for +2.00, against 0.00, output 1.50 log-odds"
    )
    assert other.caption == "water: yes, 75%; no part stands out for no"
    for name, said in ((0, "class 0"), ("1", "class 1"), (True, "class True"), ("False", "class False"), ("é", "é")):
        numbered = replace(other, predicted=name, explained=name)  # 1 alone would be read as a number
        assert str(numbered).startswith(f"water: {said} (75.0%)\n  no part of this molecule stands out for {said}: ")
        assert numbered.caption == f"water: {said}, 75%; no part stands out for {said}"
    without = replace(value(), critical_nodes=nothing)
    assert "no part of this graph stands out: its value is near that of an empty one" in str(without)
    assert without.caption == "0: 3.25; no part stands out"


def test_the_text_of_a_value_tells_what_raised_it_from_what_lowered_it() -> None:
    whole = replace(value(), node_importance=np.array([2.5, -0.5]), critical_nodes=np.array([0, 1]), spread=0.125)
    assert str(whole) == (
        "0: 3.25 ± 0.12\n  critical: raised by 0; lowered by 1\n  base -0.50, raised +2.50, lowered -0.50, value 1.50\n"
        "  the structure alone: value 3; without it: value 1"
    )
    assert "critical: lowered by 1" in str(replace(whole, critical_nodes=np.array([1])))


def test_importances_that_do_not_add_up_are_not_said_to() -> None:
    assert "base -0.50, output 1.50 log-odds" in str(replace(water(), node_importance=np.array([9.0, 0.0, 0.0])))


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ((-1.234, 12.345, -0.04, 11.071), ["-1.2", "12.3", "0.0", "11.1"]),
        ((0.0, 0.0), ["0.0", "0.0"]),
        ((1234.5, -10.0), ["1234", "-10"]),
        ((2.5e7, 1.0), ["2.5e+07", "1"]),
        ((float("nan"), 1.0), ["nan", "1"]),
    ],
)
def test_numbers_read_together_have_as_many_decimals(numbers: tuple[float, ...], told: list[str]) -> None:
    assert wording.alike(*numbers) == told


def test_of_many_critical_nodes_the_text_names_the_most_important() -> None:
    graph = one_graph(15, [], node_label=["C1"] * 15)[0]
    large = structure_of(graph, node_importance=-np.arange(15.0), critical_nodes=np.arange(15))
    (line,) = [line for line in str(large).splitlines() if "critical" in line]
    assert line == "  critical: " + ", ".join(f"C1:{node}" for node in range(12)) + " and 3 more"


# ── other libraries ───────────────────────────────────────────────────────────────────────────────


def test_networkx_gets_every_node_and_edge_with_its_importance() -> None:
    whole = ring()
    graph = whole.to_networkx()
    assert graph.name == "ring"
    assert list(graph) == [0, 1, 2, 3]
    assert [graph.nodes[n]["importance"] for n in graph] == whole.node_importance.tolist()
    assert [graph.nodes[n]["critical"] for n in graph] == [True, True, False, False]
    assert [graph.nodes[n]["label"] for n in graph] == ["O", "O", "O", "C"]
    assert sorted(graph.edges) == [(0, 1), (0, 2), (1, 2), (3, 3)]
    for position, (u, v) in enumerate(whole.graph.edges.tolist()):
        assert graph.edges[u, v]["importance"] == whole.edge_importance[position]
        assert graph.edges[u, v]["critical"] == ((u, v) == (0, 1))
        assert graph.edges[u, v]["label"] == sure(whole.graph.edge_label)[position]
    assert "label" not in value().to_networkx().nodes[0]


def test_pyg_gets_edges_in_both_directions_and_a_loop_once() -> None:
    whole = ring()
    explanation = whole.to_pyg()
    assert explanation.validate()
    pairs = [tuple(pair) for pair in explanation.edge_index.t().tolist()]
    assert sorted(pairs) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (3, 3)]
    importance = {tuple(edge): x for edge, x in zip(whole.graph.edges.tolist(), whole.edge_importance, strict=True)}
    for (u, v), x in zip(pairs, explanation.edge_mask.tolist(), strict=True):
        assert x == pytest.approx(importance[min(u, v), max(u, v)], rel=1e-6)
    assert explanation.node_mask.shape == (4, 1)
    assert explanation.node_mask[:, 0].tolist() == pytest.approx(whole.node_importance.tolist(), rel=1e-6)
    assert explanation.num_nodes == 4


def test_a_graph_without_nodes_goes_to_both_libraries() -> None:
    empty = structure_of(one_graph(0, [])[0])
    assert len(empty.to_networkx()) == 0
    assert empty.to_pyg().edge_index.shape == (2, 0)


# ── pictures ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", EXAMPLES)
def test_a_structure_is_drawn_as_svg_and_png(make: Callable[[], CriticalStructure], tmp_path: Path) -> None:
    whole = replace(make(), graph=replace(make().graph, smiles=None))
    text = whole.draw(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8") == text
    assert ET.fromstring(text).tag.endswith("svg")
    whole.draw(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_a_notebook_shows_the_picture_and_the_sentences_and_nothing_of_the_data_as_markup() -> None:
    text = value()._repr_html_()
    assert ET.fromstring(text)[0].tag.endswith("svg")
    assert "0: 3.25" in text
    hostile = replace(water(), graph=replace(water().graph, name="<script>&"))
    several = Structures([hostile] * 14)._repr_html_()
    found = ET.fromstring(f"<div>{several}</div>")
    assert ([each.tag for each in found], found[-1].text) == (["figure"] * 12 + ["p"], "and 2 more")
    assert "&lt;script&gt;&amp;: yes" in several


def test_structures_become_a_table_with_a_row_for_each_graph() -> None:
    pytest.importorskip("pandas")
    frame = Structures([water(), value()]).to_frame()
    assert frame["name"].tolist() == ["water", "0"]
    first = frame.iloc[0]
    assert (first["predicted"], first["probability"], first["size"]) == ("yes", 0.75, len(first["critical_atoms"]))
    assert first["critical_atoms"] == water().critical_nodes.tolist()
    wanted = {"smiles", "true", "explained", "base", "output", "evidence_kept", "evidence_lost", "spread"}
    assert wanted < set(frame.columns)
    assert Structures([]).to_frame().empty


def test_a_picture_has_a_caption_in_one_line() -> None:
    assert water().caption == "water: yes, 75%"


def large_star(leaves: int, **changes: Any) -> CriticalStructure:
    graph = one_graph(leaves + 1, [(0, leaf) for leaf in range(1, leaves + 1)])[0]
    return structure_of(graph, **{"critical_nodes": np.array([0]), "critical_edges": np.zeros(0, np.int64), **changes})


def test_of_a_large_graph_the_critical_structure_and_its_surroundings_are_drawn_and_everywhere_said_to_be() -> None:
    star = large_star(2000)
    told = "drawn: the critical structure and its surroundings, 300 of 2,001 nodes"
    part = star.drawn()
    assert (part.graph.n_nodes, len(part.graph.edges), part.critical_nodes.tolist()) == (300, 299, [0])
    heaviest = np.sort(1 + np.argsort(-np.abs(star.node_importance[1:]))[:299])
    assert part.graph.node_names == ("0", *map(str, heaviest))
    assert part.node_importance.tolist() == star.node_importance[[0, *heaviest]].tolist()
    assert (part.speaks_for, part.speaks_against) == (star.speaks_for, star.speaks_against)
    assert part.drawn() is part
    assert star.draw().count("<circle") < 310
    assert all(told in text for text in (str(star), star.caption, part.caption, part.drawn_part))
    assert len(star.to_plain()["node_importance"]) == 2001
    small = large_star(499)
    assert small.drawn() is small
    assert "drawn" not in str(small) + small.caption
    empty = large_star(2000, critical_nodes=np.zeros(0, np.int64))
    assert "drawn: what counts most, 300 of 2,001 nodes" in str(empty)
    apart = one_graph(600, [(0, 1)])[0]
    assert structure_of(apart, critical_nodes=np.array([0, 1])).drawn().graph.n_nodes == 300


def test_names_of_nodes_come_back_in_text_picture_json_and_networkx() -> None:
    names = ("alice", "<b>bob</b>", "c\x1b[31m")
    structure = structure_of(replace(one_graph(3, [(0, 1), (1, 2)])[0], node_names=names))
    assert "alice" in str(structure)
    assert "\x1b" not in str(replace(structure, critical_nodes=np.array([2])))
    ET.fromstring(structure.draw())
    assert "&lt;b&gt;bob" in structure.draw()
    assert CriticalStructure.from_plain(structure.to_plain()).graph.node_names == names
    assert set(structure.to_networkx().edges) == {("alice", names[1]), (names[1], names[2])}
    assert "node_names" not in water().to_plain()
