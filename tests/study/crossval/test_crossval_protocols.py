"""The protocols: who trains, who chooses, who is tested, and that the tested have no say."""

import doctest
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest

from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.errors import ConfigError, DataError
from egocnn.study.crossval import Protocol, choose_protocol, compare, cross_validate, read_record
from egocnn.study.crossval.folds import make_tasks, published_splits, read_splits
from lab.rivals.rival import Rival
from tests.support.commands import SHORT, Run, check_refused, told
from tests.support.samples import sure
from tests.support.strategies import random_trees
from tests.support.tiny import ALCOHOLS, FLAGS, SIZES, oxygens, plain_model, plain_train

MODEL = plain_model(**SIZES, dropout=0.0)
TRAIN = plain_train(epochs=2, learning_rate=1e-2, device="cpu")


def trees(n_graphs: int = 40, *, nodes: int = 6, seed: int = 1) -> Graphs:
    """Two classes: many O nodes, or few."""
    graphs = random_trees(n_graphs, nodes=nodes, seed=seed)
    count = np.bincount(graphs.graph_of, weights=sure(graphs.node_label) == graphs.node_label_names.index("O"))
    return graphs.replace(target=(count >= np.median(count)).astype(np.int64), class_names=("few", "many"))


def write_splits(path: Path, folds: Sequence[tuple[Any, Any, Any]]) -> Path:
    plain = [{"test": t, "model_selection": [{"train": a, "validation": b}]} for a, b, t in folds]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plain), encoding="utf-8")
    return path


def thirds(n_graphs: int) -> list[tuple[list[int], list[int], list[int]]]:
    parts = [list(range(first, n_graphs, 3)) for first in range(3)]
    return [(parts[i], parts[(i + 1) % 3], parts[(i + 2) % 3]) for i in range(3)]


@dataclass(slots=True)
class Guess:
    """Says one class for every graph, by its seed unless it is named."""

    seed: int
    parameters: int | None = 1
    says: int | None = None
    asked: list[int] = field(default_factory=list)

    def fit(self, graphs: Graphs, validation: Graphs) -> Self:
        assert graphs.target is not None
        assert validation.target is not None
        assert not set(graphs.names) & set(validation.names)
        return self

    def predict(self, graphs: Graphs) -> Ints:
        assert graphs.target is None, "the truth is handed over with the question"
        self.asked.append(len(graphs))
        return np.full(len(graphs), self.seed % 2 if self.says is None else self.says)


def rival_of(build: Any) -> Rival:
    return Rival(name="guess", source="a test", library="none", departures="none", build=build)


# ── who chooses ───────────────────────────────────────────────────────────────────────────────────


def test_the_papers_protocol_has_ten_folds_five_restarts_and_a_tenth_for_validation() -> None:
    protocol = choose_protocol("paper")
    assert (protocol.folds, protocol.runs, protocol.restarts, protocol.splits) == (10, 1, 5, None)
    tasks = make_tasks(trees(200), protocol, TRAIN)
    seeds = [seed for task in tasks for run in task.seeds for seed in run]
    assert len(set(seeds)) == 50
    for task in tasks:
        assert (len(task.learned), len(task.validation), len(task.tested)) == (162, 18, 20)
        assert sorted([*task.learned, *task.validation, *task.tested]) == list(range(200))
    with pytest.raises(ConfigError, match=r"validates on 0\.1 of the training part, not 0\.2"):
        make_tasks(trees(), protocol, replace(TRAIN, validation=0.2))


def test_the_fair_protocol_takes_the_given_parts_and_the_mean_of_three_runs(tmp_path: Path) -> None:
    graphs = trees(30)
    protocol = choose_protocol("fair", splits=write_splits(tmp_path / "own.json", thirds(30)))
    for task, (train, validation, tested) in zip(make_tasks(graphs, protocol, TRAIN), thirds(30), strict=True):
        assert (task.learned.tolist(), task.validation.tolist(), task.tested.tolist()) == (train, validation, tested)
        marked = task.without_tested(graphs)
        assert marked.select("validation").names == graphs[validation].names
        assert marked.select("train").names == graphs[train].names
    result = cross_validate(graphs, MODEL, TRAIN, protocol=protocol)
    assert (result.protocol, result.runs, result.restarts) == ("fair", 3, 1)
    for fold in result.folds:
        assert len({run.seeds for run in fold.runs}) == 3
        assert fold.score == pytest.approx(np.mean([run.score for run in fold.runs]))
        assert fold.validation_score == pytest.approx(np.mean([run.validation_score for run in fold.runs]))
    assert result.mean == pytest.approx(np.mean([fold.score for fold in result.folds]))


