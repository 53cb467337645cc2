import copy
import json
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.errors import DataError, EgoCNNError, RunError
from egocnn.model import FITTED, Model
from egocnn.train.recipe import learn
from tests.support.networks import OwnVectors
from tests.support.samples import one_graph
from tests.support.sealing import change, change_arrays, write_config
from tests.support.strategies import dressed
from tests.support.tiny import MODEL, SIZES, TRAIN, alcohols, names_in, oxygens, plain_model


@pytest.fixture(scope="module")
def trained() -> Model:
    return learn(alcohols(), MODEL, replace(TRAIN, networks=2))[0]


@pytest.fixture
def folder(trained: Model, tmp_path: Path) -> Path:
    trained.save(tmp_path / "run")
    return tmp_path / "run"


# ── predicting ────────────────────────────────────────────────────────────────────────────────────


def test_probabilities_are_the_softmax_over_the_temperature_and_no_graphs_give_no_rows(trained: Model) -> None:
    warm = replace(trained, temperature=2.0)
    logits = warm.outputs(alcohols())
    assert logits.shape == (len(alcohols()), 2)
    odds = np.exp(logits.astype(np.float64) / 2)
    np.testing.assert_allclose(warm.probabilities(alcohols()), odds / odds.sum(axis=1, keepdims=True), rtol=1e-6)
    assert trained.probabilities(alcohols()[:0]).shape == (0, 2)
    with pytest.raises(DataError, match="predicts a class, not a value"):
        trained.values(alcohols())
    regressor = learn(oxygens(), MODEL, replace(TRAIN, epochs=1))[0]
    with pytest.raises(DataError, match="predicts a value, not a class; it has no probabilities"):
        regressor.probabilities(oxygens())


def test_a_graph_without_nodes_gets_a_prediction_too(trained: Model) -> None:
    empty = alcohols()[:3]
    nothing = Graphs.from_edges(
        node_counts=[0, 3, 0],
        edges=np.array([[0, 1]]),
        node_label=np.zeros(3, np.int32),
        node_label_names=empty.node_label_names,
        edge_label=np.zeros(1, np.int32),
        edge_label_names=empty.edge_label_names,
    )
    probability = trained.probabilities(nothing)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_allclose(probability[0], probability[2], rtol=1e-6)


# ── saving and loading ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "networks", "graphs"),
    [
        *(({"tie": True}, 1, alcohols()), ({"readout": "sort"}, 1, alcohols()), ({}, 3, alcohols())),
        *(({}, 3, oxygens()), ({}, 1, dressed(oxygens(20)))),
    ],
    ids=["tied", "sort", "three classifiers", "three regressors", "attributes and weights"],
)
def test_a_loaded_model_says_the_same_to_the_last_bit(
    changes: dict[str, Any], networks: int, graphs: Graphs, tmp_path: Path
) -> None:
    predictor, _ = learn(graphs, plain_model(**(SIZES | changes)), replace(TRAIN, epochs=2, networks=networks))
    predictor = replace(predictor, temperature=1.5)
    predictor.save(tmp_path / "run")
    assert names_in(tmp_path / "run") == ["config.json", "model.safetensors"]
    loaded = Model.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.outputs_of_each(graphs), predictor.outputs_of_each(graphs))
    for one, other in zip(next(loaded.by_target(graphs))[2:], next(predictor.by_target(graphs))[2:], strict=True):
        assert (one is None) == (other is None)
        np.testing.assert_array_equal(one, other)
    for name in ("config", "n_parameters", *FITTED):
        assert getattr(loaded, name) == getattr(predictor, name)
    assert not loaded.networks[0].training


def test_saving_the_loaded_model_again_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    Model.load(folder).save(tmp_path / "again")
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_what_is_said_about_a_model_and_names_in_any_script_are_saved_with_it(trained: Model, tmp_path: Path) -> None:
    replace(trained, about={"data": "some alcohols", "read": {"smiles": "mol"}}).save(tmp_path)
    assert Model.load(tmp_path).about == {"data": "some alcohols", "read": {"smiles": "mol"}}
    graphs = alcohols().with_names(classes=alcohols().class_names)
    graphs = graphs.replace(class_names=('"giftig", ja', "ungiftig\n☠"))
    learn(graphs, MODEL, replace(TRAIN, epochs=1))[0].save(tmp_path)
    assert Model.load(tmp_path).class_names == ('"giftig", ja', "ungiftig\n☠")


# ── a module of the user's own ────────────────────────────────────────────────────────────────────


