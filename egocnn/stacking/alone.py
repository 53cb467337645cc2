"""A single network as a stack of one: a network + its graphs -> what :func:`egocnn.training.fit` returns.

Its steps are recorded on a GPU and replayed, where the plain loop would wait for the device several times a step. What
dropout drops follows from the seed and the number of steps done, so a resumed run needs no more than its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from egocnn.batching import Prepared
from egocnn.config import TrainConfig
from egocnn.nn.model import EgoCNN
from egocnn.stacking.stack import Stack, free_recorded_memory
from egocnn.training import Epoch, History, Keep, Progress, Report, RunEpoch, fit


def fit_alone(
    network: EgoCNN,
    train: Prepared,
    validation: Prepared,
    config: TrainConfig,
    *,
    resume: Callable[[Progress], None] | None = None,
    keep: Keep | None = None,
    report: Report | None = None,
) -> History:
    """:func:`egocnn.training.fit`, but for rounding and for which activations dropout drops.

    Checkpoints are the same: either goes on from one that the other has kept.
    """
    try:
        return fit(network, train, validation, config, engine=stack_of_one, resume=resume, keep=keep, report=report)
    finally:
        free_recorded_memory()


def stack_of_one(progress: Progress, train: Prepared, validation: Prepared, config: TrainConfig) -> RunEpoch:
    """Epochs of the stack; after each, network and optimiser of the progress are where the stack is."""
    stack = Stack([progress.network], [(train, validation)], [config.seed], config)
    parameters = [progress.network.get_parameter(name) for name in stack.network.parameters]
    stack.optimizer.take_over(progress.optimizer, parameters)
    alive = np.ones(1, bool)

    def run(number: int) -> Epoch:
        epoch = stack.run(number, alive)[0]
        stack.network.write_back(stack.network.state)
        stack.optimizer.hand_over(progress.optimizer, parameters)
        return epoch

    return run
