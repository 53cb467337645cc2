"""Molecules as SMILES -> Graphs."""

import json
import logging
import os
from contextlib import suppress
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from egocnn.config import ReadConfig
from egocnn.data.molecules import to_molecule
from egocnn.data.read import read
from egocnn.data.sources.records import assemble
from egocnn.data.sources.smiles import (
    assemble_molecules,
    atom_label,
    atom_words,
    bond_label,
    bond_words,
    from_smiles,
    molecule_and_smiles,
    molecule_record,
    parse_smiles,
)
from egocnn.errors import DataError
from tests.support.commands import rows
from tests.support.samples import as_list, refusal, sure
from tests.support.tiny import write_table

rdkit = pytest.importorskip("rdkit")


TABLE = """id,SMILES,Label,fold,family
a,CCO,1,train,x
b,c1ccccc1[N+](=O)[O-],0,test,y
c,OCC,1,Valid,x
"""


def test_a_table_of_molecules_is_read_with_its_defaults(tmp_path: Path) -> None:
    graphs = read(write_table(tmp_path, TABLE), ReadConfig())
    assert graphs.names == ("a", "b", "c")
    assert graphs.smiles == ("CCO", "c1ccccc1[N+](=O)[O-]", "OCC")
    assert graphs.class_names == ("0", "1")
    assert graphs.node_counts.tolist() == [3, 9, 3]
    assert graphs.part is None
    assert graphs[0].node_label == ("C|H3", "C|H2", "O|H1")
    assert graphs[0].edges.tolist() == [[0, 1], [1, 2]]
    assert graphs[0].edge_label == ("single", "single")
    assert graphs[1].node_label == ("c|H1",) * 5 + ("c", "N+", "O", "O-")
    assert sorted(set(sure(graphs[1].edge_label))) == ["aromatic|ring6", "double", "single"]


def test_copies_and_mirror_images_share_a_group_because_their_graphs_are_equal(tmp_path: Path) -> None:
    assert as_list(read(write_table(tmp_path, TABLE), ReadConfig()).group) == [0, 1, 0]
    graphs = from_smiles(["C[C@H](N)O", "C[C@@H](N)O", "CC(N)=O"])
    assert as_list(graphs.group) == [0, 0, 1]


def test_columns_can_be_chosen_by_name(tmp_path: Path) -> None:
    config = ReadConfig(smiles="SMILES", target="family", name="Label", split="fold", group="family")
    graphs = read(write_table(tmp_path, TABLE), config)
    assert graphs.names == ("1", "0", "1")
    assert graphs.class_names == ("x", "y")
    assert as_list(graphs.part) == [0, 2, 1]
    assert as_list(graphs.group) == [0, 1, 0]


