"""Molecules as SMILES, in an SDF or as RDKit holds them -> Graphs: atoms are nodes in their order, bonds are edges."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from egocnn.config import ReadConfig
from egocnn.data.arrays import pointers
from egocnn.data.graphs import Graphs
from egocnn.data.schema import SEPARATOR, checked, rule
from egocnn.data.sources.builder import GraphFields, choose_field, choose_targets, encode_labels, is_missing
from egocnn.data.sources.records import GraphRecord, assemble, collect
from egocnn.data.sources.text import MOLECULE, MolBlock, listed, one_line, optional, short, table_rows
from egocnn.errors import DataError

LARGE_RING = 8  # larger rings are told apart no further
MOST_CHARACTERS = 5_000
"""RDKit walks a molecule recursively and takes the process down with it when a SMILES is several times as long."""
HYDROGEN = re.compile(r"\[\d*[H#]")  # What may be a hydrogen that is an atom of its own: [H], [2H], [#1].
MARKED = re.compile(rf"{HYDROGEN.pattern}|[@/\\]")  # The same, or a mark of stereochemistry.
MOST_COMPARED = 100_000  # Steps to the names of the stereo centres of a molecule: a third of a second at most.
COUNTS = re.compile(r"^M +V30 +COUNTS((?:[^\S\n]+[^\s=]+)+)", re.MULTILINE | re.IGNORECASE)
OTHER_NAMES = ("smi", "structure", "molecule", "mol", "romol")  # Of a column of SMILES; the last is that of RDKit.

PLAIN = re.compile(
    r"(?:[^][*~$<>]|\[(?:H|B|C|N|O|F|P|S|I|Cl|Br|Si|Se|b|c|n|o|p|s|se)@{0,2}(?:H[0-4]?)?(?:[+-][1-4]?)?\]){1,500}"
)
"""SMILES of organic molecules without isotopes and bonds of rare kinds. Of their atoms RDKit's invariant, a number for
element, bonds, hydrogens and charge together, differs where one of these does."""
ORDERS = {2: "single{}", 3: "aromatic{}", 4: "double{}", 5: "double{}|E", 6: "triple{}", 7: "double{}|Z"}
"""by twice the order of the bond, and what SIDES adds to it"""
SIDES = {"STEREOE": 0.5, "STEREOZ": 1.5}
MOST_IN_MATRIX = 500  # atoms of a molecule whose bonds are read as a matrix; others would take too much memory

MoleculeRow: TypeAlias = tuple[str, int, Mapping[str, object], Any]  # place, number, fields, SMILES or molecule


def smiles_records(path: Path, fields: GraphFields) -> Iterator[GraphRecord]:
    """The molecules of a table one at a time; the other columns are added to ``fields``. Copies of one molecule share a
    group, unless ``config.group`` names a column."""

    def rows() -> Iterator[MoleculeRow]:
        column: str | None = None
        for number, row in enumerate(table_rows(path), 1):
            given = row.pop(MOLECULE, None)
            if given is None:
                column = column or smiles_column(list(row), fields.config, path.name, "--smiles")
                given = row[column]
            yield f"{path.name}, row {number}", number, row, given

    fields.way_out = "; --skip-invalid leaves such rows out"
    return _molecule_records(rows(), fields)


def smiles_column(available: Sequence[str], config: ReadConfig, where: str, option: str) -> str:
    """The column that is named, else the one called smiles, else the only one with a name like it, or as structure."""
    column = choose_field(available, config.smiles, ("smiles",), where)
    if column is None:
        like = [name for name in available if "smiles" in name.lower()]
        like = like or [name for name in available if name.lower() in OTHER_NAMES and name != config.target]
        rule(like, f"{where}: no column is called smiles; there are {listed(available)}; name one with {option}")
        rule(len(like) == 1, f"{where}: {listed(like)} could all be the column of SMILES; name one with {option}")
        column = like[0]
    rule(column != config.target, f"{where}: {short(column)} is the column of SMILES; it cannot be the target, too")
    return column


def from_frame(frame: Any, config: ReadConfig) -> Graphs:
    """One molecule per row of a pandas DataFrame, or of any table with ``columns``, read as a CSV is.

    The column of SMILES may hold RDKit molecules instead. Rows are counted from 0, as pandas does."""
    where, names = "DataFrame", list(map(str, frame.columns))
    for name, times in Counter(names).items():
        rule(times == 1, f"{where}: two columns are called {short(name)}")
    rule(len(frame), f"{where}: has no rows")
    molecules = smiles_column(names, config, where, "smiles=")
    dtypes = [str(column.dtype) for column in frame_targets(frame, config).values()]
    if config.task == "auto" and dtypes == ["category"]:
        config = replace(config, task="classification")
    fields = GraphFields(where, _strict(config), typed=False, way_out="; skip_invalid=True leaves such rows out")
    rows = ((f"{where}, row {row}", row, own, own[molecules]) for row, own in enumerate(frame_rows(frame)))
    return collect(_molecule_records(rows, fields), fields)


def frame_rows(frame: Any) -> Iterator[dict[str, Any]]:
    """Column name -> value for every row, None where it is missing."""
    columns = [[None if is_missing(value) else value for value in frame[name]] for name in frame.columns]
    return (dict(zip(map(str, frame.columns), values, strict=True)) for values in zip(*columns, strict=True))


def _strict(config: ReadConfig) -> ReadConfig:
    """For objects: who passes a list has another with the targets, which a row left out would shift."""
    return config if config.skip_invalid else replace(config, strict=True)


def frame_targets(frame: Any, config: ReadConfig) -> dict[str, Any]:
    """The columns to predict, with the types that they have in the table."""
    names = {str(name): name for name in frame.columns}
    return {name: frame[names[name]] for name in choose_targets(list(names), config.target, "DataFrame")[0]}


def from_smiles(
    smiles: Sequence[Any], targets: Any = None, names: Sequence[str] | None = None, config: ReadConfig | None = None
) -> Graphs:
    """Molecules as texts or as RDKit holds them, called 0, 1, ... unless named; columns in ``config`` do not count."""
    smiles = list(smiles)
    given = {what: list(v) for what, v in (("target", targets), ("name", names)) if v is not None}
    for what, values in given.items():
        rule(len(values) == len(smiles), f"{len(values)} {what}s for {len(smiles)} SMILES")
    settings = replace(config or ReadConfig(), smiles=None, target=None, name=None, split=None, group=None)
    fields = GraphFields("SMILES", _strict(settings))
    rows = (
        (f"molecule {row}", row, {what: values[row] for what, values in given.items()}, text)
        for row, text in enumerate(smiles)
    )
    return collect(_molecule_records(rows, fields), fields)


def _molecule_records(rows: Iterable[MoleculeRow], fields: GraphFields) -> Iterator[GraphRecord]:
    molecules: dict[str, int] = {}
    for place, number, row, given in rows:
        try:
            molecule, smiles = molecule_and_smiles(given, fields.config)
        except DataError as error:
            fields.skip(place, number, given, error)
            continue
        fields.add(place, str(number), row, smiles)
        if fields.config.group is None:
            from rdkit.Chem import MolToSmiles

            # without stereo marks: mirror images differ in a word, and must not stand on both sides of a split
            plain = MolToSmiles(molecule, isomericSmiles=False)
            fields.groups.append(molecules.setdefault(plain, len(molecules)))
        yield molecule_record(molecule, place)
    fields.conclude("molecules")


def molecule_record(molecule: Any, place: str) -> GraphRecord:
    """A molecule of RDKit as a graph; ``place``: where it stands."""
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    edges, atoms = np.array(bonds, np.int64).reshape(-1, 2), [atom_words(atom) for atom in molecule.GetAtoms()]
    return GraphRecord(place=place, n_nodes=len(atoms), edges=edges, node_label=atoms, edge_label=bond_words(molecule))


def assemble_molecules(molecules: Sequence[Any], where: str, **columns: Any) -> Graphs:
    """What :func:`assemble` makes of their records, bit for bit, without asking RDKit for every atom and bond;
    ``columns`` have the SMILES that they were parsed from."""
    from rdkit.Chem import GetAdjacencyMatrix
    from rdkit.Chem.rdMolDescriptors import GetConnectivityInvariants
    from rdkit.Chem.rdqueries import HasPropQueryAtom

    sizes = np.array([molecule.GetNumAtoms() for molecule in molecules])
    if sizes.max(initial=0) > MOST_IN_MATRIX:
        return assemble([molecule_record(molecule, where) for molecule in molecules], where, **columns)
    node_ptr, has_code = pointers(sizes), HasPropQueryAtom("_CIPCode")
    atoms: list[int] = []  # a number for what is said of an atom, but for whether it is aromatic
    named: dict[str, int] = {}  # labels that RDKit was asked for -> numbers, which count down from -1
    matrices: list[Any] = []  # the kind of bond between two atoms: its order, or the number of its label
    rings: list[tuple[int, Any]] = []  # the first node of the molecule, and the ring's atoms in their order
    for molecule, text, first in zip(molecules, columns["smiles"], node_ptr.tolist(), strict=False):
        if not PLAIN.fullmatch(text):
            record = molecule_record(molecule, where)
            labels = (*(record.node_label or ()), *(record.edge_label or ()))
            numbers = [named.setdefault(str(label), -1 - len(named)) for label in labels]
            atoms += numbers[: record.n_nodes]
            matrices.append(own := np.zeros((record.n_nodes, record.n_nodes)))
            u, v = np.asarray(record.edges).T
            own[u, v] = own[v, u] = numbers[record.n_nodes :]
            continue
        matrices.append(own := GetAdjacencyMatrix(molecule, useBO=True))
        atoms += GetConnectivityInvariants(molecule, False)
        if "@" in text:
            for atom in molecule.GetAtomsMatchingQuery(has_code):
                atoms[first + atom.GetIdx()] |= ord(atom.GetProp("_CIPCode")) << 33
        if "/" in text or "\\" in text:
            for u, v in np.argwhere(own == 2).tolist():
                own[u, v] += SIDES.get(molecule.GetBondBetweenAtoms(u, v).GetStereo().name, 0.0)
        rings += [(first, ring) for ring in molecule.GetRingInfo().AtomRings()]
    flat = np.concatenate([matrix.ravel() for matrix in matrices])
    entry = np.flatnonzero(flat)
    graph = np.repeat(np.arange(len(sizes)), [np.count_nonzero(matrix) for matrix in matrices])
    node, neighbour = np.divmod(entry - pointers(sizes**2)[graph], sizes[graph]) + node_ptr[graph]
    bond = flat[entry]
    said = np.array(atoms)
    said[node[bond == 1.5]] |= 1 << 32  # exactly the atoms with an aromatic bond are aromatic
    kinds, seen, kind = np.unique(said, return_index=True, return_inverse=True)
    owner = np.searchsorted(node_ptr, seen, side="right") - 1
    words = [
        list(named)[-1 - number] if number < 0 else atom_words(molecules[g].GetAtomWithIdx(n))
        for number, g, n in zip(kinds.tolist(), owner.tolist(), (seen - node_ptr[owner]).tolist(), strict=True)
    ]
    codes, columns["node_label_names"] = encode_labels(words)
    columns["node_label"] = codes[kind]
    ring = np.full(len(entry), LARGE_RING + 1)
    if rings:
        length = np.array([len(ring) for _, ring in rings])
        end = np.array(list(chain(*(ring for _, ring in rings)))) + np.repeat([start for start, _ in rings], length)
        at, other = pointers(length), np.roll(end, -1)
        other[at[1:] - 1] = end[at[:-1]]  # the last atom of a ring is bonded to its first
        for u, v in ((end, other), (other, end)):
            place = np.searchsorted(node * node_ptr[-1] + neighbour, u * node_ptr[-1] + v)
            np.minimum.at(ring, place, np.repeat(np.minimum(length, LARGE_RING), length))
    pair = (2 * bond).astype(np.int64) * 16 + ring
    least = pair.min(initial=0)
    is_there = np.bincount(pair - least) > 0
    kind = (np.cumsum(is_there) - 1)[pair - least]
    words = [
        list(named)[-1 - order // 2] if order < 0 else ORDERS[order].format(f"|ring{size}" * (size <= LARGE_RING))
        for order, size in (divmod(pair, 16) for pair in (np.flatnonzero(is_there) + least).tolist())
    ]
    codes, columns["edge_label_names"] = encode_labels(words)
    columns["edge_label"] = codes[kind]
    indptr = pointers(np.bincount(node, minlength=node_ptr[-1]))
    return checked(Graphs(node_ptr=node_ptr, indptr=indptr, indices=neighbour.astype(np.int32), **columns))


def atom_label(atom: Any) -> str:
    """Element, in lower case where aromatic, and charge: C, n, N+, O-, Fe+2."""
    charge: int = atom.GetFormalCharge()
    symbol = atom.GetSymbol().lower() if atom.GetIsAromatic() else atom.GetSymbol()
    sign = "" if charge == 0 else "+" if charge > 0 else "-"
    return f"{symbol}{sign}{abs(charge) if abs(charge) > 1 else ''}"


def atom_words(atom: Any) -> str:
    """The label of an atom, hydrogens that are no nodes, R, S, r or s, and isotope: C|H3, O|H1, C|H1|R, C|13."""
    hydrogens: int = atom.GetTotalNumHs()
    words = [atom_label(atom), f"H{hydrogens}" if hydrogens else ""]
    words += [atom.GetProp("_CIPCode") if atom.HasProp("_CIPCode") else "", str(atom.GetIsotope() or "")]
    return SEPARATOR.join(filter(None, words))


def bond_words(molecule: Any) -> list[str]:
    """The label of every bond, the smallest ring that it is in, and E or Z: single, aromatic|ring6, double|Z."""
    rings: dict[int, int] = {}
    for ring in molecule.GetRingInfo().BondRings():
        rings |= {bond: min(len(ring), rings.get(bond, LARGE_RING)) for bond in ring}
    words = []
    for at, bond in enumerate(molecule.GetBonds()):
        stereo = {"STEREOE": "E", "STEREOZ": "Z"}.get(bond.GetStereo().name, "")
        words.append([bond_label(bond), f"ring{rings[at]}" if at in rings else "", stereo])
    return [SEPARATOR.join(filter(None, own)) for own in words]


def bond_label(bond: Any) -> str:
    """single, double, triple, aromatic, or RDKit's name of a rarer kind."""
    return str(bond.GetBondType().name).lower()


