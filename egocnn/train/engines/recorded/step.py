"""One step of all replicas: the graphs whose turn it is -> parameters changed, losses added up; nothing read back.

On a GPU the step is recorded once per room as a CUDA graph and then replayed, at the cost of one launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from egocnn.config import TrainConfig
from egocnn.data.arrays import Ints
from egocnn.nn.engines.norm import Mode
from egocnn.nn.rows import Learning
from egocnn.nn.stacked.network import StackedNetwork
from egocnn.train.engines.recorded.batch import Room, build
from egocnn.train.engines.recorded.data import StackedData
from egocnn.train.engines.recorded.losses import Tally, judge
from egocnn.train.engines.recorded.optimise import StackedAdamW
from egocnn.train.engines.recorded.order import Turns

WARM_UP = 2
"""Runs before a step is recorded: kernels are compiled and libraries set up in them."""


class Turn:
    """Which step comes next, counted on the device, so that a replayed step moves on by itself."""

    def __init__(self, device: torch.device) -> None:
        self._number = torch.zeros(1, dtype=torch.int64, device=device)
        self.awake = torch.ones((), dtype=torch.bool, device=device)
        """false in warm-up, when a step computes everything and changes nothing"""

    def pick(self, of_steps: Tensor) -> Tensor:
        return of_steps.index_select(0, self._number)[0]

    def pass_on(self) -> None:
        self._number.add_(self.awake)

    def restart(self) -> None:
        self._number.zero_()


class TrainingStep:
    """Forward, backward and update."""

    def __init__(
        self,
        data: StackedData,
        network: StackedNetwork,
        optimizer: StackedAdamW,
        seeds: Sequence[int],
        config: TrainConfig,
        *,
        steps: int,
        width: int,
        class_weights: Tensor | None,
    ) -> None:
        device = data.node_ptr.device
        replicas = len(seeds)
        self._data, self._network, self._class_weights = data, network, class_weights
        self._parameters = list(network.parameters.values())
        self._optimizer = optimizer
        self._seeds = torch.tensor(seeds, dtype=torch.int64, device=device)
        self._chosen = torch.full((steps, replicas, width), -1, dtype=torch.int64, device=device)
        self._rates = torch.zeros(steps, replicas, dtype=torch.float64, device=device)
        self._lowered = device.type == "cuda" and config.precision in ("auto", "bfloat16")
        self.turn = Turn(device)
        self.tally = Tally(replicas, device)

    def begin(self, turns: Turns) -> None:
        """Take up an epoch."""
        self._chosen.copy_(torch.from_numpy(turns.chosen))
        self._rates.copy_(torch.from_numpy(turns.learning_rate))
        self.turn.restart()
        self.tally.sums.zero_()

    def __call__(self, room: Room) -> None:
        chosen, rate = self.turn.pick(self._chosen), self.turn.pick(self._rates)
        batch = build(self._data, chosen, room)
        active = batch.exists.any(1) & self.turn.awake
        rows = max(room.nodes, chosen.shape[1])
        dropout = self._network.draw(self._seeds, self._optimizer.steps, rows=rows)
        # recorded casts must be replayed every time, so none may come from the cache
        with torch.autocast("cuda", torch.bfloat16, enabled=self._lowered, cache_enabled=False):
            logits = self._network.logits(batch, Learning(Mode.of(batch.present, active), dropout))
        judged = judge(logits, batch, self._class_weights)
        gradients = torch.autograd.grad(judged.mean.sum(), self._parameters)
        self._optimizer.step(gradients, rate, active)
        self.tally.add(judged, batch.exists, active)
        self.turn.pass_on()


class EvaluationStep:
    """Forward in evaluation mode, in full precision, over the same portions in every epoch."""

    def __init__(
        self, data: StackedData, network: StackedNetwork, chosen: Ints, *, class_weights: Tensor | None
    ) -> None:
        device = data.node_ptr.device
        self._data, self._network, self._class_weights = data, network, class_weights
        self._chosen = torch.from_numpy(chosen).to(device)
        self.turn = Turn(device)
        self.tally = Tally(chosen.shape[1], device)

    def begin(self) -> None:
        self.turn.restart()
        self.tally.sums.zero_()

    @torch.no_grad()
    def __call__(self, room: Room) -> None:
        batch = build(self._data, self.turn.pick(self._chosen), room)
        judged = judge(self._network.logits(batch), batch, self._class_weights)
        self.tally.add(judged, batch.exists, self.turn.awake)
        self.turn.pass_on()


class Recorded:
    """A step that is called on a CPU, and recorded and replayed on a GPU."""

    def __init__(self, step: TrainingStep | EvaluationStep, device: torch.device, pool: Any) -> None:
        self._step, self._device, self._pool = step, device, pool
        self._graphs: dict[Room, torch.cuda.CUDAGraph] = {}

    def __call__(self, room: Room) -> None:
        if self._device.type != "cuda":
            self._step(room)
            return
        if room not in self._graphs:
            self._graphs[room] = self._record(lambda: self._step(room))
        self._graphs[room].replay()

    def _record(self, run: Callable[[], None]) -> torch.cuda.CUDAGraph:
        self._step.turn.awake.fill_(False)
        aside = _aside(self._device)
        aside.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                run()
        torch.cuda.current_stream(self._device).wait_stream(aside)
        self._step.turn.awake.fill_(True)
        graph = torch.cuda.CUDAGraph()
        # relaxed: a kernel may be met here for the first time, and loading it is allowed only so
        with torch.cuda.graph(graph, pool=self._pool, stream=aside, capture_error_mode="relaxed"):
            run()
        return graph


@cache
def _aside(device: torch.device) -> Any:
    """One stream for all recordings: torch keeps tens of megabytes for matrix products on every stream it has seen."""
    cuda: Any = torch.cuda  # its streams have no types
    return cuda.Stream(device)
