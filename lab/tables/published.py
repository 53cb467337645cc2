"""What the paper prints: accuracies in per cent, by table, system and data set. Facts from Tzeng and Wu (ICML 2019).

The rivals' figures were taken by its authors from the rivals' own papers, measured under protocols that differ. A dash
in the paper is None here.
"""

from __future__ import annotations

from collections.abc import Mapping

Figures = Mapping[str, Mapping[str, float | None]]  # system -> data set -> accuracy in per cent

MOLECULES = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1")
NETWORKS = ("IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY", "COLLAB")
SUPPLEMENT = (*MOLECULES, "IMDB-BINARY", "REDDIT-BINARY")


def _row(sets: tuple[str, ...], *figures: float | None) -> dict[str, float | None]:
    return dict(zip(sets, figures, strict=True))


TABLE_2: Figures = {
    "WL kernel": _row(MOLECULES, 82.1, 57.0, 73.0, 82.2),
    "DGK": _row(MOLECULES, 82.7, 57.3, 71.7, 62.5),
    "Subgraph2vec": _row(MOLECULES, 87.2, 60.1, 73.4, 80.3),
    "MLG": _row(MOLECULES, 84.2, 63.6, 76.1, 80.8),
    "Structure2vec": _row(MOLECULES, 88.3, None, None, 83.7),
    "DCNN": _row(MOLECULES, 67.0, 56.6, None, 62.6),
    "Patchy-San": _row(MOLECULES, 92.6, 60.0, 75.9, 78.6),
    "1-head GAT": _row(MOLECULES, 81.0, 57.0, 72.5, 74.3),
    "Ego-CNN": _row(MOLECULES, 93.1, 63.8, 73.8, 80.7),
}

TABLE_3: Figures = {
    "DGK": _row(NETWORKS, 67.0, 44.6, 78.0, 73.0),
    "Patchy-San": _row(NETWORKS, 71.0, 45.2, 86.3, 72.6),
    "1-head GAT": _row(NETWORKS, 70.0, None, 78.8, None),
    "Ego-CNN": _row(NETWORKS, 72.3, 48.1, 87.8, 74.2),
}

TABLE_4: Figures = {
    "Ego-CNN, 1 layer": {"REDDIT-BINARY": 84.9},
    "Ego-CNN, 5 layers": {"REDDIT-BINARY": 87.8},
    "Ego-CNN, 5 layers, tied": {"REDDIT-BINARY": 88.4},
}

PARAMETERS: Mapping[str, float] = {
    "Ego-CNN, 1 layer": 1.3e6,
    "Ego-CNN, 5 layers": 2.3e6,
    "Ego-CNN, 5 layers, tied": 1.3e6,
}
"""Printed beside table 4."""

TABLE_SUPPLEMENT: Figures = {
    "Ego-CNN": _row(SUPPLEMENT, 93.1, 63.8, 73.8, 80.7, 72.3, 87.8),
    "Patchy-San + convolutions": _row(SUPPLEMENT, 89.4, 61.5, 70.7, 71.0, 67.1, 81.0),
    "Ego-CNN, tied": _row(SUPPLEMENT, 84.5, 59.5, 73.2, 77.8, 71.5, 88.4),
}

SECONDS: Mapping[str, Mapping[str, float]] = {
    "Ego-CNN": {"MUTAG": 6, "PTC_MR": 20, "PROTEINS": 244, "NCI1": 854},
    "Ego-CNN, tied": {"MUTAG": 13, "PTC_MR": 22, "PROTEINS": 281, "NCI1": 368},
}
"""Printed in the supplement's table, on a GTX 1070; it does not say what they cover."""
