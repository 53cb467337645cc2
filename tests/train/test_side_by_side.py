"""Networks that train side by side on a CPU: the same bits, one error or Ctrl-C for all, and never too many at once."""

import math
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from egocnn.config import TrainConfig
from egocnn.nn.rows import SeededDropout, drawing_from
from egocnn.train import loop
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines import plain
from egocnn.train.engines.common import Member, Progress
from egocnn.train.engines.plain import gains_from_threads
from egocnn.train.history import Epoch, History
from egocnn.train.metrics import evaluate
from tests.support.samples import sure
from tests.support.tiny import MODEL, PATIENCE, alcohols, parts, plain_train, same, state

DROPPING = replace(MODEL, dropout=0.3, pool_dropout=0.5)
CONFIG = plain_train(epochs=5, patience=5, learning_rate=1e-2, batch_size=3, parts=0.5)
EARLY = replace(CONFIG, patience=2, learning_rate=1e-6, epochs=12)


def members(number: int = 3) -> list[Member]:
    """Fresh networks of different seeds, which share their graphs."""
    networks = [parts(alcohols(), DROPPING, seed=seed)[0] for seed in range(number)]
    _, train, validation = parts(alcohols(), DROPPING)
    return [Member(network, train, validation, seed) for seed, network in enumerate(networks)]


def fit(several: Sequence[Member], threads: int, config: TrainConfig = CONFIG, **settings: Any) -> list[History]:
    torch.set_num_threads(threads)
    return loop.fit(several, config, **settings)


def weights(several: Sequence[Member]) -> list[dict[str, Tensor]]:
    return [state(member.network) for member in several]


def epochs(histories: Sequence[History]) -> list[list[Epoch]]:
    return [[replace(epoch, seconds=0) for epoch in history.epochs] for history in histories]


def all_same(some: Sequence[Member], others: Sequence[Member]) -> bool:
    return all(same(one, other) for one, other in zip(weights(some), weights(others), strict=True))


class Forwards:
    """Notes the thread of every forward pass of some networks, and torch's threads in it."""

    def __init__(self, several: Sequence[Member]) -> None:
        self.found: set[tuple[bool, int]] = set()
        for member in several:
            member.network.register_forward_pre_hook(self._note)

    def _note(self, *_: object) -> None:
        self.found.add((threading.current_thread() is threading.main_thread(), torch.get_num_threads()))


# ── the same bits ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("config", "several_threads"), [(CONFIG, (1, 2, 3)), (EARLY, (2,))], ids=["whole", "early"])
def test_weights_and_histories_are_those_of_each_network_alone_however_many_train_at_a_time(
    config: TrainConfig, several_threads: tuple[int, ...]
) -> None:
    """Also of networks that stop early, which do not hold up the others."""
    alone = members()
    expected = [fit([member], 1, config)[0] for member in alone]
    assert len({history.epochs[-1].train_loss for history in expected}) == 3
    assert all((len(history.epochs) < config.epochs) == (config == EARLY) for history in expected)
    for threads in several_threads:
        several = members()
        forwards = Forwards(several)
        histories = fit(several, threads, config)
        assert forwards.found == {(threads == 1, 1)}
        assert all_same(several, alone)
        assert epochs(histories) == epochs(expected)


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (300, 40), (0, 4)])
def test_dropout_from_a_generator_of_its_own_is_that_of_torch_bit_for_bit(shape: tuple[int, int]) -> None:
    x = torch.randn(shape, requires_grad=True)
    dropout, generator = SeededDropout(0.3), torch.Generator().manual_seed(5)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        expected = [F.dropout(x, 0.3) for _ in range(2)]
        before = torch.get_rng_state()
        with drawing_from(generator, nn.Sequential(dropout)):
            found = [dropout(x) for _ in range(2)]
        assert torch.equal(torch.get_rng_state(), before)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(*(torch.autograd.grad(each.sum(), x)[0] for each in (one, other)))
    assert dropout.generator is None
    assert torch.equal(dropout.eval()(x), x)


