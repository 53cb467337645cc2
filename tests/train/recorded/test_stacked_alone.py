"""A single network trained as a stack of one: checkpoints and memory as in the ordinary loop."""

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from egocnn.config import Device
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines.recorded.engine import RecordedEngine
from egocnn.train.history import History, Report
from tests.support.strategies import random_trees
from tests.support.tiny import (
    MODEL,
    SIZES,
    alcohols,
    fit,
    fit_recorded,
    oxygens,
    parts,
    plain_model,
    plain_train,
    stop_after,
)
from tests.train.recorded.stacks import assert_close, assert_same_course, replicas

CONFIG = plain_train(epochs=6, patience=6, learning_rate=1e-2, batch_size=7, device="cpu")
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

Fit = Callable[..., History]


# ── checkpoints ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("tie", "missing"), [(False, 0.0), (True, 0.0), (False, 0.7)])
@pytest.mark.parametrize("order", [(fit, fit_recorded), (fit_recorded, fit)], ids=["into the stack", "out of it"])
def test_either_loop_goes_on_from_a_checkpoint_of_the_other(
    order: tuple[Fit, Fit], tie: bool, missing: float, tmp_path: Path
) -> None:
    """Without dropout, whose choices differ, it makes no difference which loop has computed which epochs."""
    model, config = plain_model(**SIZES, tie=tie, dropout=0.0), replace(CONFIG, parts=missing)
    ((whole, train, validation),) = replicas([oxygens()], model)
    expected = fit(whole, train, validation, config)
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", "this run")
    first, second = order
    ((begun, _, _),), ((ended, _, _),) = (replicas([oxygens()], model) for _ in range(2))
    first(begun, train, validation, config, keep=checkpoint.keep, report=stop_after(3))
    history = second(ended, train, validation, config, resume=checkpoint.resume)
    assert_close(whole, ended, 1e-6)
    assert_same_course(expected, history, 1e-5)


@gpu
@pytest.mark.parametrize("devices", [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_run_begun_on_one_device_goes_on_on_the_other(devices: tuple[Device, Device], tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", "this run")
    model = replace(MODEL, dropout=0.0)
    network, train, validation = parts(oxygens(), model)
    config = replace(CONFIG, learning_rate=1e-3, precision="float32")
    expected = fit(network, train, validation, config)
    loops: dict[str, Fit] = {"cpu": fit, "cuda": fit_recorded}
    one, other = devices
    network, _, _ = parts(oxygens(), model)
    loops[one](network, train, validation, replace(config, device=one), keep=checkpoint.keep, report=stop_after(3))
    network, _, _ = parts(oxygens(), model)
    history = loops[other](network, train, validation, replace(config, device=other), resume=checkpoint.resume)
    for left, right in zip(expected.epochs, history.epochs, strict=True):
        assert left.train_loss == pytest.approx(right.train_loss, abs=2e-3)


# ── memory ────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def without_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("report", [None, stop_after(2)], ids=["finished", "interrupted"])
def test_nothing_of_the_stack_outlives_the_training(report: Report | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even until the garbage collector comes: what it holds is the GPU's memory."""
    alive: list[weakref.ref[RecordedEngine]] = []

    class Watched(RecordedEngine):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            alive.append(weakref.ref(self))

    monkeypatch.setattr("egocnn.train.loop.RecordedEngine", Watched)
    network, train, validation = parts(alcohols())
    with without_collector():
        fit_recorded(network, train, validation, CONFIG, report=report)
        assert [reference() for reference in alive] == [None]


@gpu
def test_a_gpu_is_left_with_the_weights_alone() -> None:
    config = replace(CONFIG, device="cuda")
    fit_recorded(*parts(alcohols()), config)  # libraries set up their own memory, once
    before = torch.cuda.memory_reserved()
    network, train, validation = parts(alcohols())
    with without_collector():
        fit_recorded(network, train, validation, config)
        weights = sum(value.numel() * value.element_size() for value in network.state_dict().values())
        assert torch.cuda.memory_reserved() - before <= max(2 * weights, 1 << 22)


@gpu
def test_a_batch_that_does_not_fit_a_gpu_is_told_as_such_and_leaves_nothing_behind() -> None:
    graphs = random_trees(64, nodes=2000, seed=0, target=torch.arange(64).numpy() % 2, class_names=("a", "b"))
    network, train, validation = parts(graphs, plain_model(width=512, depth=4))
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    whole = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (1 << 28)) / whole)
    try:
        with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
            fit_recorded(network, train, validation, replace(CONFIG, batch_size=64, device="cuda"))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    network.cpu()
    gc.collect()
    assert torch.cuda.memory_allocated() - before < 1 << 24
    fit_recorded(*parts(alcohols()), replace(CONFIG, device="cuda"))
