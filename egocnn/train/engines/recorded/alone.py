"""A single network as a stack of one: a network + its graphs -> what :func:`egocnn.train.loop.fit` returns.

Its steps are recorded on a GPU and replayed, where the plain loop would wait for the device several times a step. What
dropout drops follows from the seed and the number of steps done, so a resumed run needs no more than its checkpoint.
Recorded steps hold the memory of all of their kinds; where it does not suffice, the plain loop goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from egocnn.config import TrainConfig
from egocnn.encode.batch import EncodedGraphs
from egocnn.nn.model import EgoCNN
from egocnn.train.engines.recorded.stack import Stack, free_recorded_memory
from egocnn.train.loop import Epoch, History, Keep, Progress, Report, RunEpoch, batch_by_batch, fit
from egocnn.train.memory import attempt, warn


def fit_alone(
    network: EgoCNN,
    train: EncodedGraphs,
    validation: EncodedGraphs,
    config: TrainConfig,
    *,
    resume: Callable[[Progress], None] | None = None,
    keep: Keep | None = None,
    report: Report | None = None,
) -> History:
    """:func:`egocnn.train.loop.fit`, but for rounding and for which activations dropout drops.

    Checkpoints are the same: either goes on from one that the other has kept.
    """
    try:
        return fit(network, train, validation, config, engine=stack_of_one, resume=resume, keep=keep, report=report)
    finally:
        free_recorded_memory()


def stack_of_one(progress: Progress, train: EncodedGraphs, validation: EncodedGraphs, config: TrainConfig) -> RunEpoch:
    """Epochs of the stack; after each, network and optimiser of the progress are where the stack is."""
    alive = np.ones(1, bool)
    stack = attempt(lambda: Stack([progress.network], [(train, validation)], [config.seed], config))
    plain: RunEpoch | None = None
    if stack is not None:
        parameters = [progress.network.get_parameter(name) for name in stack.network.parameters]
        stack.optimizer.take_over(progress.optimizer, parameters)

    def run(number: int) -> Epoch:
        nonlocal stack, plain
        ended = None if stack is None else attempt(partial(stack.run, number, alive))
        if stack is not None and ended is not None:
            stack.network.write_back(stack.network.state)
            stack.optimizer.hand_over(progress.optimizer, parameters)
            return ended[0]
        if plain is None:
            stack = None
            free_recorded_memory()
            warn("out of memory: steps are no longer recorded, which is slower and gives the same result")
            plain = batch_by_batch(progress, train, validation, config)
        return plain(number)  # the progress is as the last whole epoch left it

    return run