def test_a_module_of_ones_own_is_trained_but_left_as_it_was(tmp_path: Path) -> None:
    own = OwnVectors()
    before = copy.deepcopy(own.state_dict())
    predictor, _ = learn(alcohols(), MODEL, TRAIN, embed=own, embed_width=6)
    after = predictor.networks[0].embed.state_dict()
    assert not torch.equal(before["vectors.weight"], after["vectors.weight"])
    assert torch.equal(before["vectors.weight"], own.state_dict()["vectors.weight"])

    predictor.save(tmp_path)
    loaded = Model.load(tmp_path, embed=own, embed_width=6)
    np.testing.assert_array_equal(loaded.outputs(alcohols()), predictor.outputs(alcohols()))
    assert torch.equal(before["vectors.weight"], own.state_dict()["vectors.weight"])


def test_a_model_with_a_module_of_ones_own_loads_only_with_that_module(folder: Path, tmp_path: Path) -> None:
    learn(alcohols(), MODEL, replace(TRAIN, epochs=1), embed=OwnVectors(), embed_width=6)[0].save(tmp_path / "own")
    with pytest.raises(RunError, match="reads nodes through a module of its author; pass it as embed="):
        Model.load(tmp_path / "own")
    with pytest.raises(RunError, match="needs embed_width"):
        Model.load(tmp_path / "own", embed=OwnVectors())
    for wrong in (OwnVectors(7), nn.Identity()):
        with pytest.raises(RunError):
            Model.load(tmp_path / "own", embed=wrong, embed_width=6)
    with pytest.raises(RunError, match="has a node embedding of its own"):
        Model.load(folder, embed=OwnVectors(), embed_width=6)


# ── folders that hold no model, or a damaged one ──────────────────────────────────────────────────


def test_what_is_not_a_run_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere: not a run folder; it has no config"):
        Model.load(tmp_path / "nowhere")
    with pytest.raises(RunError, match="Not a directory"):
        Model.load(folder / "config.json")
    with pytest.raises(RunError, match=r"config\.json: is a file, not a folder"):
        Model.load(folder).save(folder / "config.json")
    (folder / "model.safetensors").unlink()
    with pytest.raises(RunError, match=r"no model\.safetensors; the run has not finished"):
        Model.load(folder)
    (folder / "model.safetensors").mkdir()
    with pytest.raises(RunError):
        Model.load(folder)


def test_a_folder_of_the_format_before_is_refused_with_what_to_do(folder: Path) -> None:
    change(folder, lambda plain: plain.update(format=4))
    with pytest.raises(RunError, match="format 4; this egocnn reads format 5: train it again"):
        Model.load(folder)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"format": 99}', "{" * 100_000, "\ufeff{}", "[" * 100_000])
def test_a_config_that_is_none_is_refused(text: str, folder: Path) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"config\.json: "):
        Model.load(folder)


NO_SECTION = [None, 3, "text", ["list"], [], {"a": 1}, float("nan"), -1.0]
WRONG: dict[str, dict[str, list[Any]]] = {
    "": {
        **dict.fromkeys(("model", "encoder", "read", "train"), NO_SECTION),
        "temperature": [value for value in NO_SECTION if value != 3],
        "networks": [1, 3, 10**18, 0, "2", None],
        "noise": [-0.1, "0"],
        "spread_scale": [float("nan")],
    },
    "model": {
        "width": ["8", 8.5, 9, [8], [[8], [8]], None],
        "depth": [-1, "2", 1],
        "dropout": [1.5, "nan"],
        "readout": ["median", ["max"]],
        "wl_rounds": [2],
        "colour": ["red"],
    },
    "encoder": {
        "class_names": ["ab", [1, 2], ["a", "b", "c"], {"a": 0, "b": 1}],
        "node_label_names": [None, ["C", "H", None]],
        "edge_label_names": [["single", "double"]],
        "target_mean": ["0", float("nan"), 10**400],
        "target_scale": [0, [1]],
        "more": [1],
        "by_degree": [1, "false", None, True],
    },
    "read": {"hydrogens": ["yes"], "colour": ["red"]},
    "train": {"seed": [-1], "colour": ["red"]},
}


def put(plain: dict[str, Any], section: str, name: str, value: Any) -> None:
    (plain.setdefault(section, {}) if section else plain)[name] = value


@pytest.mark.parametrize(("section", "name"), [(section, name) for section in WRONG for name in WRONG[section]])
def test_sections_and_settings_of_a_wrong_kind_or_name_are_refused(section: str, name: str, folder: Path) -> None:
    for value in WRONG[section][name]:
        change(folder, partial(put, section=section, name=name, value=value))
        with pytest.raises(RunError) as refusal:
            Model.load(folder)
        assert str(folder) in str(refusal.value)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["networks", "noise", "spread_scale"])
