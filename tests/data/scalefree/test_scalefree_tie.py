"""Tied filters: the words of the command line, the decision by the training graphs, and what tying means."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from egocnn.cli.options import Parser, add_options, from_options, spell_out
from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graphs
from egocnn.data.scalefree import decide_by, judge
from egocnn.data.schema import PARTS
from egocnn.errors import ConfigError
from egocnn.model import Model
from egocnn.nn import EgoCNN, EgoConv
from egocnn.nn.embed import PatchShape
from egocnn.train.loop import fit
from egocnn.train.recipe import learn, prepare_replicas
from egocnn.train.run import train_run
from tests.data.scalefree.test_scalefree import grown, thrown
from tests.support.commands import Run, check_refused, runner
from tests.support.tiny import ALCOHOLS, FLAGS, MODEL, TRAIN, alcohols

AUTO = replace(MODEL, tie="auto")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


def classed(graphs: Graphs) -> Graphs:
    return graphs.replace(target=np.arange(len(graphs)) % 2, class_names=("even", "odd"))


def networks() -> Graphs:
    """Scale-free graphs to train on; what is kept for the test has other degrees, and more nodes."""
    trained, tested = classed(grown(20, 200, 2, seed=0)), classed(thrown(20, 300, 6.0, seed=0))
    part = np.repeat([PARTS.index("train"), PARTS.index("test")], 20)
    return Graphs.concat([trained, tested]).replace(part=part)


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


def parse(*words: str) -> tuple[ModelConfig, list[str]]:
    parser = Parser(prog="egocnn train")
    parser.add_argument("data", nargs="*")
    add_options(parser, ModelConfig)
    options = parser.parse_args(spell_out(words, ModelConfig))
    return from_options(options, ModelConfig), options.data


@pytest.mark.parametrize(
    ("words", "tie", "data"),
    [
        ([], False, []),
        (["MUTAG", "--tie"], True, ["MUTAG"]),
        (["--tie", "MUTAG"], True, ["MUTAG"]),
        (["--tie", "auto", "MUTAG"], "auto", ["MUTAG"]),
        (["--tie=auto", "MUTAG"], "auto", ["MUTAG"]),
        (["--tie", "--no-tie", "MUTAG"], False, ["MUTAG"]),
        (["--no-tie", "--tie", "--depth", "2", "auto"], True, ["auto"]),
    ],
)
def test_tie_is_a_switch_that_may_be_left_to_the_data(words: list[str], tie: Any, data: list[str]) -> None:
    assert parse(*words) == (ModelConfig(tie=tie, depth=2 if "--depth" in words else 3), data)


def test_another_word_for_it_is_refused() -> None:
    with pytest.raises(SystemExit):
        parse("--tie=maybe")


# ── the decision ──────────────────────────────────────────────────────────────────────────────────


def test_what_the_user_says_is_not_judged() -> None:
    for tie in (True, False):
        model = replace(MODEL, tie=tie)
        assert decide_by(model, lambda: judge(grown(1, 500, 2, seed=0))) == (model, None)


def test_a_network_is_not_built_before_it_is_decided() -> None:
    with pytest.raises(ConfigError, match="tie must be true or false by the time"):
        EgoCNN(AUTO, shape=PatchShape(slots=4, node_labels=0, edge_labels=0), attributes=0, outputs=2)
    with pytest.raises(ConfigError, match="tied layers share one filter bank"):
        ModelConfig(depth=2, k=(3, 4), tie="auto")


def test_the_training_part_alone_decides_and_the_run_folder_tells(tmp_path: Path) -> None:
    graphs = networks()
    assert decide_by(AUTO, lambda: judge(graphs))[0].tie is False  # the test part alone would turn it
    train_run(graphs, tmp_path / "auto", AUTO, replace(TRAIN, epochs=1))
    config = json.loads((tmp_path / "auto" / "config.json").read_text(encoding="utf-8"))
    assert config["model"]["tie"] is True
    assert config["tie"]["scale_free"] is True
    assert "exponent" in config["tie"]["reason"]
    predictor = Model.load(tmp_path / "auto")
    assert predictor.config == replace(MODEL, tie=True)
    assert predictor.network.convs[0].weight is predictor.network.convs[1].weight
    tied, _ = learn(graphs, replace(MODEL, tie=True), replace(TRAIN, epochs=1))
    np.testing.assert_array_equal(predictor.outputs(graphs), tied.outputs(graphs))


def test_molecules_are_left_untied_and_nothing_is_told_where_nothing_was_asked() -> None:
    predictor, _ = learn(alcohols(), AUTO, replace(TRAIN, epochs=1))
    assert predictor.config == MODEL
    assert predictor.about["tie"]["scale_free"] is False
    assert "tie" not in learn(alcohols(), MODEL, replace(TRAIN, epochs=1))[0].about


def test_a_run_left_to_the_data_can_be_resumed(tmp_path: Path) -> None:
    graphs = networks()
    first = train_run(graphs, tmp_path, AUTO, replace(TRAIN, epochs=1))
    assert train_run(graphs, tmp_path, AUTO, replace(TRAIN, epochs=1), resume=True) == first


def test_folds_that_decide_differently_train_each_as_alone() -> None:
    several = [
        classed(thrown(20, 60, 4.0, seed=1)),
        classed(grown(20, 200, 2, seed=0)),
        classed(thrown(20, 60, 4.0, 2)),
    ]
    train = TrainConfig(epochs=2, learning_rate=1e-2, device="cpu")
    parts = np.repeat([PARTS.index("train"), PARTS.index("validation")], [16, 4])
    several = [graphs.replace(part=parts) for graphs in several]
    together = prepare_replicas(several, AUTO, train, [[0], [0], [0]])
    assert [own[0].predictor.config.tie for own in together] == [False, True, False]
    histories = fit([own[0].member for own in together], train, engine="recorded")
    for graphs, history in zip(several, histories, strict=True):
        ((alone,),) = prepare_replicas([graphs], AUTO, train, [[0]])
        (expected,) = fit([alone.member], train, engine="recorded")
        assert history.epochs[-1].train_loss == pytest.approx(expected.epochs[-1].train_loss, rel=1e-4)


# ── the command ───────────────────────────────────────────────────────────────────────────────────


def test_the_command_tells_people_and_machines_the_same(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "degrees.svg"
    code, out, err = run("scale-free", ALCOHOLS, "--samples", "5", "-o", picture)
    assert (code, err) == (0, "")
    assert "not scale-free" in out.splitlines()[-1]
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    code, out, _ = run("scale-free", ALCOHOLS, "--samples", "5", "--json")
    plain = json.loads(out)
    assert code == 0
    assert plain["scale_free"] is False
    assert {"law", "p", "log_normal", "exponential", "advice", "answers"} <= plain.keys()


def test_a_picture_of_an_unknown_kind_is_refused_before_anything_is_read(run: Run, tmp_path: Path) -> None:
    check_refused(run, "the plot is written as .svg or .png", "scale-free", tmp_path / "none", "-o", tmp_path / "a.pdf")


def test_training_takes_the_word(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("train", "--tie", "auto", ALCOHOLS, *FLAGS, "--epochs", "1", "--json", "-o", tmp_path / "run")
    assert code == 0, out
    assert json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))["model"]["tie"] is False


# ── Kronecker ─────────────────────────────────────────────────────────────────────────────────────


def one_filter(k: int, depth: int, weight: Tensor) -> EgoCNN:
    """A tied Ego-CNN with a single filter, its bias and norms out of the way; positive weights keep it linear."""
    config = ModelConfig(k=k, depth=depth, width=1, tie=True, dropout=0)
    network = EgoCNN(config, shape=PatchShape(slots=2, node_labels=0, edge_labels=0), attributes=0, outputs=2).double()
    first = network.convs[0]
    assert isinstance(first, EgoConv)
    for conv in network.convs:
        conv.norm = nn.Identity()
    with torch.no_grad():
        first.weight.copy_(weight.view(-1, 1, 1))
    network.eval()
    return network


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**6))
def test_the_pattern_of_a_tied_one_filter_network_is_a_kronecker_product(k: int, depth: int, seed: int) -> None:
    """Section 4 of the supplement: A(l) = f(A(l-1) ⊗ W), where f merges what belongs to the same node."""
    random = np.random.default_rng(seed)
    nodes = 7
    table = np.array([random.choice(nodes, k, replace=False) for _ in range(nodes)])
    table[random.random(table.shape) < 0.2] = -1
    pattern = random.random((k, k)) + 0.1
    weight = random.random(k + 1) + 0.1
    patches = torch.from_numpy(random.random((nodes, k, k))).requires_grad_()

    network = one_filter(k, depth, torch.from_numpy(weight))
    h = (patches * torch.from_numpy(pattern)).sum((1, 2))[:, None]
    for conv in network.convs:
        h = conv(h, torch.from_numpy(table))
    (captured,) = torch.autograd.grad(h[0, 0], patches)

    product_of_all: Floats = pattern
    for _ in range(depth):
        product_of_all = np.kron(weight[:, None], product_of_all)  # (K + 1 times as many rows, K)
    merged = np.zeros((nodes, k, k))
    blocks = product_of_all.reshape(-1, k, k)
    for block, ranks in zip(blocks, product(range(k + 1), repeat=depth), strict=True):
        node = 0
        for rank in ranks:
            node = node if rank == 0 or node < 0 else int(table[node, rank - 1])
        if node >= 0:
            merged[node] += block
    np.testing.assert_allclose(captured.numpy(), merged, rtol=1e-9, atol=1e-12)
