"""Folds, their scores, and restarts that speak together: their probabilities averaged, beside what each says alone."""

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.encoder import Encoder, TargetScale
from egocnn.errors import ConfigError, DataError
from egocnn.study.crossval import CrossValidation, Protocol, cross_validate, scoring, training
from egocnn.study.crossval.folds import Combine, FoldTask, Split, fold_numbers, make_tasks
from egocnn.train.metrics import test_scores as scores_of
from egocnn.train.recipe import Replica, learn
from tests.support.commands import SHORT, Run, check_refused, printed, told
from tests.support.samples import as_list, sure
from tests.support.strategies import random_trees
from tests.support.tiny import ALCOHOLS, FLAGS, SIZES, alcohols, oxygens, plain_model, plain_train

MODEL = plain_model(**SIZES, dropout=0.0)
TRAIN = plain_train(epochs=3, learning_rate=1e-2, device="cpu")


def grouped(n_graphs: int = 60) -> Graphs:
    """Three copies of every tree, and a class that the group has in common."""
    group = np.arange(n_graphs) // 3
    return random_trees(n_graphs, nodes=6, seed=1).replace(group=group, target=group % 2, class_names=("even", "odd"))


def tasks(graphs: Graphs, folds: int, restarts: int = 1) -> list[FoldTask]:
    return make_tasks(graphs, Protocol(folds=folds, restarts=restarts), TRAIN)


# ── folds ─────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=12)
@given(st.lists(st.integers(6, 20), min_size=2, max_size=3), st.integers(2, 6), st.integers(0, 2**62))
def test_every_graph_is_tested_once_and_classes_have_equal_shares(counts: list[int], folds: int, seed: int) -> None:
    target = np.repeat(np.arange(len(counts)), counts)
    names = tuple("abc"[: len(counts)])
    graphs = random_trees(len(target), nodes=3, seed=0).replace(target=target, class_names=names)
    numbers = fold_numbers(graphs, folds, seed)
    np.testing.assert_equal(fold_numbers(graphs, folds, seed), numbers)
    assert sorted(np.concatenate([tested for _, tested in numbers]).tolist()) == list(range(len(graphs)))
    for rest, tested in numbers:
        assert sorted([*rest, *tested]) == list(range(len(graphs)))
        for number, count in enumerate(counts):
            assert math.floor(count / folds) <= (target[tested] == number).sum() <= math.ceil(count / folds)


def test_groups_are_never_torn_apart_and_values_are_dealt_out_in_folds_of_equal_size() -> None:
    graphs = grouped()
    for task in tasks(graphs, 5):
        parts = [{*sure(graphs.group)[numbers]} for numbers in (task.learned, task.validation, task.tested)]
        assert min(map(len, parts)) > 0
        assert len(set.union(*parts)) == sum(map(len, parts))
        marked = task.without_tested(graphs)
        assert [{*as_list(marked.select(part).group)} for part in ("train", "validation")] == parts[:2]
        assert len(marked) == len(task.learned) + len(task.validation)
    sizes = [len(tested) for _, tested in fold_numbers(oxygens(40), 6, 0)]
    assert sorted(sizes) == [6, 6, 7, 7, 7, 7]


def test_too_few_graphs_for_the_folds_are_refused_in_one_clear_line() -> None:
    graphs = random_trees(20, nodes=3, seed=0).replace(target=np.array([1] * 3 + [0] * 17), class_names=("no", "yes"))
    several: list[tuple[Graphs, dict[str, Any], str]] = [
        (graphs, {}, r"class 'yes' has 3 graphs, too few for 10 folds; --folds 3 at most"),
        (grouped(), {"folds": 11}, "class 'even' has 10 groups of graphs, too few for 11 folds"),
        (oxygens(40)[:8], {}, "there are 8 graphs, too few for 10 folds"),
        *((graphs, wrong, "must be at least") for wrong in ({"folds": 1}, {"restarts": 0}, {"jobs": 0})),
    ]
    for each, how, wanted in several:
        with pytest.raises((DataError, ConfigError), match=wanted):
            cross_validate(each, MODEL, TRAIN, **how)


# ── scores ────────────────────────────────────────────────────────────────────────────────────────


def test_stacked_or_in_turn_the_result_is_the_same() -> None:
    """The validation loss of a single training wanders with rounding, as biases before a norm do: scores may not."""
    graphs = alcohols().replace(part=None)
    results = [cross_validate(graphs, MODEL, TRAIN, folds=3, restarts=2, stack=stack) for stack in (True, False)]
    assert [result.stacked for result in results] == [True, False]
    for one, other in zip(results[0].folds, results[1].folds, strict=True):
        assert one.score == pytest.approx(other.score, abs=0.2)
        assert (one.test_graphs, one.parameters) == (other.test_graphs, other.parameters)
        assert [(run.seeds, run.epochs) for run in one.runs] == [(run.seeds, run.epochs) for run in other.runs]


