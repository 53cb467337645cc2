"""Numbers beyond float32: every answer is finite, or refused in one line that names the graph."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import egocnn
from egocnn.config import ExplainConfig, Technique
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.errors import DataError
from egocnn.explain import explain, fit_attention
from egocnn.files import to_json
from egocnn.model import Model
from egocnn.train.metrics import scores_of
from egocnn.train.predictions import prediction_rows
from egocnn.train.recipe import learn
from egocnn.train.run import train_run
from tests.support.commands import SHORT, Run, answer, check_refused, rows
from tests.support.samples import sure
from tests.support.tiny import MODEL, TRAIN, names_in, oxygens

LARGEST = float(np.finfo(np.float32).max)
ODD = 7
"""the graph that has the numbers in question"""


def lines(*, attribute: float = 1.0, weight: float = 1.0, target: float = 1.0, part: str = "train") -> list[str]:
    """Chains of five nodes with two attributes, weights and a value each; the odd one's are multiplied."""
    rng = np.random.default_rng(0)
    written = []
    for g in range(24):
        large = (attribute, weight, target) if g == ODD else (1, 1, 1)
        nodes = [
            {"label": "CO"[i % 2], "attributes": [large[0] * float(a), float(b)]}
            for i, (a, b) in enumerate(rng.uniform(0.5, 1, (5, 2)))
        ]
        edges = [{"source": i, "target": i + 1, "weight": large[1] * 0.9} for i in range(4)]
        own = part if g == ODD else "test" if g >= 18 else "validation" if g >= 14 else "train"
        value = large[2] * float(rng.uniform(0.5, 1))
        written.append(json.dumps({"name": f"g{g}", "nodes": nodes, "edges": edges, "target": value, "split": own}))
    return written


@pytest.fixture
def data(tmp_path: Path) -> Any:
    def write(**settings: Any) -> Path:
        path = tmp_path / "data.jsonl"
        path.write_text("\n".join(lines(**settings)) + "\n")
        return path

    return write


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on numbers of an ordinary size."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "data.jsonl").write_text("\n".join(lines()) + "\n")
    train_run(egocnn.read(folder / "data.jsonl", split="split"), folder / "run", MODEL, TRAIN)
    return folder / "run"


BEYOND = {
    "attribute": ({"attribute": 1e39}, "line 8: node attributes must be finite numbers"),
    "weight": ({"weight": 1e39}, "line 8: edge weights must be finite numbers"),
    "target": ({"target": 1e39}, "line 8: target"),
    "enormous target": ({"target": 1e308}, "line 8: target"),
}


@pytest.mark.parametrize("what", BEYOND)
def test_what_does_not_fit_into_float32_is_refused_when_it_is_read(
    what: str, data: Any, model: Path, run: Run, tmp_path: Path
) -> None:
    settings, wanted = BEYOND[what]
    path = data(**settings)
    check_refused(run, wanted, "train", path, "-o", tmp_path / "run", *SHORT)
    check_refused(run, wanted, "explain", model, path, "-o", tmp_path / "report", "--json")
    assert names_in(tmp_path) == ["data.jsonl"]
    is_known = not wanted.endswith("target")  # a value is predicted whatever the true one is
    assert answer(run, "predict", model, path, "-o", tmp_path / "p.csv")["failed"] == is_known
    errors = [row.get("error") or "" for row in rows(tmp_path / "p.csv")]
    assert [bool(error) for error in errors] == [is_known and g == ODD for g in range(24)]
    assert not is_known or wanted.partition(": ")[2] in errors[ODD]


def test_whole_numbers_without_end_are_refused_as_targets_and_graphs_made_in_python_obey_the_same_rule(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"nodes": 2, "target": 0.5}\n{"nodes": 2, "target": 1%s}\n' % ("0" * 400))
    with pytest.raises(DataError, match="line 2: target"):
        egocnn.read(path)
    edges = np.array([[0, 1], [2, 3]])
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"target": np.array([0.5, 1e39])}, r"target of graph '1' is 1e\+39; at most 3.4e\+38 is allowed"),
        ({"node_attr": np.array([[0.0], [1], [-1e300], [1]])}, "node_attr must be finite numbers of at most 3.4e"),
    )
    for columns, wanted in cases:
        with pytest.raises(DataError, match=wanted):
            Graphs.from_edges(node_counts=[2, 2], edges=edges, **columns)
    graphs = Graphs.from_edges(node_counts=[2, 2], edges=edges, target=np.array([0.5, LARGEST]))
    assert graphs.target is not None
    with pytest.raises(DataError, match=r"y\[0\] is 1e\+200; at most 3.4e\+38 is allowed"):
        egocnn.EgoCNNRegressor().fit(graphs, [1e200, 0])


# ── numbers that fit, until something is computed from them ──────────────────────────────────────────

OVERFLOWING: dict[str, tuple[dict[str, Any], str]] = {
    "an attribute": (
        {"attribute": 3e38},
        "graph 'g7': node attribute 1 is .*, too far from those that were trained on",
    ),
    "a weight": ({"weight": 3.7e38}, "graph 'g7': what the network computes from it is not a finite number"),
}


