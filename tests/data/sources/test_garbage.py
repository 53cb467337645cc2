"""Arbitrary and slightly broken files -> valid Graphs or a DataError of one line, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from egocnn.config import ReadConfig
from egocnn.data.read import read
from egocnn.errors import DataError

FUZZ = settings(deadline=None, max_examples=120)

CSV = b"name,smiles,label,split\na,CCO,1,train\nb,c1ccccc1,0,test\nc,[NH4+],1,train\n"
JSONL = (
    b'{"name": "a", "nodes": ["C", "O"], "edges": [[0, 1, "single"]], "target": "x"}\n'
    b'{"name": "b", "nodes": [{"label": 1, "attributes": [0.5]}], "edges": [], "target": 1.5, "critical_nodes": [0]}\n'
)
GRAPHML = b"""<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="l" for="node" attr.name="label" attr.type="string"><default>C</default></key>
<key id="w" for="edge" attr.name="weight" attr.type="double"/><key id="t" for="graph" attr.name="y" attr.type="int"/>
<graph edgedefault="undirected"><data key="t">1</data><node id="a"><data key="l">O</data></node><node id="b"/>
<edge source="a" target="b"><data key="w">2.5</data></edge></graph></graphml>"""
GEXF = b"""<?xml version="1.0"?><gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">
<graph defaultedgetype="undirected"><attributes class="node"><attribute id="0" title="attr" type="float"/></attributes>
<nodes><node id="0" label="C"><attvalues><attvalue for="0" value="1.5"/></attvalues></node>
<node id="1" label="O"><attvalues><attvalue for="0" value="2"/></attvalues></node></nodes>
<edges><edge id="0" source="0" target="1" weight="2.0" label="x"/></edges></graph></gexf>"""
VALID = {".csv": CSV, ".jsonl": JSONL.split(b"\n")[0], ".graphml": GRAPHML, ".gexf": GEXF}
PIECES = [
    b"",
    b'"',
    b",",
    b"\n",
    b"0",
    b"-1",
    b"9" * 30,
    b"1e999",
    b"NaN",
    b"null",
    b"true",
    b"[",
    b"}",
    b"\xff",
    b"\x00",
    b"<",
    b"/>",
    b"&x;",
    b"%",
]


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
    """A valid file with a few of its stretches cut out, doubled or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 8)))
        piece = draw(st.sampled_from([*PIECES, data[start:end] * 2]) | st.binary(max_size=3))
        data = data[:start] + piece + data[end:]
    return data


def check(folder: Path, suffix: str, data: bytes, config: ReadConfig) -> None:
    path = folder / f"file{suffix}"
    path.write_bytes(data)
    try:
        graphs = read(path, config)
    except DataError as error:
        message = str(error)
        assert path.name in message
        assert "\n" not in message
    else:
        graphs.validate()
        assert len(graphs) > 0
        assert (graphs.node_counts > 0).all()


@pytest.mark.parametrize("suffix", VALID)
def test_the_files_to_be_broken_are_whole_at_first(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(VALID[suffix])
    graphs = read(path)
    assert graphs.node_label is not None
    assert len(graphs) == (3 if suffix == ".csv" else 1)


@pytest.mark.parametrize("suffix", VALID)
@FUZZ
@given(data=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_arbitrary_bytes_are_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: bytes
) -> None:
    check(tmp_path_factory.mktemp("garbage"), suffix, data, ReadConfig())


@pytest.mark.parametrize("suffix", VALID)
@FUZZ
@given(data=st.data(), skip=st.booleans())
def test_a_slightly_broken_file_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject, skip: bool
) -> None:
    broken = data.draw(mutations(VALID[suffix]))
    config = ReadConfig(skip_invalid=skip, split="split" if suffix == ".csv" else None)
    check(tmp_path_factory.mktemp("garbage"), suffix, broken, config)


@FUZZ
@given(smiles=st.text("CNOcnoPS[]()=#123%+-@/\\.*Hl>", max_size=12))
def test_any_text_is_a_molecule_or_is_refused(tmp_path_factory: pytest.TempPathFactory, smiles: str) -> None:
    pytest.importorskip("rdkit")
    check(tmp_path_factory.mktemp("garbage"), ".csv", f'smiles,y\n"{smiles}",1\n'.encode(), ReadConfig(hydrogens=True))