def parse_smiles(text: object) -> Any:
    """The molecule as RDKit holds it; a :class:`DataError` with the reason where it is not one."""
    chem = optional("rdkit.Chem", "molecules")
    if not isinstance(text, str):
        raise DataError(f"SMILES {short(text)} must be a text")
    text = text.strip()
    if len(text) > MOST_CHARACTERS:
        raise DataError(f"{_shown(text)} has {len(text)} characters; {MOST_CHARACTERS} are read at most")
    # RDKit reads no further than a line end, and takes what stands before it for the molecule
    if not (text.isascii() and text.isprintable()):
        raise DataError(f"{_shown(text)} does not parse (a character that SMILES does not know)")

    def parse(sanitize: bool) -> Any:
        if sanitize and not MARKED.search(text):
            # to look for hydrogens and stereo marks in vain would take a third of the time
            molecule = chem.MolFromSmiles(text, _parser(sanitize=False, hydrogens=True))
            if molecule is not None and not chem.SanitizeMol(molecule, catchErrors=True):
                return molecule
        return chem.MolFromSmiles(text, _parser(sanitize=sanitize, hydrogens=not HYDROGEN.search(text)))

    return _parsed(parse, text)


@cache
def _parser(*, sanitize: bool, hydrogens: bool) -> Any:
    """``hydrogens``: whether those that are atoms of their own stay"""
    options = optional("rdkit.Chem", "molecules").SmilesParserParams()
    options.parseName = options.allowCXSMILES = False
    options.sanitize, options.removeHs = sanitize, not hydrogens
    return options


