import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.collection import split_off
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.errors import ConfigError, DataError, RunError
from egocnn.model import Model
from egocnn.train import metrics
from egocnn.train.metrics import scores_of
from egocnn.train.recipe import learn
from egocnn.train.run import fingerprint, train_run, with_test_part
from tests.support.commands import rows
from tests.support.samples import sure
from tests.support.tiny import (
    COMPLETE,
    MODEL,
    SIZES,
    TRAIN,
    alcohols,
    check_same_run,
    contents,
    names_in,
    oxygens,
    plain_model,
    stop_after,
    with_opposite_classes,
)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    train_run(alcohols(), folder, MODEL, TRAIN)
    return folder


@pytest.fixture
def run(unbroken: Path, tmp_path: Path) -> Path:
    """A complete run."""
    return Path(shutil.copytree(unbroken, tmp_path / "run"))


# ── what a run folder holds ───────────────────────────────────────────────────────────────────────


def test_a_run_folder_holds_what_is_promised_and_nothing_more(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "down" / "run"
    about = {"data": "some alcohols"}
    metrics = train_run(alcohols(), folder, MODEL, TRAIN, about=about)
    assert names_in(folder) == COMPLETE
    assert json.loads((folder / "metrics.json").read_text()) == metrics
    assert metrics.keys() >= {"validation_accuracy", "test_accuracy", "epochs", "seconds", "parameters", "seed"}
    assert metrics["epochs"] == 4
    assert 1 <= metrics["best_epoch"] <= 4
    assert metrics["seconds"] > 0
    assert metrics["test_graphs"] == 20
    assert metrics["interrupted"] is False
    predictor = Model.load(folder)
    assert metrics["parameters"] == predictor.n_parameters
    config = json.loads((folder / "config.json").read_text())
    assert config["data"] == "some alcohols"
    assert config["model"]["width"] == 8
    assert config["train"]["epochs"] == 4
    assert config["encoder"]["class_names"] == ["alkane", "alcohol"]


def test_the_history_has_a_line_per_epoch_and_its_best_line_is_in_the_metrics(unbroken: Path) -> None:
    lines = rows(unbroken / "history.csv")
    scores = ["train_loss", "train_score", "validation_loss", "validation_score"]
    assert list(lines[0]) == ["network", "epoch", "learning_rate", *scores, "seconds"]
    assert [line["epoch"] for line in lines] == ["1", "2", "3", "4"]
    metrics = json.loads((unbroken / "metrics.json").read_text())
    best = lines[metrics["best_epoch"] - 1]
    assert float(best["validation_score"]) == metrics["validation_accuracy"]
    assert float(best["validation_loss"]) == metrics["validation_loss"]
    assert metrics["seconds"] == pytest.approx(sum(float(line["seconds"]) for line in lines), abs=1e-3)


def test_the_test_accuracy_is_that_of_the_saved_model_which_is_the_one_learned_in_memory(unbroken: Path) -> None:
    metrics = json.loads((unbroken / "metrics.json").read_text())
    tested = alcohols().select("test")
    probability = Model.load(unbroken).probabilities(tested)
    assert tested.target is not None
    assert metrics["test_accuracy"] == (probability.argmax(axis=1) == tested.target).mean()
    of_truth = probability[np.arange(len(tested)), tested.target]
    assert metrics["test_log_loss"] == pytest.approx(-np.log(of_truth).mean())
    predictor, _ = learn(alcohols(), MODEL, TRAIN)
    loaded = Model.load(unbroken)
    assert loaded.temperature == predictor.temperature
    np.testing.assert_array_equal(loaded.probabilities(alcohols()), predictor.probabilities(alcohols()))


def test_the_run_folder_says_which_graph_was_in_which_part_and_what_was_predicted_in_the_test(unbroken: Path) -> None:
    graphs = alcohols()
    parts = zip(graphs.names, sure(graphs.part).tolist(), strict=True)
    assert rows(unbroken / "split.csv") == [{"name": name, "part": PARTS[part]} for name, part in parts]
    tests = rows(unbroken / "test_predictions.csv")
    metrics, likely = json.loads((unbroken / "metrics.json").read_text()), Model.load(unbroken).probabilities
    tested = graphs.select("test")
    assert [row["name"] for row in tests] == list(tested.names)
    assert np.mean([row["predicted"] == row["true"] for row in tests]) == metrics["test_accuracy"]
    np.testing.assert_allclose([float(row["probability"]) for row in tests], likely(tested).max(axis=1), rtol=1e-5)
    recall = {
        name: np.mean([row["predicted"] == name for row in tests if row["true"] == name])
        for name in ("alkane", "alcohol")
    }
    assert metrics["test_recall"] == recall
    assert metrics["test_roc_auc"] == scores_of(likely(tested), np.array(tested.target))["roc_auc"]


def test_a_regression_is_scored_by_its_errors_and_their_order(tmp_path: Path) -> None:
    metrics = train_run(oxygens(), tmp_path, MODEL, TRAIN)
    assert metrics["task"] == "regression"
    tested = with_test_part(oxygens(), 0.2, 0).select("test")
    assert tested.target is not None
    error = Model.load(tmp_path).values(tested) - tested.target
    assert metrics["test_mae"] == pytest.approx(np.abs(error).mean())
    assert metrics["test_rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    assert -1 <= metrics["test_spearman"] <= 1
    spread = np.square(tested.target - tested.target.mean()).sum()
    assert metrics["test_r2"] == pytest.approx(1 - np.square(error).sum() / spread)
    assert "validation_r2" in metrics
    assert "test_accuracy" not in metrics


def test_a_share_of_zero_leaves_no_test_part(tmp_path: Path) -> None:
    metrics = train_run(oxygens(), tmp_path, MODEL, replace(TRAIN, epochs=1), test=0)
    assert not [name for name in metrics if name.startswith("test")]


def test_the_test_part_is_split_off_by_share_and_seed_unless_the_data_have_one() -> None:
    for seed in (0, 3):
        _, tested = split_off(oxygens().outline, 0.2, seed)
        marked = with_test_part(oxygens(), 0.2, seed)
        assert np.flatnonzero(sure(marked.part) == PARTS.index("test")).tolist() == tested.tolist()
        assert len(marked.select("train")) == len(oxygens()) - len(tested)
    assert with_test_part(alcohols(), 0.5, 0) is alcohols()


# ── scores where the truth is not all there ───────────────────────────────────────────────────────


def test_graphs_without_a_truth_do_not_count_and_unknown_classes_count_as_missed() -> None:
    predictor, _ = learn(alcohols(), MODEL, replace(TRAIN, epochs=1))
    graphs = alcohols()[:4]
    guess = predictor.probabilities(graphs).argmax(axis=1)
    names = (*graphs.class_names, "ether")
    truth = np.array([guess[0], -1, 1 - guess[2], 2])
    scores = metrics.test_scores(predictor, graphs.replace(target=truth, class_names=names), device="cpu")
    assert scores["accuracy"] == pytest.approx(1 / 3)
    assert np.isfinite(scores["log_loss"])
    nothing = graphs.replace(target=np.full(4, -1))
    assert metrics.test_scores(predictor, nothing, device="cpu") == {}
    predictor, _ = learn(oxygens(), MODEL, replace(TRAIN, epochs=1))
    target = sure(oxygens().target)
    gaps = np.where(np.arange(len(target)) % 2 == 0, target, np.nan)
    scores = metrics.test_scores(predictor, oxygens().replace(target=gaps), device="cpu")
    assert scores == metrics.test_scores(predictor, oxygens()[::2], device="cpu")
    assert metrics.test_scores(predictor, oxygens().replace(target=np.full(len(target), np.nan)), device="cpu") == {}


# ── resuming ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("epochs", "age"), [(1, None), (4, None), (2, 0), (2, 1 << 31)])
def test_a_stopped_run_keeps_its_best_model_and_resumes_to_the_end_of_an_unbroken_one_whatever_the_age_of_its_files(
    epochs: int, age: int | None, tmp_path: Path, unbroken: Path
) -> None:
    stopped = train_run(alcohols(), tmp_path, MODEL, TRAIN, report=stop_after(epochs))
    assert stopped["interrupted"] is True
    assert stopped["epochs"] == epochs
    assert names_in(tmp_path) == ["checkpoint.safetensors", *COMPLETE]
    assert Model.load(tmp_path).probabilities(alcohols()).shape == (32, 2)
    for file in tmp_path.iterdir():
        os.utime(file, None if age is None else (age, age))
    metrics = train_run(alcohols(), tmp_path, MODEL, TRAIN, resume=True)
    check_same_run(tmp_path, unbroken)
    assert metrics["interrupted"] is False


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_run_killed_between_its_last_epoch_and_its_last_file_resumes(
    written: int, tmp_path: Path, unbroken: Path
) -> None:
    train_run(alcohols(), tmp_path, MODEL, TRAIN, report=stop_after(4))
    for name in ("model.safetensors", "config.json", "metrics.json")[written:]:  # in the order of writing
        (tmp_path / name).unlink()
    train_run(alcohols(), tmp_path, MODEL, TRAIN, resume=True)
    check_same_run(tmp_path, unbroken)


def test_resuming_a_complete_run_returns_its_metrics_at_once(run: Path) -> None:
    before = contents(run)
    metrics = json.loads(before["metrics.json"])

    def fail(*_: object) -> None:
        raise AssertionError("nothing must be trained")

    assert train_run(alcohols(), run, MODEL, TRAIN, resume=True, report=fail) == metrics
    assert contents(run) == before


OTHERS: dict[str, tuple[Graphs, ModelConfig, TrainConfig]] = {
    "settings of the network": (alcohols(), plain_model(**(SIZES | {"width": 4})), TRAIN),
    "settings of the training": (alcohols(), MODEL, replace(TRAIN, epochs=5)),
    "another seed": (alcohols(), MODEL, replace(TRAIN, seed=1)),
    "another number of networks": (alcohols(), MODEL, replace(TRAIN, networks=2)),
    "other graphs": (alcohols()[1:], MODEL, TRAIN),
    "other classes": (with_opposite_classes(alcohols()), MODEL, TRAIN),
    "other names": (alcohols().replace(names=alcohols().names[::-1]), MODEL, TRAIN),
}


@pytest.mark.parametrize("epochs", [1, 4], ids=["stopped", "complete"])
def test_resuming_with_anything_else_is_refused_and_changes_nothing(epochs: int, tmp_path: Path) -> None:
    train_run(alcohols(), tmp_path, MODEL, TRAIN, report=stop_after(1) if epochs == 1 else None)
    before = contents(tmp_path)
    for what, (graphs, model, train) in OTHERS.items():
        with pytest.raises(RunError, match="was started with other data or settings; use them, or --overwrite"):
            train_run(graphs, tmp_path, model, train, resume=True)
        assert contents(tmp_path) == before, what


def test_the_device_is_no_part_of_what_a_run_is() -> None:
    prints = {fingerprint(alcohols(), MODEL, replace(TRAIN, device=device)) for device in ("auto", "cpu", "cuda")}
    assert len(prints) == 1


def test_damaged_metrics_are_one_clear_error(run: Path) -> None:
    for text in ("", "{}", "[]", "3", '{"interrupted": false}', "[" * 100_000, "\xff"):
        (run / "metrics.json").write_text(text, encoding="latin-1")
        with pytest.raises(RunError, match=r"metrics\.json: .*--overwrite starts the run anew"):
            train_run(alcohols(), run, MODEL, TRAIN, resume=True)


# ── folders that are taken ────────────────────────────────────────────────────────────────────────


def test_an_existing_run_is_refused_and_left_alone_also_where_it_was_to_be_replaced(run: Path) -> None:
    before = contents(run)
    with pytest.raises(RunError, match="holds a run already; --resume continues it, --overwrite replaces it"):
        train_run(alcohols(), run, MODEL, replace(TRAIN, seed=1))
    assert contents(run) == before
    for name in COMPLETE[1:]:
        (run / name).unlink()
        with pytest.raises(RunError, match="holds a run already"):
            train_run(alcohols(), run, MODEL, TRAIN)
    before = contents(run)
    with pytest.raises(ConfigError):
        train_run(alcohols(), run, replace(MODEL, embedding="attributes"), TRAIN, overwrite=True)
    only_test = alcohols().replace(part=np.full(len(alcohols()), PARTS.index("test")))
    with pytest.raises(DataError):
        train_run(only_test, run, MODEL, TRAIN, overwrite=True)
    assert contents(run) == before


def test_overwriting_forgets_the_checkpoint_of_the_earlier_run(tmp_path: Path, unbroken: Path) -> None:
    train_run(alcohols(), tmp_path, MODEL, replace(TRAIN, seed=1), report=stop_after(2))
    train_run(alcohols(), tmp_path, MODEL, TRAIN, overwrite=True)
    check_same_run(tmp_path, unbroken)


def test_a_run_that_is_refused_leaves_no_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        train_run(alcohols(), tmp_path / "run", replace(MODEL, embedding="attributes"), TRAIN)
    with pytest.raises(DataError):
        train_run(alcohols().replace(target=None, class_names=()), tmp_path / "run", MODEL, TRAIN)
    assert names_in(tmp_path) == []


def test_resuming_what_was_never_started_starts_it_and_clears_away_what_a_killed_process_left_half_written(
    tmp_path: Path, unbroken: Path
) -> None:
    for name in (".checkpoint.safetensors.ab12.tmp", ".metrics.json.x.tmp", ".notes.tmp", ".lock", "settings.toml"):
        (tmp_path / name).write_text("half")
    train_run(alcohols(), tmp_path, MODEL, TRAIN, resume=True)
    (tmp_path / ".notes.tmp").unlink()
    check_same_run(tmp_path, unbroken)
