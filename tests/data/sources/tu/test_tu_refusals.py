"""Sets in the TU Dortmund format that are broken, by hand or by chance: what is said of them."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.data.sources.tu import archive, read_tu
from egocnn.errors import DataError
from tests.data.sources.tu.tu_sets import AUTO, TINY, refusal, write_set

HUGE = 10**12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": "1, 2\n2, x\n"}, "TINY_A.txt, line 2: 'x' is not a whole number; every field must be one"),
        ({"A": "1, 2\n2\n"}, "TINY_A.txt, line 2: '2' has 1 field; every line must have 2"),
        ({"A": "1, 2\n2, 1, 3\n"}, "TINY_A.txt, line 2: '2, 1, 3' has 3 fields; every line must have 2"),
        ({"A": "1, 2\n2, 1\n3, "}, "TINY_A.txt, line 3: '' is not a whole number; every field must be one"),
        (
            {"A": "1, 2\n3, 4\n"},
            "TINY_A.txt, line 2: edge 3, 4 joins graph 1 to graph 2; an edge must stay inside one graph",
        ),
        ({"A": "1, 2\n0, 1\n"}, "TINY_A.txt, line 2: node 0 is out of range; nodes are numbered 1 to 9"),
        ({"A": "1, 2\n1, -1\n"}, "TINY_A.txt, line 2: node -1 is out of range; nodes are numbered 1 to 9"),
        ({"A": "1, 2\n1, 10\n"}, "TINY_A.txt, line 2: node 10 is out of range; nodes are numbered 1 to 9"),
        ({"A": f"1, 2\n{2**40}, 1\n"}, f"TINY_A.txt, line 2: node {2**40} is out of range; nodes are numbered 1 to 9"),
        ({"A": f"1, 2\n1, {'9' * 30}\n"}, f"TINY_A.txt, line 2: '{'9' * 30}' is too large; it must fit in 64 bits"),
        ({"graph_labels": "1\n-1\n1\n"}, "TINY_graph_labels.txt has 3 lines for 4 graphs; it must have one for each"),
        ({"node_labels": "1\n"}, "TINY_node_labels.txt has 1 lines for 9 nodes; it must have one for each"),
        (
            {"edge_labels": "1\n1\n"},
            "TINY_edge_labels.txt has 2 lines for 14 lines of TINY_A.txt; it must have one for each",
        ),
        (
            {"node_attributes": "1\n" * 10},
            "TINY_node_attributes.txt has 10 lines for 9 nodes; it must have one for each",
        ),
        ({"graph_indicator": ""}, "TINY_graph_indicator.txt is empty: the set has no graphs"),
        ({"graph_indicator": "0\n1\n"}, "TINY_graph_indicator.txt, line 1: graph 0; graphs are counted from 1"),
        ({"graph_indicator": "1\n-2\n"}, "TINY_graph_indicator.txt, line 2: graph -2; graphs are counted from 1"),
        (
            {"graph_indicator": "1\n1\n3\n"},
            "TINY_graph_indicator.txt, line 3: graph 3 comes where graph 2 should, which has no nodes; "
            "every graph must have one",
        ),
        (
            {"graph_indicator": "1\n2\n1\n"},
            "TINY_graph_indicator.txt, line 3: graph 1 after graph 2; the nodes of a graph must follow one another, "
            "graphs ascending",
        ),
        (
            {"node_attributes": "1\n" * 8 + "nan\n"},
            "TINY_node_attributes.txt, line 9: 'nan' is not a finite number; every field must be one",
        ),
        (
            {"node_attributes": "1\n" * 8 + "inf\n"},
            "TINY_node_attributes.txt, line 9: 'inf' is not a finite number; every field must be one",
        ),
        (
            {"node_attributes": "1\n" * 8 + "-1e39\n"},
            "TINY_node_attributes.txt, line 9: 1e+39 is too large; it must fit in 32 bits",
        ),
        (
            {"node_labels": "C\n" * 9},
            "TINY_node_labels.txt, line 1: 'C' is not a whole number; every field must be one",
        ),
        (
            {"edge_labels": "0\n1\n" * 7},
            "TINY_edge_labels.txt, line 2: edge 2, 1 has label '1', but '0' on line 1; an edge must have one label, "
            "the same in both directions",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    assert refusal(write_set(tmp_path, TINY | changes)) == message


def test_the_line_is_counted_through_all_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "CHUNK", 64)
    source = write_set(tmp_path, {"A": "1, 2\n2, 1\n" * 500 + "1, 3\n", "graph_indicator": "1\n1\n2\n"})
    assert refusal(source).startswith("TINY_A.txt, line 1001: edge 1, 3 joins graph 1 to graph 2")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_another_encoding_is_called_not_text(tmp_path: Path, encoding: str) -> None:
    source = write_set(tmp_path, {"A": TINY["A"].encode(encoding), "graph_indicator": TINY["graph_indicator"].encode()})
    assert refusal(source).endswith("is not text; the file must be plain UTF-8")


def test_a_graph_number_far_beyond_takes_no_memory(tmp_path: Path) -> None:
    source = write_set(tmp_path, {"A": "", "graph_indicator": f"1\n{HUGE}\n"})
    tracemalloc.start()
    try:
        assert f"graph {HUGE} comes where graph 2 should" in refusal(source)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("missing", ["A", "graph_indicator"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    source = write_set(tmp_path, {table: text for table, text in TINY.items() if table != missing})
    assert refusal(source) == f"{tmp_path}: TINY_{missing}.txt is missing; a TU set needs it"


def test_several_sets_in_one_folder_are_refused(tmp_path: Path) -> None:
    write_set(tmp_path, TINY, "ONE")
    assert "holds several sets, ONE, TWO" in refusal(write_set(tmp_path, TINY, "TWO"))


def test_a_folder_without_a_set_and_no_folder_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: no NAME_A.txt in it, so it is not a set in the TU format"
    assert refusal(tmp_path / "absent") == f"{tmp_path / 'absent'}: no such folder or zip file"


def test_damage_to_a_zip_is_named_before_the_line_it_spoils(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as opened:
        for table, text in TINY.items():
            opened.writestr(f"TINY_{table}.txt", text)
    source = tmp_path / "TINY.zip"
    source.write_bytes(stream.getvalue().replace(b"7, 8\n", b"7, 0\n"))
    assert "TINY.zip: 'TINY_A.txt' is damaged (Bad CRC-32" in refusal(source)


# ── anything at all ───────────────────────────────────────────────────────────────────────────────────────────

BYTES = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from([b"1", b"2", b"0", b"-", b",", b" ", b"\n", b"\r\n", b".", b"e", b"9" * 20, b"\xff"])).map(
        b"".join
    ),
)


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
    """Up to three bytes flipped, deleted or inserted."""
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        removed = draw(st.integers(0, 1))
        data = data[:place] + draw(st.binary(max_size=1)) + data[place + removed :]
    return data


def read_or_refuse(source: Path) -> None:
    try:
        graphs = read_tu(source, AUTO)
    except DataError as error:
        message = str(error)
    else:
        graphs.validate()
        message = ""
    assert "\n" not in message


@given(st.sampled_from([*TINY, "graph_attributes"]), BYTES)
@settings(deadline=None, max_examples=200)
def test_any_bytes_for_a_file_give_graphs_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, table: str, content: bytes
) -> None:
    tables = {name: text.encode() for name, text in TINY.items()}
    read_or_refuse(write_set(tmp_path_factory.mktemp("set"), tables | {table: content}))


@given(st.sampled_from(sorted(TINY)), st.booleans(), st.data())
@settings(deadline=None, max_examples=300)
def test_a_slightly_changed_file_gives_graphs_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, table: str, labelled: bool, data: st.DataObject
) -> None:
    tables = {name: text.encode() for name, text in TINY.items() if labelled or name != "edge_labels"}
    changed = {table: data.draw(mutations(TINY[table].encode()))}
    read_or_refuse(write_set(tmp_path_factory.mktemp("set"), tables | changed))


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_a_slightly_changed_zip_gives_graphs_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as opened:
        for table, text in TINY.items():
            opened.writestr(zipfile.ZipInfo(f"TINY/TINY_{table}.txt"), text)
    source = tmp_path_factory.mktemp("zip") / "TINY.zip"
    source.write_bytes(data.draw(mutations(stream.getvalue())))
    read_or_refuse(source)