def parse_block(block: MolBlock) -> Any:
    """The same of a record of an SDF, V2000 or V3000."""
    chem = optional("rdkit.Chem", "molecules")
    text = block.text.encode("ascii", "replace").decode()  # RDKit cuts lines by bytes
    joined = re.sub(r"-\s*\nM +V30 ?", "", text)  # a line of V3000 may go on in the next
    for number in (number for numbers in COUNTS.findall(joined) for number in numbers.split()):  # it makes room for any
        is_fine = number.isdecimal() and len(number) < 9 and int(number) <= MOST_CHARACTERS
        rule(is_fine, f"the molecule counts {short(number)} atoms or bonds; {MOST_CHARACTERS} are read at most")

    def parse(sanitize: bool) -> Any:
        supplier = chem.SDMolSupplier()  # its log says why, unlike that of MolFromMolBlock
        supplier.SetData(text, sanitize=sanitize)
        return supplier[0] if len(supplier) else None

    return _parsed(parse)


def is_molecule(value: object) -> bool:
    """Whether RDKit made it; RDKit is not imported to find out."""
    return all(hasattr(value, name) for name in ("GetAtoms", "GetBonds", "GetNumAtoms"))


def molecule_and_smiles(given: Any, config: ReadConfig) -> tuple[Any, str]:
    """A molecule as ``config`` wants it, from SMILES, a record of an SDF, or RDKit's own less hydrogens; its SMILES"""
    if isinstance(given, DataError):
        raise given
    if isinstance(given, str) and config.salts != "largest" and not config.hydrogens:
        return parse_smiles(given), given.strip()
    molecule = parse_block(given) if isinstance(given, MolBlock) else given
    is_text = not is_molecule(molecule)
    molecule, smiles = (parse_smiles(given), given.strip()) if is_text else (molecule, "")
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        if not is_text:
            try:
                molecule = Chem.Mol(molecule)
                Chem.SanitizeMol(molecule)
                molecule = Chem.RemoveHs(molecule)
                Chem.AssignStereochemistry(molecule, cleanIt=True, force=True)  # whatever was computed of it before
                _name_centres(molecule)
            except (RuntimeError, TypeError, ValueError) as error:
                raise DataError(f"RDKit refuses the molecule ({_one_line(str(error))})") from None
            rule(molecule.GetNumAtoms(), "a molecule without atoms")
        if config.salts == "largest" and len(parts := Chem.GetMolFrags(molecule, asMols=True)) > 1:
            # of equals the one that does not depend on their order
            molecule, smiles = max(parts, key=lambda part: (part.GetNumHeavyAtoms(), Chem.MolToSmiles(part))), ""
        smiles = smiles or Chem.MolToSmiles(molecule, canonical=False)  # atoms in their own order, as far as it can be
        return Chem.AddHs(molecule) if config.hydrogens else molecule, smiles


