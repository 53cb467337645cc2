"""Two processes, each with its share of every batch, against one that has it all."""

import json
import subprocess
import sys
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from egocnn.cli import main
from egocnn.model import under
from egocnn.train.engines.common import epoch_seed
from egocnn.train.engines.distributed import World
from egocnn.train.engines.distributed.engine import current, joined, share_of
from tests.support.tiny import same
from tests.support.two_ranks import CASES, trained

Ranks = list[tuple[dict[str, Tensor], dict[str, Any]]]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    """What each of two processes has come to: tensors and histories."""
    folder = tmp_path_factory.mktemp("ranks")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*launch, "-m", "tests.support.two_ranks", str(folder)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = [folder / f"rank{rank}" for rank in (0, 1)]
    return [
        (load_file(name.with_suffix(".safetensors")), json.loads(name.with_suffix(".json").read_text()))
        for name in names
    ]


@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_to_the_weights_and_history_of_one(case: str, ranks: Ranks) -> None:
    wanted, history = trained(case, together=False)
    (one, histories), (other, others) = ranks
    found = under(f"{case}.", one)
    assert same(found, under(f"{case}.", other))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert torch.allclose(found[name], value, rtol=1e-4, atol=1e-5), name
    assert len(histories[case]) == len(others[case]) == len(history.epochs)
    assert case != "stopped early" or 3 < len(history.epochs) < CASES[case][1].epochs
    for epoch, first, second in zip(history.epochs, histories[case], others[case], strict=True):
        assert first | {"seconds": 0} == second | {"seconds": 0}
        for name in ("train_loss", "train_score", "validation_loss", "validation_score", "learning_rate"):
            assert first[name] == pytest.approx(getattr(epoch, name), rel=1e-4, abs=1e-5), name


# ── what needs no second process ──────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(2, 5))
def test_shares_are_all_of_a_batch_of_equal_size_and_about_equally_many_nodes(counts: list[int], size: int) -> None:
    chosen = torch.arange(len(counts)) * 3
    node_ptr = torch.tensor([0] + [count for own in counts for count in (own, 0, 0)]).cumsum(0)
    shares = [share_of(chosen, node_ptr, World(rank=rank, size=size)) for rank in range(size)]
    assert sorted(torch.cat(shares).tolist()) == chosen.tolist()
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    nodes = [sum(counts[number // 3] for number in share.tolist()) for share in shares]
    assert max(nodes) - min(nodes) <= max(counts)


def test_every_rank_drops_other_activations_in_every_epoch() -> None:
    seeds = {epoch_seed(seed, epoch, rank + 1) for seed in (0, 1) for epoch in (1, 2) for rank in range(3)}
    orders = {epoch_seed(seed, epoch) for seed in (0, 1) for epoch in (1, 2)}
    assert len(seeds) == 12
    assert not seeds & orders


# ── who one is ────────────────────────────────────────────────────────────────────────────────────


def launched(monkeypatch: pytest.MonkeyPatch, *, rank: int) -> None:
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "TORCHELASTIC_RESTART_COUNT": 3}
    for name, value in names.items():
        monkeypatch.setenv(name, str(value))


def test_only_torchrun_makes_a_world_of_several_and_alone_there_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch, rank=1)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert World.here() == World()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "here")
    assert World.here() == World(rank=1, local_rank=1, size=2, restarts=3)
    with joined(World(), device="cpu"):
        assert current() is None


@pytest.mark.parametrize(
    "words", [["info", "DATA"], ["predict", "RUN", "DATA", "-o", "FILE"], ["crossval", "DATA", "--stack"], ["demo"]]
)
def test_other_commands_than_train_are_refused_under_torchrun_in_one_line(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "here")
    launched(monkeypatch, rank=0)
    assert main(words) == 2
    wanted = f"egocnn: {words[0]} runs in one process; start it without torchrun, which is for train alone\n"
    assert capsys.readouterr() == ("", wanted)
    launched(monkeypatch, rank=1)
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert capsys.readouterr() == ("", "")
