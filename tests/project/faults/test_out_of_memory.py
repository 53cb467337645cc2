"""Memory that does not suffice: the same losses, answers and structures, computed in parts, with one warning."""

import gc
import logging
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from egocnn.config import ExplainConfig
from egocnn.data.graphs import Graphs
from egocnn.explain import explain
from egocnn.explain.structure import CriticalStructure
from egocnn.nn.device import attempt, by_halves, warn
from egocnn.train import loop
from egocnn.train.engines.parts import GradientStep, add_gradients
from egocnn.train.history import History
from egocnn.train.metrics import loss_of, weight_of
from egocnn.train.recipe import learn, prepare_replicas
from tests.support.strategies import random_trees
from tests.support.tiny import (
    MODEL,
    SIZES,
    TRAIN,
    alcohols,
    fit,
    fit_recorded,
    oxygens,
    parts,
    plain_model,
    plain_train,
)
from tests.train.recorded.stacks import cast, replicas


class Memory:
    """Counts the bytes of all tensors that are computed inside and still there; beyond ``most`` it is a full GPU."""

    def __init__(self, most: float = float("inf")) -> None:
        self.most = most
        self.held = self.peak = self.refused = 0
        self._known: dict[int, Any] = {}
        # made on the fly: torch gives its class no types to inherit
        methods = {"__torch_dispatch__": lambda _, *call: self._run(*call)}
        self._mode: Any = type("Mode", (TorchDispatchMode,), methods)()

    def __enter__(self) -> Self:
        self._mode.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._mode.__exit__(*error)

    def _run(
        self, func: Callable[..., Any], _: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        for value in tree_leaves(found):
            if isinstance(value, Tensor):
                self._hold(value.untyped_storage())
        return found

    def _hold(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        if self.held + size > self.most:
            self.refused += 1
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes.")
        self._known[key] = weakref.finalize(storage, self._free, key, size)
        self.held += size
        self.peak = max(self.peak, self.held)

    def _free(self, key: int, size: int) -> None:
        del self._known[key]
        self.held -= size


DRY = plain_model(**SIZES, dropout=0.0)
"""without dropout, which in parts drops other activations"""
BATCHES = replace(TRAIN, epochs=2, batch_size=16, device="cpu")


Fit = Callable[..., History]
Warnings = Callable[[], list[str]]


@pytest.fixture(autouse=True, scope="module")
def _little_garbage() -> Iterator[None]:
    """Garbage is collected after every refusal: what other tests left alive need not be looked through each time."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Warnings]:
    """The warnings so far, each given anew in every test."""
    warn.cache_clear()
    caplog.set_level(logging.WARNING, "egocnn")
    yield lambda: [record.getMessage() for record in caplog.records]
    warn.cache_clear()


def check_same(*histories: History) -> None:
    one, other = (
        [(e.train_loss, e.validation_loss, e.train_score, e.validation_score) for e in history.epochs]
        for history in histories
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("run", [fit, fit_recorded])
@pytest.mark.parametrize(
    ("graphs", "changes"),
    [
        (alcohols(), {}),
        (alcohols(), {"tie": True, "head_norm": True, "pool_norm": True}),
        (alcohols(), {"readout": "sort", "sort_nodes": 4}),
        (oxygens(), {}),
    ],
)
def test_a_training_with_too_little_memory_ends_as_one_with_enough(
    run: Fit, graphs: Graphs, changes: dict[str, Any], warnings: Warnings
) -> None:
    """The step that fails changes the statistics of the norms; they are as if it had not been tried."""
    model = replace(DRY, **changes)
    # in double precision: a bias before a norm has no slope, and AdamW makes steps of what rounding leaves of it
    (one,), (other,) = replicas([graphs], model), replicas([graphs], model)
    with Memory() as enough:
        unbroken = run(*one, BATCHES)
    assert warnings() == []
    with Memory(0.6 * enough.peak) as little:
        history = run(*other, BATCHES)
    assert little.refused
    check_same(history, unbroken)
    torch.testing.assert_close(other[0].state_dict(), one[0].state_dict(), rtol=1e-5, atol=1e-7)
    in_parts = "out of memory: batches are computed in parts from here on, with the same result"
    unrecorded = "out of memory: steps are no longer recorded, which is slower and gives the same result"
    assert warnings()[0] == (in_parts if run is fit else unrecorded)


def test_parts_take_less_memory_the_more_there_are_and_where_no_graph_fits_the_error_is_passed_on() -> None:
    network, train, _ = parts(oxygens(200), replace(DRY, width=32))
    chosen, peaks = torch.arange(len(train)), []
    for number in (1, 2, 8):
        with Memory() as memory:
            step_of(network, train, number).compute(chosen)
        peaks.append(memory.peak)
    assert peaks[1] < 0.7 * peaks[0]
    assert peaks[2] < 0.5 * peaks[1]
    with Memory(2000), pytest.raises(torch.OutOfMemoryError):
        fit(*parts(alcohols(), DRY), BATCHES)


def test_an_error_on_top_of_the_one_that_counts_does_not_hide_it_and_others_are_passed_on() -> None:
    def end_recording() -> None:
        try:
            raise torch.OutOfMemoryError("CUDA out of memory")
        finally:
            raise RuntimeError("the recording was invalidated")

    assert attempt(end_recording) is None

    def fail() -> None:
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        attempt(fail)


def step_of(network: Any, train: Any, number: int, weights: torch.Tensor | None = None) -> GradientStep:
    def forward(chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch = train.batch(chosen)
        return network(batch).output, batch.target

    return GradientStep(
        network, forward, partial(loss_of, weights=weights), partial(weight_of, weights=weights), number
    )


class Odd(nn.Module):
    """Norms of several kinds, one used twice, and one whose result is not used."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = nn.BatchNorm1d(width), nn.BatchNorm1d(width, affine=False, momentum=None)
        self.three = nn.BatchNorm2d(2)
        self.four = nn.BatchNorm1d(width, track_running_stats=False)
        self.mix = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.mix(self.one(x)))
        h = torch.sin(self.one(h)) + self.two(x * h)
        self.four(h)
        square = self.three(torch.stack([h, h.square()], dim=1)[:, :, :, None] * torch.tensor([1.0, 2.0]).to(h))
        total: torch.Tensor = torch.exp(-square.sum(dim=(1, 3)).square()).sum(dim=1)
        return total


@given(rows=st.integers(2, 12), number=st.integers(1, 5), seed=st.integers(0, 1000))
def test_gradients_and_statistics_of_parts_are_those_of_the_whole(rows: int, number: int, seed: int) -> None:
    torch.manual_seed(seed)
    x = torch.randn(rows, 3, dtype=torch.float64)
    whole, torn = Odd(3).double(), Odd(3).double()
    torn.load_state_dict(whole.state_dict())
    torch.autograd.backward(whole(x).sum())
    several = torch.tensor_split(x, number)
    add_gradients(torn, number, lambda part: torn(several[part]).sum())
    for name, parameter in whole.named_parameters():
        found = torn.get_parameter(name).grad
        assert (found is None) == (parameter.grad is None), name
        if found is not None and parameter.grad is not None:
            torch.testing.assert_close(found, parameter.grad, rtol=1e-6, atol=1e-8)
    for name, buffer in whole.named_buffers():
        torch.testing.assert_close(torn.get_buffer(name), buffer, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("graphs", [alcohols(), oxygens(20)])
def test_a_weighted_loss_and_its_gradients_are_the_same_in_parts(graphs: Graphs) -> None:
    model = replace(DRY, head_norm=True, pool_norm=True, jump=True, count_inputs=True)
    ((network, train, _),) = replicas([graphs], model)
    weights = None if not graphs.is_classification else torch.tensor([0.3, 2.0]).double()
    assert train.target is not None
    train = train if graphs.is_classification else replace(train, target=train.target.double())
    network.train()
    found = []
    for number in (1, 2, 3, len(train)):
        outputs, _, loss = step_of(network, train, number, weights).compute(torch.arange(len(train)))
        found.append((outputs, loss, {n: p.grad for n, p in network.named_parameters() if p.grad is not None}))
    for each in found[1:]:
        torch.testing.assert_close(each, found[0], rtol=1e-7, atol=1e-10)


def test_dropout_drops_the_same_in_every_pass_and_leaves_the_random_numbers_alone() -> None:
    network, train, _ = parts(alcohols(), replace(MODEL, dropout=0.5))
    network.train()
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        step = step_of(network, train, 3)
        outputs, _, _ = step.compute(torch.arange(len(train)))
        found.append((outputs, torch.rand(4), [p.grad for p in network.parameters() if p.grad is not None]))
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("share", [0.7, 0.15])
def test_models_that_do_not_fit_together_are_trained_one_after_the_other(share: float, warnings: Warnings) -> None:
    config = replace(BATCHES, epochs=2)
    collections = [alcohols(), alcohols()[::-1]]

    def train(memory: Memory) -> list[History]:
        prepared = prepare_replicas(collections, DRY, config, [[0, 1], [2, 3]])
        several = [replica for own in prepared for replica in own]
        for number, replica in enumerate(several):
            replica.predictor.networks[0].double()
            learned, validation = (cast(part.in_memory(), torch.float64) for part in replica.parts)
            several[number] = replace(replica, parts=(learned, validation))
        with memory:
            return loop.fit([member for replica in several for member in replica.members], config, engine="recorded")

    enough = Memory()
    unbroken = train(enough)
    little = Memory(share * enough.peak)
    for one, other in zip(train(little), unbroken, strict=True):
        check_same(one, other)
    assert little.refused
    assert warnings()[0] == "out of memory: fewer models are trained at a time, with the same result"


@pytest.mark.parametrize("technique", ["relevance", "occlusion"])
def test_graphs_that_do_not_fit_together_are_predicted_and_explained_alike(technique: Any, warnings: Warnings) -> None:
    predictor, _ = learn(alcohols(), DRY, replace(TRAIN, epochs=2))

    def answer(memory: Memory) -> tuple[Any, list[CriticalStructure]]:
        with memory:
            found = explain(predictor, alcohols(), ExplainConfig(technique=technique))
            return predictor.probabilities(alcohols()), found

    enough = Memory()
    probabilities, structures = answer(enough)
    little = Memory(0.4 * enough.peak)
    again, structures_again = answer(little)
    assert little.refused
    np.testing.assert_allclose(again, probabilities, rtol=1e-5)
    for one, other in zip(structures, structures_again, strict=True):
        np.testing.assert_array_equal(one.critical_nodes, other.critical_nodes)
        np.testing.assert_allclose(one.node_importance, other.node_importance, rtol=1e-4, atol=1e-6)
    assert warnings() == ["out of memory: fewer graphs are read at a time, with the same result"]


@pytest.mark.parametrize(("numbers", "most"), [(1, 2), (7, 2), (12, 5), (12, 12)])
def test_halves_come_in_order_and_none_is_left_out(numbers: int, most: int) -> None:
    def run(chosen: torch.Tensor) -> list[int]:
        if len(chosen) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [int(each) for each in chosen]

    assert [each for some in by_halves(run, torch.arange(numbers)) for each in some] == list(range(numbers))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("run", [fit, fit_recorded])
def test_a_gpu_with_too_little_memory_trains_to_the_same_losses(run: Fit, warnings: Warnings) -> None:
    graphs = random_trees(72, nodes=2000, seed=0, target=np.arange(72) % 2, class_names=("a", "b"))
    model = plain_model(width=64, depth=3, dropout=0.0)
    config = plain_train(epochs=2, batch_size=64, device="cuda", precision="float32")
    network, train, validation = parts(graphs, model)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, whole = torch.cuda.memory_reserved(), torch.cuda.get_device_properties(0).total_memory
    unbroken = run(network, train, validation, config)
    most = before + 0.6 * (torch.cuda.max_memory_reserved() - before)
    del network
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(most / whole)
    try:
        history = run(parts(graphs, model)[0], train, validation, config)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert warnings()
    found, expected = ([epoch.train_loss for epoch in each.epochs] for each in (history, unbroken))
    np.testing.assert_allclose(found, expected, rtol=1e-3)
