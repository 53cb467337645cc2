"""The report of a run: a trained model and graphs -> index.html, structures.jsonl and figures/ in a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from egocnn.errors import DataError
from egocnn.report import Summary, summarise, write_report
from egocnn.structure import CriticalStructure, write_structures

MARK = "structures.jsonl"
"""A folder that holds it was written by us, and may be written again."""


def write_explanations(
    structures: Sequence[CriticalStructure],
    folder: Path,
    *,
    model: str,
    data: str,
    class_names: Sequence[str],
    figures: int,
    title: str = "Critical structures",
) -> Summary:
    """The page last: where it is, everything it speaks of is there too."""
    summary = summarise(structures, title=title, model=model, data=data, class_names=tuple(class_names))
    write_structures(structures, folder / MARK)
    for number, structure in enumerate(structures[:figures], 1):
        structure.draw(folder / "figures" / f"{number:04d}-{file_name(structure.name)}.svg")
    write_report(structures, folder, summary=summary)
    return summary


def check_folder(folder: Path) -> None:
    """Refuse, before anything is computed, a folder that holds something else."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise DataError(f"{place}: is a file, not a folder")
    if (
        folder.is_dir()
        and any(folder.iterdir())
        and not any((folder / name).exists() for name in (MARK, "patterns.json"))
    ):
        raise DataError(f"{folder}: is not empty and holds no earlier report; name another folder")


def file_name(name: str) -> str:
    """Letters, digits and dots of a name, joined by dashes, so that no name leaves the folder."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip(".-")[:60] or "graph"
