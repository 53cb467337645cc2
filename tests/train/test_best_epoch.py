"""Which epoch is the best, and when training stops."""

import logging
import math
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import torch

from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.model import Model
from egocnn.nn import EgoCNN, device
from egocnn.nn.predict import predict_each
from egocnn.train.history import Epoch, History
from egocnn.train.loop import EngineName
from egocnn.train.metrics import evaluate, scores_of
from egocnn.train.run import train_run
from tests.support.commands import rows
from tests.support.samples import sure
from tests.support.tiny import (
    MODEL,
    alcohols,
    fit,
    oxygens,
    parts,
    plain_train,
    same,
    several_targets,
    state,
    two_targets,
    with_opposite_classes,
)


def epoch(number: int, *, score: float = 0.5, loss: float = 1.0) -> Epoch:
    own = {"validation_loss": loss, "validation_score": score}
    return Epoch(epoch=number, learning_rate=0.1, train_loss=1.0, train_score=0.5, seconds=0.1, **own)


@pytest.mark.parametrize(("engine", "window"), [("plain", 1), ("recorded", 1), ("plain", 4)])
def test_the_weights_left_are_those_of_the_epoch_that_ends_the_best_window_and_patience_ends_the_training(
    engine: EngineName, window: int
) -> None:
    network, train, _ = parts(alcohols())
    _, _, validation = parts(with_opposite_classes(alcohols()))  # learning makes it worse: the best epoch comes early
    after_epoch = []
    config = plain_train(epochs=40, patience=3, learning_rate=2e-2, judgements=window * len(validation))
    history = fit(network, train, validation, config, engine=engine, keep=lambda _: after_epoch.append(state(network)))
    assert history.best is not None
    assert history.best.epoch < len(history.epochs) < 40
    assert history.stale == 3
    assert not history.interrupted
    assert same(state(network), after_epoch[history.best.epoch - 1])
    assert not same(state(network), after_epoch[-1])
    found = evaluate(network, validation)
    assert found == pytest.approx((history.best.validation_loss, history.best.validation_score), abs=1e-5)
    windows = [history.epochs[max(0, n - window) : n] for n in range(1, len(history.epochs) + 1)]
    merits = [(fmean(e.validation_score for e in w), -fmean(e.validation_loss for e in w)) for w in windows]
    assert merits.index(max(merits)) == history.best.epoch - 1
    assert not network.training


def test_a_higher_score_is_better_of_equals_the_lower_loss_and_what_is_not_finite_never() -> None:
    assert epoch(2, score=0.6, loss=9).beats(epoch(1, score=0.5, loss=1))
    assert epoch(2, score=0.5, loss=0.9).beats(epoch(1, score=0.5, loss=1))
    assert not epoch(2, score=0.5, loss=1).beats(epoch(1, score=0.5, loss=1))
    assert not epoch(2, score=0.4, loss=0).beats(epoch(1, score=0.5, loss=1))
    assert epoch(1).beats(None)
    history = History()
    assert not history.add(epoch(1, score=1.0, loss=math.nan))
    assert not history.add(epoch(2, score=1.0, loss=math.inf))
    assert history.best is None
    assert history.add(epoch(3, score=0.1))


def test_a_window_prefers_the_end_of_a_good_stretch_to_one_lucky_epoch_and_of_equals_the_lower_loss() -> None:
    scores = (0.5, 1.0, 0.5, 0.8, 0.8, 0.8, 0.7)
    alone, steady = History(), History()
    for number, score in enumerate(scores, start=1):
        alone.add(epoch(number, score=score))
        steady.add(epoch(number, score=score), window=3)
    assert (sure(alone.best).epoch, sure(steady.best).epoch) == (2, 6)
    history = History()
    several, losses = (0.1, 0.2, 0.3, 0.1, 0.2), (1.0, 1.0, 1.0, 0.9, 1.0)
    better = [
        history.add(epoch(number, score=score, loss=loss), window=3)
        for number, (score, loss) in enumerate(zip(several, losses, strict=True), start=1)
    ]
    assert better == [True, True, True, True, False]
    history = History()
    assert history.add(epoch(1, score=0.1), window=2)
    assert not history.add(epoch(2, score=1.0, loss=math.nan), window=2)
    assert not history.add(epoch(3, score=1.0), window=2)
    assert history.add(epoch(4, score=1.0), window=2)
    config = plain_train(judgements=100)
    assert [config.window(graphs) for graphs in (0, 1, 17, 50, 99, 100, 101)] == [100, 100, 6, 2, 2, 1, 1]
    assert plain_train().window(1) == 1


