"""Settings of the Ego-CNN in the tables: the paper's of 2018, and ours."""

from __future__ import annotations

from dataclasses import replace

from egocnn.config import PRESETS, TrainConfig

PAPER_MODEL, PAPER_TRAIN = PRESETS["paper"].model, PRESETS["paper"].train
OUR_MODEL, OUR_TRAIN = PRESETS["default"].model, replace(PRESETS["default"].train, networks=1)
"""one network a training: the tables average restarts, and show what each says alone"""


def shortened(train: TrainConfig) -> TrainConfig:
    """For a rough answer in minutes."""
    return replace(train, epochs=15, patience=15, batch_size=32, learning_rate=max(train.learning_rate, 1e-3))
