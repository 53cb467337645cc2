"""python -m lab measure real_structures: it trains, explains, writes, and uses again what it has trained."""

import copy
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.encode.encoder import Encoder
from egocnn.errors import RunError
from egocnn.explain import explain
from egocnn.model import Model
from egocnn.train.run import fingerprint
from lab.__main__ import main as lab
from lab.bench.real.groups import Expectation
from lab.bench.real.real_structures import measure
from lab.bench.real.sets import Trainings, load_set, settings_of, some_of
from tests.support.samples import as_list

DATA = "compounds:alcohols:sizes=3-6,per_size=3"
CONFIG = ModelConfig(width=8, hidden=8, depth=2)


def untrained(graphs: Graphs, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    model = Model.build(CONFIG, Encoder.fit(graphs, CONFIG))
    train = TrainConfig(networks=1, epochs=1, seed=seed)
    about = {"train": asdict(train), "fingerprint": fingerprint(graphs, CONFIG, train)}
    return Model(config=CONFIG, encoder=model.encoder, networks=model.networks, about=about)


def put(model: Model, folder: Path) -> None:
    folder.mkdir(parents=True)
    model.save(folder)
    (folder / "metrics.json").write_text("{}", encoding="utf-8")


def test_models_in_the_folder_are_measured_and_written_with_how_they_were_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, runs = tmp_path / "real.json", tmp_path / "runs"
    graphs = load_set(DATA)
    put(untrained(graphs), runs / "compounds-alcohols-sizes-3-6-per-size-3-0")
    put(untrained(graphs, seed=7), runs / "compounds-alcohols-sizes-3-6-per-size-3-1")
    words = ["measure", "real_structures", "--sets", DATA, "--runs", str(runs), "--limit", "4", "-o", str(out)]
    assert lab(words) == 0
    record = json.loads(out.read_text())
    assert {"what", "sets", "command", "date", "machine", "versions"} <= record.keys()
    (found,) = record["sets"]
    assert (found["graphs"], found["tested"]) == (4, len(graphs.select("test")))
    assert [each["seed"] for each in found["trainings"]] == [0, 7]
    assert not any(each["is_default"] for each in found["trainings"])
    assert found["mean"]["gap"] == max(each["gap"] for each in found["trainings"]) < 1e-6
    assert -1 <= found["agreement"] <= 1
    page = out.with_suffix(".md").read_text(encoding="utf-8")
    assert f"Not trained by the default settings: {DATA}." in page
    assert page in capsys.readouterr().out
    for option in ("--seeds", "--limit"):
        assert lab(["measure", "real_structures", "--sets", DATA, option, "0"]) == 2
        assert f"{option} must be at least 1, got 0" in capsys.readouterr().err


def test_a_training_that_is_missing_is_made_with_its_number_as_seed_and_one_of_another_split_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = load_set(DATA)
    model = Trainings(runs=tmp_path, epochs=1, networks=1, device="cpu").model("set", graphs, 5)
    assert settings_of(model) == {"seed": 5, "networks": 1, "epochs": 1, "is_default": False}
    put(untrained(graphs.with_parts(np.roll(np.array(as_list(graphs.part)), 1))), tmp_path / "set-0")
    with pytest.raises(RunError, match="was trained on other graphs or another split"):
        Trainings(runs=tmp_path).model("set", graphs, 0)
    asked = []

    def train(collection: Graphs, folder: Path, model: ModelConfig, config: TrainConfig, **_: object) -> None:
        asked.append((len(collection), model, config))
        put(untrained(collection, config.seed), folder)

    monkeypatch.setattr("lab.bench.real.sets.train_run", train)
    trainings = Trainings(runs=tmp_path, epochs=2, networks=1)
    for _ in range(2):  # the second time it is there
        trainings.model("PROTEINS", graphs, 1)
    assert asked == [(len(graphs), ModelConfig(), TrainConfig(seed=1, epochs=2, networks=1))]


def test_a_set_without_a_split_and_a_limited_number_of_graphs_hold_both_classes(tmp_path: Path) -> None:
    source = tmp_path / "graphs.safetensors"
    read("compounds:alcohols:sizes=3-7,per_size=4").replace(part=None).save(source)
    one, other = (load_set(str(source)) for _ in range(2))
    assert as_list(one.part) == as_list(other.part)
    tested = one.select("test")
    assert len(tested) == round(0.2 * len(one))
    assert set(as_list(tested.target)) == {0, 1}
    ordered = one[np.argsort(as_list(one.target), kind="stable")]
    some = some_of(ordered, 6)
    assert (len(some), set(as_list(some.target))) == (6, {0, 1})
    assert some_of(ordered, None) is some_of(ordered, 1000) is ordered


def test_trainings_that_see_the_same_agree_though_they_predict_other_classes() -> None:
    graphs = read(DATA)
    models = [leaning(untrained(graphs), class_number) for class_number in (0, 1)]
    predicted = [{one.predicted for one in explain(model, graphs, device="cpu")} for model in models]
    assert predicted == [{graphs.class_names[0]}, {graphs.class_names[1]}]
    found = measure(models, graphs, [], "cpu")
    assert found["agreement"] > 0.99
    assert found["groups"] == []


def leaning(model: Model, class_number: int) -> Model:
    """The same network, certain of one class whatever it sees: contributions do not change by that."""
    (network,) = copy.deepcopy(model.networks)
    with torch.no_grad():
        network.out.bias[class_number] += 20
    return replace(model, networks=(network,))


def test_groups_are_signed_towards_the_class_that_is_named_whatever_is_predicted(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    table = tmp_path / "alcohols.csv"
    table.write_text("smiles,y\n" + "\n".join(f"{'C' * n}{'O' * (n % 2)},{n % 2}" for n in range(2, 12)), "utf-8")
    graphs = read(table, task="classification")
    expected = [Expectation(towards="1", group="OH group (hydroxyl)", smarts="", sign=1)]
    means = []
    for class_number in (0, 1):
        found = measure([leaning(untrained(graphs), class_number)], graphs, expected, "cpu")
        (group,) = found["groups"]
        assert (group["towards"], group["molecules"]) == ("1", 5)
        assert group["is_as_expected"] == (group["mean"] > 0)
        means.append(group["mean"])
    assert means[0] == pytest.approx(means[1], rel=1e-2)
    assert abs(means[0]) > 1e-4
