"""Restarts that speak together: their probabilities averaged, beside what each says alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.errors import ConfigError, DataError, RunError
from egocnn.study.crossval import Protocol, choose_protocol, cross_validate, ego_folds, read_record
from egocnn.study.crossval.folds import make_tasks
from egocnn.study.crossval.record import FoldRun
from egocnn.train.recipe import Replica, learn, prepare_replicas
from lab.rivals.names import find_rival
from tests.support.commands import SHORT, Run, check_refused
from tests.support.strategies import random_trees
from tests.support.tiny import ALCOHOLS, SIZES, oxygens

MODEL = ModelConfig(**SIZES, dropout=0.0)
TRAIN = TrainConfig(epochs=3, learning_rate=1e-2, device="cpu")
CPU = torch.device("cpu")


def trees(n_graphs: int = 36) -> Graphs:
    """Three classes by chance: restarts disagree on them."""
    graphs = random_trees(n_graphs, nodes=6, seed=1)
    return graphs.replace(target=np.arange(n_graphs) % 3, class_names=("a", "b", "c"))


def judged(target: Tensor) -> EncodedGraphs:
    """Graphs of which nothing but their targets matters."""
    graphs = random_trees(len(target), nodes=3, seed=0)
    ((replica,),) = prepare_replicas([trees()], MODEL, TRAIN, [[0]])
    return replace(replica.predictor.encode(graphs), target=target)


# ── what several say ──────────────────────────────────────────────────────────────────────────────


def test_the_score_of_several_is_that_of_their_mean_and_not_of_a_vote() -> None:
    sure, unsure = [0.95, 0.05], [0.4, 0.6]
    said = [torch.tensor([own, [0.5, 0.5], [0.0, 1.0]]).double() for own in (sure, unsure, unsure)]
    data = judged(torch.tensor([0, 0, 0]))
    assert ego_folds.score_of(said, data) == pytest.approx(2 / 3)  # a vote would lose the first graph
    assert [ego_folds.score_of([each], data) for each in said] == pytest.approx([2 / 3, 1 / 3, 1 / 3])


def test_the_score_of_values_is_the_explained_variance_of_their_mean() -> None:
    target = torch.tensor([1.0, 2.0, 6.0])
    said = [torch.tensor([[2.0], [2.0], [5.0]]).double(), torch.tensor([[0.0], [3.0], [6.0]]).double()]
    mean = np.array([1.0, 2.5, 5.5])
    wanted = 1 - np.square(mean - target.numpy()).sum() / np.square(target.numpy() - 3).sum()
    assert ego_folds.score_of(said, judged(target)) == pytest.approx(wanted)
    assert ego_folds.score_of(said, judged(torch.ones(3))) == 0.0


def test_probabilities_are_said_of_classes_and_plain_values_of_the_rest() -> None:
    for graphs in (trees(), oxygens(20)):
        ((replica,),) = prepare_replicas([graphs], MODEL, TRAIN, [[0]])
        data = replica.predictor.encode(graphs)
        said = ego_folds.predictions_of(replica, data, CPU)
        outputs = torch.from_numpy(replica.predictor.outputs(graphs, device="cpu")).double()
        assert said.dtype == torch.float64
        wanted = torch.softmax(outputs, dim=1) if graphs.is_classification else outputs
        torch.testing.assert_close(said, wanted)


# ── cross-validation ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stack", [False, True])
def test_averaged_restarts_score_what_their_mean_probabilities_say(
    stack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = trees()
    assert graphs.target is not None
    said: list[tuple[int, Tensor, EncodedGraphs]] = []
    plain = ego_folds.predictions_of

    def spy(replica: Replica, data: EncodedGraphs, device: torch.device) -> Tensor:
        said.append((replica.seed, plain(replica, data, device), data))
        return said[-1][1]

    monkeypatch.setattr(ego_folds, "predictions_of", spy)
    protocol = Protocol(folds=3, runs=2, restarts=3, combine="average")
    result = cross_validate(graphs, MODEL, TRAIN, protocol=protocol, stack=stack)
    assert (result.runs, result.restarts) == (2, 3)
    assert result.settings["restarts"] == {"combine": "average"}
    for task, fold in zip(make_tasks(graphs, protocol, TRAIN), result.folds, strict=True):
        for seeds, run in zip(task.seeds, fold.runs, strict=True):
            assert run.seeds == seeds
            assert (run.restart, run.best_epoch, run.epochs) == (0, None, None)
            for chosen, found in ((task.tested, run.score), (task.validation, run.validation_score)):
                mine = [own for seed, own, data in said if seed in seeds and len(data) == len(chosen)]
                assert len(mine) == 3
                right = torch.from_numpy(graphs.target[chosen])
                mean = torch.stack(mine).mean(dim=0)
                assert found == pytest.approx(float((mean.argmax(1) == right).double().mean()))
            tested = [own for seed, own, data in said if seed in seeds and len(data) == len(task.tested)]
            right = torch.from_numpy(graphs.target[task.tested])
            assert run.alone == pytest.approx(
                np.mean([float((own.argmax(1) == right).double().mean()) for own in tested])
            )
        assert fold.score == pytest.approx(np.mean([run.score for run in fold.runs]))


def test_averaged_restarts_are_those_of_single_trainings_and_count_all_their_parameters() -> None:
    graphs = trees()
    protocol = Protocol(folds=3, restarts=2, combine="average")
    result = cross_validate(graphs, MODEL, TRAIN, protocol=protocol)
    task = make_tasks(graphs, protocol, TRAIN)[1]
    trained = [learn(task.without_tested(graphs), MODEL, replace(TRAIN, seed=seed))[0] for seed in task.seeds[0]]
    tested = graphs[task.tested]
    assert tested.target is not None
    logits = torch.stack([torch.from_numpy(predictor.outputs(tested, device="cpu")).double() for predictor in trained])
    said = torch.softmax(logits, dim=2).mean(dim=0).argmax(dim=1).numpy()
    assert result.folds[1].score == pytest.approx(float((said == tested.target).mean()))
    best = cross_validate(graphs, MODEL, TRAIN, protocol=replace(protocol, combine="best"))
    assert result.folds[1].parameters == 2 * trained[0].network.n_parameters
    assert best.folds[1].parameters == trained[0].network.n_parameters
    assert all(run.alone is None for fold in best.folds for run in fold.runs)
    assert "restarts" not in best.settings


def test_one_restart_averaged_is_that_restart() -> None:
    one, other = (
        cross_validate(trees(), MODEL, TRAIN, protocol=Protocol(folds=3, combine=combine))
        for combine in ("average", "best")
    )
    assert [fold.score for fold in one.folds] == [fold.score for fold in other.folds]
    assert [fold.validation_score for fold in one.folds] == [fold.validation_score for fold in other.folds]
    assert all(run.alone == run.score for fold in one.folds for run in fold.runs)


def test_values_are_averaged_too() -> None:
    protocol = Protocol(folds=3, restarts=2, combine="average")
    result = cross_validate(oxygens(60), replace(MODEL, readout="sum"), replace(TRAIN, epochs=20), protocol=protocol)
    for fold in result.folds:
        (run,) = fold.runs
        assert run.alone is not None
        assert run.score >= run.alone - 1e-9  # the error of a mean is at most the mean of the errors
    assert result.score == "r2"


def test_an_averaged_restart_that_diverges_says_in_which_fold() -> None:
    protocol = Protocol(folds=2, restarts=2, combine="average")
    with pytest.raises(DataError, match="diverged in fold 1"):
        cross_validate(trees(), MODEL, replace(TRAIN, learning_rate=1e30), protocol=protocol)


# ── records and refusals ──────────────────────────────────────────────────────────────────────────


def test_averages_are_kept_and_never_taken_for_those_of_the_best(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    protocol = Protocol(folds=2, restarts=2, combine="average")
    result = cross_validate(trees(), MODEL, TRAIN, protocol=protocol, out=out)
    assert read_record(out) == result == cross_validate(trees(), MODEL, TRAIN, protocol=protocol, out=out)
    with pytest.raises(RunError, match="was made with combine average, now it is none"):
        cross_validate(trees(), MODEL, TRAIN, protocol=replace(protocol, combine="best"), out=out)


def test_a_run_from_before_there_were_averages_can_be_read() -> None:
    plain = {"score": 0.5, "validation_score": 0.75, "restart": 2, "seeds": [1, 2], "best_epoch": 3, "epochs": 4}
    run = FoldRun.from_plain(plain)
    assert (run.alone, run.seeds, run.restart) == (None, (1, 2), 2)


def test_only_an_ego_cnn_is_averaged() -> None:
    with pytest.raises(ConfigError, match="only the restarts of an Ego-CNN can be averaged; label counts says classes"):
        cross_validate(trees(), find_rival("label-counts"), TRAIN, protocol=Protocol(folds=2, combine="average"))


def test_a_protocol_by_name_takes_runs_and_how_restarts_are_combined() -> None:
    paper = choose_protocol("paper", runs=2, combine="average")
    assert (paper.runs, paper.restarts, paper.combine, paper.trainings) == (2, 5, "average", 100)
    plain = choose_protocol("plain")
    assert (plain.runs, plain.restarts, plain.combine) == (1, 1, "best")
    with pytest.raises(ConfigError, match="runs must be at least 1, got 0"):
        choose_protocol("plain", runs=0)


def test_the_command_averages_restarts_over_several_runs(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "record.json"
    words: list[object] = ["crossval", ALCOHOLS, "--folds", 2, "--restarts", 2, "--runs", 2, "--device", "cpu", *SHORT]
    assert run(*words, "--combine", "average", "-o", out)[0] == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert (record["runs"], record["restarts"]) == (2, 2)
    runs = [each for fold in record["folds"] for each in fold["runs"]]
    assert len(runs) == 4
    assert all(0 <= each["alone"] <= 1 and each["restart"] == 0 for each in runs)
    check_refused(run, "was made with combine average", *words, "-o", out)
    check_refused(run, "--combine: invalid choice: 'vote'", *words, "--combine", "vote")
    check_refused(run, "a whole number, 1 or more", "crossval", ALCOHOLS, "--runs", 0)
    check_refused(
        run,
        "only the restarts of an Ego-CNN can be averaged",
        *("crossval", ALCOHOLS, "--model", "label-counts", "--combine", "average", "--quiet"),
    )
