"""Lines that were typed -> the same lines, or a refusal that needs nothing but their text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from egocnn.errors import DataError
from egocnn.show.serve.settings import MOST_CHARACTERS, MOST_GRAPHS, MOST_RINGS

BRACKETS = re.compile(r"\[[^\[\]]*\]")  # An atom with isotope, hydrogens or charge: its digits close no ring.
CLOSURE = re.compile(r"%\(\d+\)|%\d\d|\d")


def rings(smiles: str) -> int:
    """How many rings a SMILES closes: every number outside brackets is one end of one."""
    return len(CLOSURE.findall(BRACKETS.sub("", smiles))) // 2


def check_rings(lines: Sequence[str]) -> None:
    """Refuse a SMILES that closes more rings than are read."""
    for number, line in enumerate(lines, 1):
        smiles = (line.split(maxsplit=1) or [""])[0]
        if (count := rings(smiles)) > MOST_RINGS:
            place = f"line {number}: " if len(lines) > 1 else ""
            raise DataError(f"{place}a SMILES that closes {count} rings; {MOST_RINGS} are read at most")


def typed_lines(text: str) -> list[str]:
    """The lines of a text that are not blank; refused where there are none, too many, or too long ones."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= MOST_GRAPHS:
        raise DataError(f"{len(lines)} molecules; a report takes 1 to {MOST_GRAPHS}, one a line, or a file")
    if (longest := max(map(len, lines))) > MOST_CHARACTERS:
        raise DataError(f"a line of {longest} characters; {MOST_CHARACTERS} are read at most")
    check_rings(lines)
    return lines
