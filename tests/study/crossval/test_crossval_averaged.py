"""Restarts that speak together: their probabilities averaged, beside what each says alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.errors import RunError
from egocnn.study.crossval import Protocol, cross_validate, read_record, training
from egocnn.study.crossval.folds import make_tasks
from egocnn.train.recipe import Replica, learn
from tests.support.commands import SHORT, Run, check_refused, printed
from tests.support.samples import as_list
from tests.support.strategies import random_trees
from tests.support.tiny import ALCOHOLS, SIZES, oxygens, parts, plain_model, plain_train

MODEL = plain_model(**SIZES, dropout=0.0)
TRAIN = plain_train(epochs=3, learning_rate=1e-2, device="cpu")


def trees(n_graphs: int = 36) -> Graphs:
    """Three classes by chance: restarts disagree on them."""
    graphs = random_trees(n_graphs, nodes=6, seed=1)
    return graphs.replace(target=np.arange(n_graphs) % 3, class_names=("a", "b", "c"))


# ── what several say ──────────────────────────────────────────────────────────────────────────────


def test_the_score_of_several_is_that_of_their_mean_and_not_of_a_vote() -> None:
    sure, unsure = [0.95, 0.05], [0.4, 0.6]
    said = [torch.tensor([own, [0.5, 0.5], [0.0, 1.0]]).double() for own in (sure, unsure, unsure)]
    _, learned, _ = parts(trees())
    data = replace(learned, target=torch.tensor([0, 0, 0]))
    assert training.score_of(said, data) == pytest.approx(2 / 3)  # a vote would lose the first graph
    assert [training.score_of([each], data) for each in said] == pytest.approx([2 / 3, 1 / 3, 1 / 3])


# ── cross-validation ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stack", [False, True])
def test_averaged_restarts_score_what_their_mean_probabilities_say(
    stack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs, protocol = trees(), Protocol(folds=3, runs=2, restarts=3, combine="average")
    target = torch.tensor(as_list(graphs.target))
    said: list[tuple[int, int, Tensor]] = []
    plain = training.predictions_of

    def spy(replica: Replica, data: EncodedGraphs, device: torch.device) -> Tensor:
        said.append((replica.seed, len(data), plain(replica, data, device)))
        return said[-1][2]

    monkeypatch.setattr(training, "predictions_of", spy)
    result = cross_validate(graphs, MODEL, TRAIN, protocol=protocol, stack=stack)
    assert (result.runs, result.restarts) == (2, 3)
    assert result.settings["restarts"] == {"combine": "average"}

    def right(predictions: Tensor, chosen: Ints) -> float:
        return float((predictions.argmax(1) == target[chosen]).double().mean())

    for task, fold in zip(make_tasks(graphs, protocol, TRAIN), result.folds, strict=True):
        for seeds, run in zip(task.seeds, fold.runs, strict=True):
            assert (run.seeds, run.restart, run.best_epoch, run.epochs) == (seeds, 0, None, None)
            tested, validated = (
                torch.stack([own for seed, count, own in said if seed in seeds and count == len(chosen)])
                for chosen in (task.tested, task.validation)
            )
            assert len(tested) == len(validated) == 3
            assert run.score == pytest.approx(right(tested.mean(dim=0), task.tested))
            assert run.validation_score == pytest.approx(right(validated.mean(dim=0), task.validation))
            assert run.alone == pytest.approx(np.mean([right(own, task.tested) for own in tested]))
        assert fold.score == pytest.approx(np.mean([run.score for run in fold.runs]))


def test_averaged_restarts_are_those_of_single_trainings_and_count_all_their_parameters() -> None:
    graphs, protocol = trees(), Protocol(folds=3, restarts=2, combine="average")
    result, best = (
        cross_validate(graphs, MODEL, TRAIN, protocol=replace(protocol, combine=combine)).folds[1]
        for combine in ("average", "best")
    )
    task = make_tasks(graphs, protocol, TRAIN)[1]
    tested = graphs[task.tested]
    trained = [learn(task.without_tested(graphs), MODEL, replace(TRAIN, seed=seed))[0] for seed in task.seeds[0]]
    logits = torch.stack([torch.from_numpy(model.outputs(tested, device="cpu")).double() for model in trained])
    said = torch.softmax(logits, dim=2).mean(dim=0).argmax(dim=1)
    assert result.score == pytest.approx(np.mean(said.numpy() == tested.target))
    assert result.parameters == 2 * trained[0].n_parameters
    assert (best.parameters, best.runs[0].alone) == (trained[0].n_parameters, None)


def test_values_are_averaged_too() -> None:
    protocol = Protocol(folds=3, restarts=2, combine="average")
    result = cross_validate(oxygens(60), replace(MODEL, readout="sum"), replace(TRAIN, epochs=20), protocol=protocol)
    for fold in result.folds:
        (run,) = fold.runs
        assert run.alone is not None
        assert run.score >= run.alone - 1e-9  # the error of a mean is at most the mean of the errors
    assert result.score == "r2"


# ── records and refusals ──────────────────────────────────────────────────────────────────────────


def test_averages_are_kept_and_never_taken_for_those_of_the_best(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    protocol = Protocol(folds=2, restarts=2, combine="average")
    result = cross_validate(trees(), MODEL, TRAIN, protocol=protocol, out=out)
    assert read_record(out) == result == cross_validate(trees(), MODEL, TRAIN, protocol=protocol, out=out)
    with pytest.raises(RunError, match="was made with combine average, now it is none"):
        cross_validate(trees(), MODEL, TRAIN, protocol=replace(protocol, combine="best"), out=out)


def test_the_command_averages_restarts_over_several_runs(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "record.json"
    words: list[object] = ["crossval", ALCOHOLS, "--folds", 2, "--restarts", 2, "--runs", 2, "--device", "cpu", *SHORT]
    printed(run, *words, "--combine", "average", "-o", out)
    record = json.loads(out.read_text(encoding="utf-8"))
    assert (record["runs"], record["restarts"]) == (2, 2)
    runs = [each for fold in record["folds"] for each in fold["runs"]]
    assert len(runs) == 4
    assert all(0 <= each["alone"] <= 1 and each["restart"] == 0 for each in runs)
    check_refused(run, "was made with combine average", *words, "-o", out)
    check_refused(run, "--combine: invalid choice: 'vote'", *words, "--combine", "vote")
    check_refused(run, "a whole number, 1 or more", "crossval", ALCOHOLS, "--runs", 0)
    wanted = "only the restarts of an Ego-CNN can be averaged; label counts says classes"
    check_refused(run, wanted, "crossval", ALCOHOLS, "--model", "label-counts", "--combine", "average", "--quiet")


@pytest.mark.parametrize("stack", [False, True])
def test_a_fold_of_several_networks_is_tested_by_the_mean_of_their_outputs(stack: bool) -> None:
    graphs, train = trees(), replace(TRAIN, networks=2)
    protocol = Protocol(folds=3, restarts=2)
    epochs: list[int] = []
    result = cross_validate(graphs, MODEL, train, protocol=protocol, stack=stack, progress=epochs.append)
    assert max(epochs) <= protocol.folds * protocol.runs * protocol.restarts * train.networks * train.epochs
    task, fold = make_tasks(graphs, protocol, train)[1], result.folds[1]
    trained = [
        learn(task.without_tested(graphs), MODEL, replace(train, seed=seed), stack=stack)[0] for seed in task.seeds[0]
    ]

    def scores(chosen: Ints) -> list[float]:
        some = graphs[chosen]
        return [float((each.outputs(some, device="cpu").argmax(axis=1) == some.target).mean()) for each in trained]

    (run,) = fold.runs
    assert run.validation_score == pytest.approx(max(scores(task.validation)))
    assert run.score == pytest.approx(scores(task.tested)[run.restart - 1])
    chosen, tested = trained[run.restart - 1], graphs[task.tested]
    of_each = chosen.outputs_of_each(tested, device="cpu").argmax(axis=2) == tested.target
    assert run.alone == pytest.approx(float(of_each.mean()))
    assert run.seeds == task.seeds[0]
    assert fold.parameters == chosen.n_parameters == 2 * chosen.networks[0].n_parameters
