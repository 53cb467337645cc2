"""Settings of the Ego-CNN by name: the paper's of 2018, and ours."""

from __future__ import annotations

from dataclasses import replace

from egocnn.config import ModelConfig, TrainConfig

PAPER_MODEL = ModelConfig(slots=10, k=16, width=128, depth=5, readout="sort", hidden=128, dropout=0.5)
"""The paper's architecture. Its flatten sees the order of nodes; ours, ``sort``, keeps the 64 ranked first."""

PAPER_TRAIN = TrainConfig(
    learning_rate=1e-4, weight_decay=0.0, schedule="constant", batch_size=10, epochs=100, patience=10
)
"""Adam at 1e-4; batch and patience as in the authors' code, which does not bound the epochs."""

OUR_MODEL = ModelConfig(depth=5)
OUR_TRAIN = TrainConfig(epochs=100)


def shortened(train: TrainConfig) -> TrainConfig:
    """For a rough answer in minutes."""
    return replace(train, epochs=15, patience=15, batch_size=32, learning_rate=max(train.learning_rate, 1e-3))
