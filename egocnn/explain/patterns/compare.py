"""Molecules -> the pairs of them that differ by one group, and what any two have in common; two explained molecules ->
what changed between them, and what that did; many pairs -> what they say together."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations, groupby, islice
from operator import attrgetter
from typing import Any

import numpy as np

from egocnn.data.arrays import Floats, Ints
from egocnn.data.graphs import Graph, Graphs
from egocnn.data.molecules import to_molecule
from egocnn.data.schema import SEPARATOR, rule
from egocnn.data.sources.text import optional
from egocnn.explain.structure import CriticalStructure
from egocnn.explain.structure.wording import called

CLIFF = 2.0  # A cliff of values: a true change of at least so many standard deviations of all true changes.
COLUMNS: dict[str, str] = {
    **dict.fromkeys(("transformation", "name_a", "smiles_a", "name_b", "smiles_b"), "string"),
    **dict.fromkeys(("predicted_a", "predicted_b", "predicted_change"), "double"),
    **{"true_a": "string", "true_b": "string", "true_change": "double"},
    **dict.fromkeys(("contribution_a", "contribution_b", "contribution_change", "rank_a", "rank_b"), "double"),
}
"""The columns of a table of pairs, and what they hold."""
LARGEST_GROUP = 13  # Heavy atoms of a group that may be exchanged for another.
MOST_CUTS = 100  # Bonds of a molecule that are cut in turn; molecules with more, polymers say, are left out.
MOST_PAIRS = 1000  # Of one constant part: phenyl alone would give as many as all others.
SECONDS = 5  # To look for the largest part that two molecules share.
END = "[*:1]"  # Where group and constant part were joined.
HYDROGEN, NOTHING = f"[H]{END}", "[H]*"

Groups = dict[str, tuple[int, Ints]]  # group -> number of the molecule, and its atoms that are the constant part
Constants = dict[str, Groups]


@dataclass(frozen=True, slots=True, eq=False)
class MatchedPair:
    """Two molecules and which of their atoms are the same; all others are what changed."""

    first: int  #: number of the molecule
    second: int  #: number of the other
    transformation: str  #: the group of the first >> that of the second, as SMILES
    common: Ints  #: (n, 2) heavy atoms of the first and the same ones of the second
    is_cut_short: bool = False  #: whether the search for what is common was given up, so that there may be more of it


def find_pairs(
    graphs: Graphs, *, say: Callable[[str], None] = lambda _: None, report: Callable[[int], None] | None = None
) -> list[MatchedPair]:
    """All pairs of molecules that one cut at a single bond outside of rings makes equal but for a group. The constant
    part is at least half of either molecule, a group has at most 13 heavy atoms or is a hydrogen. Of a pair that can be
    cut in several ways the smallest groups count, and of copies of a molecule the first. Hydrogen comes before
    any group, short SMILES before long ones: a transformation has one direction. ``say`` hears what was left out."""
    constants: Constants = defaultdict(dict)
    whole: Groups = {}  # molecules by their own SMILES, for hydrogen in place of a group
    best: dict[frozenset[int], MatchedPair] = {}
    left_out = capped = 0
    for number, graph in enumerate(graphs):
        molecule, nodes = _heavy_atoms(graph)
        smiles, order = _canonical(molecule)
        whole.setdefault(smiles, (number, nodes[order]))
        cuts = [] if "." in smiles else list(_cuts(molecule))
        for constant, group, atoms in cuts:
            constants[constant].setdefault(group, (number, nodes[atoms]))
        left_out += not cuts and ("." in smiles or molecule.GetNumBonds() > MOST_CUTS)
        if report is not None:
            report(number + 1)
    _add_hydrogens(constants, whole)
    for groups in constants.values():
        capped += len(groups) * (len(groups) - 1) // 2 > MOST_PAIRS
        for two in islice(combinations(groups, 2), MOST_PAIRS):
            one, other = sorted(two, key=lambda group: (group != HYDROGEN, len(group), group))
            (first, own), (second, others) = groups[one], groups[other]
            key = frozenset((first, second))
            if len(key) == 2 and (key not in best or len(best[key].common) < len(own)):
                best[key] = MatchedPair(first, second, f"{one}>>{other}", np.stack([own, others], axis=1))
    if left_out:
        say(f"{left_out} molecules are of several pieces or have more than {MOST_CUTS} bonds to cut: not in pairs")
    if capped:
        say(f"{capped} constant parts have more than {MOST_PAIRS:,} pairs; of each the first {MOST_PAIRS:,} count")
    return sorted(best.values(), key=lambda pair: (pair.first, pair.second))


def _cuts(molecule: Any) -> Iterator[tuple[str, str, list[int]]]:
    """Constant part, group, and the atoms of the constant part in canonical order, for every bond that may be cut."""
    from rdkit import Chem
    from rdkit.Chem import rdMMPA

    size = molecule.GetNumAtoms()
    for _, cut in rdMMPA.FragmentMol(molecule, maxCuts=1, maxCutBonds=MOST_CUTS, resultsAsMols=True):
        origin: Any = []
        sides: Any = Chem.GetMolFrags(cut, asMols=True, sanitizeFrags=False, fragsMolAtomMapping=origin)
        for constant, group in ((0, 1), (1, 0)) if len(sides) == 2 else ():
            n_group = len(origin[group]) - 1  # one of its atoms is the end
            if n_group <= LARGEST_GROUP and 2 * n_group <= size:
                smiles, order = _canonical(sides[constant])
                # atoms keep their numbers when they are cut apart, ends come after them
                atoms = [origin[constant][atom] for atom in order if origin[constant][atom] < size]
                yield smiles, _canonical(sides[group])[0], atoms


def _add_hydrogens(constants: Constants, whole: Groups) -> None:
    """Where a constant part with a hydrogen at its end is a molecule of the data, that is one more group."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        for constant, groups in constants.items():
            molecule = Chem.MolFromSmiles(constant.replace(END, "[H]"))
            if molecule is None:
                continue
            smiles, order = _canonical(molecule)
            if smiles in whole:
                number, atoms = whole[smiles]
                # both in canonical order -> in that in which the constant part is written
                groups.setdefault(HYDROGEN, (number, atoms[np.argsort(order)]))


