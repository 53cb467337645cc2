"""What is said about a critical structure, in one place for console, page and server: a structure -> short texts."""

from math import floor, isfinite, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from egocnn.explain.structure import CriticalStructure

LARGEST_SHARE, SMALLEST_SHARE = 2.0, -1.0
"""Beyond these a share only says that output and base are too close to divide by."""
NEARLY = 1e-3  # Base and contributions add up to the output where no more than this share of their size is missing.


def adds_up(structure: "CriticalStructure") -> bool:
    """Whether base and contributions come to the output, as they do by the default technique."""
    up, down, change = structure.speaks_for, structure.speaks_against, structure.output - structure.base
    return abs(up + down - change) <= NEARLY * max(up - down, abs(change))


def balance(structure: "CriticalStructure") -> str:
    """base -1.2, for +3.4, against -0.6, output 1.6 log-odds"""
    is_class = structure.explained is not None
    up, down, last = ("for", "against", "output") if is_class else ("raised", "lowered", "value")
    sums = structure.speaks_for, structure.speaks_against
    base, gained, lost, output = alike(structure.base, *sums, structure.output)
    plus = "+" if any(digit in gained for digit in "123456789") else ""
    between = f", {up} {plus}{gained}, {down} {lost}" if adds_up(structure) else ""
    return f"base {base}{between}, {last} {output}{' log-odds' if is_class else ''}"


def evidence(structure: "CriticalStructure") -> str:
    """How far the structure is enough and needed; nothing where it is empty or that was not measured."""
    fidelity = structure.fidelity
    if fidelity is None or not len(structure.critical_nodes):
        return ""
    is_class = structure.explained is not None
    both = (fidelity.kept, fidelity.removed)
    kept, removed = (f"probability {share(after)}" if is_class else f"value {after:.4g}" for after in both)
    if fidelity.evidence_kept is None or fidelity.evidence_lost is None:
        return f"the structure alone: {kept}; without it: {removed}"
    first, second = share(fidelity.evidence_kept), share(fidelity.evidence_lost)
    return f"the structure alone keeps {first} of the evidence ({kept}); {second} goes with it ({removed} without it)"


def called(name: object) -> str:
    """A class as a sentence names it: 1 or True alone would be read as a number or a fact"""
    return f"{name}" if f"{name}"[:1].isalpha() and f"{name}" not in ("True", "False") else f"class {name}"


def doubt(structure: "CriticalStructure") -> str:
    """' ± 0.4%' or ' ± 0.12', nothing for a model of one network"""
    if structure.spread is None:
        return ""
    return f" ± {structure.spread:.1%}" if structure.explained is not None else f" ± {structure.spread:.2g}"


def share(value: float) -> str:
    """In per cent, and never all or nothing unless it is."""
    if not isfinite(value):
        return "unknown"
    if value > LARGEST_SHARE or 0.99 < value < 1:
        return f"over {LARGEST_SHARE if value > 1 else 0.99:.0%}"
    if value < SMALLEST_SHARE or 0 < value < 0.01:
        return f"under {SMALLEST_SHARE if value < 0 else 0.01:.0%}"
    return f"{floor(100 * value + 0.5)}%"  # x.5 is rounded up, as in the page's script


def alike(*values: float) -> list[str]:
    """Numbers that are read together: as many decimals for all as the largest needs for three digits."""
    largest = max(map(abs, values))
    if not all(map(isfinite, values)) or (largest and not 1e-4 <= largest < 1e6):
        return [f"{value:.3g}" for value in values]
    decimals = max(2 - floor(log10(largest)), 0) if largest else 1
    # a rounded number is never written -0.0
    return [f"{round(value, decimals) + 0.0:.{decimals}f}" for value in values]
