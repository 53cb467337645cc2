"""Exported models: onnxruntime computes what the model does, the file says what it reads, docs/interchange.md runs."""

import json
import re
import sys
import warnings
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.errors import ConfigError, EgoCNNError, MissingExtraError
from egocnn.interop.onnx import Exported, PlainNetwork, export_onnx, inputs_for, inputs_of
from egocnn.model import Model
from tests.support.commands import Run, check_refused
from tests.support.networks import untrained
from tests.support.pages import blocks
from tests.support.pages import run as run_page
from tests.support.strategies import random_graphs, random_trees
from tests.support.tiny import plain_model

READOUTS = ("max", "mean", "sum", "log", "mean+max", "log+max", "mean+log+max", "sort")
SMALL: dict[str, Any] = {"width": 5, "depth": 2, "hidden": 6, "slots": 4, "k": 3, "sort_nodes": 4}
TOLERANCE = 1e-5

BARE: dict[str, Any] = {"node_labels": False, "edge_labels": False, "attributes": False}
FULL: dict[str, Any] = {"node_labels": True, "edge_labels": True, "attributes": True}
NORMS = {"head_norm": True, "pool_norm": True, "count_inputs": True}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "every layer of labelled nodes": (FULL, {"readout": "mean+log+max", "jump": True, "k": 2, **NORMS}, 2),
    "sorted nodes described by degrees": (BARE, {"readout": "sort", "degrees": True, "tie": True}, 1),
    "a value from attributes": (
        BARE | {"attributes": True, "classes": False},
        {"embedding": "attributes", "readout": "log+max", "depth": 1, "jump": True},
        2,
    ),
}
"""what the graphs have, the settings, the networks; between them every kind of input and every reduction"""


def predictor_for(graphs: Graphs, config: ModelConfig, *, networks: int = 1) -> Model:
    """Random weights, fitted to the graphs; the answers need a temperature, or a mean and a scale, of their own."""
    model = untrained(graphs, config, networks=networks)
    encoder = replace(model.encoder, target_mean=40.0, target_scale=3.0)
    return replace(model, encoder=encoder, temperature=1.7, noise=0.2, spread_scale=1.5)


def fitted_graphs(columns: dict[str, Any]) -> Graphs:
    trees = random_trees(8, nodes=9, seed=0)
    random = np.random.default_rng(0)
    changes: dict[str, Any] = {}
    for kind in ("node_label", "edge_label"):
        if not columns[f"{kind}s"]:
            changes |= {kind: None, f"{kind}_names": ()}
    if columns["attributes"]:
        changes["node_attr"] = random.choice([0.5, 1.0, 2.0], (trees.n_nodes, 2)).astype(np.float32)
    if columns.get("classes", True):
        changes |= {"target": np.arange(8) % 2, "class_names": ("no", "yes")}
    return trees.replace(**changes)


@cache
def model_of(case: str) -> Model:
    columns, changes, networks = CASES[case]
    return predictor_for(fitted_graphs(columns), plain_model(**SMALL | changes), networks=networks)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, libraries: None) -> dict[str, Exported]:  # noqa: ARG001
    """Every case written once."""
    folder = tmp_path_factory.mktemp("exported")
    return {case: export_onnx(model_of(case), folder / f"{i}.onnx") for i, case in enumerate(CASES)}


def session(file: str | Path) -> Any:
    return pytest.importorskip("onnxruntime").InferenceSession(str(file), providers=["CPUExecutionProvider"])


def check_close(found: Any, wanted: Any) -> None:
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max(initial=0) <= TOLERANCE * max(1.0, np.abs(wanted).max(initial=0))


# ── the function ──────────────────────────────────────────────────────────────────────────────────


@given(st.data(), st.sampled_from(READOUTS), st.booleans(), st.booleans())
def test_plain_operations_compute_what_the_network_does(
    data: st.DataObject, readout: Any, jump: bool, head_norm: bool
) -> None:
    graphs = data.draw(random_graphs(min_nodes=0, unseen=True, classes=True).filter(lambda drawn: drawn.n_nodes > 0))
    embeddings = ["patchy-san", *(["attributes"] if graphs.node_attr is not None else [])]
    config = plain_model(
        **SMALL | {"k": data.draw(st.sampled_from([1, 2]))},
        embedding=data.draw(st.sampled_from(embeddings)),
        degrees=data.draw(st.booleans()),
        readout=readout,
        jump=jump,
        head_norm=head_norm,
        pool_norm=data.draw(st.booleans()),
        count_inputs=data.draw(st.booleans()),
    )
    predictor = predictor_for(graphs, config)
    arrays = inputs_for(predictor, graphs)
    with torch.no_grad():
        logits, probabilities = PlainNetwork(predictor)(*map(torch.from_numpy, arrays.values()))
    check_close(logits.numpy(), predictor.outputs(graphs, device="cpu"))
    check_close(probabilities.numpy(), predictor.probabilities(graphs, device="cpu"))


