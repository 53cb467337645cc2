"""A table of molecules and a split -> what a random forest on Morgan counts predicts of the test part, a row each."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from egocnn.files import csv_text, write_text
from lab.tables.moleculenet.sets import SETS, numbers, read_table

RADIUS, SIZE = 2, 2048


def morgan_counts(smiles: list[str]) -> NDArray[np.float32]:
    """(G, 2048) how often each environment of up to two bonds occurs, folded"""
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    generator: Any = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=SIZE)
    rows = [generator.GetCountFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in smiles]
    return np.stack(rows).astype(np.float32)


def predict(name: str, path: Path, split: str, *, seed: int, trees: int) -> NDArray[np.float64]:
    """(test rows, T) probabilities of class 1, or values"""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    molecules, rows = SETS[name], read_table(path)
    is_test = np.array([row[split] == "test" for row in rows])
    counts, truth = morgan_counts([row["smiles"] for row in rows]), numbers(rows, molecules.targets)
    columns = []
    for own in truth.T:
        known = ~is_test & ~np.isnan(own)
        build = RandomForestClassifier if molecules.is_class else RandomForestRegressor
        model = build(n_estimators=trees, random_state=seed, n_jobs=1).fit(counts[known], own[known])
        said = model.predict_proba(counts[is_test])[:, -1] if molecules.is_class else model.predict(counts[is_test])
        columns.append(said)
    return np.stack(columns, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=tuple(SETS))
    parser.add_argument("path", type=Path, metavar="FILE.csv")
    parser.add_argument("--split", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    found = predict(options.name, options.path, options.split, seed=options.seed, trees=options.trees)
    write_text(options.out, csv_text(found.tolist()))


if __name__ == "__main__":
    main()
