"""Sweeps for real, over small networks: scores, tables, what is kept, and what the test folds see."""

import json
import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, RunError
from egocnn.study.crossval import Protocol, cross_validate
from egocnn.study.crossval.folds import Split, make_tasks
from egocnn.study.crossval.training import Execution
from egocnn.study.sweep.grid import (
    Axis,
    PairScore,
    Sweep,
    changed,
    draw_settings,
    flags,
    in_words,
    parse_axis,
    ranked,
    shown,
)
from egocnn.study.sweep.search import PAIRS, inner_tasks, sweep
from tests.support.commands import SHORT, Run, check_refused, rows
from tests.support.samples import sure
from tests.support.tiny import ALCOHOLS, FLAGS, SIZES, alcohols, contents, names_in, oxygens, plain_model, plain_train

MODEL = plain_model(**SIZES)
TRAIN = plain_train(epochs=2, learning_rate=1e-2, device="cpu")
PROTOCOL = Protocol(folds=2)


def tried(folder: Path, *over: str, graphs: Graphs | None = None, train: TrainConfig = TRAIN, **more: Any) -> Sweep:
    axes = [parse_axis(each) for each in over]
    settings = draw_settings(axes, MODEL, train)
    return sweep(alcohols() if graphs is None else graphs, settings, axes, PROTOCOL, folder, **more)


def scores(record: Sweep) -> list[Any]:
    return [(row.setting, row.mean, row.scores, row.parameters) for row in record.rows]


@pytest.mark.parametrize("graphs", [alcohols(), oxygens()], ids=["classes", "values"])
def test_the_inner_parts_are_all_but_the_test_fold(graphs: Graphs) -> None:
    graphs = graphs.replace(part=None)
    several = Protocol(folds=2, runs=3)
    for outer, inner in zip(make_tasks(graphs, several, TRAIN), inner_tasks(graphs, several, TRAIN), strict=True):
        assert np.array_equal(inner.tested, outer.validation)
        assert np.array_equal(np.sort(np.concatenate([inner.learned, inner.validation])), outer.learned)
        assert min(len(inner.learned), len(inner.validation)) > 0
        seen = np.concatenate([inner.learned, inner.validation, inner.tested])
        assert not np.isin(seen, outer.tested).any()
        assert inner.seeds == outer.seeds[:1]


def test_no_score_depends_on_what_is_in_the_test_folds(tmp_path: Path) -> None:
    graphs = alcohols().replace(part=None)
    parts = [(task.learned, task.validation, task.tested) for task in make_tasks(graphs, PROTOCOL, TRAIN)]
    given = Protocol(name="fair", folds=2, splits=tuple(Split(*each) for each in parts))
    target = sure(graphs.target).copy()
    target[parts[0][2]] = 1 - target[parts[0][2]]  # in the second fold these graphs are learned from
    axes = [parse_axis("width=4,8")]
    settings = draw_settings(axes, MODEL, TRAIN)
    one, two = (
        {row.setting["width"]: row.scores for row in sweep(each, settings, axes, given, tmp_path / str(n)).rows}
        for n, each in enumerate((graphs, graphs.replace(target=target)))
    )
    assert {width: scores[0] for width, scores in one.items()} == {width: scores[0] for width, scores in two.items()}
    assert one != two


def test_the_best_mean_comes_first_of_errors_the_lowest_of_equals_the_smaller_and_diverged_ones_last() -> None:
    settings = draw_settings([parse_axis("width=1,2,3,4")], MODEL, TRAIN)

    def of(scores: tuple[float | None, float | None], parameters: int) -> list[PairScore]:
        pairs = enumerate(scores, start=1)
        return [PairScore(fold=n, score=each, parameters=parameters, seconds=1.5) for n, each in pairs][::-1]

    scored = [of((None, 1.0), 10), of((0.5, 0.7), 90), of((0.6, 0.6), 80), of((0.9, 0.8), 99)]
    found = [row for _, row in ranked(settings, scored)]
    assert [row.setting["width"] for row in found] == [4, 3, 2, 1]
    assert [row.rank for row in found] == [1, 2, 3, 4]
    assert found[2].scores == (0.5, 0.7)
    assert found[2].mean == pytest.approx(0.6)
    assert found[2].std == pytest.approx(0.02**0.5)
    assert (found[3].mean, found[3].std, found[3].seconds) == (None, None, 3.0)
    points = draw_settings([parse_axis("width=4,8")], MODEL, TRAIN)
    scores = [[PairScore(fold=1, score=score, parameters=1, seconds=0.0)] for score in (2.0, 1.0)]
    assert [row.mean for _, row in ranked(points, scores, lower=True)] == [1.0, 2.0]
    assert [row.mean for _, row in ranked(points, scores)] == [2.0, 1.0]