@pytest.mark.parametrize("case", CASES)
def test_onnxruntime_computes_what_the_model_does_from_the_inputs_that_the_file_names(
    case: str, exported: dict[str, Exported]
) -> None:
    columns, predictor, runtime = CASES[case][0], model_of(case), session(exported[case].file)

    @settings(max_examples=25)
    @given(random_graphs(min_nodes=0, max_nodes=12, max_graphs=6, unseen=True, **columns | {"classes": False}))
    def agrees(graphs: Graphs) -> None:
        output, answer, *spread = runtime.run(None, inputs_for(predictor, graphs))
        check_close(output, predictor.outputs(graphs, device="cpu"))
        predicted, doubt = next(predictor.by_target(graphs, device="cpu"))[2:]
        check_close(answer, predicted)
        assert len(spread) == len(predictor.networks) - 1
        for each in spread:  # the mean of several networks has one
            check_close(each, doubt)

    agrees()
    written = exported[case]
    assert written.graphs == 16
    assert written.largest_difference is not None
    assert written.largest_difference < 1e-4
    assert f"differ by {written.largest_difference:.1e} at most on 16 random graphs" in str(written)
    assert written.bytes == Path(written.file).stat().st_size
    arrays = inputs_for(predictor, fitted_graphs(columns))
    assert [each.name for each in runtime.get_inputs()] == list(arrays) == list(written.inputs)
    for each, wanted in zip(runtime.get_inputs(), inputs_of(predictor), strict=True):
        assert tuple(each.shape) == wanted.axes
        assert each.type == {"int64": "tensor(int64)", "float32": "tensor(float)"}[wanted.kind]
    assert [each.name for each in runtime.get_outputs()] == list(written.outputs)
    assert (written.outputs[-1] == "spread") == (len(predictor.networks) > 1)


@pytest.mark.usefixtures("libraries")
def test_every_target_of_several_has_answers_under_its_own_name(tmp_path: Path) -> None:
    graphs = fitted_graphs({"node_labels": True, "edge_labels": True, "attributes": False})
    target = np.stack([np.arange(8) % 3, np.arange(8) * 2.5], axis=1)
    graphs = graphs.replace(target=target, class_names=(), targets=(("kind", ("a", "b", "c")), ("größe, in %", ())))
    config = plain_model(**SMALL)
    kind, size = Encoder.fit(graphs, config).targets_of
    several = (replace(kind, temperature=1.7), replace(size, noise=0.2, spread_scale=1.5))
    encoder = replace(Encoder.fit(graphs, config), targets_of=several)
    networks = tuple(Model.build(config, encoder).networks[0].eval() for _ in range(2))
    predictor = Model(config=config, encoder=encoder, networks=networks)
    written = export_onnx(predictor, tmp_path / "several.onnx")
    runtime = session(written.file)
    assert [each.name for each in runtime.get_outputs()] == list(written.outputs)
    found = dict(zip(written.outputs, runtime.run(None, inputs_for(predictor, graphs)), strict=True))
    for name, one, predicted, spread in predictor.by_target(graphs, device="cpu"):
        check_close(found[f"{name}.{'probabilities' if one.class_names else 'value'}"], predicted)
        check_close(found[f"{name}.spread"], spread)
    said = json.loads(runtime.get_modelmeta().custom_metadata_map["egocnn"])
    assert [each["name"] for each in said["targets"]] == ["kind", "größe, in %"]


# ── the file ──────────────────────────────────────────────────────────────────────────────────────


def test_the_file_says_what_its_numbers_stand_for_and_nothing_of_the_machine(exported: dict[str, Exported]) -> None:
    case = "every layer of labelled nodes"
    said = json.loads(session(exported[case].file).get_modelmeta().custom_metadata_map["egocnn"])
    wanted = {"class_names": ["no", "yes"], "node_label_names": ["C", "N", "O"], "networks": 2, "temperature": 1.7}
    assert said.items() >= (wanted | {"edge_label_names": ["single", "double"]}).items()
    assert said["attr_mean"] == model_of(case).encoder.attr_mean.tolist()
    assert said["model"] == json.loads(json.dumps(asdict(model_of(case).config)))
    assert list(said["inputs"]) == list(exported[case].inputs)
    stored = Path(exported[case].file).read_bytes()
    assert str(Path(__file__).resolve().parent.parent.parent).encode() not in stored
    assert b"plain.py" not in stored


