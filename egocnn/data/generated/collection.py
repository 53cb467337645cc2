"""Generate a family and deal its molecules out to training, validation and test: CompoundsConfig -> Graphs."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from egocnn.data.arrays import Ints
from egocnn.data.generated.alcohols import alkanes_and_alcohols
from egocnn.data.generated.config import CompoundsConfig, Family, FamilyName, parse_config
from egocnn.data.generated.isomers import isomers, methylalkanes
from egocnn.data.generated.molecules import Molecule, assemble
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS

TRAIN, VALIDATION, TEST = range(len(PARTS))
DEAL = np.array([TRAIN, TRAIN, TEST, TRAIN, VALIDATION, TRAIN, TRAIN, TEST, TRAIN, TRAIN])
"""Parts of ten molecules of one class in a row, where molecules are held out."""
DEAL_WITHOUT_TEST = np.where(DEAL == TEST, TRAIN, DEAL)


def read_compounds(source: str) -> Graphs:
    """Generate from text: ``compounds:alcohols``, ``compounds:isomers:sizes=3-8,hydrogens=yes,copies=5,seed=1``."""
    return generate(parse_config(source))


def generate(config: CompoundsConfig) -> Graphs:
    """The compounds of a family, ascending in size and the classes in turn, with class, critical structure and part.

    Where sizes are held out, the test part has every fourth size of the training range and all beyond it.
    """
    settings = config.settings
    training = _training_sizes(settings)
    molecules: list[Molecule] = []
    parts: list[int] = []
    dealt = [0, 0]  # molecules of either class so far
    for size in settings.size_list:
        count = settings.per_size if size in training else settings.per_test_size
        kinds = _molecules(config.family, size, count, np.random.default_rng([config.seed, size]))
        dealt_parts = []
        for which, kind in enumerate(kinds):
            # the same shuffle for both classes: an alcohol and the alkane of its skeleton share a part
            turn = dealt[which] + np.random.default_rng([config.seed, size, 1]).permutation(len(kind))
            dealt_parts.append(_parts(settings, turn) if size in training else np.full(len(kind), TEST))
            dealt[which] += len(kind) if size in training else 0
        for molecule, part in _in_turn(kinds, dealt_parts):
            molecules.append(molecule)
            parts.append(part)
    return assemble(
        molecules,
        class_names=settings.class_names,
        part=np.array(parts),
        hydrogens=settings.hydrogens,
        copies=config.copies,
        seed=config.seed,
    )


def _molecules(
    family: FamilyName, size: int, count: int, random: np.random.Generator
) -> tuple[list[Molecule], list[Molecule]]:
    match family:
        case "alcohols":
            return alkanes_and_alcohols(size, count, random)
        case "isomers":
            return isomers(size, count, random)
        case "methylalkanes":
            return methylalkanes(size, count, random)


def _training_sizes(settings: Family) -> set[int]:
    sizes = settings.size_list
    if settings.hold_out == "molecules":
        return set(sizes)
    n_small = min(max(round(settings.training_share * len(sizes)), 1), len(sizes) - 1)
    return {size for i, size in enumerate(sizes[:n_small]) if i % 4 != 3}


def _parts(settings: Family, turn: Ints) -> Ints:
    deal = DEAL if settings.hold_out == "molecules" else DEAL_WITHOUT_TEST
    return deal[turn % len(deal)]


def _in_turn(kinds: tuple[list[Molecule], list[Molecule]], parts: list[Ints]) -> list[tuple[Molecule, int]]:
    """One molecule of the first class, one of the second, and so on, each with its part."""
    first, second = (list(zip(kind, part.tolist(), strict=True)) for kind, part in zip(kinds, parts, strict=True))
    return [one for pair in zip_longest(first, second) for one in pair if one is not None]
