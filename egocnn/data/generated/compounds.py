"""CompoundsConfig, or its text form -> Graphs: a family of molecules, split into training, validation and test."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import Any, Literal, get_args

import numpy as np

from egocnn.data.arrays import Bools, Ints, pointers
from egocnn.data.generated.families import VALENCE, Molecule, alkanes_and_alcohols, isomers, methylalkanes
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS, rule
from egocnn.errors import ConfigError, DataError

FamilyName = Literal["alcohols", "isomers", "methylalkanes"]
HoldOut = Literal["sizes", "molecules"]
ELEMENTS = ("C", "H", "O")
MAKERS = {"alcohols": alkanes_and_alcohols, "isomers": isomers, "methylalkanes": methylalkanes}
TRAIN, VALIDATION, TEST = range(len(PARTS))
PARTS_OF_TEN = np.array([TRAIN, TRAIN, TEST, TRAIN, VALIDATION, TRAIN, TRAIN, TEST, TRAIN, TRAIN])
"""Parts of ten consecutive molecules of one class, where molecules are held out."""


@dataclass(frozen=True, slots=True)
class Family:
    """A family with its range and its own choice for every setting."""

    class_names: tuple[str, str]
    size: str  # what its sizes count
    limits: tuple[int, int]
    step: int
    training_share: float  # of the sizes, from the smallest up: among them is training where sizes are held out
    sizes: tuple[int, int]
    hydrogens: bool
    per_size: int
    per_test_size: int
    hold_out: HoldOut

    @property
    def size_list(self) -> list[int]:
        """All sizes of the family's range, ascending."""
        first, last = self.sizes
        return list(range(first + (self.limits[0] - first) % self.step, last + 1, self.step))

    @property
    def training_sizes(self) -> set[int]:
        """Those in the training part: where sizes are held out, three of four of the smaller ones."""
        sizes = self.size_list
        if self.hold_out == "molecules":
            return set(sizes)
        n_small = min(max(round(self.training_share * len(sizes)), 1), len(sizes) - 1)
        return {size for i, size in enumerate(sizes[:n_small]) if i % 4 != 3}