def common_part(first: Graph, second: Graph) -> MatchedPair:
    """What two molecules share: their largest common connected part, rings whole; searched for five seconds at most."""
    molecules, nodes = zip(*map(_heavy_atoms, (first, second)), strict=True)
    from rdkit.Chem import rdFMCS

    rings: dict[str, Any] = {"ringMatchesRingOnly": True, "completeRingsOnly": True}
    found = rdFMCS.FindMCS(list(molecules), timeout=SECONDS, **rings)
    both = [list(each.GetSubstructMatch(found.queryMol)) if found.numAtoms else [] for each in molecules]
    texts = [_groups(molecule, set(atoms)) for molecule, atoms in zip(molecules, both, strict=True)]
    common = [own[np.array(atoms, np.int64)] for own, atoms in zip(nodes, both, strict=True)]
    text = "" if set(texts) == {NOTHING} else ">>".join(texts)
    return MatchedPair(0, 1, text, np.stack(common, axis=1), bool(found.canceled))


def _groups(molecule: Any, common: set[int]) -> str:
    """What is not common, as SMILES of its pieces with * where they hang; a hydrogen where that is nothing."""
    from rdkit import Chem

    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    cut = [number for number, (u, v) in enumerate(ends) if (u in common) != (v in common)]
    apart = Chem.FragmentOnBonds(molecule, cut, dummyLabels=[(0, 0)] * len(cut)) if cut else molecule
    origin: Any = []
    pieces: Any = Chem.GetMolFrags(apart, asMols=True, sanitizeFrags=False, fragsMolAtomMapping=origin)
    changed = [piece for piece, atoms in zip(pieces, origin, strict=True) if not common.intersection(atoms)]
    return ".".join(sorted(Chem.MolToSmiles(piece) for piece in changed)) or NOTHING


def changed_atoms(graph: Graph, common: Ints) -> Ints:
    """The nodes that are not common; a hydrogen goes with the atom that it hangs on."""
    same = np.zeros(graph.n_nodes, bool)
    same[common] = True
    is_hydrogen = np.array([label.partition(SEPARATOR)[0] == "H" for label in graph.node_label or ()], bool)
    for u, v in graph.edges[is_hydrogen[graph.edges].any(axis=1)].tolist() if is_hydrogen.any() else ():
        same[u if is_hydrogen[u] else v] = same[v if is_hydrogen[u] else u]
    return np.flatnonzero(~same)