@pytest.mark.parametrize("stack", [False, True])
def test_nothing_is_fitted_on_graphs_that_are_tested_or_choose(monkeypatch: pytest.MonkeyPatch, stack: bool) -> None:
    fitted: list[set[str]] = []
    fit = Encoder.fit_portions

    def spy(portions: Iterable[Graphs], *words: Any, **settings: Any) -> Encoder:
        (graphs,) = portions
        fitted.append(set(graphs.names))
        return fit([graphs], *words, **settings)

    monkeypatch.setattr(Encoder, "fit_portions", staticmethod(spy))
    graphs = grouped()
    cross_validate(graphs, MODEL, replace(TRAIN, epochs=1), folds=4, restarts=2, stack=stack)
    assert len(fitted) == 4  # the restarts of a fold share what was fitted
    for names, task in zip(fitted, tasks(graphs, 4), strict=True):
        assert names == {graphs.names[g] for g in task.learned}
        assert not names & {graphs.names[g] for g in [*task.tested, *task.validation]}


def test_the_test_fold_is_looked_at_once_by_the_best_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    plain = scoring.predictions_of

    def spy(replica: Replica, data: EncodedGraphs, device: torch.device) -> list[Tensor]:
        looks.append(len(data))
        return plain(replica, data, device)

    monkeypatch.setattr(scoring, "predictions_of", spy)
    result = cross_validate(grouped(), MODEL, TRAIN, folds=3, restarts=3, stack=True)
    assert looks == [fold.test_graphs for fold in result.folds]
    assert sum(looks) == 60
    assert {run.restart for fold in result.folds for run in fold.runs} <= {1, 2, 3}


def test_a_value_is_scored_by_its_explained_variance_also_where_restarts_are_averaged() -> None:
    model = replace(MODEL, readout="sum")
    train = replace(TRAIN, epochs=20, batch_size=16)
    result = cross_validate(oxygens(150), model, train, folds=3, stack=True)
    assert result.score == "r2"
    assert 0.5 < result.mean < 1
    protocol = Protocol(folds=3, restarts=2, combine="average")
    result = cross_validate(oxygens(60), replace(MODEL, readout="sum"), replace(TRAIN, epochs=20), protocol=protocol)
    for fold in result.folds:
        (run,) = fold.runs
        assert run.score >= sure(run.alone) - 1e-9  # the error of a mean is at most the mean of the errors
    assert result.score == "r2"


def test_several_folds_at_a_time_give_the_same_numbers() -> None:
    graphs = grouped()
    # in processes, as users run them: threads would share torch's random numbers
    one, two = (cross_validate(graphs, MODEL, TRAIN, folds=2, jobs=jobs) for jobs in (1, 2))
    assert [fold.runs for fold in one.folds] == [fold.runs for fold in two.folds]
    assert [fold.fold for fold in two.folds] == [1, 2]


@pytest.mark.parametrize("combine", ["best", "average"])
def test_training_that_diverges_says_in_which_fold(combine: Combine) -> None:
    protocol = Protocol(folds=2, combine=combine)
    with pytest.raises(DataError, match="diverged in fold 1"):
        cross_validate(grouped(), MODEL, replace(TRAIN, learning_rate=1e30), protocol=protocol, stack=True)


# ── the command ───────────────────────────────────────────────────────────────────────────────────


