"""A model of several networks: each is trained as if it were alone, and together they predict, doubt and are saved."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from egocnn.config import ExplainConfig, Technique, TrainConfig
from egocnn.errors import ConfigError
from egocnn.explain import explain, fit_attention
from egocnn.model import Model
from egocnn.train import loop, recipe
from egocnn.train.checkpoint import pack, unpack
from egocnn.train.engines.common import Member, Progress
from egocnn.train.history import Epoch, History, mean_history
from egocnn.train.recipe import calibrate, fit_spread, learn, network_seeds
from egocnn.train.run import train_run
from tests.support.commands import rows
from tests.support.samples import sure
from tests.support.tiny import MODEL, TRAIN, alcohols, check_same_run, fit, oxygens, parts, same, state, stop_after

THREE = replace(TRAIN, networks=3)


@pytest.fixture(scope="module")
def three() -> Model:
    return learn(alcohols(), MODEL, THREE)[0]


@pytest.fixture(scope="module")
def regressor() -> Model:
    return learn(oxygens(), MODEL, replace(TRAIN, epochs=6, networks=3))[0]


def alone(model: Model, r: int) -> Model:
    return replace(model, networks=(model.networks[r],))


# ── training ──────────────────────────────────────────────────────────────────────────────────────


def test_the_seeds_of_networks_begin_with_that_of_the_model_differ_and_do_not_depend_on_their_number() -> None:
    network, learned, validation = parts(alcohols())
    fit(network, learned, validation, TRAIN)
    (found,) = learn(alcohols(), MODEL, TRAIN)[0].networks
    assert same(state(found), state(network))
    seeds = network_seeds(5, 50)
    assert seeds[0] == 5
    assert len(set(seeds)) == 50
    assert network_seeds(5, 7) == seeds[:7]
    assert not set(network_seeds(6, 50)) & set(seeds)
    assert all(TrainConfig(seed=seed) for seed in seeds)
    with pytest.raises(ConfigError, match="networks must be at least 1, got 0"):
        TrainConfig(networks=0)


@pytest.mark.parametrize("stack", [False, True], ids=["plain", "recorded"])
def test_every_network_is_bit_for_bit_the_one_that_its_seed_trains_alone(stack: bool) -> None:
    several, history = learn(alcohols(), MODEL, THREE, stack=stack)
    seeds = network_seeds(TRAIN.seed, 3)
    singles = [learn(alcohols(), MODEL, replace(TRAIN, seed=seed), stack=stack) for seed in seeds]
    for network, own, (single, expected) in zip(several.networks, history.of_each, singles, strict=True):
        assert same(state(network), state(single.networks[0]))
        assert replace(sure(own.best), seconds=0) == replace(sure(expected.best), seconds=0)
    assert not same(state(several.networks[0]), state(several.networks[1]))
    outputs = [single.outputs(alcohols()) for single, _ in singles]
    np.testing.assert_array_equal(several.outputs_of_each(alcohols()), np.stack(outputs))
    np.testing.assert_array_equal(several.outputs(alcohols()), np.stack(outputs).mean(axis=0))


def test_the_temperature_is_fitted_on_the_mean_logits_of_the_validation_part(three: Model) -> None:
    validation = alcohols().select("validation")
    logits = torch.from_numpy(three.outputs(validation))
    assert three.temperature == calibrate(logits, torch.from_numpy(np.asarray(sure(validation.target), np.int64)))


def test_all_networks_share_one_validation_part(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Member] = []

    def fit_and_tell(members: Sequence[Member], *args: Any, **settings: Any) -> list[History]:
        found.extend(members)
        return loop.fit(members, *args, **settings)

    monkeypatch.setattr(recipe, "fit", fit_and_tell)
    learn(alcohols().replace(part=None), MODEL, replace(THREE, epochs=1))
    assert len(found) == 3
    assert len({id(member.train) for member in found}) == len({id(member.validation) for member in found}) == 1


def test_networks_that_have_not_come_equally_far_catch_up_with_the_others() -> None:
    """As after a GPU without enough memory for all of them at once was killed."""

    def members() -> list[Member]:
        several = [(*parts(alcohols(), seed=seed), seed) for seed in (0, 1)]
        return [Member(*each) for each in several]

    expected, found = members(), members()
    loop.fit(expected, TRAIN)
    kept: list[dict[str, torch.Tensor]] = []

    def keep(progress: Sequence[Progress]) -> None:
        kept.append({name: value.clone() for name, value in pack(progress, "run").items()})  # training goes on in them

    loop.fit(members()[:1], TRAIN, keep=keep)

    def resume(progress: Sequence[Progress]) -> None:
        assert unpack(kept[1], "run", progress[:1])

    histories = loop.fit(found, TRAIN, resume=resume)
    assert [len(history.epochs) for history in histories] == [4, 4]
    for one, other in zip(found, expected, strict=True):
        assert same(state(one.network), state(other.network))


# ── prediction and doubt ──────────────────────────────────────────────────────────────────────────


def test_the_spread_of_a_classifier_is_that_of_the_calibrated_probability_and_one_network_has_none(
    three: Model,
) -> None:
    assert alone(three, 0).spread(alcohols()) is None
    assert next(alone(three, 0).by_target(alcohols()))[3] is None
    warm = replace(three, temperature=2.5)
    spread = sure(warm.spread(alcohols()))
    chosen = warm.probabilities(alcohols()).argmax(axis=1)
    each = [alone(warm, r).probabilities(alcohols())[np.arange(len(chosen)), chosen] for r in range(3)]
    np.testing.assert_allclose(spread, np.std(each, axis=0, ddof=1))
    assert 0 < spread.max() < 1


def test_the_spread_of_a_regressor_is_in_the_unit_of_its_target_and_as_large_as_its_errors(regressor: Model) -> None:
    spread = replace(regressor, noise=0.5, spread_scale=2.0).spread(oxygens())
    values = np.stack([alone(regressor, r).values(oxygens()) for r in range(3)])
    noise = 0.5 * regressor.encoder.target_scale
    assert spread is not None
    np.testing.assert_allclose(spread, np.sqrt(noise**2 + 4 * values.var(axis=0, ddof=1)), rtol=1e-4)
    assert regressor.noise > 0 or regressor.spread_scale > 0
    spread, error = regressor.spread(oxygens()), regressor.values(oxygens()) - np.asarray(oxygens().target)
    assert spread is not None
    assert 0.3 < np.sqrt(np.mean(spread**2)) / np.sqrt(np.mean(error**2)) < 3


@pytest.mark.parametrize(("noise", "scale"), [(0.3, 0.0), (0.0, 2.0), (0.2, 1.0)])
def test_noise_and_scale_are_found_again_from_errors_that_were_made_with_them(noise: float, scale: float) -> None:
    random = torch.Generator().manual_seed(0)
    truth, doubt = torch.randn(4000, generator=random), torch.rand(4000, generator=random)
    values = doubt * torch.randn((5, 4000), generator=random)
    deviation = values.std(dim=0)
    error = torch.sqrt(noise**2 + scale**2 * deviation**2) * torch.randn(4000, generator=random)
    found_noise, found_scale = fit_spread(values - values.mean(dim=0) + truth + error, truth)
    assert found_scale == pytest.approx(scale, abs=0.26)
    assert found_noise == pytest.approx(noise, abs=0.1)


def test_networks_that_never_err_and_agree_have_no_spread_and_finite_numbers() -> None:
    truth = torch.randn(5)
    noise, scale = fit_spread(truth.expand(3, -1), truth)
    assert noise == 0
    assert math.isfinite(scale)


@pytest.mark.parametrize("technique", [each for each in get_args(Technique) if each != "contributions"])
def test_importances_are_the_means_of_those_of_the_networks_for_the_same_class(
    technique: Technique, three: Model
) -> None:
    graphs, config = alcohols()[:6], ExplainConfig(technique=technique, steps=4)
    heads = fit_attention(three, graphs, epochs=1)
    together = explain(three, graphs, config, attention=heads)
    names = [str(each.explained) for each in together]
    apart = [explain(alone(three, r), graphs, config, classes=names, attention=heads[r : r + 1]) for r in range(3)]
    for each, *singles in zip(together, *apart, strict=True):
        for name in ("node_importance", "edge_importance"):
            mean = np.mean([getattr(one, name) for one in singles], axis=0)
            np.testing.assert_allclose(getattr(each, name), mean, atol=1e-6)
    assert all(each.base != each.output for each in together)
    likeliest = three.probabilities(graphs).max(axis=1)
    np.testing.assert_allclose([each.probability or 0 for each in together], likeliest, rtol=1e-6)


# ── histories ─────────────────────────────────────────────────────────────────────────────────────


def history(*accuracies: float) -> History:
    made = History()
    for number, accuracy in enumerate(accuracies, start=1):
        losses = {"train_loss": 1 - accuracy, "validation_loss": 1 - accuracy}
        scores = {"train_score": accuracy, "validation_score": accuracy}
        made.add(Epoch(epoch=number, learning_rate=0.1 / number, seconds=1.0, **scores, **losses))
    return made


def test_the_mean_of_histories_counts_a_network_that_has_stopped_as_it_was_last_and_adds_up_seconds() -> None:
    short, long = history(0.2, 0.4), history(0.4, 0.8, 0.6)
    mean = mean_history([short, long])
    assert [epoch.validation_score for epoch in mean.epochs] == pytest.approx([0.3, 0.6, 0.5])
    assert [epoch.seconds for epoch in mean.epochs] == [2, 2, 1]
    assert sure(mean.best).epoch == 2
    assert mean.of_each == (short, long)
    assert mean_history([short]) is short
    assert mean_history([History(), History()]).epochs == []


# ── one run ───────────────────────────────────────────────────────────────────────────────────────


def test_a_run_of_several_networks_says_so_in_metrics_and_history_and_reports_once_an_epoch(tmp_path: Path) -> None:
    reported: list[int] = []
    metrics = train_run(
        alcohols(), tmp_path / "run", MODEL, THREE, report=lambda history, _: reported.append(len(history.epochs))
    )
    assert reported == [1, 2, 3, 4]
    predictor = Model.load(tmp_path / "run")
    assert metrics["networks"] == len(predictor.networks) == len(metrics["best_epoch"]) == 3
    assert metrics["epochs"] == 4
    assert metrics["parameters"] == 3 * predictor.networks[0].n_parameters
    lines = rows(tmp_path / "run" / "history.csv")
    numbers = [(line["network"], line["epoch"]) for line in lines]
    assert numbers == [(f"{r}", f"{epoch}") for r in (1, 2, 3) for epoch in (1, 2, 3, 4)]
    assert metrics["seconds"] == pytest.approx(sum(float(line["seconds"]) for line in lines), abs=1e-3)
    best = [float(lines[4 * r + metrics["best_epoch"][r] - 1]["validation_score"]) for r in range(3)]
    assert metrics["validation_accuracy"] == pytest.approx(np.mean(best))
    tested = alcohols().select("test")
    assert metrics["test_accuracy"] == (predictor.probabilities(tested).argmax(axis=1) == tested.target).mean()


def test_a_run_that_is_broken_off_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    crash = RuntimeError("power failure")
    train_run(alcohols(), tmp_path / "whole", MODEL, THREE)
    with pytest.raises(RuntimeError, match="power failure"):
        train_run(alcohols(), tmp_path / "broken", MODEL, THREE, report=stop_after(3, crash))
    train_run(alcohols(), tmp_path / "broken", MODEL, THREE, resume=True)
    check_same_run(tmp_path / "broken", tmp_path / "whole")
