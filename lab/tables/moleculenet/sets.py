"""The five sets -> a table for each with SMILES, targets and four splits; what is true and predicted -> a score."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.errors import DataError
from egocnn.files import write_text
from lab.markdown import csv_text

SPLITS = ("random0", "random1", "scaffold0", "scaffold1")
ASSAYS = (
    *("NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD"),
    *("NR-PPAR-gamma", "SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53"),
)
QUICK_ROWS = 300  # Of each set, for a rough answer.


@dataclass(frozen=True, slots=True, kw_only=True)
class MoleculeSet:
    """A set of MoleculeNet."""

    title: str
    is_class: bool
    targets: tuple[str, ...] = ("y",)

    @property
    def task(self) -> str:
        return "classification" if self.is_class else "regression"

    @property
    def metric(self) -> str:
        return "ROC AUC" if self.is_class else "RMSE"


SETS = {
    "bbbp": MoleculeSet(title="BBBP", is_class=True),
    "bace": MoleculeSet(title="BACE", is_class=True),
    "esol": MoleculeSet(title="ESOL", is_class=False),
    "lipo": MoleculeSet(title="Lipophilicity", is_class=False),
    "tox21": MoleculeSet(title="Tox21", is_class=True, targets=ASSAYS),
}


def make_table(name: str, folder: Path, rows: int | None = None) -> Path:
    """``folder/NAME.csv`` from the data under EGOCNN_DATA, made where it is missing; ``rows``: only the first"""
    path = folder / f"{name}.csv"
    if path.exists():
        return path
    place = Path(os.environ.get("EGOCNN_DATA", "nowhere")) / "molecules" / f"{name}.csv"
    if not place.is_file():
        raise DataError(f"{place}: no such file; EGOCNN_DATA names the folder that holds molecules/")
    with place.open(encoding="utf-8", newline="") as file:
        found: list[dict[str, Any]] = list(csv.DictReader(file))
    if any(split not in found[0] for split in SPLITS):
        found = with_splits(found)
    if rows is not None:  # the first rows of a set may all be of one part
        parts = ("train", "val", "train", "test", "train")
        own = {split: dict(enumerate(islice(cycle(parts), s, s + rows))) for s, split in enumerate(SPLITS)}
        found = [
            row | {split: own[split][n] for split in SPLITS}
            for n, row in enumerate(found[:: max(len(found) // rows, 1)][:rows])
        ]
    write_text(path, csv_text(["smiles", *SETS[name].targets, *SPLITS], found))
    return path


def with_splits(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that RDKit reads, in random and scaffold splits of seeds 0 and 1, 80/10/10 as those of the other sets:
    copies of a molecule, and of a scaffold split all molecules of one Bemis-Murcko scaffold, stand on one side."""
    from rdkit import Chem, rdBase
    from rdkit.Chem.Scaffolds import MurckoScaffold

    chemistry: Any = MurckoScaffold
    with rdBase.BlockLogs():
        pairs = [(row, Chem.MolFromSmiles(row["smiles"])) for row in rows]
    known = [(row, molecule) for row, molecule in pairs if molecule is not None]
    plain = [Chem.MolToSmiles(molecule, isomericSmiles=False) for _, molecule in known]
    scaffolds = [chemistry.MurckoScaffoldSmiles(mol=molecule) for _, molecule in known]
    columns = {f"random{seed}": parts_of(plain, seed) for seed in (0, 1)}
    columns |= {f"scaffold{seed}": parts_of(scaffolds, seed) for seed in (0, 1)}
    return [row | {split: part[n] for split, part in columns.items()} for n, (row, _) in enumerate(known)]


def parts_of(groups: Sequence[str], seed: int) -> NDArray[np.str_]:
    """(G) train, val or test by whole groups: those larger than half a test part first, the others in random order."""
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = np.concatenate([order[sizes[order] > 0.05 * len(groups)], order[sizes[order] <= 0.05 * len(groups)]])
    part, room = np.full(len(sizes), "test", "U5"), {"train": 0.8 * len(groups), "val": 0.1 * len(groups)}
    for number in order.tolist():
        name = next((name for name, left in room.items() if sizes[number] <= left), "test")
        part[number] = name
        if name in room:
            room[name] -= sizes[number]
    return part[group]


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> NDArray[np.float64]:
    """(G, T) NaN where there is none"""
    return np.array([[np.nan if row[name] in (None, "") else float(row[name]) for name in columns] for row in rows])


def score(molecules: MoleculeSet, truth: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """RMSE, or ROC AUC, of several targets its mean over those with both classes; (G, T) each"""
    from sklearn.metrics import roc_auc_score

    if not molecules.is_class:
        return float(np.sqrt(np.mean((truth - predicted) ** 2)))
    columns = [(own[~np.isnan(own)], said[~np.isnan(own)]) for own, said in zip(truth.T, predicted.T, strict=True)]
    return float(np.mean([roc_auc_score(own, said) for own, said in columns if len(np.unique(own)) > 1]))
