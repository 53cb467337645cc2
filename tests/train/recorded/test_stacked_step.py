"""A step must be the same operations on the same shapes whatever the graphs, and wait for nothing: only then can a
CUDA graph record it. No GPU is needed to see that."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from egocnn.data.arrays import Ints
from egocnn.encode.encoder import Encoder
from egocnn.nn.engines import ego_conv_reference
from egocnn.nn.stacked import StackedNetwork
from egocnn.train.engines.common import epoch_seed
from egocnn.train.engines.recorded.adamw import StackedAdamW
from egocnn.train.engines.recorded.batches import BatchShape, Schedule, batch_of, join, portions, sizes_of
from egocnn.train.engines.recorded.steps import EvaluationStep, StackedPresence, TrainingStep
from tests.support.samples import sure
from tests.support.strategies import random_graphs
from tests.support.tiny import SIZES, alcohols, oxygens, parts, plain_model, plain_train
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
    monkeypatch.setattr("egocnn.nn.stacked.Neighbours", _Bare)
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
    monkeypatch.setattr("egocnn.nn.stacked.Neighbours", _Bare)
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


SMALLEST = plain_model(k=3, slots=3, width=4, hidden=4)


@given(st.data())
def test_every_replica_reads_the_batch_that_it_would_read_alone(data: st.DataObject) -> None:
    graphs = data.draw(random_graphs(classes=True, min_graphs=2, min_nodes=0).filter(lambda g: g.n_nodes > 0))
    prepared = Encoder.fit(graphs, SMALLEST).apply(graphs, SMALLEST)
    other = Encoder.fit(graphs, SMALLEST).apply(graphs[::-1], SMALLEST)
    joined, numbers = join([(prepared, other), (other, prepared)])
    rows = st.lists(st.integers(-1, len(graphs) - 1), min_size=3, max_size=3)
    chosen = np.array([data.draw(rows), data.draw(rows)])
    numbered = np.where(chosen >= 0, np.stack([numbers[r][0][chosen[r]] for r in range(2)]), -1)
    most = [int(np.where(numbered >= 0, of[numbered], 0).sum(1).max()) for of in sizes_of(joined)]
    shape = BatchShape(most[0] + data.draw(st.integers(1, 3)), most[1] + data.draw(st.integers(1, 3)))
    batch = batch_of(joined, torch.from_numpy(numbered), shape)
    for r, collection in enumerate((prepared, other)):
        there = chosen[r] >= 0
        expected = collection.batch(torch.from_numpy(chosen[r][there]))
        nodes, entries = len(expected.place), len(expected.bags.rows)
        assert batch.exists[r].tolist() == there.tolist()
        assert batch.present[r].tolist() == [True] * nodes + [False] * (shape.nodes - nodes)
        assert torch.equal(batch.table[r, :nodes].long(), expected.neighbours.table.long())
        assert (batch.table[r, nodes:] == -1).all()
        assert batch.node_counts[r, :-1][torch.from_numpy(there)].tolist() == expected.node_counts.tolist()
        assert int(batch.node_counts[r].sum()) == shape.nodes
        assert batch.graph_of[r, :nodes].tolist() == np.flatnonzero(there)[expected.graph_of.numpy()].tolist()
        assert (batch.graph_of[r, nodes:] == 3).all()
        assert torch.equal(batch.rows[r, :entries], expected.bags.rows)
        counts = torch.diff(expected.bags.offsets.long(), append=torch.tensor([entries]))
        assert torch.equal(batch.owner[r, :entries], torch.repeat_interleave(torch.arange(nodes), counts))
        assert (batch.owner[r, entries:] == shape.nodes).all()
        assert torch.equal(batch.attributes[r, :nodes], expected.attributes)
        assert batch.target[r][torch.from_numpy(there)].tolist() == sure(expected.target).tolist()
        for graph in range(3):
            mine = batch.graph_of[r] == graph
            place = expected.place[mine[:nodes]]
            assert torch.equal(torch.argsort(batch.place[r][mine]), torch.argsort(place))


def _schedule(n_graphs: list[int], batch_size: int, seeds: list[int]) -> tuple[Schedule, Ints]:
    graphs = [np.arange(n) + 100 * r for r, n in enumerate(n_graphs)]
    sizes = np.stack([np.arange(1000) % 13 + 1, np.arange(1000) % 7])
    return Schedule(graphs, seeds, sizes, plain_train(batch_size=batch_size, epochs=3)), sizes


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 99))
def test_the_batches_are_those_of_the_ordinary_loop_and_fit_their_shapes(
    n_graphs: list[int], batch_size: int, seed: int
) -> None:
    schedule, sizes = _schedule(n_graphs, batch_size, [seed + r for r in range(len(n_graphs))])
    plan = schedule.epoch(2, np.ones(len(n_graphs), bool))
    for r, n in enumerate(n_graphs):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(epoch_seed(seed + r, 2))
            expected = torch.tensor_split(torch.randperm(n), -(-n // batch_size))
        for step, batch in enumerate(plan.chosen[:, r]):
            mine = batch[batch >= 0] - 100 * r
            assert mine.tolist() == (expected[step].tolist() if step < len(expected) else [])
    for batch, shape in zip(plan.chosen, plan.shapes, strict=True):
        for of, places in zip(sizes, shape, strict=True):
            assert np.where(batch >= 0, of[batch], 0).sum(1).max() <= places


def test_a_replica_that_has_stopped_reads_nothing_shapes_are_few_and_what_is_shared_is_stored_once() -> None:
    schedule, _ = _schedule([10, 10], 4, [0, 1])
    plan = schedule.epoch(1, np.array([True, False]))
    assert (plan.chosen[:, 1] == -1).all()
    assert (plan.chosen[:, 0] >= 0).any()
    nodes = np.random.default_rng(0).integers(10, 50, 4000)
    sizes = np.stack([nodes, np.full(4000, 300)])
    schedule = Schedule([np.arange(4000)] * 5, range(5), sizes, plain_train())
    shapes = {shape for epoch in range(1, 4) for shape in schedule.epoch(epoch, np.ones(5, bool)).shapes}
    assert len(shapes) <= 5
    assert all(shape.nodes < 1.5 * 32 * nodes.mean() for shape in shapes)
    _, train, validation = parts(alcohols())
    joined, numbers = join([(train, validation)] * 3)
    assert len(joined.steps) == len(train.steps) + len(validation.steps)
    assert all(np.array_equal(pair[0], np.arange(len(train))) for pair in numbers)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=4), st.integers(1, 300))
def test_portions_hold_every_graph_once(n_graphs: list[int], nodes_at_once: int) -> None:
    graphs = [np.arange(n) + 20 * r for r, n in enumerate(n_graphs)]
    sizes = np.stack([np.arange(100) % 9, np.arange(100) % 5])
    chosen, shape = portions(graphs, sizes, nodes_at_once)
    for r, own in enumerate(graphs):
        held = chosen[:, r].flatten()
        assert held[held >= 0].tolist() == own.tolist()
    assert np.where(chosen >= 0, sizes[0, chosen], 0).sum(2).max() <= shape.nodes
    assert np.where(chosen >= 0, sizes[1, chosen], 0).sum(2).max() <= shape.entries