def test_values_to_predict_are_read_as_numbers_and_need_not_be_there(tmp_path: Path) -> None:
    graphs = read(write_table(tmp_path, "smiles\tweight\nC\t1\nN\t2\n", "m.tsv"), ReadConfig())
    assert (graphs.names, graphs.target) == (("1", "2"), None)
    graphs = read(write_table(tmp_path, "smiles,y\nC,0.5\nN,\n"), ReadConfig())
    assert not graphs.is_classification
    assert np.array_equal(sure(graphs.target), [0.5, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("smiles,y\nC,1\nc1ccc,0\n", {}, "row 2: SMILES 'c1ccc' does not parse (unclosed ring); --skip-invalid"),
        ("smiles\nC(C\n", {}, "row 1: SMILES 'C(C' does not parse (extra open parentheses at position 2)"),
        ("smiles\nCN(C)(C)C\n", {}, "row 1: SMILES 'CN(C)(C)C' does not parse (Explicit valence for atom # 1 N"),
        ("smiles\nc1cccc1\n", {}, "row 1: SMILES 'c1cccc1' does not parse (Can't kekulize mol"),
        ("smiles,y\n,1\n", {}, "row 1: SMILES '' has no atoms"),
        ("smiles\nCC ethane\n", {}, "row 1: SMILES 'CC ethane' does not parse"),
        ("smiles\nCé\n", {}, "row 1: SMILES 'Cé' does not parse (a character that SMILES does not know)"),
        ('smiles\n"CC\nO"\n', {}, "row 1: SMILES 'CC\\nO' does not parse (a character that SMILES does not know)"),
        ("smiles\nCC\x01\n", {}, "row 1: SMILES 'CC\\x01' does not parse (a character that SMILES does not know)"),
        (f"smiles\n{'C' * 20_000}\n", {}, f"row 1: SMILES '{'C' * 56}... has 20000 characters; 5000 are read"),
        ("smiles,fold\nC,train\nN,holdout\n", {"split": "fold"}, "row 2: split 'holdout' must be one of"),
        ("smiles,y\nC,1\nN,x\n", {"task": "regression"}, "row 2: target 'x' is not a finite number"),
    ],
)
def test_a_bad_row_is_named_with_its_reason(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    found = refusal(read, write_table(tmp_path, text), ReadConfig(**options))
    assert found.startswith(f"molecules.csv, {message}")


def test_a_column_that_is_missing_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = write_table(tmp_path, "id,formula\n1,C\n")
    with pytest.raises(DataError, match=r"no column is called smiles; there are id, formula; name one with --smiles"):
        read(path, ReadConfig())
    with pytest.raises(DataError, match=r"no column or field is called 'toxic'; there are id, formula"):
        read(path, ReadConfig(smiles="formula", target="toxic"))


def test_bad_rows_can_be_left_out_and_are_told_and_rdkit_writes_nothing_to_the_terminal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write_table(tmp_path, "smiles,y\nC,a\nxyz,b\n\nN,b\n,c\n")
    with caplog.at_level(logging.WARNING, logger="egocnn"):
        graphs = read(path, ReadConfig(skip_invalid=True))
    assert graphs.names == ("1", "3")
    assert graphs.class_names == ("a", "b")
    assert [row[:2] for row in graphs.skipped] == [(2, "xyz"), (4, "")]
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(
        "molecules.csv: 2 of 4 rows left out; the first is molecules.csv, row 2: SMILES"
    )

    with pytest.raises(DataError, match=r"molecules\.csv: no molecules in it; the first is .*row 1"):
        read(write_table(tmp_path, "smiles\nx\n"), ReadConfig(skip_invalid=True))
    read(write_table(tmp_path, "smiles\nC\nxyz\nc1ccc\n[H]\n"), ReadConfig(skip_invalid=True))
    assert tuple(capfd.readouterr()) == ("", "")


def test_the_reason_is_found_without_the_log_of_a_recent_rdkit(monkeypatch: pytest.MonkeyPatch) -> None:
    from rdkit import rdBase

    monkeypatch.delattr(rdBase, "CaptureErrorLog", raising=False)
    with pytest.raises(DataError, match="greater than permitted"):
        parse_smiles("CN(C)(C)C")
    with pytest.raises(DataError, match="this is not SMILES"):
        parse_smiles("C(C")


def test_hydrogens_follow_the_atoms_of_the_smiles() -> None:
    graphs = from_smiles(["OC"], config=ReadConfig(hydrogens=True))
    assert graphs[0].node_label == ("O", "C", "H", "H", "H", "H")
    assert from_smiles(["[H]OC"])[0].node_label == ("O|H1", "C|H3")


def test_labels_name_element_aromaticity_and_charge() -> None:
    molecule = parse_smiles("[Fe+2].[O-]C.c1cc[nH]c1.[O-2].*")
    assert [atom_label(atom) for atom in molecule.GetAtoms()] == ["Fe+2", "O-", "C", *"cccnc", "O-2", "*"]
    kinds = {bond_label(bond) for bond in parse_smiles("C#CC=CN->[Fe]").GetBonds()}
    assert kinds == {"single", "double", "triple", "dative"}


def test_further_words_name_hydrogens_stereo_centres_isotopes_rings_and_the_sides_of_a_double_bond() -> None:
    def words(smiles: str) -> tuple[list[str], list[str]]:
        molecule = parse_smiles(smiles)
        return [atom_words(atom) for atom in molecule.GetAtoms()], bond_words(molecule)

    assert words("C[C@H](O)F")[0] == ["C|H3", "C|H1|R", "O|H1", "F"]
    assert words("C[C@@H](O)F")[0][1] == "C|H1|S"
    assert [words(text)[1][1] for text in ("C/C=C/C", "C/C=C\\C", "CC=CC")] == ["double|E", "double|Z", "double"]
    assert words("[13CH4]") == (["C|H4|13"], [])
    indole = words("c1ccc2[nH]ccc2c1")
    assert indole[0][4] == "n|H1"
    assert sorted(set(indole[1])) == ["aromatic|ring5", "aromatic|ring6"]
    assert set(words("C1CCCCCCCCC1")[1]) == {"single|ring8"}  # larger rings are told apart no further


ON_RINGS = ["C[C@H]1CC[C@@H](C)CC1", "C[C@H]1CC[C@H](C)CC1"]  # trans and cis; no centre is R or S
TOO_HARD = f"[C@H]1(C){'[C@@H](C)' * 300}[C@H]1C"  # each of these rings looks the same from all of its atoms


@pytest.mark.parametrize(
    ("smiles", "names"),
    [
        (ON_RINGS[0], "ss"),
        (ON_RINGS[1], "rr"),
        ("O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O", "SrRSsR"),
        ("C[C@@H](O)[C@H](F)[C@H](C)O", "RRS"),  # as always where RDKit's quick rules name them all
        (TOO_HARD, ""),
    ],
)
def test_cis_and_trans_on_a_ring_are_told_apart_and_every_mark_that_is_drawn_was_read(smiles: str, names: str) -> None:
    """However it comes in, and whatever was computed of it before; a molecule that is too hard has no marks."""
    from rdkit import Chem
    from rdkit.Chem.rdCIPLabeler import AssignCIPLabels

    made = Chem.MolFromSmiles(f"{smiles}.C/C=C/C")
    with suppress(RuntimeError):
        AssignCIPLabels(made, maxRecursiveIterations=10_000)
    for graph in from_smiles([f"{smiles}.C/C=C/C"] * 2 + [made]):
        words = [label.partition("|H1|")[2] for label in sure(graph.node_label)]
        assert "".join(words) == names
        assert sure(graph.edge_label)[-2] == "double|E"
        tags = [atom.GetChiralTag().name for atom in sure(to_molecule(graph)).GetAtoms()]
        assert [tag != "CHI_UNSPECIFIED" for tag in tags] == list(map(bool, words))


def test_molecules_can_be_given_as_texts() -> None:
    graphs = from_smiles(["C", " N "], targets=[1.5, 2.0], names=["methane", "ammonia"], config=ReadConfig(target="x"))
    assert graphs.names == ("methane", "ammonia")
    assert graphs.smiles == ("C", "N")
    assert as_list(graphs.target) == [1.5, 2.0]
    assert from_smiles(["C"]).names == ("0",)


def test_texts_and_targets_must_be_as_many() -> None:
    gap: list[Any] = ["C", float("nan")]
    with pytest.raises(DataError, match="1 targets for 2 SMILES"):
        from_smiles(["C", "N"], targets=[1])
    with pytest.raises(DataError, match="molecule 1: SMILES nan must be a text"):
        from_smiles(gap)
    with pytest.raises(DataError, match="no molecules"):
        from_smiles([])
    with pytest.raises(DataError, match=r"^molecule 1: SMILES 'x' does not parse"):
        from_smiles(["C", "x"])


@pytest.mark.skipif("EGOCNN_DATA" not in os.environ, reason="EGOCNN_DATA does not name the folder with the data sets")
def test_the_critical_atoms_of_the_benchmark_lie_in_their_molecules() -> None:
    path = Path(os.environ["EGOCNN_DATA"]) / "explain" / "benzene.csv"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    graphs = read(path, ReadConfig(split="split"))
    assert len(graphs) == 12_000
    assert graphs.class_names == ("0", "1")
    table = rows(path)
    assert graphs.names == tuple(row["id"] for row in table)
    for graph, row in zip(graphs, table, strict=True):
        for ring in json.loads(row["critical_atoms"])[:1]:
            # the benzene ring that decides the class: six aromatic carbon atoms
            assert [sure(graph.node_label)[atom].partition("|")[0] for atom in ring] == ["c"] * 6


@pytest.mark.parametrize(
    ("smiles", "kept"),
    [
        ("[Na+].CC(=O)[O-]", "CC(=O)[O-]"),
        ("O.OCC.O", "OCC"),
        ("CCO", "CCO"),
        ("C[C@H](N)C(=O)O.Cl", "C[C@H](N)C(=O)O"),
        ("c1ccccc1.CC/C=C/C", "c1ccccc1"),
        ("CC.OO", "OO"),  # of equals one and the same, however they stand
        ("OO.CC", "OO"),
    ],
)
def test_the_largest_part_of_a_molecule_is_read_as_if_it_stood_alone(smiles: str, kept: str) -> None:
    (graph,), (alone,) = from_smiles([smiles], config=ReadConfig(salts="largest")), from_smiles([kept])
    assert graph.smiles == kept
    assert (graph.node_label, graph.edge_label) == (alone.node_label, alone.edge_label)
    assert graph.edges.tolist() == alone.edges.tolist()
    assert from_smiles([smiles])[0].smiles == smiles


@pytest.mark.parametrize("name", ["Canonical_SMILES", "smiles_std", "Structure", "SMI", "Mol", "ROMol"])
def test_the_column_of_smiles_is_found_under_its_usual_names(tmp_path: Path, name: str) -> None:
    assert read(write_table(tmp_path, f"{name},molweight\nCCO,46\n"), ReadConfig()).smiles == ("CCO",)


INVARIANTS = [(z, d, h, c) for z in (1, 5, 6, 7, 8, 9, 14, 15, 16, 17, 34, 35, 53) for d in range(9)
              for h in range(d + 1) for c in range(-4, 5)]  # fmt: skip


def test_flat_arrays_are_what_atoms_and_bonds_say_one_by_one() -> None:
    """Of molecules that take the short way, of those that do not, and of both together; with and without hydrogens."""
    texts = [
        "CCO", "C", "[Na+].[Cl-]", "C[C@H](N)C(=O)O", "C/C=C/C", "F/C=C\\F", "c1ccc2c(c1)CCC2", "C1CCCCCCCCC1",
        "[13CH4]", "C[N+](C)(C)C", "O=c1[nH]c(=O)[nH]cc1", "*c1ccccc1", "C#N", "N->[Fe]", "[O-]S(=O)(=O)c1cc[se]c1",
        "[2H]OC", "C12C3C4C1C5C2C3C45", "CC~C", "[H][H]", "C[S@](=O)c1ccccc1", "C" * 501, "[NH4+]", "B1OC1", *ON_RINGS,
        "C1CCCCCC/C=C/1", "C1CCCCCC\\C=C/1", "N/N=C\\[C@H](F)C=C", "C/C=C/C=C\\C.C/C=C/[Na]", "CC=CC(/C)=C(/F)Cl",
    ]  # fmt: skip
    for chosen, hydrogens in product((texts, texts[:1], texts[1:2], texts[:20], [texts[20]]), (False, True)):
        molecules = [molecule_and_smiles(text, ReadConfig(hydrogens=hydrogens))[0] for text in chosen]
        columns = {"names": tuple(chosen), "smiles": tuple(chosen)}
        flat = assemble_molecules(molecules, "here", **columns)
        single = assemble([molecule_record(molecule, "here") for molecule in molecules], "here", **columns)
        for field in fields(flat):
            one, other = getattr(flat, field.name), getattr(single, field.name)
            assert np.array_equal(one, other) if isinstance(other, np.ndarray) else one == other, field.name
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None), field.name


