"""The training loop for R replicas: networks, their graphs and seeds -> best weights in every network, R histories.

The result of a replica is that of :func:`egocnn.train.loop.fit` with its seed, but for rounding and for which
activations dropout drops; it does not depend on the other replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from egocnn.config import TrainConfig
from egocnn.errors import ConfigError
from egocnn.nn.model import EgoCNN
from egocnn.train.engines.recorded.data import Parts
from egocnn.train.engines.recorded.stack import Stack
from egocnn.train.loop import History

WORTH_SHRINKING = 3e7
"""Nodes in all steps to come that must be saved before replicas which have stopped leave the stack: to record the
steps anew takes seconds."""

StackedReport = Callable[[Sequence[History], TrainConfig], None]


def fit_stacked(
    networks: Sequence[EgoCNN],
    parts: Sequence[Parts],
    seeds: Sequence[int],
    config: TrainConfig,
    *,
    report: StackedReport | None = None,
) -> list[History]:
    """Train every network on its own parts until the epochs or its patience run out, or Ctrl-C.

    ``parts[r]`` are the graphs replica r learns from and those that choose its best epoch; parts that several
    replicas share are stored once. ``seeds[r]`` takes the place of ``config.seed``. The seconds of an epoch are
    those of all replicas together.
    """
    if not len(networks) == len(parts) == len(seeds) > 0:
        raise ConfigError(f"{len(networks)} networks, {len(parts)} parts and {len(seeds)} seeds make no stack")
    stack = Stack(networks, parts, seeds, config)
    histories = [History() for _ in networks]
    windows = [config.window(len(validation)) for _, validation in parts]
    members = np.arange(len(networks))
    try:
        for epoch in range(1, config.epochs + 1):
            alive = np.array([histories[m].stale < config.patience for m in members])
            if not alive.any():
                break
            if stack.saving(alive) * (config.epochs + 1 - epoch) > WORTH_SHRINKING:
                stack.keep_only(alive)
                members, alive = members[alive], alive[alive]
            improved = np.zeros(len(members), bool)
            for r, ended in stack.run(epoch, alive).items():
                improved[r] = histories[members[r]].add(ended, window=windows[members[r]])
            stack.keep_best(improved)
            if report is not None:
                report(histories, config)
    except KeyboardInterrupt:
        for history in histories:
            history.interrupted = True
    stack.finish()
    return histories