def test_a_model_that_the_file_cannot_repeat_is_refused_and_what_was_there_stays(
    exported: dict[str, Exported], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = "sorted nodes described by degrees"
    converted = pytest.importorskip("onnx").load(exported[case].file)
    monkeypatch.setattr("egocnn.interop.onnx._convert", lambda *_: converted)
    other = predictor_for(fitted_graphs(BARE), replace(model_of(case).config, depth=1))
    (tmp_path / "model.onnx").write_bytes(b"earlier")
    with pytest.raises(EgoCNNError, match="nothing is written: onnxruntime and the model differ by"):
        export_onnx(other, tmp_path / "model.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_bytes() == b"earlier"


def test_what_is_no_model_and_what_is_no_seed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a fitted estimator or a predictor is needed, not NoneType"):
        export_onnx(None, tmp_path / "model.onnx")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="seed must be a whole number, got 'x'"):
        export_onnx(None, tmp_path / "model.onnx", seed="x")  # type: ignore[arg-type]


def test_a_module_of_the_users_own_is_refused(tmp_path: Path) -> None:
    graphs = fitted_graphs(BARE)
    predictor = untrained(graphs, plain_model(**SMALL), embed=nn.Identity(), embed_width=5)
    with pytest.raises(ConfigError, match="a module of its author, which has no form in ONNX"):
        export_onnx(predictor, tmp_path / "model.onnx")


@pytest.mark.parametrize("library", ["onnx", "onnxscript"])
def test_a_library_that_is_missing_is_named(library: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    if library == "onnxscript":
        pytest.importorskip("onnx", reason="onnx is not installed")
    with pytest.raises(MissingExtraError, match=rf'{library} is not installed; type: pip install "egocnn\[export\]"'):
        export_onnx(model_of("a value from attributes"), tmp_path / "model.onnx")


# ── the command ───────────────────────────────────────────────────────────────────────────────────


def test_the_command_writes_the_same_file_without_a_runtime_and_says_that_it_was_not_compared(
    exported: dict[str, Exported], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = "sorted nodes described by degrees"
    model_of(case).save(tmp_path / "run")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, out, err = run("export", tmp_path / "run", "-o", tmp_path / "new" / "model.onnx", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["outputs"] == ["logits", "probabilities"]
    assert said["largest_difference"] is None
    assert (tmp_path / "new" / "model.onnx").read_bytes() == Path(exported[case].file).read_bytes()


def test_the_command_refuses_what_is_no_run_and_what_is_no_place_for_the_file(tmp_path: Path, run: Run) -> None:
    model_of("a value from attributes").save(tmp_path / "run")
    check_refused(run, "not a run folder", "export", tmp_path, "-o", tmp_path / "model.onnx")
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    check_refused(run, "is a folder; name the file to write", "export", tmp_path / "run", "-o", tmp_path)
    check_refused(run, "name a file that ends in .onnx", "export", tmp_path / "run", "-o", notes)
    check_refused(run, "is a file, not a folder", "export", tmp_path / "run", "-o", notes / "model.onnx")
    for out in (tmp_path / "run", tmp_path / "run" / "model.safetensors", tmp_path / "run" / "model.onnx"):
        check_refused(run, "run: is a run folder; write to another folder", "export", tmp_path / "run", "-o", out)


PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "interchange.md").read_text(encoding="utf-8")
CHECK = """
```python
assert scores.shape == (3,)
assert ((scores >= 0) & (scores <= 1)).all(), "a fold that could not be trained scores nan"
assert len(explained) == 1
```
"""


@pytest.mark.usefixtures("libraries")
def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    assert len(blocks(PAGE)) * 2 == PAGE.count("```"), "a block is neither Python nor a command"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnxscript uses what torch has deprecated
        printed = "".join(shown.printed for shown in run_page(PAGE + CHECK, tmp_path))
    assert "onnxruntime and the model differ by" in printed
    assert (tmp_path / "alcohols.onnx").exists()


def test_the_page_lists_every_input_that_a_model_can_ask_for() -> None:
    about = PAGE.partition("## scikit-learn")[0]
    listed = {name for row in re.findall(r"^\| (`.*?) \|", about, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    config = plain_model(**SMALL, readout="sort", count_inputs=True)
    asked = {each.name for each in inputs_of(predictor_for(fitted_graphs(FULL), config))}
    assert listed == asked


def test_inputs_are_made_of_any_source_and_of_no_other_thing_than_a_model() -> None:
    graphs = fitted_graphs(FULL)
    model = predictor_for(graphs, plain_model(**SMALL))
    wanted = inputs_for(model, graphs[:1])
    found = inputs_for(model, graphs[0])
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    with pytest.raises(ConfigError, match="a fitted estimator or a predictor is needed, not int"):
        inputs_for(3, graphs)
    with pytest.raises(EgoCNNError, match="is not a source of graphs"):
        inputs_for(model, 3)