@pytest.mark.parametrize(
    "smiles",
    [
        "CCO", "CC=CC", "C/C=C\\C", "C[C@H](N)O", "[H]C([H])([H])O", "[2H]OC", "[H][H]", "[H+]", "[#1]C",
        "[H]/N=C(/C)F",
        "[C@@]([H])(F)(Cl)Br", "CN(=O)=O", "c1ccccc1N", "C1=CC=CC=C1", "N->[Fe]", "*C", "[CH2]C", "[nH]1cccc1", "B1OC1",
    ],
)  # fmt: skip
def test_a_molecule_is_parsed_as_rdkit_would_parse_it_at_length(smiles: str) -> None:
    """Whose own function looks for hydrogens and stereo marks in every one."""
    from rdkit import Chem

    ours, theirs = parse_smiles(smiles), Chem.MolFromSmiles(smiles)
    assert Chem.MolToSmiles(ours, canonical=False) == Chem.MolToSmiles(theirs, canonical=False)
    assert [atom_words(atom) for atom in ours.GetAtoms()] == [atom_words(atom) for atom in theirs.GetAtoms()]
    assert bond_words(ours) == bond_words(theirs)


def test_the_number_that_rdkit_gives_an_atom_tells_elements_hydrogens_and_charges_apart() -> None:
    """Of atoms that take the short way; RDKit hashes element, bonds, hydrogens, charge and mass, as is done here."""
    from rdkit.Chem.rdMolDescriptors import GetConnectivityInvariants

    def number(*said: int) -> int:
        seed = 0
        for value in (*said, 0):
            seed ^= (value + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & 0xFFFFFFFF
        return seed & 0xFFFFFFFF

    assert list(GetConnectivityInvariants(parse_smiles("C[NH3+]"), False)) == [number(6, 4, 3, 0), number(7, 4, 3, 1)]
    assert len({number(*atom) for atom in INVARIANTS}) == len(INVARIANTS)