SYMMETRY, CHAIN = ("symmetric", "asymmetric"), "carbons of the chain, an odd number"
FAMILIES: dict[FamilyName, Family] = {
    "alcohols": Family(("alkane", "alcohol"), "carbons", (1, 500), 1, 0.35, (3, 82), True, 16, 2, "sizes"),
    "isomers": Family(SYMMETRY, "carbons of an arm", (3, 50), 1, 0.8, (3, 8), False, 2048, 2048, "molecules"),
    "methylalkanes": Family(SYMMETRY, CHAIN, (5, 501), 2, 0.8, (5, 61), False, 1, 1, "sizes"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompoundsConfig:
    """Which compounds to generate; None stands for the family's own choice."""

    family: FamilyName  # alkanes and alcohols, symmetric and asymmetric isomers, or chains with a single methyl
    sizes: tuple[int, int] | None = None  # smallest and largest, counted as the family does
    hydrogens: bool | None = None  # make the hydrogen atoms nodes of the graph
    per_size: int | None = None  # distinct molecules per class and size at most; small sizes have fewer
    per_test_size: int | None = None  # the same for sizes that are held out
    copies: int = 1  # graphs per molecule, each with its nodes in another order; they share a group
    hold_out: HoldOut | None = None  # what the test part never shares with training: sizes, or molecules
    seed: int = 0  # every random choice follows from it

    def __post_init__(self) -> None:
        held = "sizes" if self.hold_out is None else self.hold_out
        for name, value, choices in (("family", self.family, FamilyName), ("hold_out", held, HoldOut)):
            if value not in get_args(choices):
                raise ConfigError(f"{name} must be one of {', '.join(get_args(choices))}, got {value!r}")
        family = self.settings
        whole = {"copies": (self.copies, 1, 1000), "seed": (self.seed, 0, 2**63 - 1)}
        whole |= {name: (getattr(family, name), 1, 10_000) for name in ("per_size", "per_test_size")}
        for name, (number, least, most) in whole.items():
            if not least <= number <= most:
                raise ConfigError(f"{name} must lie between {least} and {most}, got {number}")
        (first, last), (least, most) = family.sizes, family.limits
        if not least <= first <= last <= most or not family.size_list:
            sizes = f"sizes of {self.family} ({family.size})"
            raise ConfigError(f"{sizes} must lie between {least} and {most}, got {first}-{last}")
        if family.hold_out == "sizes" and len(family.size_list) == 1:
            raise ConfigError(f"sizes {first}-{last} leave none to hold out; give more, or hold_out=molecules")

    @property
    def settings(self) -> Family:
        """The family with every setting that is given in place of its own."""
        names = ("sizes", "hydrogens", "per_size", "per_test_size", "hold_out")
        given: dict[str, Any] = {name: value for name in names if (value := getattr(self, name)) is not None}
        return replace(FAMILIES[self.family], **given)


def parse_config(source: str) -> CompoundsConfig:
    """Read ``compounds:FAMILY`` or ``compounds:FAMILY:option=value,option=value``."""
    _, _, rest = source.partition(":")
    family, colon, options = rest.partition(":")
    rule(family in FAMILIES, f"{source}: no family is called {family!r}; there are {', '.join(FAMILIES)}")
    given: dict[str, Any] = {"family": family}
    for option in options.split(",") if colon else []:
        name, value = _parse_option(source, option)
        rule(name not in given, f"{source}: {name} is given twice")
        given[name] = value
    try:
        return CompoundsConfig(**given)
    except ConfigError as error:
        raise DataError(f"{source}: {error}") from None


def _parse_option(source: str, option: str) -> tuple[str, Any]:
    name, equals, text = (piece.strip() for piece in option.partition("="))
    name = name.replace("-", "_")
    known = [field.name for field in fields(CompoundsConfig) if field.name != "family"]
    if not equals or name not in known:
        raise DataError(f"{source}: {option!r} is no option; write NAME=VALUE, with NAME one of {', '.join(known)}")
    if name == "hold_out":
        return name, text
    if name == "hydrogens":
        rule(text in ("yes", "no"), f"{source}: hydrogens must be yes or no, got {text!r}")
        return name, text == "yes"
    numbers = text.split("-") if name == "sizes" else [text]
    if len(numbers) > 2 or not all(n.isascii() and n.isdecimal() and len(n) < 20 for n in numbers):
        wanted = "two whole numbers such as 3-8" if name == "sizes" else "a whole number"
        raise DataError(f"{source}: {name} must be {wanted}, got {text!r}")
    return name, (int(numbers[0]), int(numbers[-1])) if name == "sizes" else int(text)


def read_compounds(source: str) -> Graphs:
    """Generate from text: ``compounds:alcohols``, ``compounds:isomers:sizes=3-8,hydrogens=yes,copies=5,seed=1``."""
    return generate(parse_config(source))


def generate(config: CompoundsConfig) -> Graphs:
    """The compounds of a family, ascending in size and the classes alternating, with class, critical structure, part.
    Where sizes are held out, the test part has every fourth size of the training range and all beyond it."""
    family, pattern = config.settings, PARTS_OF_TEN
    training = family.training_sizes
    if family.hold_out != "molecules":
        pattern = np.where(PARTS_OF_TEN == TEST, TRAIN, PARTS_OF_TEN)
    chosen: list[tuple[Molecule, int]] = []  # each with its part
    counted = [0, 0]  # molecules of either class so far, in sizes that are trained on
    for size in family.size_list:
        is_trained = size in training
        count = family.per_size if is_trained else family.per_test_size
        classes = MAKERS[config.family](size, count, np.random.default_rng([config.seed, size]))
        with_parts = []
        for which, members in enumerate(classes):
            # the same shuffle for both classes: an alcohol and the alkane of its skeleton share a part
            position = counted[which] + np.random.default_rng([config.seed, size, 1]).permutation(len(members))
            own = pattern[position % len(pattern)] if is_trained else np.full(len(members), TEST)
            counted[which] += len(members) if is_trained else 0
            with_parts.append(zip(members, own.tolist(), strict=True))
        chosen += [one for pair in zip_longest(*with_parts) for one in pair if one is not None]
    return _build([molecule for molecule, _ in chosen], np.array([part for _, part in chosen]), config)


def _atoms(molecule: Molecule, *, hydrogens: bool) -> tuple[Ints, Ints, Bools, Bools]:
    """Element of every node, edges, and which of either are critical; node ids count from 0."""
    n_atoms = len(molecule.elements)
    element = np.array([ELEMENTS.index(letter) for letter in molecule.elements])
    edges = np.array(molecule.bonds, np.int64).reshape(-1, 2)
    degree = np.bincount(edges.ravel(), minlength=n_atoms)
    critical = np.zeros(n_atoms, bool)
    critical[list(molecule.critical)] = True
    ending = critical & (degree == 1)
    if hydrogens:
        free = np.array([VALENCE[letter] for letter in molecule.elements]) - degree
        holder = np.repeat(np.arange(n_atoms), free)
        edges = np.concatenate([edges, np.stack([holder, n_atoms + np.arange(len(holder))], axis=1)])
        element = np.concatenate([element, np.full(len(holder), ELEMENTS.index("H"))])
        critical, ending = np.concatenate([critical, ending[holder]]), np.concatenate([ending, ending[holder]])
    return element, edges, critical, ending[edges].any(axis=1)


def _build(molecules: Sequence[Molecule], part: Ints, config: CompoundsConfig) -> Graphs:
    """Every molecule ``config.copies`` times as a graph, each time with its nodes in another random order."""
    family, copies = config.settings, config.copies
    graphs = [_atoms(molecule, hydrogens=family.hydrogens) for molecule in molecules for _ in range(copies)]
    elements, bonds, node_truth, edge_truth = zip(*graphs, strict=True)
    molecule_of = np.repeat(np.arange(len(molecules)), copies)
    counts, element = np.array([len(one) for one in elements]), np.concatenate(elements)
    edges = np.concatenate([one + start for one, start in zip(bonds, pointers(counts), strict=False)])
    graph_of = np.repeat(np.arange(len(graphs)), counts)
    order = np.lexsort((np.random.default_rng(config.seed).random(len(element)), graph_of))  # shuffled in each graph
    present, label = np.unique(element[order], return_inverse=True)
    return Graphs.from_edges(
        node_counts=counts,
        edges=np.argsort(order)[edges],
        names=[f"{m.name}, copy {copy}" if copy > 1 else m.name for m in molecules for copy in range(1, copies + 1)],
        edge_label=np.zeros(len(edges), np.int32),
        edge_label_names=("single",),
        edge_truth=np.concatenate(edge_truth),
        node_label=label.astype(np.int32),
        node_label_names=tuple(ELEMENTS[e] for e in present),
        node_truth=np.concatenate(node_truth)[order],
        target=np.array([family.class_names.index(molecule.kind) for molecule in molecules])[molecule_of],
        class_names=family.class_names,
        group=molecule_of,
        part=part[molecule_of],
        smiles=tuple(smiles for molecule in molecules for smiles in [molecule.smiles] * copies),
    )