def test_what_says_how_the_networks_vote_must_be_there(name: str, folder: Path) -> None:
    change(folder, methodcaller("pop", name))
    with pytest.raises(RunError):
        Model.load(folder)


@pytest.mark.parametrize("name", ["width", "depth", "k", "slots", "hidden", "wl_rounds"])
def test_huge_settings_are_refused_without_taking_the_memory(name: str, folder: Path) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        for value in (20_000, 10**9, 10**18, 10**30):
            change(folder, partial(put, section="model", name=name, value=value))
            with pytest.raises(RunError):
                Model.load(folder)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_weights_that_are_missing_misshapen_or_not_finite_are_refused(folder: Path, tmp_path: Path) -> None:
    def poison(arrays: dict[str, Any]) -> None:
        arrays["networks.0.out.weight"][0, 0] = np.nan

    edits: list[Callable[[dict[str, Any]], object]] = [
        poison,
        lambda arrays: arrays.pop("networks.0.out.weight"),
        lambda arrays: arrays.update({"networks.0.more": np.zeros(3)}),
        lambda arrays: arrays.update({"networks.0.out.bias": np.zeros((2, 1), np.float32)}),
        lambda arrays: arrays.pop("encoder.attr_mean"),
        lambda arrays: arrays.update({"encoder.attr_scale": np.zeros(1)}),
        lambda arrays: arrays.update({"encoder.ranking.counts.1": np.zeros(1, np.int64)}),
        lambda arrays: arrays.pop("encoder.ranking.colours.2"),
        lambda arrays: [arrays.pop(name) for name in list(arrays) if name.startswith("networks.0.")],
        lambda arrays: arrays.pop("networks.1.out.bias"),
        lambda arrays: arrays.update({"networks.2.out.bias": arrays["networks.1.out.bias"]}),
    ]
    for number, edit in enumerate(edits):
        damaged = tmp_path / str(number)
        shutil.copytree(folder, damaged)
        change_arrays(damaged, edit)
        with pytest.raises(RunError):
            Model.load(damaged)


# ── anything at all in the files ──────────────────────────────────────────────────────────────────


def load_or_refuse(folder: Path) -> None:
    """A predictor that predicts, or one clear line: never anything else."""
    refusal = ""
    try:
        assert Model.load(folder).probabilities(alcohols()[:2]).shape[0] == 2
    except EgoCNNError as error:  # weights may be damaged so that only a prediction shows it
        refusal = str(error)
    assert "\n" not in refusal


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_anywhere_in_the_config_is_read_or_refused(data: st.DataObject, folder: Path) -> None:
    text = (folder / "config.json").read_text()
    plain = json.loads(text)
    del plain["digests"]
    place, key = plain, data.draw(st.sampled_from(sorted(plain)))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(PLAIN)
    try:
        write_config(folder, plain)
        load_or_refuse(folder)
    finally:
        (folder / "config.json").write_text(text)


def test_a_name_that_is_no_text_is_refused_with_checksums_and_without(folder: Path) -> None:
    """Half a surrogate pair ended in a UnicodeEncodeError when predictions were written."""
    plain = json.loads((folder / "config.json").read_text())
    plain["encoder"]["class_names"][0] = "\ud800"
    for sealed in (True, False):
        if not sealed:
            del plain["digests"]
        (folder / "config.json").write_text(json.dumps(plain))
        with pytest.raises(RunError, match=r"config.json: damaged"):
            Model.load(folder)


def test_nothing_in_a_folder_is_ever_executed(folder: Path, tmp_path: Path) -> None:
    """A pickle that would leave a file behind takes the place of the weights, and then of the settings."""

    class Trap:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[Path]]:
            return Path.touch, (tmp_path / "sprung",)

    for name in ("model.safetensors", "config.json"):
        torch.save({"weights": Trap()}, folder / name)
        with pytest.raises(RunError):
            Model.load(folder)
    assert not (tmp_path / "sprung").exists()


def test_a_model_of_other_classes_of_degrees_is_refused(tmp_path: Path) -> None:
    star = one_graph(71, [(0, leaf) for leaf in range(1, 71)])
    config = replace(MODEL, degrees=True)
    encoder = replace(Encoder.fit(star, config), class_names=("no", "yes"))
    Model.build(config, encoder).save(tmp_path / "run")
    assert Model.load(tmp_path / "run").encoder.node_label_names == ("degree 1", "degree 64 to 90")
    change(tmp_path / "run", lambda plain: plain["encoder"].update(node_label_names=["degree 1", "degree 64 to 80"]))
    with pytest.raises(RunError, match="other classes of degrees than this version of egocnn has: train it again"):
        Model.load(tmp_path / "run")