def _heavy_atoms(graph: Graph) -> tuple[Any, Ints]:
    """The molecule without hydrogens, and the nodes that its atoms are."""
    chem, base = optional("rdkit.Chem", "molecules"), optional("rdkit.rdBase", "molecules")
    molecule: Any = None if graph.smiles is None else to_molecule(graph)
    rule(molecule is not None, f"graph {graph.name}: is no molecule with a SMILES; only molecules are compared")
    for atom in molecule.GetAtoms():
        atom.SetIntProp("node", atom.GetIdx())
    with base.BlockLogs():
        molecule = chem.RemoveHs(molecule)
    return molecule, np.array([atom.GetIntProp("node") for atom in molecule.GetAtoms()], np.int64)


def _canonical(molecule: Any) -> tuple[str, list[int]]:
    """SMILES, and the atoms in the order in which it names them."""
    from rdkit import Chem

    return Chem.MolToSmiles(molecule), list(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What changed from one molecule to another, and what that did to the prediction.

    ``print(comparison)`` says it in words, a notebook shows both molecules with what changed outlined.

    Example:
        >>> import egocnn
        >>> smiles = ["CC", "CCC", "CCCC", "CCO", "CCCO", "CCCCO"]
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2)
        >>> model = model.fit(smiles, [False] * 3 + [True] * 3)
        >>> found = model.compare("CCCCC", "CCCCCO")
        >>> found.transformation, found.changed[1].tolist()
        ('[H]*>>*O', [5])"""

    first: CriticalStructure  #: the one molecule, explained
    second: CriticalStructure  #: the other, explained for the same class
    pair: MatchedPair  #: which atoms are the same
    changed: tuple[Ints, ...]  #: the atoms of either that are not in the other
    predicted: tuple[float, ...]  #: the probabilities of the explained class, or the values
    true_change: float | None  #: of a class 1 where it became the explained one, -1 where it ceased to be it
    contributions: tuple[float, ...]  #: the sums over the atoms that changed, in log-odds or in the unit of the value
    ranks: tuple[float | None, ...]
    """How high the changed atoms rank by the size of their contribution, as ROC AUC: the share of the other atoms that
    one of them exceeds, 0.5 by chance; None where no atom changed, or every one."""

    @property
    def transformation(self) -> str:
        """the groups of the first that are not in the second >> those of the second; empty where none is"""
        return self.pair.transformation

    @property
    def predicted_change(self) -> float:
        """from the first to the second"""
        return self.predicted[1] - self.predicted[0]

    @property
    def outlined(self) -> Iterator[CriticalStructure]:
        """both with what changed in place of their critical structure, as pictures show them"""
        for one, nodes in zip((self.first, self.second), self.changed, strict=True):
            inside = np.isin(one.graph.edges, nodes).all(axis=1)
            yield replace(one, critical_nodes=nodes, critical_edges=np.flatnonzero(inside))

    def to_plain(self) -> dict[str, Any]:
        """A row of a table of pairs.

        Returns:
            Texts and numbers by the names of the columns."""
        both = self.first, self.second
        sides: dict[str, Sequence[Any]] = {
            "name": [one.name for one in both],
            "smiles": [one.graph.smiles for one in both],
            "true": [None if _true(one) is None else str(one.graph.target) for one in both],
            **{"predicted": self.predicted, "contribution": self.contributions, "rank": self.ranks},
        }
        row = {f"{name}_{side}": values[place] for name, values in sides.items() for place, side in enumerate("ab")}
        row |= {"contribution_change": row["contribution_b"] - row["contribution_a"], "true_change": self.true_change}
        row |= {"transformation": self.transformation, "predicted_change": self.predicted_change}
        return {name: row[name] for name in COLUMNS}

    def __str__(self) -> str:
        explained, (one, other), (before, after) = self.first.explained, self.predicted, self.contributions
        what, unit = ("", "") if explained is None else (f"probability of {called(explained)} ", " log-odds")
        lines = [
            f"{self.first.name} to {self.second.name}: {self.transformation or 'the same atoms and bonds'}",
            f"predicted: {what}{one:.3g} to {other:.3g} ({other - one:+.3g})",
        ]
        if self.true_change is not None:
            lines.append(f"true: {self.first.graph.target} to {self.second.graph.target}")
        lines.append(f"the atoms that changed contribute {before:+.3g} and {after:+.3g}{unit} ({after - before:+.3g})")
        if ranks := [f"{rank:.0%}" for rank in self.ranks if rank is not None]:
            lines.append(f"they exceed {' and '.join(ranks)} of the other atoms (50% by chance)")
        if self.pair.is_cut_short:
            lines.append("the search for what is common was given up; more may be the same")
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        pictures = "".join(one.draw(size=(400, 300)) for one in self.outlined)
        text = escape(str(self)).replace("\n", "<br/>")
        return f'<figure style="margin: 1em 0">{pictures}<figcaption>{text}</figcaption></figure>'


def compare(first: CriticalStructure, second: CriticalStructure, pair: MatchedPair | None = None) -> Comparison:
    """Two molecules that are such a pair; any two by the largest part that they share."""
    pair, both = pair or common_part(first.graph, second.graph), (first, second)
    changed = tuple(changed_atoms(one.graph, common) for one, common in zip(both, pair.common.T, strict=True))
    before, after = map(_true, both)
    return Comparison(
        first=first,
        second=second,
        pair=pair,
        changed=changed,
        predicted=tuple(one.output if one.explained is None else float(1 / (1 + np.exp(-one.output))) for one in both),
        true_change=None if before is None or after is None else after - before,
        contributions=tuple(float(one.contributions[nodes].sum()) for one, nodes in zip(both, changed, strict=True)),
        ranks=tuple(map(_rank, both, changed)),
    )


def summary_of(found: Sequence[Comparison]) -> dict[str, Any]:
    """What all pairs say together: how predicted and true changes agree, and where the changed atoms rank. Cliffs are
    the pairs whose class differs, or whose true change is at least ``CLIFF`` standard deviations of all true changes"""
    known, true = _with_truth(found)
    predicted, steep = np.array([one.predicted_change for one in known]), cliffs(found)
    summary: dict[str, Any] = {"pairs": len(found), "transformations": len({one.transformation for one in found})}
    varies = len(known) > 1 and predicted.std() > 0 and true.std() > 0
    correlation = float(np.corrcoef(predicted, true)[0, 1]) if varies else None
    summary |= {"pairs_with_truth": len(known), "correlation": correlation}
    if known and found[0].first.explained is None:
        summary["cliff_from"] = CLIFF * float(true.std())
    ranks = (_mean(rank for one in some for rank in one.ranks) for some in (steep, found))
    return summary | {"cliffs": len(steep), **dict(zip(("rank_in_cliffs", "rank_in_all"), ranks, strict=True))}


def cliffs(found: Sequence[Comparison]) -> list[Comparison]:
    """The pairs with a large true change."""
    known, true = _with_truth(found)
    if known and known[0].first.explained is not None:
        return [one for one in known if one.first.graph.target != one.second.graph.target]
    least = CLIFF * float(true.std()) if known else 0.0
    return [one for one, change in zip(known, true.tolist(), strict=True) if abs(change) >= least > 0]


def transformations_of(found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """A row for every transformation, the most frequent first: how often, and mean and deviation of the changes."""
    rows, transformation = [], attrgetter("transformation")
    for name, group in groupby(sorted(found, key=transformation), key=transformation):
        some = list(group)
        true = _with_truth(some)[1].tolist()
        row: dict[str, Any] = {"transformation": name, "pairs": len(some), "pairs_with_truth": len(true)}
        for what, changes in (("predicted", [one.predicted_change for one in some]), ("true", true)):
            row[f"mean_{what}_change"] = _mean(changes)
            row[f"deviation_{what}_change"] = float(np.std(changes, ddof=1)) if len(changes) > 1 else None
        rows.append(row)
    return sorted(rows, key=lambda row: -row["pairs"])


def _with_truth(found: Sequence[Comparison]) -> tuple[list[Comparison], Floats]:
    """Those whose true change is known, and these changes"""
    known = [(one, change) for one in found if (change := one.true_change) is not None]
    return [one for one, _ in known], np.array([change for _, change in known], np.float64)


def _true(one: CriticalStructure) -> float | None:
    target = one.graph.target
    if target is None or (isinstance(target, float) and math.isnan(target)):
        return None
    return float(target) if one.explained is None else float(target == one.explained)


def _rank(structure: CriticalStructure, changed: Ints) -> float | None:
    size = np.abs(structure.contributions)
    one, other = size[changed, None], np.delete(size, changed)
    return float(((one > other) + 0.5 * (one == other)).mean()) if len(one) and len(other) else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
