"""A step must be the same operations on the same shapes whatever the graphs, and wait for nothing: only then can a
CUDA graph record it. No GPU is needed to see that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from egocnn.nn.engines import ego_conv_reference
from egocnn.nn.stacked.network import StackedNetwork
from egocnn.train.engines.recorded.adamw import StackedAdamW
from egocnn.train.engines.recorded.joined import BatchShape, join, sizes_of
from egocnn.train.engines.recorded.schedule import Schedule, portions
from egocnn.train.engines.recorded.steps import EvaluationStep, StackedPresence, TrainingStep
from tests.support.tiny import SIZES, oxygens, plain_model, plain_train
from tests.train.recorded.stacks import replicas

CONFIG = plain_train(epochs=2, learning_rate=1e-2, batch_size=8)

READ_BACK = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "bincount", "repeat_interleave.Tensor")
"""operations whose result, or its shape, the host must wait for"""


Course = list[tuple[str, tuple[tuple[int, ...], ...]]]
"""the operations of a step, and the shapes they return"""


def watched(run: Callable[[], object]) -> Course:
    """Every operation that is run; one that waits is refused."""
    seen: Course = []

    def note(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ARG001
        name = str(func).removeprefix("aten.")
        assert not name.startswith(READ_BACK), f"{name} waits for the device"
        if name.startswith(("index.", "index_put")):
            assert not any(i is not None and i.dtype == torch.bool for i in args[1]), f"{name} by a mask waits"
        result = func(*args, **(kwargs or {}))
        flat = result if isinstance(result, (tuple, list)) else (result,)
        seen.append((name, tuple(tuple(each.shape) for each in flat if isinstance(each, Tensor))))
        return result

    watch: Any = type("Watch", (TorchDispatchMode,), {"__torch_dispatch__": note})
    with watch():
        run()
    return seen


def test_the_watch_sees_what_waits() -> None:
    numbers = torch.arange(3)
    for run in (numbers.max().item, numbers.nonzero, lambda: numbers[numbers > 1]):
        with pytest.raises(AssertionError, match="waits"):
            watched(run)
    assert watched(lambda: numbers.add_(1)) == [("add_.Tensor", ((3,),))]


def _reference(x: Tensor, table: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The engine of the CPU looks at the table; this one does not."""
    return torch.stack([ego_conv_reference(*each) for each in zip(x, table, weight, bias, strict=True)])


class _Bare:
    @staticmethod
    def of(table: Tensor) -> Tensor:
        return table


def _training(
    monkeypatch: pytest.MonkeyPatch, dropout: float = 0.2, parts: float = 0.0, **model: Any
) -> tuple[TrainingStep, Schedule]:
    monkeypatch.setattr("egocnn.nn.conv.ego_conv", _reference)
    monkeypatch.setattr("egocnn.nn.stacked.batch.Neighbours", _Bare)
    own = replicas([oxygens(60), oxygens(60)[:50]], plain_model(**(SIZES | model), dropout=dropout))
    data, numbers = join([(train, validation) for _, train, validation in own])
    schedule = Schedule([train for train, _ in numbers], [0, 1], sizes_of(data), CONFIG)
    whole = StackedNetwork([network for network, _, _ in own], torch.device("cpu"))
    optimizer = StackedAdamW(list(whole.parameters.values()), weight_decay=0.1)
    empty = torch.full((schedule.steps, 2, schedule.width), -1)
    seeds, first = torch.tensor([0, 1]), torch.tensor([int(train[0]) for train, _ in numbers])
    presence = StackedPresence(seeds, first, data.node_ptr, replace(CONFIG, parts=parts))
    step = TrainingStep(
        *(data, whole, empty, None, None),
        optimizer=optimizer,
        seeds=seeds,
        presence=presence if parts else None,
        precision="auto",
    )
    return step, schedule


ALIVE = np.ones(2, bool)


@pytest.mark.parametrize("readout", ["max", "mean", "sort"])
@pytest.mark.parametrize("parts", [0.0, 0.5])
def test_a_step_is_the_same_operations_on_the_same_shapes_and_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch, readout: str, parts: float
) -> None:
    step, schedule = _training(monkeypatch, readout=readout, parts=parts)
    plan = schedule.epoch(1, ALIVE)
    step.begin(plan)
    shape = BatchShape(128, 2048)
    courses = [watched(lambda: step(shape)) for _ in plan.shapes]
    assert len(courses) > 2
    assert len(courses[0]) > 100
    assert all(course == courses[0] for course in courses[1:])


def test_the_evaluation_waits_for_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("egocnn.nn.conv.ego_conv", _reference)
    monkeypatch.setattr("egocnn.nn.stacked.batch.Neighbours", _Bare)
    own = replicas([oxygens(60), oxygens(60)[:50]], plain_model(**SIZES))
    data, numbers = join([(train, validation) for _, train, validation in own])
    chosen, shape = portions([validation for _, validation in numbers], sizes_of(data), 40)
    assert len(chosen) > 1
    whole = StackedNetwork([network for network, _, _ in own], torch.device("cpu"))
    step = EvaluationStep(data, whole, torch.from_numpy(chosen), None, None)
    for _ in chosen:
        watched(lambda: step(shape))
    assert step.sums[2].tolist() == [len(validation) for _, validation in numbers]


def test_a_step_that_is_not_enabled_computes_everything_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    step, schedule = _training(monkeypatch)
    plan = schedule.epoch(1, ALIVE)
    step.begin(plan)
    tensors = [*step._network.state, step._optimizer.steps, *step._optimizer._first, *step._optimizer._second]
    before = [tensor.clone() for tensor in tensors]
    step.enabled.fill_(False)
    step(plan.shapes[0])
    assert all(torch.equal(now, then) for now, then in zip(tensors, before, strict=True))
    assert not step.sums.any()
    step.enabled.fill_(True)
    step(plan.shapes[0])
    assert not any(torch.equal(now, then) for now, then in zip(step._network.state, before, strict=False))
    assert step.sums[2].tolist() == [(plan.chosen[0, r] >= 0).sum() for r in range(2)]


@pytest.mark.parametrize("parts", [0.0, 0.5])
def test_more_padding_makes_no_difference(monkeypatch: pytest.MonkeyPatch, parts: float) -> None:
    results = []
    for spare in (0, 37):
        step, schedule = _training(monkeypatch, parts=parts)
        plan = schedule.epoch(1, ALIVE)
        step.begin(plan)
        for shape in plan.shapes:
            step(BatchShape(shape.nodes + spare, shape.entries + 5 * spare))
        results.append([*step._network.state, step.sums])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
