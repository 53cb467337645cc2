import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

import egocnn
from egocnn import EgoCNNClassifier, EgoCNNRegressor
from egocnn.config import PLAIN
from egocnn.data.graphs import Graphs
from egocnn.data.schema import PARTS
from egocnn.errors import ConfigError, DataError, RunError
from tests.support.networks import OwnVectors
from tests.support.samples import sure
from tests.support.sealing import write_config
from tests.support.strategies import random_trees
from tests.support.tiny import SIZES, alcohols, names_in, oxygens, same, state

SMALL: dict[str, Any] = SIZES | {"networks": 1, "epochs": 3, "learning_rate": 1e-2}


def trees(n_graphs: int = 24) -> Graphs:
    """Random trees, half of them of either class; neither a split nor groups of their own."""
    target = np.arange(n_graphs) % 2
    return random_trees(n_graphs, nodes=5, seed=0, target=target, class_names=("no", "yes"))


@pytest.fixture(scope="module")
def fitted() -> EgoCNNClassifier:
    return EgoCNNClassifier(**SMALL).fit(trees())


# ── parameters, as scikit-learn expects them ──────────────────────────────────────────────────────


def test_parameters_can_be_set_cloned_and_shown(fitted: EgoCNNClassifier) -> None:
    model = EgoCNNClassifier(width=8, seed=3)
    assert model.set_params(depth=5, width=4) is model
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert (copy.depth, copy.width, copy.seed) == (5, 4, 3)
    kinds = (EgoCNNClassifier(), EgoCNNRegressor())
    assert [(is_classifier(kind), is_regressor(kind)) for kind in kinds] == [(True, False), (False, True)]
    assert repr(model) == "EgoCNNClassifier(depth=5, seed=3, width=4)"
    assert "EgoCNNClassifier" in fitted._repr_html_()
    assert not hasattr(clone(fitted), "model_")


def test_an_unknown_setting_is_refused() -> None:
    unknown: Any = {"wdith": 8}  # a type checker refuses it as well
    with pytest.raises(TypeError, match="unexpected keyword argument 'wdith'"):
        EgoCNNClassifier(**unknown)
    with pytest.raises(ValueError, match="Invalid parameter 'wdith'"):
        EgoCNNClassifier().set_params(wdith=8)


@pytest.mark.parametrize("kind", [EgoCNNClassifier, EgoCNNRegressor])
def test_what_has_not_been_fitted_does_not_predict(kind: Any, tmp_path: Path) -> None:
    model, graphs = kind(), trees() if kind is EgoCNNClassifier else oxygens()
    uses: list[Any] = [lambda: model.predict(graphs), lambda: model.score(graphs), lambda: model.save(tmp_path)]
    if kind is EgoCNNClassifier:
        uses += [lambda: model.predict_proba(graphs), lambda: model.classes_]
    for use in uses:
        with pytest.raises(NotFittedError, match=f"this {kind.__name__} has not been fitted; call fit first"):
            use()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert names_in(tmp_path) == []


# ── fitting and predicting ────────────────────────────────────────────────────────────────────────


