"""A set, a split and a seed -> what a system predicts of the test part, in processes of its own that are measured."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from egocnn.config import ReadConfig
from egocnn.errors import DataError
from egocnn.files import write_json
from lab.record import ROOT
from lab.tables.moleculenet.sets import SETS, MoleculeSet, numbers, read_table, score

NETWORKS = 3  # Of our default; chemprop's ensemble is as large.
QUICK = {"ours": ("--epochs", "2", "--width", "16"), "chemprop": ("--epochs", "3"), "forest": ("--trees", "20")}
HOW = "python -m venv FOLDER && FOLDER/bin/pip install torch==2.13.0 && FOLDER/bin/pip install chemprop"
MEASURE = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(process.pid, 0)
with open(sys.argv[1], "w") as file:
    json.dump({"cpu_seconds": used.ru_utime + used.ru_stime, "kilobytes": used.ru_maxrss}, file)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A process counts the memory of the one that started it as its own peak: so a small one starts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One training."""

    name: str
    split: str
    seed: int
    work: Path
    quick: bool = False
    chemprop: str = ""  # the program

    @property
    def molecules(self) -> MoleculeSet:
        return SETS[self.name]

    @property
    def table(self) -> Path:
        return self.work / "data" / f"{self.name}.csv"

    @property
    def arrays(self) -> Path:
        return self.work / "arrays" / f"{self.name}-{self.split}.safetensors"

    @property
    def prepared(self) -> Path:
        """What it took to make the arrays."""
        return self.arrays.with_suffix(".json")

    @property
    def reading(self) -> dict[str, str]:
        targets = ",".join(self.molecules.targets)
        return {"smiles": "smiles", "target": targets, "task": self.molecules.task, "split": self.split}

    def extra(self, system: str) -> tuple[str, ...]:
        return QUICK[system] if self.quick else ()

    def test_rows(self) -> list[dict[str, str]]:
        return [row for row in read_table(self.table) if row[self.split] == "test"]


def measured(words: Sequence[str | Path], folder: Path) -> dict[str, float]:
    """Run a program on one thread -> its CPU seconds and peak memory, with those of the processes that it starts."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    kept = folder / f"{uuid4().hex}.json"
    command = [sys.executable, "-I", "-c", MEASURE, str(kept), *map(str, words)]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    # another environment has its own packages
    environment = {**os.environ, **one, "PYTHONPATH": paths if words[0] == sys.executable else ""}
    done = subprocess.run(
        command, env=environment | {"CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason").splitlines()[-1]
        raise DataError(f"{Path(words[0]).name} ended with {done.returncode}: {last[:300]}")
    used = json.loads(kept.read_text(encoding="utf-8"))
    kept.unlink()
    return {"cpu_seconds": round(used["cpu_seconds"], 2), "gigabytes": round(used["kilobytes"] * 1024 / 1e9, 3)}


def make_arrays(cell: Cell) -> None:
    """The molecules as arrays, for machines without RDKit; what that took is kept beside them. A file of
    ``Graphs.save`` and not a store, which holds one target alone."""
    if not cell.prepared.exists():
        cell.arrays.parent.mkdir(parents=True, exist_ok=True)
        code = "import sys, json, egocnn; egocnn.read(sys.argv[1], **json.loads(sys.argv[3])).save(sys.argv[2])"
        reading = json.dumps(cell.reading)
        used = measured([sys.executable, "-c", code, cell.table, cell.arrays, reading], cell.arrays.parent)
        write_json(cell.prepared, used)


def ours(cell: Cell, folder: Path) -> dict[str, Any]:
    """``egocnn train`` with its defaults, from arrays where they are there; each network alone is scored, too."""
    is_prepared, run = cell.prepared.exists(), folder / "run"
    options = [word for name, value in cell.reading.items() for word in (f"--{name}", value)]
    source = [cell.arrays] if is_prepared else [cell.table, *options]
    words = [sys.executable, "-m", "egocnn", "train", *source, "-o", run, "--seed", str(cell.seed), "--device", "cpu"]
    used = measured([*words, "--quiet", *cell.extra("ours")], folder)
    if is_prepared:  # what RDKit did once for all seeds counts in each
        used["cpu_seconds"] += json.loads(cell.prepared.read_text(encoding="utf-8"))["cpu_seconds"]
    together, *singles = _scores_of_run(cell, run, source[0])
    return {"score": together, "singles": singles, "from_arrays": is_prepared, **used}


def _scores_of_run(cell: Cell, run: Path, source: Any) -> list[float]:
    """The score of a model, and then of its networks one by one."""
    import torch

    from egocnn.data.read import read
    from egocnn.model import Model

    torch.set_num_threads(1)
    how: dict[str, Any] = cell.reading
    whole, test = Model.load(run), read(source, ReadConfig(**how)).select("test")
    singles = (replace(whole, networks=(network,)) for network in whole.networks)
    return [score_of(cell.molecules, model, test) for model in (whole, *singles)]


def score_of(molecules: MoleculeSet, model: Any, graphs: Any) -> float:
    """Of a model's predictions for these graphs."""
    from egocnn.train.predictions import prediction_rows

    before = [f"{name} " if len(molecules.targets) > 1 else "" for name in molecules.targets]
    rows = list(prediction_rows(model, graphs, device="cpu"))
    what = "p_1" if molecules.is_class else "predicted"
    truth, said = (numbers(rows, [f"{name}{column}" for name in before]) for column in ("true", what))
    return score(molecules, truth, said)


