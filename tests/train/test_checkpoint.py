from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from egocnn.config import Device, ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import RunError
from egocnn.train import loop
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines.common import Member, Progress
from egocnn.train.history import History
from egocnn.train.loop import EngineName
from tests.support.commands import files_of_at_most
from tests.support.samples import sure
from tests.support.tiny import (
    MODEL,
    SIZES,
    TRAIN,
    alcohols,
    fit,
    names_in,
    oxygens,
    parts,
    plain_model,
    same,
    state,
    stop_after,
    with_opposite_classes,
)

LONG = replace(TRAIN, epochs=6, patience=6)
GPU = pytest.param("recorded", "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))


def progress_of(model: ModelConfig = MODEL) -> Progress:
    network, _, _ = parts(alcohols(), model)
    return Progress.begin(network, TRAIN)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file after two epochs."""
    checkpoint = Checkpoint(tmp_path_factory.mktemp("run") / "checkpoint.safetensors", "this run")
    fit(*parts(alcohols()), LONG, keep=checkpoint.keep, report=stop_after(2))
    return checkpoint.path.read_bytes()


@pytest.fixture
def path(stored: bytes, tmp_path: Path) -> Path:
    (tmp_path / "checkpoint.safetensors").write_bytes(stored)
    return tmp_path / "checkpoint.safetensors"


@pytest.mark.parametrize(
    ("graphs", "changes"),
    [(alcohols(), {}), (oxygens(), {"tie": True}), (oxygens(), {"readout": "sort", "sort_nodes": 4})],
    ids=["classes", "values, tied", "values, sorted"],
)
@pytest.mark.parametrize(("engine", "device"), [("plain", "cpu"), ("recorded", "cpu"), GPU])
def test_a_broken_training_goes_on_to_the_weights_and_history_of_an_unbroken_one(
    graphs: Graphs, changes: dict[str, object], engine: EngineName, device: Device, tmp_path: Path
) -> None:
    """Bit by bit, dropout included."""
    model, config = plain_model(**(SIZES | changes), dropout=0.3), replace(LONG, device=device, batch_size=7)
    unbroken, train, validation = parts(graphs, model)
    whole = fit(unbroken, train, validation, config, engine=engine)

    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", "this run")
    for epochs in (1, 4, None):  # killed twice
        network, _, _ = parts(graphs, model)
        report = None if epochs is None else stop_after(epochs)
        resume, keep = checkpoint.resume, checkpoint.keep
        history = fit(network, train, validation, config, engine=engine, resume=resume, keep=keep, report=report)
    assert same(state(network), state(unbroken))
    assert [replace(e, seconds=0) for e in history.epochs] == [replace(e, seconds=0) for e in whole.epochs]
    assert sure(history.best).epoch == sure(whole.best).epoch
    assert not history.interrupted
    assert names_in(tmp_path) == ["checkpoint.safetensors"]
    first, second = (conv.get_parameter("weight") for conv in network.convs)
    assert (first is second) == model.tie


def test_the_best_weights_are_kept_and_the_checkpoint_of_another_run_or_network_is_refused(path: Path) -> None:
    progress = progress_of()
    Checkpoint(path, "this run").resume([progress])
    assert len(progress.history.epochs) == 2
    assert progress.best.keys() == progress.network.state_dict().keys()
    moments = progress.optimizer.state_dict()["state"]
    assert len(moments) == sum(p.numel() > 0 for p in progress.network.parameters())
    assert {int(m["step"]) for m in moments.values()} == {2}
    with pytest.raises(RunError, match="was started with other data or settings; use them, or --overwrite"):
        Checkpoint(path, "another run").resume([progress_of()])
    for others in ([progress_of(plain_model(**(SIZES | {"width": 4})))], [progress_of(), progress_of()]):
        with pytest.raises(RunError, match="damaged"):
            Checkpoint(path, "this run").resume(others)


def check_damaged(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"damaged \(.*\); --overwrite starts the run anew") as refusal:
        Checkpoint(path, "this run").resume([progress_of()])
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 0.5, 0.999])
def test_a_file_cut_short_is_refused(share: float, stored: bytes, tmp_path: Path) -> None:
    check_damaged(stored[: int(share * len(stored))], tmp_path / "checkpoint.safetensors")


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), in_head=st.booleans())
def test_a_single_flipped_bit_anywhere_is_refused(
    place: float, bit: int, in_head: bool, stored: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    damaged = bytearray(stored)
    length = 8 + int.from_bytes(stored[:8], "little") if in_head else len(stored)
    damaged[int(place * length)] ^= 1 << bit
    check_damaged(bytes(damaged), tmp_path_factory.getbasetemp() / "checkpoint.safetensors")


def test_a_full_disk_leaves_the_last_checkpoint_whole_and_nothing_else(stored: bytes, path: Path) -> None:
    wanted = r"File too large.*checkpoint\.safetensors"
    with files_of_at_most(len(stored) // 2), pytest.raises(OSError, match=wanted):
        Checkpoint(path, "this run").keep([progress_of()])
    assert path.read_bytes() == stored
    assert names_in(path.parent) == [path.name]


# ── several networks ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("engines", [("plain", "plain"), ("recorded", "recorded"), ("plain", "recorded")])
def test_several_networks_go_on_from_one_checkpoint_each_with_its_own_history(
    engines: tuple[EngineName, EngineName], tmp_path: Path
) -> None:
    """One of them stops early, before the training is broken off."""
    model = plain_model(**SIZES, dropout=0.0)
    config = replace(LONG, epochs=12, patience=3, learning_rate=2e-2, precision="float32")  # one sum for both engines

    def members() -> list[Member]:
        misled = parts(with_opposite_classes(alcohols()), model)[2]  # learning makes it worse
        built = [parts(alcohols(), model, seed=seed) for seed in range(3)]
        return [Member(n, t, misled if seed == 1 else v, seed) for seed, (n, t, v) in enumerate(built)]

    first, second = engines
    whole, begun, ended = members(), members(), members()
    expected = loop.fit(whole, config, engine=first)
    assert len({len(history.epochs) for history in expected}) > 1
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", "this run")

    def stop(histories: Sequence[History], _: TrainConfig) -> None:
        if max(len(history.epochs) for history in histories) == 10:
            raise KeyboardInterrupt

    broken = loop.fit(begun, config, engine=first, keep=checkpoint.keep, report=stop)
    assert all(history.interrupted for history in broken)
    found = loop.fit(ended, config, engine=second, resume=checkpoint.resume, keep=checkpoint.keep)
    for one, other, history, wanted in zip(ended, whole, found, expected, strict=True):
        assert not history.interrupted
        assert [e.epoch for e in history.epochs] == [e.epoch for e in wanted.epochs]
        assert (history.best and history.best.epoch) == (wanted.best and wanted.best.epoch)
        if first == second:
            assert same(state(one.network), state(other.network))
        else:
            assert history.epochs[-1].train_loss == pytest.approx(wanted.epochs[-1].train_loss, rel=1e-3)
