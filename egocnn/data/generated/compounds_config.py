"""What to generate: the settings of the families of compounds, and their text form -> CompoundsConfig."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from egocnn.errors import ConfigError, DataError

FamilyName = Literal["alcohols", "isomers", "methylalkanes"]
HoldOut = Literal["sizes", "molecules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family with its range and its own choice for every setting."""

    class_names: tuple[str, str]
    size: str  # what its sizes count
    limits: tuple[int, int]
    step: int = 1
    training_share: float
    """Where sizes are held out: the share of them, from the smallest up, among which training may take place."""
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


FAMILIES: dict[FamilyName, Family] = {
    "alcohols": Family(
        class_names=("alkane", "alcohol"),
        size="carbons",
        limits=(1, 500),
        training_share=0.35,
        sizes=(3, 82),
        hydrogens=True,
        per_size=16,
        per_test_size=2,
        hold_out="sizes",
    ),
    "isomers": Family(
        class_names=("symmetric", "asymmetric"),
        size="carbons of an arm",
        limits=(3, 50),
        training_share=0.8,
        sizes=(3, 8),
        hydrogens=False,
        per_size=2048,
        per_test_size=2048,
        hold_out="molecules",
    ),
    "methylalkanes": Family(
        class_names=("symmetric", "asymmetric"),
        size="carbons of the chain, an odd number",
        limits=(5, 501),
        step=2,
        training_share=0.8,
        sizes=(5, 61),
        hydrogens=False,
        per_size=1,
        per_test_size=1,
        hold_out="sizes",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompoundsConfig:
    """Which compounds to generate; None stands for the family's own choice."""

    family: FamilyName
    """Alkanes and alcohols, symmetric and asymmetric isomers, or chains with a single methyl."""
    sizes: tuple[int, int] | None = None
    """Smallest and largest size: carbons (alcohols), carbons of an arm (isomers) or of the chain (methylalkanes)."""
    hydrogens: bool | None = None
    """Make the hydrogen atoms nodes of the graph."""
    per_size: int | None = None
    """Distinct molecules per class and size at most; small sizes have fewer."""
    per_test_size: int | None = None
    """The same for sizes that are held out."""
    copies: int = 1
    """Graphs per molecule, each with its nodes in another order; they share a group."""
    hold_out: HoldOut | None = None
    """What the test part never shares with training: sizes, or molecules."""
    seed: int = 0
    """Every random choice follows from it."""

    def __post_init__(self) -> None:
        _check_choice("family", self.family, get_args(FamilyName))
        if self.hold_out is not None:
            _check_choice("hold_out", self.hold_out, get_args(HoldOut))
        _check_range("copies", self.copies, 1, 1000)
        _check_range("seed", self.seed, 0, 2**63 - 1)
        settings = self.settings
        _check_range("per_size", settings.per_size, 1, 10_000)
        _check_range("per_test_size", settings.per_test_size, 1, 10_000)
        (first, last), (least, most) = settings.sizes, settings.limits
        if not least <= first <= last <= most or not settings.size_list:
            raise ConfigError(
                f"sizes of {self.family} ({settings.size}) must lie between {least} and {most}, got {first}-{last}"
            )
        if settings.hold_out == "sizes" and len(settings.size_list) == 1:
            raise ConfigError(f"sizes {first}-{last} leave none to hold out; give more, or hold_out=molecules")

    @property
    def settings(self) -> Family:
        """The family with every setting that is given in place of its own."""
        names = ("sizes", "hydrogens", "per_size", "per_test_size", "hold_out")
        given: dict[str, Any] = {name: value for name in names if (value := getattr(self, name)) is not None}
        return replace(FAMILIES[self.family], **given)


def parse_config(source: str) -> CompoundsConfig:
    """Read ``compounds:FAMILY`` or ``compounds:FAMILY:option=value,option=value``."""
    prefix, _, rest = source.partition(":")
    family, colon, options = rest.partition(":")
    if prefix != "compounds":
        raise DataError(f"{source!r} names no compounds; write compounds:FAMILY, for instance compounds:alcohols")
    if family not in get_args(FamilyName):
        raise DataError(f"{source}: no family is called {family!r}; there are {', '.join(get_args(FamilyName))}")
    given: dict[str, Any] = {"family": family}
    for option in options.split(",") if colon else []:
        name, value = _parse_option(source, option)
        if name in given:
            raise DataError(f"{source}: {name} is given twice")
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
        if text not in ("yes", "no"):
            raise DataError(f"{source}: hydrogens must be yes or no, got {text!r}")
        return name, text == "yes"
    numbers = text.split("-") if name == "sizes" else [text]
    if len(numbers) > 2 or not all(n.isascii() and n.isdecimal() and len(n) < 20 for n in numbers):
        wanted = "two whole numbers such as 3-8" if name == "sizes" else "a whole number"
        raise DataError(f"{source}: {name} must be {wanted}, got {text!r}")
    return name, (int(numbers[0]), int(numbers[-1])) if name == "sizes" else int(text)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ConfigError(f"{name} must lie between {least} and {most}, got {value}")