def test_a_sweep_goes_on_from_what_is_kept_and_a_larger_one_uses_it_again(tmp_path: Path) -> None:
    told: list[int] = []
    small = tried(tmp_path, "width=4,8", "depth=1", execution=Execution(progress=told.append))
    assert told == [0, 1, 2, 3, 4]
    assert len(names_in(tmp_path / PAIRS)) == 4
    told.clear()
    large = tried(tmp_path, "width=4,8,2", "depth=1", execution=Execution(progress=told.append))
    assert told == [4, 5, 6]
    assert {json.dumps(row.setting): row for row in small.rows}.keys() < {json.dumps(r.setting) for r in large.rows}
    kept = {row.setting["width"]: (row.scores, row.seconds) for row in small.rows}
    assert {row.setting["width"]: (row.scores, row.seconds) for row in large.rows if row.setting["width"] > 2} == kept
    told.clear()
    tried(tmp_path, "width=4,8", "depth=1", train=replace(TRAIN, epochs=1), execution=Execution(progress=told.append))
    assert told[0] == 0  # other settings beside the grid are kept apart
    assert json.loads((tmp_path / "sweep.json").read_text())["chosen"]["train"]["epochs"] == 1


def test_a_sweep_that_is_stopped_says_what_is_kept(tmp_path: Path) -> None:
    def stop(done: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^stopped; 3 of 4 trainings are kept in .*it, and the same"):
        tried(tmp_path / "it", "width=4,8", execution=Execution(progress=stop))
    told: list[int] = []
    tried(tmp_path / "it", "width=4,8", execution=Execution(progress=told.append))
    assert told == [3, 4]


def test_processes_come_to_the_same_scores(tmp_path: Path) -> None:
    here = tried(tmp_path / "here", "width=4,8")
    assert scores(tried(tmp_path / "processes", "width=4,8", execution=Execution(jobs=2))) == scores(here)


def test_a_setting_that_diverges_is_an_answer(tmp_path: Path) -> None:
    for name, how in (("one by one", Execution()), ("stacked", Execution(stack=True))):
        record = tried(tmp_path / name, "learning_rate=1e30,1e-2", execution=how)
        assert [row.setting["learning_rate"] for row in record.rows] == [1e-2, 1e30]
        assert record.rows[1].mean is None
        assert "diverged" in "".join(record.lines())
    hopeless = tried(tmp_path / "hopeless", "learning_rate=1e30", test_chosen=True)
    assert hopeless.test is None
    assert "Every setting diverged; try smaller learning rates." in list(hopeless.lines())


def test_the_chosen_setting_has_one_look_at_the_test_folds(tmp_path: Path) -> None:
    record = tried(tmp_path, "width=4,8", test_chosen=True)
    best = record.rows[0].setting
    wanted = cross_validate(alcohols(), replace(MODEL, **best), TRAIN, protocol=PROTOCOL)
    assert record.test is not None
    assert (record.test["mean"], record.test["std"]) == (wanted.mean, wanted.std)
    again = tried(tmp_path, "width=4,8", test_chosen=True)
    assert again.test == record.test
    other = "width=8" if best["width"] == 4 else "width=4"
    with pytest.raises(RunError, match="another setting has had its look at the test folds; a second look makes"):
        tried(tmp_path, other, test_chosen=True)
    assert tried(tmp_path, other, test_chosen=True, overwrite=True).test is not None


def test_a_sweep_that_replaces_another_leaves_it_as_it_is_until_the_new_one_is_whole(tmp_path: Path) -> None:
    tried(tmp_path, "width=4,8", test_chosen=True)
    (tmp_path / "notes.txt").write_text("mine")
    before, train, logged = contents(tmp_path), replace(TRAIN, seed=1), list[str]()

    def stop(line: str) -> None:
        logged.append(line)
        if line.startswith("3/4"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"\.new, and the same command goes on"):
        tried(tmp_path, "width=4,8", train=train, overwrite=True, execution=Execution(log=stop))
    assert {name: value for name, value in contents(tmp_path).items() if ".new" not in str(name)} == before
    record = tried(tmp_path, "width=4,8", train=train, overwrite=True, execution=Execution(log=logged.append))
    assert "3 of 4 trainings are there already" in logged
    assert scores(record) == scores(tried(tmp_path / "alone", "width=4,8", train=train))
    assert names_in(tmp_path) == ["about.json", "alone", "folds", "notes.txt", "sweep.csv", "sweep.json"]
    assert len(names_in(tmp_path / PAIRS)) == 4
    assert json.loads((tmp_path / "sweep.json").read_text())["seed"] == 1


def test_other_data_or_folds_are_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    tried(tmp_path / "it", "width=4")
    before = (tmp_path / "it" / "sweep.json").read_text()
    with pytest.raises(RunError, match=r"it: was made with seed 0, now it is 1; --overwrite starts anew"):
        tried(tmp_path / "it", "width=4", train=replace(TRAIN, seed=1))
    with pytest.raises(RunError, match=r"it: was made with other data or folds; --overwrite starts anew"):
        tried(tmp_path / "it", "width=4", graphs=alcohols()[:24])
    assert (tmp_path / "it" / "sweep.json").read_text() == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(RunError, match=r"other: is not empty and holds no sweep"):
        tried(tmp_path / "other", "width=4")
    with pytest.raises(RunError, match=r"file: is a file, not a folder"):
        tried(tmp_path / "other" / "file", "width=4")
    damaged = next((tmp_path / "it" / PAIRS).iterdir())
    damaged.write_text('{"setting": {}, "scored": {"fold": 1}}')
    with pytest.raises(RunError, match=r"json: is damaged; remove it, and the fold is computed anew"):
        tried(tmp_path / "it", "width=4")


# ── the command ───────────────────────────────────────────────────────────────────────────────────


def words(folder: Path, *over: str) -> list[object]:
    typed: list[object] = ["sweep", ALCOHOLS, *FLAGS, "--folds", 2, "--learning-rate", "1e-2"]
    for each in over:
        typed += ["--over", each]
    return [*typed, "-o", folder]


def test_the_command_writes_three_tables_and_says_how_to_go_on(tmp_path: Path, run: Run) -> None:
    typed = [*words(tmp_path / "it", "width=4,8", "jump=yes,no"), "--epochs", 2, "--sample", 3]
    code, out, err = run(*typed, "--json")
    assert code == 0
    assert "3/6: " in err
    plain = json.loads(out)
    assert plain == json.loads((tmp_path / "it" / "sweep.json").read_text())
    assert (len(plain["rows"]), plain["sampled"], plain["test"]) == (3, 3, None)
    table = rows(tmp_path / "it" / "sweep.csv")
    assert [int(row["rank"]) for row in table] == [1, 2, 3]
    assert [row["jump"] for row in table] == ["yes" if row["setting"]["jump"] else "no" for row in plain["rows"]]
    assert [float(row["mean"]) for row in table] == sorted((float(row["mean"]) for row in table), reverse=True)
    assert "--over width=4,8 --over jump=yes,no --sample 3 --folds 2" in plain["command"]
    code, out, err = run(*typed)
    assert (code, err.splitlines()[0]) == (0, "6 of 6 trainings are there already")
    assert f"Train with it: egocnn train {ALCOHOLS} -o RUN --slots 4 --k 4" in out
    assert out.splitlines()[-1] == f"tables: {tmp_path / 'it' / 'sweep.csv'}, sweep.json"


def test_bad_words_are_one_line(tmp_path: Path, run: Run) -> None:
    check_refused(run, "did you mean width?", *words(tmp_path, "widht=3"))
    check_refused(run, "dropout must be at least 0 and below 1, got 2.0", *words(tmp_path, "dropout=2"))
    check_refused(run, "a sweep needs something to go over", *words(tmp_path))
    check_refused(run, "leave --jobs out", *words(tmp_path, "width=3"), "--stack", "--jobs", 2)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("typed", "name", "values"),
    [
        ("width=32,64", "width", (32, 64)),
        ("learning-rate=1e-3,3e-4", "learning_rate", (1e-3, 3e-4)),
        ("readout=max,mean+max", "readout", ("max", "mean+max")),
        ("jump=yes,no", "jump", (True, False)),
        ("tie=auto,no", "tie", ("auto", False)),
        ("dropout=0", "dropout", (0.0,)),
    ],
)
def test_an_axis_is_read_by_the_type_of_its_field(typed: str, name: str, values: tuple[Any, ...]) -> None:
    axis = parse_axis(typed)
    assert axis == Axis(name, values)
    assert [type(value) for value in axis.values] == [type(value) for value in values]
    assert parse_axis(f"{name}={','.join(map(shown, axis.values))}") == axis


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("width", r"^--over takes a field and its values, width=32,64 say, got 'width'$"),
        ("widht=3", r"^--over: no setting is called 'widht'; did you mean width\? there are batch_size, "),
        ("zzz=3", r"^--over: no setting is called 'zzz'; there are batch_size, .*weight_decay, width$"),
        ("width=a", r"^--over: width must be a whole number, got 'a'$"),
        ("width=", r"^--over: width must be a whole number, got ''$"),
        ("width=8,0", r"^--over: width must be at least 1, got 0$"),
        ("depth=2x2", r"^--over: depth must be a whole number, got '2x2'$"),
        ("dropout=much", r"^--over: dropout must be a number, got 'much'$"),
        ("jump=maybe", r"^--over: jump must be true or false, got 'maybe'$"),
        ("tie=auot", r"^--over: tie must be true, false or auto, got 'auot'$"),
        ("readout=maxx", r"^--over: readout must be one of max, .*, got 'maxx'$"),
        ("width=3,4,3", r"^--over width: 3 is given twice$"),
        ("seed=1,2", r"^--over seed: the best of several seeds says nothing of a setting; "),
        ("validation=0.1", r"^--over validation: all settings must be judged by the same graphs; "),
    ],
)
def test_what_is_no_axis_is_refused_with_what_there_is(typed: str, line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        parse_axis(typed)


def test_a_grid_changes_what_is_swept_and_nothing_else() -> None:
    axes = [parse_axis("depth=2,3"), parse_axis("width=8,4")]
    with pytest.raises(ConfigError, match=r"^a sweep needs something to go over"):
        draw_settings([], ModelConfig(), TrainConfig())
    with pytest.raises(ConfigError, match=r"^--over depth is given twice; name all its values in one"):
        draw_settings([axes[0], axes[0]], ModelConfig(), TrainConfig())
    axes = [parse_axis("width=8,16"), parse_axis("learning_rate=1e-2,1e-3,1e-4")]
    found = draw_settings(axes, ModelConfig(depth=2), TrainConfig(epochs=7))
    assert [(each.model.width, each.train.learning_rate) for each in found] == [
        (width, rate) for width in (8, 16) for rate in (1e-2, 1e-3, 1e-4)
    ]
    assert {each.model.depth for each in found} == {2}
    assert {each.train.epochs for each in found} == {7}
    assert in_words(found[0].values) == "width 8, learning_rate 0.01"
    assert flags(changed(found[1].model, found[1].train)) == "--width 8 --depth 2 --epochs 7"
    assert flags({"width": 4, "jump": True, "tie": False}) == "--width 4 --jump --no-tie"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 300), st.integers(0, 5))