# ── ends ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_broken_training_of_three_goes_on_to_the_weights_of_an_unbroken_one(tmp_path: Path) -> None:
    unbroken = members()
    expected = fit(unbroken, 2)
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", "this run")
    for threads, last in ((2, 1), (1, 4), (3, None)):

        def stop(histories: Sequence[History], _: TrainConfig, last: int | None = last) -> None:
            if len(histories[0].epochs) == last:
                raise KeyboardInterrupt

        resumed = members()
        found = fit(resumed, threads, resume=checkpoint.resume, keep=checkpoint.keep, report=stop)
    assert all_same(resumed, unbroken)
    assert epochs(found) == epochs(expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_in_the_middle_of_an_epoch_forgets_that_epoch_of_all_networks(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    several, after_epoch, stopped, told, pressed = members(), [], threading.Event(), [], list[RemovableHandle]()

    class Noted(threading.Event):
        def set(self) -> None:
            super().set()
            stopped.set()

    monkeypatch.setattr(plain, "Event", Noted)

    def keep(progress: Sequence[Progress]) -> None:
        after_epoch.append(weights(several))
        if len(after_epoch) == 2:
            pressed.append(progress[1].optimizer.register_step_pre_hook(press_ctrl_c))

    def press_ctrl_c(*_: object) -> None:
        pressed[0].remove()  # once: a test whose Ctrl-C is not heard must fail, not wait again at every step
        os.kill(os.getpid(), signal.SIGINT)
        if threads > 1:
            told.append(stopped.wait(PATIENCE))

    histories = fit(several, threads, keep=keep)
    assert all(told), "the other networks must not go on to the end of the epoch"
    assert all(history.interrupted and len(history.epochs) == 2 for history in histories)
    for r, (member, history) in enumerate(zip(several, histories, strict=True)):
        assert same(state(member.network), after_epoch[sure(history.best).epoch - 1][r])
        assert not member.network.training
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("network")]


def test_an_error_in_one_network_ends_all_and_is_the_one_that_is_raised() -> None:
    several = members()

    def fail(*_: object) -> None:
        raise ValueError("a defect")

    def spoil(progress: Sequence[Progress]) -> None:
        progress[2].optimizer.register_step_pre_hook(fail)

    with pytest.raises(ValueError, match="a defect"):
        fit(several, 2, keep=spoil)


def test_a_network_that_diverges_keeps_its_best_weights_and_leaves_the_others_alone() -> None:
    spoiled, sound = members(), members()

    def spoil(histories: Sequence[History], _: TrainConfig) -> None:
        if len(histories[1].epochs) == 3:
            with torch.no_grad():
                spoiled[1].network.out.weight.fill_(math.nan)

    found, expected = fit(spoiled, 2, report=spoil), fit(sound, 2)
    assert math.isnan(found[1].epochs[-1].validation_loss)
    assert found[1].best is not None
    assert found[1].best.epoch <= 3
    assert all(bool(torch.isfinite(value).all()) for value in state(spoiled[1].network).values())
    assert evaluate(spoiled[1].network, spoiled[1].validation)[0] == found[1].best.validation_loss
    for r in (0, 2):
        assert same(state(spoiled[r].network), state(sound[r].network))
        assert epochs([found[r]]) == epochs([expected[r]])


# ── threads ───────────────────────────────────────────────────────────────────────────────────────


def test_torch_has_its_threads_back_and_the_seconds_of_all_networks_are_those_of_the_training() -> None:
    started = time.perf_counter()
    histories = fit(members(), 2)
    elapsed = time.perf_counter() - started
    assert 0 < sum(epoch.seconds for history in histories for epoch in history.epochs) <= elapsed
    found = []  # in threads to come, too
    later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert [torch.get_num_threads(), *found] == [2, 2]


def test_one_network_large_batches_and_modules_of_the_user_take_all_threads_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    several = members()
    assert gains_from_threads(several, CONFIG)
    assert not gains_from_threads(several[:1], CONFIG)
    several[1].network.custom_embedding = True
    assert not gains_from_threads(several, CONFIG)
    several[1].network.custom_embedding = False
    monkeypatch.setattr(plain, "LARGE", 5)
    assert not gains_from_threads(several, CONFIG)
    forwards = Forwards(several)
    fit(several, 2, replace(CONFIG, epochs=1))
    assert forwards.found == {(True, 2)}


def test_so_many_networks_compute_at_a_time_and_whoever_has_computed_comes_after_those_who_wait() -> None:
    """While the first network is held up, the others take turns, batch by batch, on the second thread."""
    several, order, inside, done = members(4), list[int](), set[int](), threading.Event()

    def enter(r: int) -> None:
        inside.add(r)
        assert len(inside) <= 2
        if r == 0:
            assert done.wait(PATIENCE)
        elif not done.is_set():
            order.append(r)

    def leave(r: int) -> None:
        inside.discard(r)
        if len(order) == 6:
            done.set()

    for r, member in enumerate(several):
        member.network.register_forward_pre_hook(lambda *_, r=r: enter(r))
        member.network.register_forward_hook(lambda *_, r=r: leave(r))
    fit(several, 2, replace(CONFIG, epochs=1))
    assert order == [1, 2, 3] * 2