def test_the_best_restart_in_validation_is_tested_once_a_run() -> None:
    graphs = trees(40)
    built: list[Guess] = []

    def build(seed: int) -> Guess:
        built.append(Guess(seed))
        return built[-1]

    task = replace(make_tasks(graphs, Protocol(folds=4), TRAIN)[0], seeds=((2, 3, 5), (4, 6, 8)))
    fold = rival_of(build).run_fold(graphs, task, TRAIN)
    assert graphs.target is not None
    ones, validated = graphs.target[task.tested].mean(), graphs.target[task.validation].mean()
    chosen = 2 if validated > 0.5 else 1
    assert [run.restart for run in fold.runs] == [chosen, 1]  # equal restarts: the first
    assert [run.score for run in fold.runs] == pytest.approx([ones if chosen == 2 else 1 - ones, 1 - ones])
    assert [run.validation_score for run in fold.runs] == pytest.approx([max(validated, 1 - validated), 1 - validated])
    looks = [guess.asked.count(len(task.tested)) for guess in built]
    assert looks == [int(number == chosen) for number in (1, 2, 3)] + [1, 0, 0]


# ── models of others ──────────────────────────────────────────────────────────────────────────────


def test_rivals_are_built_afresh_for_every_restart_if_they_have_parameters_and_once_a_fold_if_not() -> None:
    graphs = trees(40)
    for parameters, trainings in ((3, 3), (None, 1)):
        seeds: list[int] = []

        def build(seed: int, seeds: list[int] = seeds, parameters: int | None = parameters) -> Guess:
            seeds.append(seed)
            return Guess(seed, parameters, says=0)

        result = cross_validate(graphs, rival_of(build), TRAIN, folds=4, restarts=3)
        assert (result.model, result.parameters, result.stacked) == ("guess", parameters, False)
        assert {len(run.seeds) for fold in result.folds for run in fold.runs} == {trainings}
        assert len(set(seeds)) == len(seeds) == 4 * trainings
        assert result.mean == pytest.approx(1 - sure(graphs.target).mean(), abs=0.1)
    rival = rival_of(Guess)
    with pytest.raises(DataError, match="guess tells classes apart; these graphs have none"):
        cross_validate(oxygens(40), rival, TRAIN, folds=2)
    with pytest.raises(ConfigError, match="only an Ego-CNN trains stacked, not guess"):
        cross_validate(trees(), rival, TRAIN, stack=True)


def test_the_example_of_a_cross_validation_runs() -> None:
    example = doctest.DocTestFinder(recurse=False).find(cross_validate, globs={"cross_validate": cross_validate})[0]
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


# ── the published splits ──────────────────────────────────────────────────────────────────────────


def test_published_splits_are_found_by_the_name_of_the_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EGOCNN_DATA", str(tmp_path))
    path = write_splits(tmp_path / "splits" / "MINE.json", thirds(9))
    assert {published_splits(data) for data in ("MINE", "some/where/MINE", "tu/MINE.zip")} == {path}
    with pytest.raises(DataError, match=r"splits/OTHER.json: no such file; the fair protocol needs"):
        published_splits("OTHER")
    monkeypatch.delenv("EGOCNN_DATA")
    with pytest.raises(DataError, match=r"EGOCNN_DATA is not set"):
        published_splits("MINE")