def _parsed(parse: Callable[[bool], Any], text: str | None = None) -> Any:
    """What RDKit parses of a SMILES, or of a record of an SDF, without a word on the terminal, or a :class:`DataError`
    with its reason."""
    from rdkit import rdBase

    with rdBase.BlockLogs():
        try:
            molecule = parse(True)
        except (RuntimeError, ValueError) as error:  # RDKit's own broken invariants
            raise DataError(f"{_shown(text)} does not parse ({_one_line(str(error))})") from None
        if molecule is None:
            why = _reason(parse) or f"this is not {'a record of an SDF' if text is None else 'SMILES'}"
            raise DataError(f"{_shown(text)} does not parse ({why})")
        if not molecule.GetNumAtoms():
            raise DataError(f"{_shown(text)} has no atoms")
        if text is None or "@" in text:
            _name_centres(molecule)
        return molecule


def _shown(text: str | None) -> str:
    return "the molecule" if text is None else f"SMILES {short(text)}"


def _name_centres(molecule: Any) -> None:
    """Name the stereo centres that RDKit's quick rules pass over, as they do where branches differ in stereo alone: r,
    s, R or S, which tell cis from trans on a ring. One that the whole rules do not name either, or not in time, loses
    its mark, so that no picture shows what the network does not see."""
    from rdkit.Chem import ChiralType, Mol
    from rdkit.Chem.rdCIPLabeler import AssignCIPLabels

    if not (centres := list(molecule.GetAtomsMatchingQuery(_nameless_centre()))):
        return
    named = Mol(molecule)  # the whole rules also rename the sides of double bonds
    try:
        AssignCIPLabels(named, [atom.GetIdx() for atom in centres], [], maxRecursiveIterations=MOST_COMPARED)
    except RuntimeError:
        named = molecule
    for atom in centres:
        code = named.GetAtomWithIdx(atom.GetIdx()).GetPropsAsDict(True, True).get("_CIPCode")
        if code is None:
            atom.SetChiralTag(ChiralType.CHI_UNSPECIFIED)
        else:
            atom.SetProp("_CIPCode", code)