def chemprop(cell: Cell, folder: Path) -> dict[str, Any]:
    """``chemprop train`` with its defaults and an ensemble as large as ours, whose mean predicts."""
    words: list[str | Path] = [cell.chemprop, "train", "--data-path", cell.table, "--smiles-columns", "smiles"]
    words += ["--target-columns", *cell.molecules.targets, "--task-type", cell.molecules.task]
    words += ["--splits-column", cell.split, "--ensemble-size", str(NETWORKS), "--pytorch-seed", str(cell.seed)]
    words += ["--accelerator", "cpu", "--devices", "1", "--output-dir", folder / "chemprop", *cell.extra("chemprop")]
    used = measured(words, folder)
    test, targets = cell.test_rows(), cell.molecules.targets
    truth = numbers(test, targets)
    files = sorted((folder / "chemprop").rglob("test_predictions.csv"))
    if len(files) != NETWORKS:
        raise DataError(f"chemprop wrote {len(files)} files of predictions, not {NETWORKS}")
    tables = [read_table(file) for file in files]
    if any([row["smiles"] for row in rows] != [row["smiles"] for row in test] for rows in tables):
        raise DataError("chemprop's predictions are not of the test rows in their order")
    each = [numbers(rows, targets) for rows in tables]
    singles = [score(cell.molecules, truth, one) for one in each]
    found = {"score": score(cell.molecules, truth, np.mean(each, axis=0)), "singles": singles, **used}
    return found | {"chemprop": _chemprop_version(cell.chemprop)}


def _chemprop_version(program: str) -> str:
    code = "from importlib.metadata import version; print(version('chemprop'))"
    words = [str(Path(program).parent / "python"), "-c", code]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def forest(cell: Cell, folder: Path) -> dict[str, Any]:
    """A random forest on Morgan counts, of several targets one for each; it learns from the validation part as well."""
    words: list[str | Path] = [sys.executable, "-m", "lab.tables.moleculenet.forest", cell.name, cell.table]
    words += ["--split", cell.split, "--seed", str(cell.seed)]
    out = folder / "forest.csv"
    used = measured([*words, "-o", out, *cell.extra("forest")], folder)
    with out.open(encoding="utf-8", newline="") as file:
        predicted: NDArray[np.float64] = np.array([[float(value) for value in row] for row in csv.reader(file)])
    truth = numbers(cell.test_rows(), cell.molecules.targets)
    return {"score": score(cell.molecules, truth, predicted), **used}


SYSTEMS: dict[str, Callable[[Cell, Path], dict[str, Any]]] = {"ours": ours, "chemprop": chemprop, "forest": forest}