def test_losses_that_fall_by_next_to_nothing_are_no_gain_and_histories_survive_as_plain_data() -> None:
    history = History()
    for number in range(1, 6):
        history.add(epoch(number, score=1.0, loss=1e-4 / number))
    assert history.stale == 4
    assert sure(history.best).epoch == 5
    history.add(epoch(6, score=1.0, loss=-1.0))
    assert history.stale == 0
    history = History()
    for number, score in enumerate((0.1, 0.5, 0.3), start=1):
        history.add(epoch(number, score=score))
    again = History.from_plain(history.to_plain())
    assert again == history
    assert History.from_plain(History().to_plain()) == History()


@pytest.mark.parametrize("engine", ["plain", "recorded"])
def test_uneven_classes_are_judged_by_roc_auc_and_that_is_said(
    engine: EngineName, caplog: pytest.LogCaptureFixture
) -> None:
    graphs = alcohols().with_parts(None)
    assert graphs.target is not None
    uneven = graphs[sorted([*np.flatnonzero(graphs.target == 0), *np.flatnonzero(graphs.target == 1)[:4]])]
    network, train, validation = parts(uneven)
    device.inform.cache_clear()
    with caplog.at_level(logging.INFO, "egocnn"):
        history = fit(network, train, parts(graphs)[2], plain_train(epochs=3), engine=engine)
    assert "ROC AUC chooses the best epoch" in caplog.text
    assert history.monitor == "roc_auc"
    assert history.best is not None
    of_best = evaluate(network, parts(graphs)[2], monitor="roc_auc")
    assert of_best == pytest.approx((history.best.validation_loss, history.best.validation_score), abs=1e-5)
    typed = fit(network, train, validation, plain_train(epochs=1, monitor="accuracy"), engine=engine)
    assert typed.monitor == "accuracy"
    assert History.from_plain(history.to_plain()).monitor == "roc_auc"


def measured(network: EgoCNN, data: EncodedGraphs, name: str) -> float:
    """The mean over the targets, each where it is known."""
    outputs, target = predict_each([network], data)[0].double(), sure(data.target)
    found = []
    blocks = torch.split(outputs, list(network.widths or outputs.shape[1:]), dim=1)
    for block, own in zip(blocks, target.view(len(target), -1).T, strict=True):
        known, is_class = ~own.isnan(), block.shape[1] > 1
        predicted = torch.softmax(block, dim=1) if is_class else block[:, 0]
        truth = own[known].long() if is_class else own[known]
        found.append(scores_of(predicted[known].numpy(), truth.numpy())[name])
    return fmean(found)


@pytest.mark.parametrize("engine", ["plain", "recorded"])
@pytest.mark.parametrize(
    ("make", "monitor"),
    [
        (alcohols, "log_loss"),
        (alcohols, "loss"),
        (oxygens, "rmse"),
        (oxygens, "mae"),
        (two_targets, "roc_auc"),
        (two_targets, "log_loss"),
        (several_targets, "auto"),
    ],
)
def test_whatever_score_is_named_chooses_the_epoch_and_is_told_as_people_write_it(
    make: Callable[[], Graphs], monitor: str, engine: EngineName
) -> None:
    graphs = make().with_parts(np.resize([0, 0, 1], len(make())))
    network, train, validation = parts(graphs)
    history = fit(network, train, validation, plain_train(epochs=6, learning_rate=2e-2, monitor=monitor), engine=engine)
    told = history.in_unit()
    scores = [epoch.validation_score for epoch in told.epochs]
    assert told.monitor == (monitor if monitor != "auto" else "loss")
    assert sure(told.best).validation_score == (max if monitor == "roc_auc" else min)(scores) > 0
    if told.monitor == "loss":
        assert scores == [epoch.validation_loss for epoch in told.epochs]
    if monitor != "auto":
        expected = measured(network, validation, "log_loss" if monitor == "loss" else monitor)
        assert sure(told.best).validation_score == pytest.approx(expected, abs=1e-5)


def test_errors_of_values_are_told_in_the_unit_of_the_target(tmp_path: Path) -> None:
    """Beside those of the test, which are in it, too; the file of the epochs as well."""
    graphs, train = oxygens(), plain_train(epochs=3, monitor="rmse")
    graphs = graphs.with_parts(np.resize([0, 0, 1, 2], len(graphs)))
    metrics = train_run(graphs, tmp_path / "run", MODEL, train)
    model = Model.load(tmp_path / "run")
    chosen = graphs.select("validation")
    expected = scores_of(model.values(chosen, device="cpu"), sure(chosen.target))["rmse"]
    assert metrics["validation_rmse"] == pytest.approx(expected, rel=1e-4)
    lines = rows(tmp_path / "run" / "history.csv")
    assert float(lines[metrics["best_epoch"] - 1]["validation_score"]) == metrics["validation_rmse"]
    assert min(float(line["validation_score"]) for line in lines) == metrics["validation_rmse"]