@cache
def _nameless_centre() -> Any:
    from rdkit.Chem.rdqueries import HasChiralTagQueryAtom, HasPropQueryAtom

    query = HasChiralTagQueryAtom()
    query.ExpandQuery(HasPropQueryAtom("_CIPCode", negate=True))
    return query


def _reason(parse: Callable[[bool], Any]) -> str:
    """Why RDKit refuses it: the first line of its own log, or of its list of problems; '' where there is none."""
    from rdkit import Chem, rdBase

    if not hasattr(rdBase, "CaptureErrorLog"):  # an older RDKit, whose log goes to the terminal or nowhere
        problems = [] if (found := parse(False)) is None else Chem.DetectChemistryProblems(found)
        return _one_line(problems[0].Message()) if problems else ""
    with rdBase.CaptureErrorLog() as capture:
        parse(True)
    try:
        said = re.sub(r"\s*\*{4}\n(.*)\n", r" \1: ", capture.messages)  # a broken invariant of RDKit, in its own frame
    except UnicodeDecodeError:  # RDKit quotes memory that holds no text
        return ""
    lines = [re.sub(r"^\[[\d:]+\] ((SMILES Parse Error|ERROR): )?", "", line) for line in said.splitlines()]
    reason = _one_line(re.sub(r" (while parsing: .*|for input: .*)$", "", lines[0])) if lines else ""
    position = re.search(r"around position (\d+)", " ".join(lines[1:2]))
    return reason + (f" at position {position[1]}" if position else "")


def _one_line(text: str) -> str:
    return one_line(" ".join(text.split()), 300).rstrip(".") or "RDKit does not say why"
