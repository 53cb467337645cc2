"""The report of a run: a trained model and graphs -> index.html, structures.jsonl and figures/ in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from egocnn.errors import DataError
from egocnn.explain.structure import CriticalStructure, write_structures
from egocnn.files import check_is_no_file, check_writable, is_left, replacing_in
from egocnn.show.report import Summary, summarise, write_report

MARK = "structures.jsonl"
"""A folder that holds it was written by us, and may be written again."""
PAGE = "index.html"


def write_explanations(
    structures: Iterable[CriticalStructure],
    folder: Path,
    *,
    model: str,
    data: str,
    class_names: Sequence[str],
    figures: int,
    title: str = "Critical structures",
    on_page: int | None = None,
) -> Summary:
    """All files are put in place when the last of them is written, the page last.

    With ``on_page``, only so many structures, the first, are kept in memory and shown on the page, however many come;
    figures are drawn of these. All are written to ``structures.jsonl``, and the summary is of all.
    """
    kept: list[CriticalStructure] = []
    facts: list[CriticalStructure] = []
    to_come = iter(structures)
    first = list(islice(to_come, 1))  # what is refused is refused before there is a folder

    def passing() -> Iterator[CriticalStructure]:
        for structure in chain(first, to_come):
            if on_page is None or len(kept) < on_page:
                kept.append(structure)
            facts.append(structure if on_page is None else _without_graph(structure))
            yield structure

    with replacing_in(folder, first=MARK, last=PAGE) as temporary:
        write_structures(passing(), temporary / MARK)
        summary = summarise(facts, title=title, model=model, data=data, class_names=tuple(class_names))
        for number, structure in enumerate(kept[:figures], 1):
            structure.draw(temporary / "figures" / f"{number:04d}-{file_name(structure.name)}.svg")
        write_report(kept, temporary, summary=summary)
    return summary


def _without_graph(structure: CriticalStructure) -> CriticalStructure:
    """What a summary asks of a structure, and little more."""
    nothing = np.zeros(0)
    bare = replace(
        structure.graph,
        edges=np.zeros((0, 2), np.int64),
        node_label=None,
        edge_label=None,
        edge_weight=None,
        node_attr=None,
        node_truth=None,
        edge_truth=None,
    )
    return replace(
        structure,
        graph=bare,
        node_importance=nothing,
        edge_importance=nothing,
        critical_edges=np.zeros(0, np.int64),
        trace=None,
    )


def check_folder(folder: Path) -> None:
    """Refuse, before anything is computed, a folder that holds something else."""
    check_is_no_file(folder)
    names = {file.name for file in folder.iterdir() if not is_left(file.name)} if folder.is_dir() else set()
    if names and not names & {MARK, "patterns.json"}:
        raise DataError(f"{folder}: is not empty and holds no earlier report; name another folder")
    check_writable(folder)


def file_name(name: str) -> str:
    """Letters, digits and dots of a name, joined by dashes, so that no name leaves the folder."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip(".-")[:60] or "graph"