def test_draws_are_points_of_the_grid_no_two_alike_and_follow_from_the_seed(
    sizes: list[int], sample: int, seed: int
) -> None:
    names = ("hidden", "depth", "slots", "epochs")
    axes = [Axis(name, tuple(range(1, size + 1))) for name, size in zip(names, sizes, strict=False)]
    every = draw_settings(axes, ModelConfig(), TrainConfig())
    assert len(every) == len({each.values for each in every}) == math.prod(sizes)
    drawn = draw_settings(axes, ModelConfig(), TrainConfig(), sample=sample, seed=seed)
    assert len(drawn) == len(set(drawn)) == min(sample, len(every))
    assert set(drawn) <= set(every)
    assert drawn == draw_settings(axes, ModelConfig(), TrainConfig(), sample=sample, seed=seed)


@pytest.mark.parametrize(("target", "more"), [("is toxic", ()), ("-is toxic", ("--split", "random"))])
def test_the_advice_names_how_the_data_are_read_and_runs_when_pasted(
    target: str, more: tuple[str, ...], tmp_path: Path, run: Run
) -> None:
    table = tmp_path / "some molecules.csv"
    table.write_text(f"smiles,{target}\n" + "".join(f"{'C' * n}O,{n % 2}\n" for n in range(1, 25)))
    options = [f"--target={target}", *more, *FLAGS, "--epochs", 2]
    code, out, err = run("sweep", table, "--over", "width=4,8", "--folds", 2, *options, "-o", tmp_path / "it")
    assert code == 0, err
    (advice,) = [line for line in out.splitlines() if line.startswith("Train with it: egocnn ")]
    pasted = shlex.split(advice.removeprefix("Train with it: egocnn ").replace("RUN", str(tmp_path / "run")))
    assert target in "=".join(pasted).split("=")
    assert run(*pasted, "--quiet")[0] == 0
    again = json.loads((tmp_path / "it" / "sweep.json").read_text())["command"]
    assert run(*shlex.split(again)[1:], "--quiet")[0] == 0


def test_a_setting_with_which_no_network_can_be_built_is_refused_before_others_are_trained(
    run: Run, tmp_path: Path
) -> None:
    line = "--over, embedding attributes: embedding 'attributes' needs graphs whose nodes have attributes"
    words = ["--over", "embedding=patchy-san,attributes", "--folds", 2, *SHORT, "-o", tmp_path / "sweep"]
    check_refused(run, line, "sweep", ALCOHOLS, *words)
    assert not (tmp_path / "sweep").exists()
