"""Records of an SDF -> Graphs: properties are columns, titles are names, atoms keep their order."""

import gzip
from pathlib import Path
from typing import Any, Self

import pytest

from egocnn.data.read import read
from egocnn.data.rows import RowFile
from egocnn.data.sources import text
from egocnn.data.sources.text import MOLECULE, table_rows
from tests.support.samples import as_list, refusal, sure, written

Chem: Any = pytest.importorskip("rdkit.Chem")


def record(
    smiles: str, title: str = "", *, order: list[int] | None = None, v3000: bool = False, **fields: object
) -> str:
    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    molecule = molecule if order is None else Chem.RenumberAtoms(molecule, order)
    block = Chem.MolToMolBlock(molecule, kekulize=False, forceV3000=v3000)
    properties = "".join(f">  <{name}>  (1)\n{value}\n\n" for name, value in fields.items())
    return f"{title}{block}{properties}$$$$\n"


def sdf(folder: Path, *records: str, name: str = "m.sdf") -> Path:
    data = "".join(records).encode()
    return written(folder, name, gzip.compress(data) if name.endswith(".gz") else data)


BROKEN = record("CN(C)(C)C", "wrong", label="x", fold="test")
GOOD = (record("CCO", "first", label="a", fold="train"), record("c1ccccc1O", label="b", fold="test", note="1\n> 2"))


@pytest.mark.parametrize("name", ["m.sdf", "m.SDF", "m.sdf.gz"])
def test_titles_are_names_properties_are_columns_and_line_ends_do_not_matter(tmp_path: Path, name: str) -> None:
    records = [GOOD[0].replace("\n", "\r\n"), GOOD[1].removesuffix("$$$$\n"), "\n"]
    graphs = read(sdf(tmp_path, *records, name=name), split="fold")
    assert graphs.names == ("first", "2")
    assert graphs.class_names == ("a", "b")
    assert as_list(graphs.part) == [0, 2]
    assert graphs.smiles == ("CCO", "c1ccccc1O")
    same = read(["CCO", "c1ccccc1O"])
    assert [graph.node_label for graph in graphs] == [graph.node_label for graph in same]
    assert read(tmp_path / name, target="note", name="label").names == ("a", "b")
    assert read(tmp_path / name, target="note").class_names == ("1\n> 2",)


def test_atoms_keep_their_order_and_stereo_marks_in_either_version_of_the_format(tmp_path: Path) -> None:
    order = [4, 2, 5, 1, 0, 3]
    for v3000 in (False, True):
        drawn = record("C[C@H](N)C(=O)O", "alanine", order=order, v3000=v3000)
        (graph,) = read(sdf(tmp_path, drawn))
        assert [label[0] for label in graph.node_label or ()] == ["O", "N", "O", "C", "C", "C"]
        assert (graph.node_label or ())[3] == "C|H1|S"


def test_broken_records_keep_their_row_with_the_reason_and_a_few_are_left_out(tmp_path: Path) -> None:
    path = sdf(tmp_path, *[GOOD[0]] * 39, BROKEN)
    assert len(read(path)) == 39
    assert read(path).skipped[0][:2] == (40, "")
    wanted = (
        "m.sdf, row 40: the molecule does not parse (Explicit valence for atom # 1 N, 4, is greater than permitted)"
    )
    assert refusal(read, path, strict=True).startswith(wanted)
    (few,) = RowFile.open(sdf(tmp_path, BROKEN, GOOD[0]), {}, {"target": "label"}).chunks
    portion = RowFile.open(tmp_path / "m.sdf", {}, {"target": "label"}).reader(few)
    assert portion.names == ("wrong", "first")
    assert [error[:28] for error in portion.errors] == ["the molecule does not parse ", ""]
    assert portion.rows[0] == {"name": "wrong", "label": "x", "fold": "test"}
    assert sure(portion.graphs).smiles == ("CCO",)


def v3000(counts: str) -> str:
    return (
        "\n\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n"
        f"M  V30 COUNTS {counts}\nM  V30 BEGIN ATOM\nM  V30 1 C 0 0 0 0\nM  V30 END ATOM\nM  V30 END CTAB\nM  END\n"
    )


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ("", "m.sdf: no molecules in it"),
        ("\n \n", "m.sdf: no molecules in it"),
        ("$$$$\n", "row 1: the molecule does not parse (this is not a record of an SDF)"),
        (
            f"\u00e9{GOOD[0]}".replace(" O ", " \u00d8 "),
            "row 1: the molecule does not parse (Post-condition Violation: Elem",
        ),
        ("hello\n", "row 1: the molecule does not parse (this is not a record of an SDF)"),
        ("a\n\n\n  2  1  0\n", "row 1: the molecule does not parse (EOF hit while reading atoms)"),
        (GOOD[0].replace(" O ", " Xx"), "row 1: the molecule does not parse (Post-condition Violation: Element 'Xx'"),
        (GOOD[0].replace("M  END", ""), "row 1: the molecule does not parse (Problems encountered parsing Mol data, "),
        (record(""), "row 1: the molecule has no atoms"),
        (v3000("400000000 0 0 0 0"), "row 1: the molecule counts '400000000' atoms or bonds; 5000 are read at most"),
        (v3000("4000-\nM  V30 00000 0 0 0 0"), "row 1: the molecule counts '400000000' atoms or bonds"),
        (v3000("+9999 0 0 0 0"), "row 1: the molecule counts '+9999' atoms or bonds"),
    ],
)
def test_what_is_no_molecule_is_refused_in_one_line(tmp_path: Path, records: str, message: str) -> None:
    assert message in refusal(read, sdf(tmp_path, records))


def test_a_record_without_end_is_not_held_and_the_next_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_OF_RECORD", 1200)
    path = sdf(tmp_path, GOOD[0].replace("$$$$", "more\n" * 300 + "$$$$"), GOOD[1])
    first, second = table_rows(path)
    assert (first["name"], first["label"]) == ("first", "a")
    assert "characters; 1200 are read at most" in str(first[MOLECULE])
    assert second["label"] == "b"


def test_a_log_of_rdkit_that_is_no_text_is_no_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Capture:
        """As RDKit's own, where it quotes memory that holds no text."""

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        @property
        def messages(self) -> str:
            return b"\x9d".decode()

    monkeypatch.setattr("rdkit.rdBase.CaptureErrorLog", Capture, raising=False)
    assert "does not parse (this is not a record of an SDF)" in refusal(read, sdf(tmp_path, BROKEN))