def test_the_command_prints_a_table_and_writes_the_record(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "new" / "record.json"
    words = ("crossval", ALCOHOLS, "--folds", 3, "--restarts", 2, "-o", out, "--device", "cpu", *FLAGS, "--epochs", 2)
    lines = told(run, *words).splitlines()
    record = json.loads(out.read_text(encoding="utf-8"))
    assert len(lines) == 1 + 3 + 2
    for line, fold in zip(lines[1:4], record["folds"], strict=True):
        assert f"{fold['score']:.4f}" in line
    assert f"{record['mean']:.4f} ± {record['std']:.4f}" in lines[4]
    assert record["restarts"] == 2


@pytest.mark.parametrize(("stack", "shown"), [("--stack", "epoch 2/2: 3 of 3 in training"), ("--no-stack", "fold 3/3")])
def test_the_command_prints_one_object_for_machines_and_tells_how_it_goes(run: Run, stack: str, shown: str) -> None:
    short = [word for word in SHORT if word != "--quiet"]
    code, out, err = run("crossval", ALCOHOLS, "--folds", 3, "--json", "--device", "cpu", "--seed", 5, stack, *short)
    assert code == 0
    assert shown in err
    result = json.loads(out)
    assert set(CrossValidation.__dataclass_fields__) == set(result)
    assert (result["model"], result["data"], result["protocol"]) == ("ego-cnn", ALCOHOLS, "plain")
    assert (result["seed"], result["stacked"], len(result["folds"])) == (5, stack == "--stack", 3)
    assert result["mean"] == pytest.approx(np.mean([fold["score"] for fold in result["folds"]]))
    assert result["interval"][0] <= result["mean"] <= result["interval"][1]
    assert result["parameters"] > 0
    assert result["seconds"] > 0


def trees(n_graphs: int = 36) -> Graphs:
    """Three classes by chance: restarts disagree on them."""
    graphs = random_trees(n_graphs, nodes=6, seed=1)
    return graphs.replace(target=np.arange(n_graphs) % 3, class_names=("a", "b", "c"))


# ── what several say ──────────────────────────────────────────────────────────────────────────────


def test_the_score_of_several_is_that_of_their_mean_and_not_of_a_vote() -> None:
    sure, unsure = [0.95, 0.05], [0.4, 0.6]
    said = [torch.tensor([own, [0.5, 0.5], [0.0, 1.0]]).double() for own in (sure, unsure, unsure)]
    target = torch.tensor([0, 0, 0])
    assert scoring.score_of(said, target) == pytest.approx(2 / 3)  # a vote would lose the first graph
    assert [scoring.score_of([each], target) for each in said] == pytest.approx([2 / 3, 1 / 3, 1 / 3])


# ── cross-validation ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stack", [False, True])
def test_averaged_restarts_score_what_their_mean_probabilities_say(
    stack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs, protocol = trees(), Protocol(folds=3, runs=2, restarts=3, combine="average")
    target = torch.tensor(as_list(graphs.target))
    said: list[tuple[int, int, Tensor]] = []
    plain = scoring.predictions_of

    def spy(replica: Replica, data: EncodedGraphs, device: torch.device) -> list[Tensor]:
        (own,) = plain(replica, data, device)
        said.append((replica.seeds[0], len(data), own))
        return [own]

    monkeypatch.setattr(scoring, "predictions_of", spy)
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


# ── records and refusals ──────────────────────────────────────────────────────────────────────────


def test_the_command_averages_restarts_over_several_runs(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "record.json"
    words: list[object] = ["crossval", ALCOHOLS, "--folds", 2, "--restarts", 2, "--runs", 2, "--device", "cpu", *SHORT]
    printed(run, *words, "--combine", "average", "-o", out)
    record = json.loads(out.read_text(encoding="utf-8"))
    printed(run, *words, "--combine", "average", "-o", out)
    assert json.loads(out.read_text(encoding="utf-8")) == record, "what is there is not computed again"
    assert (record["runs"], record["restarts"]) == (2, 2)
    runs = [each for fold in record["folds"] for each in fold["runs"]]
    assert len(runs) == 4
    assert all(0 <= each["alone"] <= 1 and each["restart"] == 0 for each in runs)
    check_refused(run, "was made with combine average, now it is none", *words, "-o", out)
    check_refused(run, "--combine: invalid choice: 'vote'", *words, "--combine", "vote")
    check_refused(run, "a whole number, 1 or more", "crossval", ALCOHOLS, "--runs", 0)
    wanted = "only the restarts of an Ego-CNN can be averaged; label counts says classes"
    check_refused(run, wanted, "crossval", ALCOHOLS, "--model", "label-counts", "--combine", "average", "--quiet")


@pytest.mark.parametrize(("networks", "stack"), [(1, False), (2, False), (2, True)])
def test_a_fold_is_what_training_on_its_own_part_gives_tested_by_the_mean_of_the_networks(
    networks: int, stack: bool
) -> None:
    graphs, train = trees(), replace(TRAIN, networks=networks)
    protocol = Protocol(folds=3, restarts=2)
    epochs: list[int] = []
    result = cross_validate(graphs, MODEL, train, protocol=protocol, stack=stack, progress=epochs.append)
    assert max(epochs) <= protocol.folds * protocol.runs * protocol.restarts * train.networks * train.epochs
    task, fold = make_tasks(graphs, protocol, train)[1], result.folds[1]
    rest = task.without_tested(graphs)
    trained = [learn(rest, MODEL, replace(train, seed=seed), stack=stack) for seed in task.seeds[0]]

    def scores(chosen: Ints) -> list[float]:
        some = graphs[chosen]
        return [float((each.outputs(some, device="cpu").argmax(axis=1) == some.target).mean()) for each, _ in trained]

    (run,) = fold.runs
    assert run.validation_score == pytest.approx(max(scores(task.validation)))
    assert run.score == pytest.approx(scores(task.tested)[run.restart - 1])
    (chosen, history), tested = trained[run.restart - 1], graphs[task.tested]
    of_each = chosen.outputs_of_each(tested, device="cpu").argmax(axis=2) == tested.target
    assert run.seeds == task.seeds[0]
    assert fold.parameters == chosen.n_parameters == networks * chosen.networks[0].n_parameters
    if networks > 1:
        assert run.alone == pytest.approx(float(of_each.mean()))
        return
    best, (first, second) = history.best, (each.best for _, each in trained)
    assert best is not None
    assert run.restart == 1 + sure(second).beats(first)  # of equals the first
    assert (run.best_epoch, run.validation_score) == (best.epoch, best.validation_score)
    assert run.score == fold.score == scores_of(chosen, tested, device="cpu")["accuracy"]


# ── other scores ──────────────────────────────────────────────────────────────────────────────────


def test_another_metric_is_reported_in_the_unit_of_the_target_and_chooses_the_restart() -> None:
    train = plain_train(epochs=2, device="cpu")
    errors, shares = (
        cross_validate(oxygens(), MODEL, train, protocol=Protocol(folds=2, restarts=2, metric=metric))
        for metric in ("rmse", None)
    )
    assert (errors.score, shares.score) == ("rmse", "r2")
    assert oxygens().target is not None
    assert 10 < errors.mean < 1e4  # the targets are about 100 apart, not 1
    assert errors.settings["score"] == {"metric": "rmse"}
    assert "RMSE" in "\n".join(errors.lines())
    assert errors.fingerprint != shares.fingerprint
    ranked = cross_validate(alcohols(), MODEL, train, protocol=Protocol(folds=2, metric="roc_auc"))
    assert 0 <= ranked.mean <= 1
    with pytest.raises(ConfigError, match="classes are not scored by 'rmse'"):
        cross_validate(alcohols(), MODEL, train, protocol=Protocol(folds=2, metric="rmse"))


def test_a_score_that_is_undefined_is_refused_and_not_made_up() -> None:
    graphs = alcohols()
    data = Encoder.fit(graphs, MODEL).apply(graphs[sure(graphs.target) == 0], MODEL)
    with pytest.raises(DataError, match="ROC AUC says nothing where all 16 graphs of a fold"):
        scoring.score_of([torch.full((len(data), 2), 0.5)], sure(data.target), "roc_auc")


def test_a_target_is_scored_where_it_is_known_and_refused_where_that_is_nowhere() -> None:
    nan = float("nan")
    scales = (TargetScale("kind", ("no", "yes"), 0, 1), TargetScale("size", (), 5, 2))
    graphs = alcohols()
    encoder = replace(Encoder.fit(graphs, MODEL), targets_of=scales)
    data = Encoder.fit(graphs, MODEL).apply(graphs[:4], MODEL)
    data = replace(data, target=torch.tensor([[0, 1.0], [1, nan], [nan, -1.0], [1, nan]]))
    said = torch.tensor([[0.9, 0.1, 1.5], [0.2, 0.8, 9.0], [0.5, 0.5, -1.0], [0.7, 0.3, 9.0]])
    found = scoring.scores_by_target([said], data, metric="accuracy_and_r2", encoder=encoder)
    assert found == {"kind": pytest.approx(2 / 3), "size": pytest.approx(1 - 0.25 / 2)}


def test_what_cannot_be_trained_on_scored_or_compared_is_refused_before_anything_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graphs, nan = alcohols(), float("nan")
    other = cross_validate(graphs, MODEL, replace(TRAIN, epochs=1), folds=3)
    monkeypatch.setattr(training, "_finish_folds", None)
    target = np.stack([np.where(np.arange(len(graphs)) < 5, sure(graphs.target), nan), graphs.node_counts], axis=1)
    several = graphs.replace(target=target, class_names=(), targets=(("kind", graphs.class_names), ("size", ())))
    one, two = (np.flatnonzero(sure(graphs.target) == number) for number in (0, 1))
    mixed = np.concatenate([one[:5], two[:5]])

    def given(*splits: Split) -> dict[str, Any]:
        return {"protocol": Protocol(name="fair", folds=2, splits=splits, metric="roc_auc")}

    fine, alike = Split(mixed, one[5:7], np.concatenate([one[7:9], two[7:9]])), Split(mixed, one[5:7], two[7:9])
    of_one_class = Split(one[:5], one[5:7], np.concatenate([one[7:9], two[7:9]]))
    for given_graphs, asked, line in (
        (several, {"folds": 8}, "target kind is known of none of the 4 graphs that fold"),
        (graphs, given(fine, alike), "ROC AUC says nothing of the 2 graphs that fold 2 tests, as all are alike"),
        (graphs, given(fine, of_one_class), "there is nothing to tell apart"),
        (graphs, {"folds": 2, "against": other}, "are not tested on the same folds"),
        (graphs, {"protocol": Protocol(folds=3, metric="mcc"), "against": other}, "by the same score"),
    ):
        with pytest.raises(DataError, match=line):
            cross_validate(given_graphs, MODEL, TRAIN, **asked)
