"""Settings that the search for a preset compares, by name: a base, and single changes to it.

Three changes are no settings of the package. ``no-profile`` describes nodes without labels by their degree alone;
``triangles-`` before a name tells of their triangles, too; ``copies-4`` learns from four shuffled copies of every
graph, in a quarter of the epochs.
"""

from __future__ import annotations

from typing import Any

from egocnn.config import PLAIN, ModelConfig, TrainConfig

MODEL: dict[str, Any] = PLAIN | {
    "depth": 4,
    "degrees": True,
    "readout": "mean+log+max",
    "jump": True,
    "head_norm": True,
    "pool_dropout": 0.5,
    "dropout": 0.0,
}
TRAIN: dict[str, Any] = {"networks": 1, "epochs": 50, "batch_size": 32, "judgements": 1, "parts": 0.0}

COUNTED: dict[str, Any] = {"pool_norm": True, "count_inputs": True}

CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "base": ({}, {}),
    "no-jump": ({"jump": False}, {}),
    "no-head-norm": ({"head_norm": False}, {}),
    "pool-norm": ({"pool_norm": True}, {}),
    "count-inputs": (COUNTED, {}),
    "count-inputs-judgements-80": (COUNTED, {"judgements": 80}),
    "count-inputs-epochs-100": (COUNTED, {"epochs": 100}),
    "count-inputs-width-256": (COUNTED | {"width": 256, "hidden": 256}, {}),
    "count-inputs-decay-1e-1": (COUNTED, {"weight_decay": 1e-1}),
    "no-degrees": ({"degrees": False}, {}),
    "max": ({"readout": "max"}, {}),
    "mean": ({"readout": "mean"}, {}),
    "sum": ({"readout": "sum"}, {}),
    "log": ({"readout": "log"}, {}),
    "mean+max": ({"readout": "mean+max"}, {}),
    "log+max": ({"readout": "log+max"}, {}),
    "sort": ({"readout": "sort"}, {}),
    "depth-2": ({"depth": 2}, {}),
    "depth-3": ({"depth": 3}, {}),
    "depth-6": ({"depth": 6}, {}),
    "width-64": ({"width": 64, "hidden": 64}, {}),
    "width-256": ({"width": 256, "hidden": 256}, {}),
    "no-pool-dropout": ({"pool_dropout": 0.0}, {}),
    "dropout-5": ({"dropout": 0.05}, {}),
    "dropout-50": ({"dropout": 0.5}, {}),
    "slots-1": ({"slots": 1}, {}),
    "slots-5": ({"slots": 5}, {}),
    "k-4": ({"k": 4, "slots": 5}, {}),
    "k-32": ({"k": 32}, {}),
    "tie": ({"tie": True}, {}),
    "batch-128": ({}, {"batch_size": 128}),
    "rate-3e-3": ({}, {"learning_rate": 3e-3}),
    "rate-3e-4": ({}, {"learning_rate": 3e-4}),
    "decay-1e-2": ({}, {"weight_decay": 1e-2}),
    "decay-1e-1": ({}, {"weight_decay": 1e-1}),
    "epochs-100": ({}, {"epochs": 100}),
    "constant": ({}, {"schedule": "constant"}),
    "judgements-80": ({}, {"judgements": 80}),
    "judgements-100": ({}, {"judgements": 100}),
    "no-profile": ({}, {}),
    "copies-4": ({}, {"epochs": 13}),
}

COPIES = {"copies-4": 4}

SMALL: dict[str, Any] = {"width": 32, "hidden": 64, "depth": 2}  # What a CPU can compare in minutes.

VARIANTS: dict[str, tuple[ModelConfig, TrainConfig]] = {
    f"{size}{name}": (ModelConfig(**MODEL | shape | model), TrainConfig(**TRAIN | train))
    for size, shape in (("", {}), ("triangles-", {}), ("small-", SMALL))
    for name, (model, train) in CHANGES.items()
}
