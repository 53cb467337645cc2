"""The report of a run: a trained model and graphs -> index.html, structures.jsonl and figures/ in a folder."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from egocnn.data.molecules import is_molecule
from egocnn.errors import rule
from egocnn.explain.structure import CriticalStructure, write_structures
from egocnn.files import check_is_no_file, check_writable, is_left, replacing_in, write_text
from egocnn.show.report import Summary, summarise
from egocnn.show.report.page import encode, page

MARK = "structures.jsonl"  # A folder that holds this file is a report, and may be written again.
PAGE = "index.html"
FIGURES = "figures/[0-9][0-9][0-9][0-9]*-*.svg"


def write_explanations(
    structures: Iterable[CriticalStructure], folder: Path, *, figures: int, on_page: int | None = None, **facts: Any
) -> Summary:
    """Write the whole folder; returns the summary. The files are moved into place once all are written, the page last.

    With ``on_page``, only so many structures, the first, stay in memory and are shown on the page and in figures. All
    are written to ``structures.jsonl``, and the summary is of all. ``facts``: what :func:`summarise` is told."""
    on_the_page: list[CriticalStructure] = []
    bare: list[CriticalStructure] = []
    remaining = iter(structures)
    first = list(islice(remaining, 1))  # an error in the first structure comes before there is a folder

    def passing() -> Iterator[CriticalStructure]:
        for structure in chain(first, remaining):
            if on_page is None or len(on_the_page) < on_page:
                on_the_page.append(structure.drawn())  # once, for page and figures
            bare.append(_without_graph(structure))
            yield structure

    with replacing_in(folder, first=MARK, last=PAGE, patterns=[FIGURES]) as temporary:
        write_structures(passing(), temporary / MARK)
        summary = summarise(bare, molecules=all(is_molecule(s.graph) for s in on_the_page), **facts)
        for number, structure in enumerate(on_the_page[:figures], 1):
            structure.draw(temporary / "figures" / f"{number:04d}-{file_name(structure.name)}.svg")
        write_text(temporary / PAGE, page(encode(on_the_page, summary, facts.get("parts"))))
    return summary


def _without_graph(structure: CriticalStructure) -> CriticalStructure:
    """What a summary reads of a structure, and little more."""
    columns = ("node_label", "edge_label", "edge_weight", "node_attr", "node_truth", "edge_truth")
    none: dict[str, Any] = dict.fromkeys(columns)
    bare = replace(structure.graph, edges=np.zeros((0, 2), np.int64), **none)
    empty: dict[str, Any] = dict.fromkeys(("node_importance", "edge_importance"), np.zeros(0))
    return replace(structure, graph=bare, trace=None, critical_edges=np.zeros(0, np.int64), **empty)


def check_folder(folder: Path, mark: str = MARK) -> None:
    """Refuse, before anything is computed, a folder that holds something else: a report has its mark."""
    check_is_no_file(folder)
    names = {file.name for file in folder.iterdir() if not is_left(file.name)} if folder.is_dir() else set()
    rule(not names or mark in names, f"{folder}: is not empty and holds no earlier report; name another folder")
    check_writable(folder)


def file_name(name: str) -> str:
    """Letters, digits and dots of a name, joined by dashes, so that no name leaves the folder."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip(".-")[:60] or "graph"
