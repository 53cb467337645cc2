"""AlcoholsConfig, or its text form -> Graphs: alkanes and alcohols, split into training, validation and test."""

from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from egocnn.data.generated.molecules import VALENCE, Bonds, Molecule, build_tree, canonical_text, to_graphs
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS, rule
from egocnn.errors import ConfigError, DataError

LIMITS = (1, 500)  # carbons
IN_THE_LAB = ("isomers", "methylalkanes")  # families of the paper's experiments
SMALL = 0.35  # the share of the sizes, from the smallest up, that training sizes are among
PER_TEST_SIZE = 2  # molecules of either class, of a size that is held out
PATIENCE = 1000  # known skeletons met in a row before a size is held to have no others
TRAIN, VALIDATION, TEST = range(len(PARTS))
Pairs: TypeAlias = list[tuple[Molecule, Molecule]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlcoholsConfig:
    """Which alkanes and alcohols to generate."""

    sizes: tuple[int, int] = (3, 82)  # carbons, fewest and most
    per_size: int = 16  # distinct molecules per class and trained size at most; small sizes have fewer
    seed: int = 0  # every random choice follows from it

    def __post_init__(self) -> None:
        for name, most in (("per_size", 10_000), ("seed", 2**63 - 1)):
            least, number = int(name == "per_size"), getattr(self, name)
            if not least <= number <= most:
                raise ConfigError(f"{name} must lie between {least} and {most}, got {number}")
        (first, last), (least, most) = self.sizes, LIMITS
        if not least <= first <= last <= most:
            raise ConfigError(f"sizes (carbons) must lie between {least} and {most}, got {first}-{last}")
        if first == last:
            raise ConfigError(f"sizes {first}-{last} leave none to hold out; give more")


def parse_config(source: str) -> AlcoholsConfig:
    """Read ``compounds:alcohols`` or ``compounds:alcohols:option=value,option=value``."""
    _, _, rest = source.partition(":")
    family, colon, options = rest.partition(":")
    elsewhere = f"{source}: {family} belong to the paper's experiments and live in the lab: lab.families, in a clone"
    rule(family not in IN_THE_LAB, elsewhere)
    rule(family == "alcohols", f"{source}: no family is called {family!r}; there are alcohols")
    try:
        return AlcoholsConfig(**parse_options(source, options if colon else None))
    except ConfigError as error:
        raise DataError(f"{source}: {error}") from None


def parse_options(source: str, options: str | None) -> dict[str, Any]:
    """``sizes=3-8,seed=1`` -> the fields of the settings that it names; errors begin with ``source``."""
    given: dict[str, Any] = {}
    known = [field.name for field in fields(AlcoholsConfig)]
    for option in [] if options is None else options.split(","):
        name, equals, text = (piece.strip() for piece in option.partition("="))
        name = name.replace("-", "_")
        wanted = f"write NAME=VALUE, with NAME one of {', '.join(known)}"
        rule(equals and name in known, f"{source}: {option!r} is no option; {wanted}")
        rule(name not in given, f"{source}: {name} is given twice")
        numbers = text.split("-") if name == "sizes" else [text]
        are_whole = all(n.isascii() and n.isdecimal() and len(n) < 20 for n in numbers)
        wanted = "two whole numbers such as 3-8" if name == "sizes" else "a whole number"
        rule(len(numbers) <= 2 and are_whole, f"{source}: {name} must be {wanted}, got {text!r}")
        given[name] = (int(numbers[0]), int(numbers[-1])) if name == "sizes" else int(text)
    return given


def read_compounds(source: str) -> Graphs:
    """Generate from text: ``compounds:alcohols``, ``compounds:alcohols:sizes=3-8,per_size=4,seed=1``."""
    return generate(parse_config(source))


def generate(config: AlcoholsConfig) -> Graphs:
    """Alkanes and alcohols in turn, ascending in size, with class, critical structure and part. The test part has every
    fourth size of the training range and all beyond it; of ten molecules of a class in training sizes one validates."""
    first, last = config.sizes
    n_sizes = last + 1 - first
    n_small = min(max(round(SMALL * n_sizes), 1), n_sizes - 1)
    molecules: list[Molecule] = []
    parts: list[int] = []
    counted = 0  # molecules of either class so far, in sizes that are trained on
    for number, size in enumerate(range(first, last + 1)):
        is_trained = number < n_small and number % 4 != 3
        count = config.per_size if is_trained else PER_TEST_SIZE
        pairs = alkanes_and_alcohols(size, count, np.random.default_rng([config.seed, size]))
        own = np.full(len(pairs), TEST)
        if is_trained:
            position = counted + np.random.default_rng([config.seed, size, 1]).permutation(len(pairs))
            own = np.where(position % 10 == 4, VALIDATION, TRAIN)
            counted += len(pairs)
        molecules += [molecule for pair in pairs for molecule in pair]
        parts += np.repeat(own, 2).tolist()  # an alcohol and the alkane of its skeleton share a part
    return to_graphs(molecules, parts, ("alkane", "alcohol"), hydrogens=True, seed=config.seed)


def alkanes_and_alcohols(n_carbons: int, count: int, random: np.random.Generator) -> Pairs:
    """One alkane and one alcohol on each of ``count`` skeletons or all there are; first the chain, OH at its end."""
    pairs: Pairs = []
    carbons, formula = "C" * n_carbons, f"C{n_carbons}" if n_carbons > 1 else "C"
    for number, bonds in enumerate(_skeletons(n_carbons, count, random), start=1):
        tree = build_tree(n_carbons, bonds)
        free = [carbon for carbon, neighbours in enumerate(tree) if len(neighbours) < VALENCE["C"]]
        holders = [n_carbons - 1] if number == 1 else free
        holder = holders[random.integers(len(holders))]
        name = f"{formula}H{2 * n_carbons + 2} #{number}"
        alkane = Molecule(name=name, kind="alkane", elements=carbons, bonds=bonds, critical=())
        name = f"{formula}H{2 * n_carbons + 1}OH #{number}"
        bonds = (*bonds, (holder, n_carbons))
        alcohol = Molecule(name=name, kind="alcohol", elements=carbons + "O", bonds=bonds, critical=(n_carbons,))
        pairs.append((alkane, alcohol))
    return pairs


def _skeletons(n_carbons: int, count: int, random: np.random.Generator) -> list[Bonds]:
    """The straight chain, then random branched ones, no two isomorphic."""
    chain: Bonds = tuple((carbon - 1, carbon) for carbon in range(1, n_carbons))
    found, known_in_a_row = {canonical_text("C" * n_carbons, build_tree(n_carbons, chain)): chain}, 0
    while len(found) < count and n_carbons > 3 and known_in_a_row < PATIENCE:
        skeleton = _grow(n_carbons, random)
        key = canonical_text("C" * n_carbons, build_tree(n_carbons, skeleton))
        known_in_a_row = 0 if found.setdefault(key, skeleton) is skeleton else known_in_a_row + 1
    return list(found.values())


def _grow(n_carbons: int, random: np.random.Generator) -> Bonds:
    """Add carbon after carbon: mostly to the last one for a long molecule, mostly anywhere for a bushy one."""
    bushiness, *draws = random.random(2 * n_carbons + 1).tolist()
    bonds: list[tuple[int, int]] = []
    free, degree = [0], [0] * n_carbons
    for carbon in range(1, n_carbons):
        anywhere, where = draws[2 * carbon : 2 * carbon + 2]
        holder = free[int(where * len(free))] if anywhere < bushiness else carbon - 1
        bonds.append((holder, carbon))
        degree[holder] += 1
        degree[carbon] = 1
        if degree[holder] == VALENCE["C"]:
            free.remove(holder)
        free.append(carbon)
    return tuple(bonds)
