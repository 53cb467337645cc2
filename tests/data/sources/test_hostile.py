"""Broken and hostile files -> valid Graphs or a DataError of one line, soon and in little memory."""

import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from egocnn.config import ReadConfig
from egocnn.data.read import read, stream_source
from egocnn.data.sources.jsonlines import UNMENTIONED_NODES
from egocnn.data.sources.text import listed, one_line, short
from tests.support.samples import refusal, sure, written

SECONDS = 4.0
"""Far more than any of these takes, and far less than they took while the time grew with the square of the length."""


@pytest.fixture(autouse=True)
def in_time(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test ends soon, but for those that try hundreds of files."""
    start = time.process_time()
    yield
    assert hasattr(request.function, "hypothesis") or time.process_time() - start < SECONDS


def test_many_digits_and_a_letter_are_a_class_or_refused_at_once(tmp_path: Path) -> None:
    text = "1" * 120_000 + "x"
    graphs = read(written(tmp_path, "a.jsonl", f'{{"nodes": 1, "target": "{text}"}}\n'.encode()))
    assert graphs.class_names == (text,)
    written(tmp_path, "S_A.txt", b"1 1\n")
    written(tmp_path, "S_graph_indicator.txt", b"1\n")
    written(tmp_path, "S_node_attributes.txt", b"1" * 120_000 + b"x\n")
    assert "S_node_attributes.txt, line 1: '1111" in refusal(read, tmp_path)


def test_a_text_of_many_blanks_is_shown_at_once(tmp_path: Path) -> None:
    blanks = " " * 120_000
    assert short(f"a{blanks}b") == "'a" + " " * 55 + "..."
    path = written(tmp_path, "a.jsonl", f'{{"nodes": 1, "split": "{blanks}x{blanks}x"}}\n'.encode())
    assert "a.jsonl, line 1: split 'x   " in refusal(read, path, split="split")


def test_a_header_of_very_many_columns_is_read_at_once(tmp_path: Path) -> None:
    header = ",".join(f"c{number}" for number in range(60_000))
    path = written(tmp_path, "wide.csv", f"smiles,{header}\nC{',' * 60_000}\n".encode())
    source = sure(stream_source(path, ReadConfig()))
    (graphs,) = source.portions
    assert len(graphs) == len(read(path)) == 1


def test_a_zip_of_very_many_members_is_looked_through_at_once(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as opened:
        for number in range(20_000):
            opened.writestr(zipfile.ZipInfo(f"{number}.txt"), b"x")
    assert "no NAME_A.txt in it" in refusal(read, path)


def test_nodes_that_are_only_counted_are_refused_beyond_the_size_of_the_file(tmp_path: Path) -> None:
    assert read(written(tmp_path, "few.jsonl", b'{"nodes": 200000}\n')).n_nodes == 200_000
    path = written(tmp_path, "many.jsonl", b'{"nodes": 10000000}\n')
    message = f"many.jsonl, line 1: 10000000 nodes by number alone; a file may have {UNMENTIONED_NODES} more nodes"
    assert refusal(read, path).startswith(message)
    source = sure(stream_source(path, ReadConfig()))
    assert refusal(list, source.portions).startswith(message)


def test_nodes_that_are_only_counted_add_up_over_the_lines(tmp_path: Path) -> None:
    line = b'{"nodes": 100000, "critical_nodes": [0]}\n'
    assert len(read(written(tmp_path, "two.jsonl", line * 2))) == 2
    path = written(tmp_path, "three.jsonl", line * 3)
    assert refusal(read, path).startswith("three.jsonl, line 3: 100000 nodes by number alone")
    assert len(read(path, ReadConfig(skip_invalid=True))) == 2
    odd = written(tmp_path, "odd.jsonl", b'{"nodes": 99999999}\n{"nodes": -9}\n' + line * 9)
    assert len(read(odd, ReadConfig(skip_invalid=True))) == 2


def test_a_large_graph_whose_nodes_have_edges_is_never_too_large(tmp_path: Path) -> None:
    edges = ",".join(f"[{node},{node + 1}]" for node in range(300_000))
    path = written(tmp_path, "path.jsonl", f'{{"nodes":300001,"edges":[{edges}]}}'.encode())
    assert read(path).n_nodes == 300_001


def test_defaults_that_nothing_reads_are_not_given_to_every_node(tmp_path: Path) -> None:
    pytest.importorskip("networkx")
    key = '<key id="{}" for="node" attr.name="{}" attr.type="string"><default>{}</default></key>'
    keys, label = "".join(key.format(f"k{n}", f"n{n}", "x") for n in range(1500)), key.format("l", "label", "C")
    nodes = "".join(f'<node id="{n}"/>' for n in range(1500))
    data = f"<graphml>{keys}{label}<graph>{nodes}</graph></graphml>".encode()
    path = written(tmp_path, "a.graphml", data)
    tracemalloc.start()
    graphs = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * len(data)
    assert graphs.node_label_names == ("C",)


def test_one_line_leaves_ordinary_text_alone_and_spells_out_the_rest() -> None:
    assert one_line("a plain line, ünïcode, 日本") == "a plain line, ünïcode, 日本"
    assert one_line("a \n\t b\r\nc") == "a b c"
    assert one_line("\x1b[2J\x00\u202e\ud800") == "\\x1b[2J\\x00\\u202e\\ud800"
    long = one_line("start " + "x" * 5000 + " end")
    assert len(long) < 820
    assert long.startswith("start x")
    assert long.endswith("x end")


def test_listed_names_few_and_quotes_what_cannot_be_printed() -> None:
    assert listed(["a", "b c", "d\ne", ""]) == "a, b c, 'd\\ne', ''"
    assert listed(map(str, range(15))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 3 more"
    assert len(listed(["x" * 1000])) < 70


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b'"a\x1b[2Jb\nc",x\nC,1\n'),
        ("a.csv", b"x" * 5000 + b",y\nC,1\n"),
        ("a.tsv", b'smiles\ty\nC\t"a"b"\n'),
        ("a.jsonl", b'{"nodes": 1, "edges": [["\\u001b[2J", 0]]}\n'),
        ("a.jsonl", b'{"\\u001b[2J": 1, "\\u001b[2J": 2}\n'),
        ("a.graphml", b'<graphml><key id="a&#10;b" for="node"/><graph/></graphml>'),
        ("a.safetensors", b"\x08\x00\x00\x00\x00\x00\x00\x00\x1b[2J\n\n\n\n"),
    ],
)
def test_no_text_of_a_file_reaches_the_terminal_as_it_is(tmp_path: Path, name: str, data: bytes) -> None:
    path = written(tmp_path, name, data)
    assert name in refusal(read, path)
    assert "\\x1b[2J" in refusal(read, "compounds:\x1b[2J\n" + "x" * 3000)


def test_what_is_left_out_and_what_is_guessed_is_told_in_printable_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("rdkit")
    path = written(tmp_path, "a.csv", b'smiles,y\nC,"a\x1b[31m\nb"\nN,d\nN,d\n"\x1b[2J\n",d\n')
    with caplog.at_level("INFO", logger="egocnn"):
        assert len(read(path, ReadConfig(skip_invalid=True))) == 3
    assert len(caplog.messages) == 2
    assert all(message.isprintable() for message in caplog.messages)
