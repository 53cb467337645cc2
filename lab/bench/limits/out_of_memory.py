"""Does a training on a GPU with too little memory end as one with enough? Losses of both, and how far they differ.

    python -m lab measure out_of_memory

A training of three epochs is measured, and repeated with a half and a quarter of the memory that it took. Warnings say
what was given up. Needs a CUDA device; runs from a bare checkout.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graphs
from egocnn.train.recipe import learn
from lab.record import arguments, one_line, write_measured

GRAPHS, NODES = 1500, 30
MODEL = ModelConfig(width=256, hidden=64, depth=3, dropout=0.0)
TRAIN = TrainConfig(epochs=3, batch_size=1200, device="cuda", precision="float32", seed=1)


def main(words: Sequence[str]) -> None:
    options = arguments("out_of_memory", __doc__).parse_args(words)
    logging.basicConfig(level=logging.WARNING)
    if not torch.cuda.is_available():
        sys.exit("this needs a CUDA device")
    graphs = trees()
    enough, peak = losses(graphs)
    shares: list[dict[str, Any]] = []
    for share in (0.5, 0.25):
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, share * peak / whole))
        try:
            found, taken = losses(graphs)
        except torch.OutOfMemoryError:
            shares.append({"share": share, "sufficed": False})
        else:
            difference = float(f"{np.abs(found - enough).max():.1e}")
            taken_there = {"megabytes": round(taken / 1e6), "largest_difference_of_losses": difference}
            shares.append({"share": share, "sufficed": True, **taken_there})
    measured = {"what": one_line(__doc__), "enough_megabytes": round(peak / 1e6), "shares": shares}
    write_measured("out_of_memory", words, options.out, measured, device="cuda")


def trees() -> Graphs:
    """Random trees; of class 1 are those in which more than 7 nodes have the first label"""
    random = np.random.default_rng(0)
    parents = [random.integers(0, np.arange(1, NODES)) for _ in range(GRAPHS)]
    edges = [np.stack([np.arange(1, NODES), of], axis=1) + number * NODES for number, of in enumerate(parents)]
    label = random.integers(4, size=GRAPHS * NODES)
    first = (label == 0).reshape(GRAPHS, NODES).sum(axis=1)
    return Graphs.from_edges(
        node_counts=[NODES] * GRAPHS,
        edges=np.concatenate(edges),
        node_label=label.astype(np.int32),
        node_label_names=tuple("ABCD"),
        target=(first > 7).astype(np.int64),
        class_names=("no", "yes"),
    )


def losses(graphs: Graphs) -> tuple[Floats, int]:
    """(epochs, 2) in training and in validation, and the bytes that the training took at most"""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    _, history = learn(graphs, MODEL, TRAIN)
    found = np.array([(epoch.train_loss, epoch.validation_loss) for epoch in history.epochs])
    return found, torch.cuda.max_memory_reserved()