def test_probabilities_sum_to_one_and_their_columns_follow_the_classes(fitted: EgoCNNClassifier) -> None:
    check_is_fitted(fitted)
    probability = fitted.predict_proba(trees())
    assert probability.shape == (24, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.predict(trees()).tolist() == [fitted.classes_[i] for i in probability.argmax(axis=1)]


@pytest.mark.parametrize("kind", [EgoCNNClassifier, EgoCNNRegressor])
def test_an_estimator_of_several_networks_says_its_spread_and_one_of_a_single_network_has_none(
    kind: type[EgoCNNClassifier] | type[EgoCNNRegressor], tmp_path: Path
) -> None:
    y = np.arange(24.0) if kind is EgoCNNRegressor else None
    several = kind(**SMALL | {"networks": 3}).fit(trees(), y)
    assert several.get_params()["networks"] == len(several.model_.networks) == 3
    spread = sure(several.spread(trees()))
    assert spread.shape == (24,)
    assert (spread >= 0).all()
    several.save(tmp_path)
    again = kind.load(tmp_path)
    assert again.get_params()["networks"] == 3
    np.testing.assert_array_equal(again.spread(trees()), spread)
    assert kind(**SMALL).fit(trees(), y).spread(trees()) is None


def test_y_takes_the_place_of_the_graphs_own_classes() -> None:
    graphs = trees()
    by_y = EgoCNNClassifier(**SMALL).fit(graphs.replace(target=None, class_names=()), sure(graphs.target))
    by_graphs = EgoCNNClassifier(**SMALL).fit(graphs)
    np.testing.assert_array_equal(by_y.predict_proba(graphs), by_graphs.predict_proba(graphs))


def test_a_regressor_fits_predicts_and_scores(tmp_path: Path) -> None:
    graphs = oxygens(120)
    model = EgoCNNRegressor(**(SMALL | {"epochs": 25, "readout": "sum", "dropout": 0.0})).fit(graphs)
    values = model.predict(graphs)
    assert values.shape == (120,)
    assert graphs.target is not None
    rest = np.square(values - graphs.target).sum() / np.square(graphs.target - graphs.target.mean()).sum()
    assert model.score(graphs) == pytest.approx(1 - rest)
    assert model.score(graphs, graphs.target) == pytest.approx(model.score(graphs))
    assert model.score(graphs, sample_weight=np.ones(120)) == pytest.approx(model.score(graphs))
    assert model.score(graphs) > 0.5
    model.save(tmp_path)
    np.testing.assert_array_equal(EgoCNNRegressor.load(tmp_path).predict(graphs), values)
    again = EgoCNNRegressor(**model.get_params()).fit(graphs.replace(target=None), graphs.target)
    np.testing.assert_array_equal(again.predict(graphs), values)


def test_fitting_twice_forgets_the_first_time(fitted: EgoCNNClassifier) -> None:
    model = EgoCNNClassifier(**SMALL).fit(alcohols()).fit(trees())
    np.testing.assert_array_equal(model.predict_proba(trees()), fitted.predict_proba(trees()))
    assert len(model.history_.epochs) == 3


def test_settings_that_are_numpy_numbers_can_be_saved(tmp_path: Path) -> None:
    settings = SMALL | {"width": np.int64(8), "depth": np.int32(2), "learning_rate": np.float64(0.01)}
    model = EgoCNNClassifier(**settings).fit(trees())
    model.save(tmp_path)
    assert EgoCNNClassifier.load(tmp_path).get_params()["width"] == 8


def test_fitting_needs_targets_of_the_right_kind() -> None:
    with pytest.raises(DataError, match="these graphs have no classes; pass y, or use EgoCNNRegressor"):
        EgoCNNClassifier(**SMALL).fit(oxygens())
    with pytest.raises(DataError, match="these graphs have no values to predict; pass y, or use EgoCNNClassifier"):
        EgoCNNRegressor(**SMALL).fit(trees())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([10**400, 1], r"y\[0\] is 1000.*; at most 3.4e\+38 is allowed: rescale them"),
        ([1, -1e39], r"y\[1\] is .*-1e\+39.*; at most 3.4e\+38 is allowed: rescale them"),
        (["1", "2"], r"y\[0\] is '1', a text and not a value; use EgoCNNClassifier"),
    ],
)
def test_what_cannot_be_a_value_is_refused_for_what_it_is(y: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        EgoCNNRegressor(**SMALL).fit(["CC", "CO"], y)


def test_whole_numbers_of_more_than_64_bits_are_values() -> None:
    values = [2**70, 2**71, 2**70, 2**71, 2**70, 2**71]
    predicted = EgoCNNRegressor(**SMALL).fit(["C", "CO", "CC", "CCO", "CCC", "CCCO"], values).predict(["CCCC"])
    assert 2**69 < predicted[0] < 2**72


def test_numbers_longer_than_those_of_json_are_saved_all_the_same(tmp_path: Path) -> None:
    model = EgoCNNClassifier(**SMALL, pool_limit=10**20).fit(["C", "CO"] * 3, np.array([0, 1] * 3, np.longdouble))
    model.save(tmp_path)
    assert egocnn.load(tmp_path).predict(["C"]).dtype == np.float64


def test_a_report_is_of_a_fitted_estimator_and_a_number_of_figures(fitted: EgoCNNClassifier, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a fitted estimator is needed, not NoneType"):
        egocnn.write_report(None, trees(), tmp_path / "report")
    for figures in (-1, 2.5, "all"):
        with pytest.raises(ConfigError, match="figures must be a"):
            egocnn.write_report(fitted, trees(), tmp_path / "report", figures=figures)  # type: ignore[arg-type]
    assert names_in(tmp_path) == []


def test_classes_that_could_not_be_saved_are_refused() -> None:
    with pytest.raises(DataError, match="class_names must be texts that can be written as UTF-8"):
        EgoCNNClassifier(**SMALL).fit(["CC", "CO"], ["a", "\ud800"])


def test_texts_are_not_scored_against_numbers(fitted: EgoCNNClassifier) -> None:
    with pytest.raises(DataError, match=r"y\[0\] is 1 and the model's classes are no, yes; .* texts or both numbers"):
        fitted.score(trees(), np.ones(24, int))


def test_scores_need_a_truth(fitted: EgoCNNClassifier) -> None:
    for graphs in (trees().replace(target=None, class_names=()), trees().replace(target=np.full(24, -1)), oxygens()):
        with pytest.raises(DataError, match="these graphs have no classes to compare with; pass y"):
            fitted.score(graphs)
    other = trees().replace(class_names=("0", "1"))
    with pytest.raises(DataError, match=r"these graphs' classes \(0, 1\) are not the model's; pass y"):
        fitted.score(other)
    regressor = EgoCNNRegressor(**SMALL).fit(oxygens())
    with pytest.raises(DataError, match="these graphs have no values to compare with; pass y"):
        regressor.score(oxygens().replace(target=np.full(40, np.nan)))


def test_a_score_leaves_out_graphs_of_unknown_class_and_heeds_weights(fitted: EgoCNNClassifier) -> None:
    predicted = (fitted.predict(trees()) == "yes").astype(int)
    truth = np.where(np.arange(24) < 12, -1, np.where(np.arange(24) < 18, predicted, 1 - predicted))
    assert fitted.score(trees().replace(target=truth)) == 0.5
    weight = np.where(np.arange(24) < 18, 3.0, 1.0)
    assert fitted.score(trees().replace(target=truth), sample_weight=weight) == 0.75
    assert fitted.score(trees(), np.array(["no", "yes"])[predicted]) == 1
    said = torch.arange(24.0, requires_grad=True)
    regressor = EgoCNNRegressor(**SMALL).fit(trees().replace(target=None, class_names=()), said)
    for wrong in ([1.0], [0.0] * 24, [-1.0] * 24, [float("nan")] * 24, "x"):
        for asked in ({"y": np.array(["no", "yes"])[predicted]}, {}):
            with pytest.raises(DataError, match="sample_weight must be a number for each of 24 graphs"):
                fitted.score(trees(), sample_weight=wrong, **asked)
        with pytest.raises(DataError, match="sample_weight must be a number for each of 24 graphs"):
            regressor.score(trees(), said.tolist(), sample_weight=wrong)


# ── scikit-learn's tools ──────────────────────────────────────────────────────────────────────────


def test_scikit_learn_takes_a_collection_apart_as_it_does_an_array() -> None:
    graphs = trees()
    assert graphs.shape == (24,)
    some = [5, 3, 8]
    mask = np.isin(np.arange(24), some)
    for chosen, names in ((some, ["5", "3", "8"]), (np.array(some), ["5", "3", "8"]), (mask, ["3", "5", "8"])):
        picked = _safe_indexing(graphs, chosen)
        assert isinstance(picked, Graphs)
        assert list(picked.names) == names
        assert graphs[np.asarray(chosen), ...].names == picked.names
    anything: Any = graphs
    assert anything[3, ...].name == "3"
    with pytest.raises(IndexError):
        anything[..., 3]


def test_cross_validation_works_with_classes_and_with_groups() -> None:
    graphs = trees()
    model = EgoCNNClassifier(**SMALL)
    scores = cross_val_score(model, graphs, graphs.target, cv=3)
    assert scores.shape == (3,)
    assert ((scores >= 0) & (scores <= 1)).all()
    group = np.arange(24) // 4
    by_group = cross_val_score(model, graphs, graphs.target, groups=group, cv=GroupKFold(2), error_score="raise")
    assert by_group.shape == (2,)
    assert np.isfinite(by_group).all()
    names = np.array(graphs.class_names)[graphs.target]
    guessed = cross_val_predict(model, graphs, names, cv=2)
    assert set(guessed) <= {"no", "yes"}
    values = cross_val_score(EgoCNNRegressor(**SMALL), oxygens(), oxygens().target, cv=2)
    assert values.shape == (2,)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("with_y", [True, False])
@pytest.mark.parametrize("kind", [EgoCNNClassifier, EgoCNNRegressor])
def test_fit_trains_on_all_that_it_is_given_whatever_split_the_graphs_carry(kind: Any, part: str, with_y: bool) -> None:
    """A fold of scikit-learn may hold graphs of any part, or of one part alone."""
    graphs = trees() if kind is EgoCNNClassifier else oxygens()
    y = graphs.target if with_y else None
    marked = graphs.replace(part=np.full(len(graphs), PARTS.index(part), np.int8))
    one, other = (kind(**SMALL).fit(each, y).model_ for each in (marked, graphs))
    assert same(state(one.networks[0]), state(other.networks[0]))


def test_fit_keeps_groups_together_when_it_splits_off_a_validation_part() -> None:
    """Two groups, one of each class: whichever chooses the epoch, the other is all there is to learn from."""
    graphs = trees().replace(group=np.arange(24) % 2, part=np.zeros(24, np.int8))
    model = EgoCNNClassifier(**SMALL | PLAIN | {"readout": "max", "parts": 0.0}).fit(graphs)
    assert model.history_.best is not None
    assert model.history_.epochs[-1].train_score == 1, "all graphs to learn from are of one class"


def test_a_grid_search_finds_settings_and_refits() -> None:
    graphs = trees()
    search = GridSearchCV(EgoCNNClassifier(**SMALL), {"depth": np.array([1, 2]), "width": [4]}, cv=2)
    search.fit(graphs, graphs.target)
    assert search.best_params_["depth"] in (1, 2)
    assert search.best_estimator_.model_.config.width == 4
    assert search.predict(graphs).shape == (24,)


# ── saving and loading ────────────────────────────────────────────────────────────────────────────


def test_a_saved_model_is_a_run_folder_and_loads_to_the_same(fitted: EgoCNNClassifier, tmp_path: Path) -> None:
    run = tmp_path / "run"
    fitted.save(run)
    assert names_in(run) == ["config.json", "history.csv", "metrics.json", "model.safetensors"]
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics.keys() >= {"validation_accuracy", "epochs", "seconds", "parameters"}
    assert metrics["epochs"] == 3
    for loaded in (egocnn.load(run), EgoCNNClassifier.load(str(run))):
        assert type(loaded) is EgoCNNClassifier
        assert loaded.get_params() == fitted.get_params()
        np.testing.assert_array_equal(loaded.predict_proba(trees()), fitted.predict_proba(trees()))
        assert loaded.predict(trees()).tolist() == fitted.predict(trees()).tolist()
        assert loaded.score(trees()) == fitted.score(trees())
        loaded.save(tmp_path / "again")
        assert (tmp_path / "again" / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def test_each_kind_loads_only_its_own(fitted: EgoCNNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "classes")
    EgoCNNRegressor(**SMALL).fit(oxygens()).save(tmp_path / "values")
    assert type(egocnn.load(tmp_path / "values")) is EgoCNNRegressor
    with pytest.raises(DataError, match="predicts a value; load it as EgoCNNRegressor, or with egocnn"):
        EgoCNNClassifier.load(tmp_path / "values")
    with pytest.raises(DataError, match="predicts a class; load it as EgoCNNClassifier, or with egocnn"):
        EgoCNNRegressor.load(tmp_path / "classes")
    with pytest.raises(RunError, match="not a run folder"):
        egocnn.load(tmp_path)


def test_a_model_trained_on_a_gpu_predicts_where_there_is_none(fitted: EgoCNNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["train"]["device"] = "cuda"
    write_config(tmp_path, config)
    np.testing.assert_array_equal(egocnn.load(tmp_path).predict_proba(trees()), fitted.predict_proba(trees()))


def test_a_loaded_model_can_be_cloned_and_fitted_to_the_same_weights(fitted: EgoCNNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    again = clone(egocnn.load(tmp_path)).fit(trees())
    assert same(again.model_.networks[0].state_dict(), fitted.model_.networks[0].state_dict())


# ── a module of the user's own ────────────────────────────────────────────────────────────────────


def test_a_module_of_ones_own_trains_and_loads_again_only_when_it_is_passed(tmp_path: Path) -> None:
    torch.manual_seed(0)
    own = OwnVectors()
    model = EgoCNNClassifier(**SMALL, embed=own, embed_width=6).fit(trees())
    assert "OwnVectors" in repr(model)
    first = model.predict_proba(trees())
    np.testing.assert_array_equal(clone(model).fit(trees()).predict_proba(trees()), first)
    np.testing.assert_array_equal(model.fit(trees()).predict_proba(trees()), first)
    assert not torch.equal(own.vectors.weight, model.model_.networks[0].embed.get_parameter("vectors.weight"))

    model.save(tmp_path)
    with pytest.raises(RunError, match="pass it as embed="):
        egocnn.load(tmp_path)
    loaded = egocnn.load(tmp_path, embed=OwnVectors(), embed_width=6)
    np.testing.assert_array_equal(loaded.predict_proba(trees()), first)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width must be at least 1, got 0"),
        ({"embed": OwnVectors()}, "needs embed_width, the width it returns"),
    ],
)
def test_settings_that_cannot_be_are_refused_when_fitting(settings: dict[str, Any], message: str) -> None:
    model = EgoCNNClassifier(**SMALL | settings)
    with pytest.raises(ConfigError, match=message):
        model.fit(trees())


# ── the package's front door ──────────────────────────────────────────────────────────────────────


def test_the_public_names_are_there_and_others_are_not() -> None:
    for name in egocnn.__all__:
        assert getattr(egocnn, name).__name__ == name
        assert name in dir(egocnn)
    with pytest.raises(AttributeError, match="module 'egocnn' has no attribute 'nothing'"):
        _ = egocnn.nothing


def test_progress_is_shown_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    EgoCNNClassifier(**SMALL).fit(trees())
    assert capsys.readouterr() == ("", "")
    EgoCNNClassifier(**SMALL, verbose=True).fit(trees())
    assert capsys.readouterr().err.count("\n") == 3
