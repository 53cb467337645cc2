"""MoleculeNet beside chemprop and a random forest: sets, splits, seeds and systems -> moleculenet.json, .csv and .md.

Every training is kept in a file of its own in the work folder: what was interrupted goes on, and cells of several
machines are put together by copying their files.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import lab.markdown
from egocnn.errors import ConfigError, EgoCNNError
from egocnn.files import write_json, write_text
from egocnn.study.statistics import summarise
from lab.record import circumstances
from lab.tables.moleculenet.sets import QUICK_ROWS, SETS, SPLITS, make_table
from lab.tables.moleculenet.systems import HOW, NETWORKS, SYSTEMS, Cell, make_arrays

NAME = "moleculenet"
TITLE = "MoleculeNet beside chemprop 2 and a random forest on Morgan counts"
KINDS = ("random", "scaffold")
SHOWN = {"ours": f"ours, {NETWORKS} networks", "ours alone": "ours, 1 network"}
SHOWN |= {"chemprop": f"chemprop, {NETWORKS} models", "chemprop alone": "chemprop, 1 model", "forest": "random forest"}
NOTE = (
    "ROC AUC (Tox21: mean over twelve assays) is better where higher, RMSE where lower. Mean and 95% interval over the "
    "seeds and both splits of a kind, by Student's t; the difference is that of the same seed and split, positive "
    "where ours is better. CPU seconds of a training with reading and testing, on one thread; peak memory of its "
    "largest process. Single networks are the members of the same trainings. chemprop has its own defaults; the forest "
    "has 500 trees, and learns from the validation part as well, by which the others choose their best epoch."
)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoleculeNetOptions:
    """What is run."""

    work: Path
    sets: Sequence[str] | None = None
    systems: Sequence[str] | None = None
    seeds: int = 3
    jobs: int = 1
    quick: bool = False
    chemprop: str | None = None
    kept_only: bool = False  # show the cells that are there, and run none
    prepare_only: bool = False  # write tables and arrays, and run none

    def __post_init__(self) -> None:
        for what, chosen, there in (("set", self.sets, SETS), ("system", self.systems, SYSTEMS)):
            for name in chosen or ():
                if name not in there:
                    raise ConfigError(f"{NAME} has no {what} {name!r}; there are {', '.join(there)}")


def write_moleculenet(how: MoleculeNetOptions, *, folder: Path, say: Say) -> dict[str, Any]:
    """Run the cells that are not there yet, then write the table of all that are."""
    from joblib import Parallel, delayed

    systems = list(how.systems or SYSTEMS)
    if not (how.kept_only or how.prepare_only):
        how = replace(how, chemprop=_found_chemprop(how, systems))
    cells = [
        Cell(name=name, split=split, seed=seed, work=how.work, quick=how.quick, chemprop=how.chemprop or "")
        for seed, name, split in product(range(how.seeds), how.sets or SETS, SPLITS[::2] if how.quick else SPLITS)
    ]
    if not how.kept_only:
        _prepare(cells, systems, with_arrays=how.prepare_only)
    if how.prepare_only:
        return {"title": TITLE, "work": str(how.work), "rows": []}
    missing = [(system, cell) for cell, system in product(cells, systems) if not _kept(system, cell).exists()]
    calls = (delayed(_run)(system, cell) for system, cell in ([] if how.kept_only else missing))
    # threads: each waits for a process of its own
    for line in Parallel(n_jobs=how.jobs, backend="threading", return_as="generator_unordered")(calls):
        say(line)
    return _write(how, cells, folder)


def _found_chemprop(how: MoleculeNetOptions, systems: Sequence[str]) -> str | None:
    if "chemprop" not in systems:
        return None
    found = shutil.which(how.chemprop) if how.chemprop else None
    if found is None:
        raise ConfigError(
            f"--chemprop names the program of an environment of its own ({HOW}), or --models leaves it out"
        )
    return str(Path(found).absolute())


def _prepare(cells: Sequence[Cell], systems: Sequence[str], *, with_arrays: bool) -> None:
    """Tables that are missing, where anything reads them; arrays on request."""
    for cell in cells:
        if with_arrays or systems != ["ours"] or not cell.prepared.exists():
            make_table(cell.name, cell.table.parent, QUICK_ROWS if cell.quick else None)
        if with_arrays:
            make_arrays(cell)


def _kept(system: str, cell: Cell) -> Path:
    return cell.work / "cells" / f"{cell.name}-{cell.split}-{cell.seed}-{system}.json"


def _run(system: str, cell: Cell) -> str:
    """Run one cell and keep it; a line on how it went."""
    title = f"{SETS[cell.name].title} {cell.split}, seed {cell.seed}, {system}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = SYSTEMS[system](cell, Path(folder))
    except (EgoCNNError, OSError, ValueError, LookupError) as error:
        return f"{title}: failed, {' '.join(str(error).split())}"
    where = circumstances("rdkit", "scikit-learn")
    write_json(_kept(system, cell), {"set": cell.name, "split": cell.split, "seed": cell.seed, **found, **where})
    return f"{title}: {found['score']:.4f}, {found['cpu_seconds']:.0f} CPU seconds"


def _write(how: MoleculeNetOptions, cells: Sequence[Cell], folder: Path) -> dict[str, Any]:
    paths = [(system, _kept(system, cell)) for cell, system in product(cells, SYSTEMS)]
    kept = [{"system": system, **json.loads(path.read_text("utf-8"))} for system, path in paths if path.exists()]
    if not kept:
        raise ConfigError(f"{how.work}: no cell is there yet")
    # a member of an ensemble is a system of its own, whose seconds are a share of the whole
    for cell in [cell for cell in kept if "singles" in cell]:
        share = cell["cpu_seconds"] / len(cell["singles"])
        mean = sum(cell["singles"]) / len(cell["singles"])
        kept.append(cell | {"system": f"{cell['system']} alone", "score": mean, "cpu_seconds": share})
    rows = [
        row for name, kind, system in product(how.sets or SETS, KINDS, SHOWN) if (row := _row(kept, name, kind, system))
    ]
    words = (" --quick" if how.quick else "") + (f" --data {','.join(how.sets)}" if how.sets else "")
    machines = sorted({cell["machine"] for cell in kept})
    record: dict[str, Any] = {
        "title": TITLE, "note": NOTE, "rows": rows, "cells": kept, "machines": machines,
        "command": f"egocnn reproduce {NAME}{words} --seeds {how.seeds} --chemprop CHEMPROP",
        **circumstances("rdkit", "scikit-learn"), "date": max(cell["date"] for cell in kept),
        "machine": " and ".join(machines), "versions": kept[0]["versions"],
    }  # fmt: skip
    write_json(folder / f"{NAME}.json", record)
    columns = [column for column, value in rows[0].items() if not isinstance(value, (dict, list))]
    columns += [f"{split}_mean" for split in SPLITS]
    write_text(folder / f"{NAME}.csv", lab.markdown.csv_text(columns, [row | row["splits"] for row in rows]))
    write_text(folder / f"{NAME}.md", markdown(record))
    return record


def _row(kept: Sequence[dict[str, Any]], name: str, kind: str, system: str) -> dict[str, Any] | None:
    """One system on one set and kind of split: its scores, and how ours of the same size is ahead of it."""
    own = {_key(cell): cell for cell in kept if cell["set"] == name and cell["split"][:-1] == kind}
    own = {key: cell for key, cell in own.items() if key[0] == system}
    if not own:
        return None
    scores, seconds = ([cell[what] for cell in own.values()] for what in ("score", "cpu_seconds"))
    splits = sorted({cell["split"] for cell in own.values()})
    of_split = {split: [cell["score"] for cell in own.values() if cell["split"] == split] for split in splits}
    row: dict[str, Any] = {"set": SETS[name].title, "splits of": kind, "metric": SETS[name].metric, "system": system}
    row |= {"cells": len(scores), **_with_interval("", scores)}
    row |= {"cpu_seconds": sum(seconds) / len(seconds), "gigabytes": max(cell["gigabytes"] for cell in own.values())}
    row["splits"] = {f"{split}_mean": sum(some) / len(some) for split, some in of_split.items()}
    compared = "ours alone" if system.endswith("alone") else "ours"
    ours = {_key(cell)[1:]: cell for cell in kept if cell["system"] == compared and cell["set"] == name}
    both = [(ours[key[1:]], cell) for key, cell in own.items() if key[1:] in ours]
    sign = 1 if SETS[name].is_class else -1
    if both and compared != system:
        row |= _with_interval("ahead_", [sign * (one["score"] - other["score"]) for one, other in both])
        alike = [(a["cpu_seconds"], b["cpu_seconds"]) for a, b in both if a["machine"] == b["machine"]]
        if alike:  # seconds of different machines say nothing about each other
            row["cpu_of_ours"] = sum(a for a, _ in alike) / sum(b for _, b in alike)
    return row


def _key(cell: dict[str, Any]) -> tuple[str, str, int]:
    return cell["system"], cell["split"], cell["seed"]


def _with_interval(prefix: str, scores: Sequence[float]) -> dict[str, Any]:
    found = summarise(scores) if len(scores) > 1 else None
    low, high = found.interval if found else (None, None)
    return {f"{prefix}mean": sum(scores) / len(scores), f"{prefix}low": low, f"{prefix}high": high}


def markdown(record: dict[str, Any]) -> str:
    head = ("set", "splits", "system", "score", "each split", "ours ahead by", "CPU seconds", "ours takes", "GB")
    lines = lab.markdown.table(head, map(_cells, record["rows"]))
    return "\n".join([f"# {record['title']}", "", *lines, "", record["note"], "", lab.markdown.made_by(record), ""])


def _cells(row: dict[str, Any]) -> list[str]:
    reach = partial("{:.4f} ± {:.4f}".format)
    score = f"{row['mean']:.4f}" if row["low"] is None else reach(row["mean"], row["high"] - row["mean"])
    ahead = ""
    if "ahead_mean" in row:
        more = "" if row["ahead_low"] is None else f" ± {row['ahead_high'] - row['ahead_mean']:.4f}"
        ahead = f"{row['ahead_mean']:+.4f}{more}"
    each = ", ".join(f"{mean:.3f}" for mean in row["splits"].values())
    share = f"{row['cpu_of_ours']:.0%}" if "cpu_of_ours" in row else ""
    names = [f"{row['set']} ({row['metric']})", row["splits of"], SHOWN[row["system"]]]
    return [*names, score, each, ahead, f"{row['cpu_seconds']:.0f}", share, f"{row['gigabytes']:.2f}"]
