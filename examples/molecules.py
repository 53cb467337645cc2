"""Molecules from a CSV of SMILES: train, test, see which atoms decided, save and load.

python examples/molecules.py                       alkanes and alcohols, made here
python examples/molecules.py molecules.csv toxic   your own table, what to predict
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import egocnn


def write_table(path: Path) -> Path:
    chains = [
        ("C" * left, "C" * right) for left in range(1, 7) for right in range(1, 7)
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["smiles", "alcohol"])
        rows.writerows([f"{left}C(C){right}", "no"] for left, right in chains)
        rows.writerows([f"{left}C(O){right}", "yes"] for left, right in chains)
    return path


def main(table: str | None = None, target: str = "alcohol") -> None:
    graphs = egocnn.read(table or write_table(Path("molecules.csv")), target=target)
    train, test = graphs.split(test=0.25, seed=0)  # copies of a molecule on one side
    model = egocnn.EgoCNNClassifier(width=16, depth=2, epochs=20, learning_rate=1e-2)
    accuracy = model.fit(train).score(test)
    print(f"{len(train)} molecules to learn from,", end=" ")
    print(f"accuracy on {len(test)} others: {accuracy:.3f}")
    for structure in model.explain(test[-3:]):
        print(structure)
        structure.draw(f"molecule-{structure.name}.svg")
    model.save(
        "runs/molecules"
    )  # egocnn explain runs/molecules molecules.csv -o report
    same = (egocnn.load("runs/molecules").predict(test) == model.predict(test)).all()
    print("loaded again, it predicts", "the same" if same else "something else")


if __name__ == "__main__":
    main(*sys.argv[1:])