@pytest.mark.parametrize(
    ("folds", "reason"),
    [
        ([([0], [1], [2])], "at least 2 folds"),
        ([([0, 3], [1], [2]), ([0, 2], [2], [1])], "fold 2: graph 2 stands twice"),
        ([([0, 0], [1], [2])] * 2, "fold 1: graph 0 stands twice"),
        ([([0], [], [2])] * 2, "fold 1: the part 'validation' has no graphs"),
        ([([0], [1], None)] * 2, "fold 1: the part 'test' has no graphs"),
        ([([0, -1], [1], [2])] * 2, "-1 in 'train' is not the number of a graph"),
        ([([0, 1.5], [1], [2])] * 2, "1.5 in 'train' is not the number of a graph"),
        ([([0, 10**30], [1], [2])] * 2, "in 'train' is not the number of a graph"),
    ],
)
def test_splits_that_break_a_rule_are_refused(tmp_path: Path, folds: list[Any], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_splits(write_splits(tmp_path / "wrong.json", folds))


def test_files_that_hold_no_splits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    for text, reason in (("[", "is not JSON"), ("{}", "list of at least 2"), ("[1, 2]", "fold 1: must have a 'test'")):
        path.write_text(text)
        with pytest.raises(DataError, match=reason):
            read_splits(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_splits(tmp_path / "absent.json")
    graphs, given = trees(20), tuple(read_splits(write_splits(path, thirds(21))))
    with pytest.raises(DataError, match="name graph 20, counted from 0; there are 20 graphs"):
        make_tasks(graphs, Protocol(name="fair", folds=3, runs=3, splits=given), TRAIN)


def test_the_splits_of_errica_et_al_test_every_graph_once_in_equal_shares(data_folder: Path) -> None:
    graphs = read("PROTEINS")
    assert graphs.target is not None
    tasks = make_tasks(graphs, choose_protocol("fair", data="PROTEINS"), TRAIN)
    assert sorted(np.concatenate([task.tested for task in tasks]).tolist()) == list(range(1113))
    for task in tasks:
        assert sorted([*task.learned, *task.validation, *task.tested]) == list(range(1113))
        for part in (task.learned, task.validation, task.tested):
            assert abs(graphs.target[part].mean() - graphs.target.mean()) < 0.01
    assert data_folder.joinpath("splits", "PROTEINS.json").is_file()


# ── the command ───────────────────────────────────────────────────────────────────────────────────


def test_two_models_on_the_same_folds_are_compared(tmp_path: Path, run: Run) -> None:
    counts, ours = tmp_path / "counts.json", tmp_path / "ours.json"
    words = ("crossval", ALCOHOLS, "--folds", 3)
    told(run, *words, "--model", "label-counts", "-o", counts)
    text = told(run, *words, "-o", ours, "--against", counts, *FLAGS, "--epochs", 2)
    one, other = read_record(ours), read_record(counts)
    assert one is not None
    assert other is not None
    found = compare(one, other)
    assert f"ego-cnn minus label counts: {found.difference:+.4f}" in text.splitlines()[-1]
    assert found.difference == pytest.approx(one.mean - other.mean)
    text = told(run, *words, "-o", ours, "--against", counts, "--json", *SHORT)
    assert json.loads(text)["comparison"]["p"] == found.p
    check_refused(run, "not tested on the same folds", *words, "--seed", 4, "--against", counts, *SHORT)
    check_refused(run, "absent.json: no such file", *words, "--against", tmp_path / "absent.json", *SHORT)


def test_what_does_not_go_together_is_refused_in_one_line(tmp_path: Path, run: Run) -> None:
    splits = write_splits(tmp_path / "own.json", thirds(32))
    words = ("crossval", ALCOHOLS, "--quiet")
    check_refused(run, "no model is called 'x'", *words, "--model", "x")
    check_refused(run, "--depth is a setting of the Ego-CNN", *words, "--model", "label-counts", "--depth", 4)
    check_refused(run, "--splits belongs to --protocol fair", *words, "--splits", splits)
    check_refused(run, "3 folds, not 5", *words, "--protocol", "fair", "--splits", splits, "--folds", 5)
    check_refused(run, "validates on 0.1", *words, "--protocol", "paper", "--validation", 0.3)
    check_refused(run, "invalid choice", *words, "--protocol", "x")


# ── models of others ──────────────────────────────────────────────────────────────────────────────


class Majority:
    """As scikit-learn has them: says the class that most training graphs have."""

    random_state: int | None = None
    seeds: ClassVar[list[int | None]] = []

    def fit(self, graphs: Graphs, target: Ints) -> Self:
        assert sure(graphs.target).tolist() == target.tolist()
        self.seeds.append(self.random_state)
        self.commonest = np.bincount(target).argmax()
        return self

    def predict(self, graphs: Graphs) -> Ints:
        assert graphs.target is None
        return np.full(len(graphs), self.commonest)


def test_any_object_with_fit_and_predict_is_cross_validated_by_a_fresh_copy_in_every_fold() -> None:
    graphs, model = trees(40), Majority()
    result = cross_validate(graphs, model, TRAIN, folds=4, restarts=3)
    assert (result.model, result.parameters, result.stacked) == ("Majority", None, False)
    share = float(sure(graphs.target).mean())
    assert result.mean == pytest.approx(max(share, 1 - share), abs=0.1)
    assert len(set(Majority.seeds)) == 4
    assert not hasattr(model, "commonest")
    with pytest.raises(DataError, match="Majority tells classes apart; these graphs have none"):
        cross_validate(oxygens(40), model, TRAIN, folds=2)
