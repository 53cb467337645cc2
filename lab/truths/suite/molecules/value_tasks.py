"""Values that are sums over atoms: what each heavy atom adds, its hydrogens counted in, is known exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from egocnn.data.arrays import Floats
from lab.truths.suite.molecules.examples import molecule_example
from lab.truths.suite.molecules.pool import PooledMolecule, pooled_molecules
from lab.truths.suite.task import Example, Sizes, SuiteTask, assign_parts

DIGITS = 4


def crippen(pooled: PooledMolecule) -> Floats:
    """(N) contributions to log P by Wildman and Crippen (1999); a hydrogen's goes to the atom that it sits on"""
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    whole = Chem.AddHs(pooled.molecule)
    return _onto_heavy_atoms(whole, [log_p for log_p, _ in rdMolDescriptors._CalcCrippenContribs(whole)])


def refractivity(pooled: PooledMolecule) -> Floats:
    """(N) contributions to the molar refractivity, by the same authors"""
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    whole = Chem.AddHs(pooled.molecule)
    return _onto_heavy_atoms(whole, [mr for _, mr in rdMolDescriptors._CalcCrippenContribs(whole)])


def polar_surface(pooled: PooledMolecule) -> Floats:
    """(N) contributions to the topological polar surface (Ertl et al., 2000), in tens of square ångström"""
    from rdkit.Chem import rdMolDescriptors

    return np.array(rdMolDescriptors._CalcTPSAContribs(pooled.molecule)) / 10


def _onto_heavy_atoms(whole: object, contributions: list[float]) -> Floats:
    atoms = list(whole.GetAtoms())  # type: ignore[attr-defined]
    heavy = [atom.GetIdx() for atom in atoms if atom.GetAtomicNum() > 1]
    found = np.zeros(len(atoms))
    for atom in atoms:
        is_hydrogen = atom.GetAtomicNum() == 1
        place = atom.GetNeighbors()[0].GetIdx() if is_hydrogen and atom.GetDegree() else atom.GetIdx()
        found[place] += contributions[atom.GetIdx()]
    return found[heavy]


def weighted_groups(weights: Mapping[str, float]) -> Callable[[PooledMolecule], Floats]:
    """The number of matches of every group times its weight; the atoms of a match share its weight evenly."""

    def contributions(pooled: PooledMolecule) -> Floats:
        found = np.zeros(pooled.molecule.GetNumAtoms())
        for group, weight in weights.items():
            for match in pooled.matches(group):
                found[list(match)] += weight / len(match)
        return found

    return contributions


def make_values(
    contributions: Callable[[PooledMolecule], Floats],
) -> Callable[[Sizes, np.random.Generator, Path], list[Example]]:
    """Molecules drawn at random among those to which not every atom adds the same."""

    def make(sizes: Sizes, random: np.random.Generator, folder: Path) -> list[Example]:
        molecules = pooled_molecules(folder)
        examples: list[Example] = []
        for number in random.permutation(len(molecules)):
            values = np.round(contributions(molecules[number]), DIGITS)
            if np.ptp(values) > 0:
                total = round(float(values.sum()), DIGITS)
                examples.append(molecule_example(molecules[number], total, values=tuple(values.tolist())))
            if len(examples) == sizes.same_size:
                break
        return assign_parts(examples, sizes, random)

    return make


def _task(name: str, what: str, contributions: Callable[[PooledMolecule], Floats]) -> SuiteTask:
    return SuiteTask(name=name, family="values", what=what, make=make_values(contributions), positive=None)


POLAR = {"amide": 2.0, "alcohol": 1.0, "halogen": -1.0, "tertiary amine": -1.5}
RINGS = {"benzene": -2.0, "aromatic five-ring": 1.5, "saturated six-ring": 1.0, "carbonyl": -1.0}
RARE = {"nitrile": 2.0, "ester": -2.0, "sulfonamide": 3.0, "aryl ether": -1.0, "chlorine": 1.0}

VALUE_TASKS = (
    _task("log-p", "Crippen's log P", crippen),
    _task("refractivity", "Crippen's molar refractivity", refractivity),
    _task("polar-surface", "topological polar surface", polar_surface),
    _task("polar-groups", "amides 2, alcohols 1, halogens -1, tertiary amines -1.5", weighted_groups(POLAR)),
    _task(
        "ring-groups",
        "benzenes -2, aromatic five-rings 1.5, saturated six-rings 1, carbonyls -1",
        weighted_groups(RINGS),
    ),
    _task("rare-groups", "nitriles 2, esters -2, sulfonamides 3, aryl ethers -1, chlorines 1", weighted_groups(RARE)),
)