@pytest.mark.parametrize("what", OVERFLOWING)
@pytest.mark.parametrize("as_store", [False, True])
def test_a_graph_whose_prediction_would_not_be_finite_is_refused_by_name(
    what: str, as_store: bool, data: Any, model: Path, run: Run, tmp_path: Path
) -> None:
    settings, wanted = OVERFLOWING[what]
    path = data(**settings)
    if as_store:
        assert run("prepare", path, "-o", tmp_path / "store", "--split", "split")[0] == 0
        path = tmp_path / "store"
    before = names_in(tmp_path)
    for words in (
        ["explain", model, path, "-o", tmp_path / "report", "--quiet"],
        ["explain", model, path, "-o", tmp_path / "report", "--json", "--quiet"],
        ["patterns", model, path, "-o", tmp_path / "report", "--quiet"],
    ):
        code, out, err = run(*words)
        assert (code, out) == (2, ""), (words, out, err)
        assert err.count("\n") == 1, err
        assert re.search(wanted, err), err
    assert [name for name in names_in(tmp_path) if name != "report"] == before
    assert answer(run, "predict", model, path, "-o", tmp_path / "p.csv")["failed"] == 1
    errors = [row["error"] for row in rows(tmp_path / "p.csv")]
    assert re.search(wanted, errors.pop(ODD))
    assert not any(errors), "the others are predicted"
    reader = egocnn.load(model)
    graphs = egocnn.read(path)
    for ask in (reader.predict, reader.explain):
        with pytest.raises(DataError, match=wanted):
            ask(graphs)
    assert np.isfinite(reader.predict(graphs[:ODD])).all(), "the others are predicted"


@pytest.mark.parametrize("technique", get_args(Technique))
def test_every_technique_refuses_what_it_cannot_explain(technique: Technique, data: Any, model: Path) -> None:
    graphs, predictor = egocnn.read(data(weight=3.7e38)), Model.load(model)
    attention = fit_attention(predictor, graphs[:ODD]) if technique == "paper" else None
    for fidelity in (True, False):
        with pytest.raises(DataError, match=r"graph 'g7': .* not a finite number"):
            explain(predictor, graphs, ExplainConfig(technique=technique), attention=attention, fidelity=fidelity)


@pytest.mark.parametrize("what", OVERFLOWING)
@pytest.mark.parametrize("part", ["train", "validation", "test"])
@pytest.mark.parametrize("as_store", [False, True])
def test_a_training_ends_well_or_in_one_line(
    what: str, part: str, as_store: bool, data: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data(**OVERFLOWING[what][0], part=part)
    if as_store:
        monkeypatch.setattr("egocnn.train.recipe.WHOLE_BYTES", 0)
        assert run("prepare", path, "-o", tmp_path / "store", "--split", "split")[0] == 0
        path = tmp_path / "store"
    words = [*SHORT, "--json", *([] if as_store else ["--split", "split"])]
    code, out, err = run("train", path, "-o", tmp_path / "run", *words)
    if code == 0:
        assert all(math.isfinite(value) for value in json.loads(out).values() if isinstance(value, float))
    else:
        assert (code, out, err.count("\n")) == (2, "", 1), err
        if part == "test":
            assert "graph 'g7'" in err
            if not (as_store and what == "an attribute"):  # that is noticed before the training begins
                assert Model.load(tmp_path / "run").config, "the model is kept: only its test could not be made"


def test_a_target_too_far_from_those_trained_on_is_refused_by_name(data: Any, tmp_path: Path, run: Run) -> None:
    """Its own scale is the training part's; what is far beyond has no place in float32."""
    path = data(target=1e38, part="validation")
    text = path.read_text().splitlines()
    small = [json.loads(line) for line in text]
    for row in small:
        row["target"] *= 1e-8
    path.write_text("\n".join(map(json.dumps, small)) + "\n")
    check_refused(run, "graph 'g7': target", "train", path, "-o", tmp_path / "run", *SHORT, "--split", "split")
    assert names_in(tmp_path) == ["data.jsonl"]


def test_large_numbers_that_fit_are_learned_predicted_and_explained(data: Any, tmp_path: Path, run: Run) -> None:
    path = data(target=1e38, attribute=1e30)
    metrics = answer(run, "train", path, "-o", tmp_path / "run", *SHORT, "--split", "split")
    assert math.isfinite(metrics["test_r2"])
    answer(run, "predict", tmp_path / "run", path, "-o", tmp_path / "p.csv")
    assert all(math.isfinite(float(row["predicted"])) for row in rows(tmp_path / "p.csv"))
    answer(run, "explain", tmp_path / "run", path, "-o", tmp_path / "report", "--quiet")


# ── before anything is written ────────────────────────────────────────────────────────────────────


def test_nothing_that_is_not_finite_is_written_and_a_score_is_finite_however_small_the_spread() -> None:
    regressor, _ = learn(oxygens(), MODEL, replace(TRAIN, epochs=1))
    for value in (math.nan, math.inf):
        with pytest.raises(DataError, match="not a finite number"):
            to_json({"score": value})
        found = [("", regressor, np.array([value]), None)]
        with pytest.raises(DataError, match=r"graph '0': .*not a finite number"):
            list(prediction_rows(regressor, oxygens()[:1], found))
    scores = scores_of(np.array([1e38, -1e38]), np.array([0, 1e-160]))
    assert all(map(math.isfinite, scores.values()))
    assert scores["r2"] < -1e300


def test_scales_are_fitted_to_the_largest_numbers_that_fit() -> None:
    attributes = np.array([[LARGEST], [-LARGEST], [LARGEST], [0]], np.float32)
    graphs = Graphs.from_edges(
        node_counts=[2, 2], edges=np.array([[0, 1], [2, 3]]), node_attr=attributes, target=np.array([LARGEST, -LARGEST])
    )
    encoder = Encoder.fit(graphs, MODEL)
    prepared = encoder.apply(graphs, MODEL)
    assert bool(prepared.attributes.isfinite().all())
    assert bool(sure(prepared.target).isfinite().all())
