"""Molecules and files in, answers out: what the model says, and the same as the library says."""

import json
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from egocnn.data.sources.smiles import from_smiles
from egocnn.explain import explain
from egocnn.show.serve.records import ExplainResponse
from egocnn.show.serve.settings import MOST_CHARACTERS, MOST_GRAPHS
from tests.show.serve.models import (
    MOLECULES,
    classifier,
    client,
    of_networks,
    of_several_targets,
    of_three_classes,
    of_two_networks,
    regressor,
)
from tests.support.samples import sure

HOSTILE = "<script>alert(1)</script>"


def ask(smiles: Any, model: Any = None, **said: Any) -> list[dict[str, Any]]:
    response = client(model).post("/explain", json={"smiles": smiles, **said})
    assert response.status_code == 200, response.text
    ExplainResponse.model_validate(response.json())
    answers: list[dict[str, Any]] = response.json()["answers"]
    return answers


def refusal(response: Any, status: int = 422) -> str:
    """One line of JSON that says why, and nothing else."""
    assert response.status_code == status, response.text
    assert response.json().keys() == {"error"}
    reason: str = response.json()["error"]
    assert "\n" not in reason
    assert "Traceback" not in reason
    return reason


def upload(name: str, text: str, model: Any = None, address: str = "/explain/file") -> Any:
    return client(model).post(address, files={"file": (name, text.encode())})


@pytest.mark.parametrize("model", [classifier, of_three_classes, regressor])
def test_an_answer_says_what_the_library_says(model: Any) -> None:
    answers = ask(list(MOLECULES), model())
    structures = explain(model().predictor, from_smiles(MOLECULES), device="cpu")
    for answer, structure in zip(answers, structures, strict=True):
        assert answer["name"] == answer["smiles"] == structure.graph.smiles
        assert answer["critical_nodes"] == structure.critical_nodes.tolist()
        np.testing.assert_allclose(answer["node_importance"], structure.node_importance, rtol=1e-4, atol=1e-6)
        assert answer["fidelity"] == pytest.approx(asdict(sure(structure.fidelity)), rel=1e-3, abs=1e-5)
        assert answer["nothing"] == (None if len(structure.critical_nodes) else structure.nothing)
        assert answer["base"] + answer["for"] + answer["against"] == pytest.approx(answer["output"], abs=1e-3)
        assert answer["output"] == pytest.approx(structure.output, rel=1e-4, abs=1e-6)
        assert answer["balance"].startswith("base ")
        if isinstance(structure.predicted, float):
            assert answer["predicted"] == pytest.approx(structure.predicted, rel=1e-4)
            assert answer["probabilities"] == []
        else:
            assert answer["predicted"] == structure.predicted
            every = {row["name"]: row["probability"] for row in answer["probabilities"]}
            assert sum(every.values()) == pytest.approx(1)
            assert max(every, key=lambda name: every[name]) == answer["predicted"]
            assert every[answer["predicted"]] == pytest.approx(answer["probability"])


@pytest.mark.parametrize("model", [classifier, of_three_classes, regressor])
def test_an_answer_of_several_networks_says_how_far_they_disagree_and_that_of_one_says_nothing(model: Any) -> None:
    several = of_two_networks(model())
    predicted, spread = next(several.predictor.by_target(from_smiles(MOLECULES), device="cpu"))[2:]
    assert spread is not None
    answers = ask(list(MOLECULES), several)
    np.testing.assert_allclose([answer["spread"] for answer in answers], spread, rtol=1e-4)
    if several.predictor.class_names:
        every = [[row["probability"] for row in answer["probabilities"]] for answer in answers]
        np.testing.assert_allclose(every, predicted, rtol=1e-4)
    assert client(several).get("/model").json()["networks"] == 2
    assert {answer["spread"] for answer in ask(list(MOLECULES), model())} == {None}


def test_of_several_targets_all_are_predicted_and_the_one_that_is_asked_for_is_explained() -> None:
    model = of_two_networks(of_several_targets())
    told = client(model).get("/model").json()
    assert [(each["name"], each["task"]) for each in told["targets"]] == [
        ("alcohol", "classification"),
        ("size", "regression"),
    ]
    found = {
        name: (predicted, spread) for name, _, predicted, spread in model.predictor.by_target(from_smiles(["CCO"]))
    }
    for target in ("alcohol", "size"):
        (answer,) = ask("CCO", model, target=target)
        (alone,) = explain(model.predictor, from_smiles(["CCO"]), target=target, device="cpu")
        np.testing.assert_allclose(answer["node_importance"], alone.node_importance, rtol=1e-4, atol=1e-6)
        kind, size = answer["targets"]
        assert [share["probability"] for share in kind["probabilities"]] == pytest.approx(found["alcohol"][0][0])
        assert size["predicted"] == pytest.approx(found["size"][0][0])
        assert [kind["spread"], size["spread"]] == pytest.approx([float(sure(found[name][1])[0]) for name in found])
        own = {"alcohol": kind, "size": size}[target]
        assert (answer["target"], answer["predicted"]) == (target, pytest.approx(own["predicted"]))
        assert answer["probabilities"] == own["probabilities"]
    assert ask("CCO", model)[0]["target"] == "alcohol"
    response = client(model).post("/explain", json={"smiles": "C", "target": "weight"})
    assert refusal(response) == "the model knows no target 'weight'; it knows alcohol, size"


def test_a_file_with_several_targets_says_what_is_true_of_each_and_a_report_is_of_the_one_asked_for() -> None:
    asked, file = client(of_several_targets()), {"file": ("new.csv", b"smiles,size,alcohol\nCCO,3,\n")}
    (answer,) = asked.post("/explain/file", files=file, data={"target": "size"}).json()["answers"]
    assert answer["true"] == 3
    assert [each["true"] for each in answer["targets"]] == [None, 3]
    report = asked.post("/report", data={"smiles": "CCO", "target": "size"})
    assert report.status_code == 200
    assert "size" in report.text


def test_a_name_may_follow_the_smiles_unseen_atoms_are_named_and_values_have_no_class_to_explain() -> None:
    (answer,) = ask("CCO  plain old ethanol ")
    assert (answer["smiles"], answer["name"]) == ("CCO", "plain old ethanol")
    (answer,) = ask("C[Si](C)(C)Br")
    assert answer["unseen_labels"] == ["Br", "Si"]
    assert ask("CCO")[0]["unseen_labels"] == []
    response = client(regressor()).post("/explain", json={"smiles": "C", "explained": "x"})
    assert "predicts a value" in refusal(response)


def test_the_picture_and_the_fidelity_come_only_when_wanted_and_the_class_can_be_chosen() -> None:
    (whole,) = ask("CCO")
    assert ElementTree.fromstring(whole["svg"]).tag == "{http://www.w3.org/2000/svg}svg"
    (bare,) = ask("CCO", picture=False, fidelity=False)
    assert bare["svg"] is None
    assert bare["fidelity"] is None
    other = next(row["name"] for row in whole["probabilities"] if row["name"] != whole["predicted"])
    (turned,) = ask("CCO", explained=other)
    assert turned["explained"] == other
    assert turned["predicted"] == whole["predicted"]
    assert turned["node_importance"] != whole["node_importance"]


def test_hostile_names_come_back_as_they_are_and_escaped_in_pictures_and_reports() -> None:
    (answer,) = ask(f"CCO {HOSTILE}")
    assert answer["name"] == HOSTILE
    assert "<script" not in answer["svg"]
    page = client().post("/report", data={"smiles": f"CCO {HOSTILE}"}).text
    assert HOSTILE not in page
    assert "\\u003cscript\\u003ealert(1)" in page


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"smiles": "c1cc"}, "SMILES 'c1cc' does not parse"),
        ({"smiles": ["nonsense", "("]}, "line 1: SMILES 'nonsense'"),
        ({"smiles": " "}, "has no atoms"),
        ({"smiles": []}, "smiles: List should have at least 1 item"),
        ({"smiles": ["C"] * (MOST_GRAPHS + 1)}, f"smiles: List should have at most {MOST_GRAPHS} items"),
        ({"smiles": ["C", 5]}, "smiles: Input should be a valid string"),
        ({"smiles": "C\nCO"}, "several lines in one text; give a list"),
        ({"smiles": ["C", "C\u2028CO"]}, "line 2: several lines in one text"),
        ({"smiles": "C" * (MOST_CHARACTERS + 1)}, "smiles: "),
        ({"smiles": 3}, "smiles: "),
        ({"smiles": None}, "smiles: "),
        ({}, "smiles: Field required"),
        ({"smiles": "C", "picture": "yes"}, "picture: "),
        ({"smiles": "C", "colour": 1}, "colour: "),
        ({"smiles": "C", "explained": "nothing"}, "the model knows no class 'nothing'"),
        ({"smiles": "\ud800"}, ""),
        ([], ""),
    ],
)
def test_bad_questions_are_refused_in_one_line(body: Any, reason: str) -> None:
    response = client().post("/explain", content=json.dumps(body), headers={"content-type": "application/json"})
    assert reason in refusal(response)


def test_lines_that_are_no_molecules_keep_their_place_with_the_reason_and_cost_the_others_nothing() -> None:
    lines = ["C methane", "c1cc bad", *["CC"] * 20, "(", "CCO"]
    response = client().post("/explain", json={"smiles": lines})
    ExplainResponse.model_validate(response.json())
    answers = response.json()["answers"]
    reasons = {place: answer["error"] for place, answer in enumerate(answers) if "error" in answer}
    assert list(reasons) == [1, 22]
    assert reasons[1] == "line 2: SMILES 'c1cc' does not parse (unclosed ring)"
    assert reasons[22].startswith("line 23: SMILES '('")
    assert [answers[0]["name"], len(answers), answers[-1]["smiles"]] == ["methane", len(lines), "CCO"]
    page = client().post("/report", data={"smiles": "CCO ethanol\nc1cc"}).text
    assert '"name":["ethanol"]' in page
    assert "SMILES typed in without 1 that cannot be read" in page


def test_a_file_is_answered_without_its_bad_rows_which_are_told_and_up_to_the_limit() -> None:
    (ethanol, bad) = upload("m.smi", "CCO ethanol\nc1cc bad\n").json()["answers"]
    assert ethanol["name"] == "ethanol"
    assert bad == {"name": "c1cc", "error": "row 2: SMILES 'c1cc' does not parse (unclosed ring)"}
    assert len(upload("m.csv", "smiles\n" + "C\n" * (MOST_GRAPHS + 1)).json()["answers"]) == MOST_GRAPHS


def test_what_is_not_json_or_not_there_is_refused_too() -> None:
    headers = {"content-type": "application/json"}
    assert refusal(client().post("/explain", content=b"{", headers=headers)) == "the request is not JSON"
    refusal(client().get("/nothing"), 404)
    refusal(client().get("/explain"), 405)
    refusal(client().get("/assets/../app.py"), 404)


def test_a_model_of_another_kind_says_so_and_reads_its_own_kind() -> None:
    reason = refusal(client(of_networks()).post("/explain", json={"smiles": "CCO"}))
    assert "does not read SMILES" in reason
    assert "IMDB-BINARY" in reason
    assert reason == refusal(client(of_networks()).post("/report", data={"smiles": "CCO"}))
    assert reason == refusal(upload("a.csv", "smiles\nCCO\n", of_networks()))
    ring = {"nodes": 4, "edges": [[0, 1], [1, 2], [2, 3], [3, 0]], "name": HOSTILE}
    response = upload("rings.jsonl", json.dumps(ring) + "\n" + json.dumps(ring | {"nodes": 9}), of_networks())
    answers = response.json()["answers"]
    assert [len(answer["node_importance"]) for answer in answers] == [4, 9]
    assert answers[0]["name"] == HOSTILE
    assert "<script" not in answers[0]["svg"]
    assert not client(of_networks()).get("/model").json()["reads_smiles"]


GRAPHML = """<graphml><key id="l" for="node" attr.name="label" attr.type="string"/>
<key id="b" for="edge" attr.name="label" attr.type="string"/><graph edgedefault="undirected">
<node id="a"><data key="l">C</data></node><node id="b"><data key="l">O</data></node>
<edge source="a" target="b"><data key="b">single</data></edge></graph></graphml>"""
ATOMS = "".join(f"    {x}.0000    0.0000    0.0000 {element}   0  0\n" for x, element in enumerate("CO"))
SDF = f"methanol\n\n\n  2  1  0  0  0  0            999 V2000\n{ATOMS}  1  2  1  0\nM  END\n$$$$\n"


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("m.csv", "smiles,name,label\nCCO,ethanol,alcohol\nCC,ethane,other\n", ["ethanol", "ethane"]),
        ("M.TSV", "smiles\tname\nCCO\tethanol\n", ["ethanol"]),
        ("m.jsonl", '{"nodes": ["C", "O"], "edges": [[0, 1, "single"]], "name": "methanol"}', ["methanol"]),
        ("m.sdf", SDF, ["methanol"]),
        ("m.graphml", GRAPHML, ["m"]),
    ],
)
def test_files_of_every_kind_are_explained_and_leave_nothing_behind(
    name: str, text: str, names: list[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    response = upload(name, text)
    assert response.status_code == 200, response.text
    ExplainResponse.model_validate(response.json())
    assert [answer["name"] for answer in response.json()["answers"]] == names
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("m.csv", "smiles\nc1cc\n", "m.csv, row 1: SMILES 'c1cc' does not parse (unclosed ring)"),
        ("m.csv", "a,b\n1,2\n", "no column is called smiles"),
        ("m.jsonl", '{"nodes": 30000, "edges": []}', ""),
        ("m.jsonl", "{", "m.jsonl"),
        ("m.graphml", '<!DOCTYPE x [<!ENTITY a "b">]><graphml/>', "document type"),
        ("../../etc/passwd", "x", "a file of graphs ends in"),
        ("m.zip", "PK", "a file of graphs ends in"),
        ("x.safetensors", "", "a file of graphs ends in"),
        ("../../m.csv", "x\ny\n", "m.csv: no column"),
    ],
)
def test_bad_files_are_refused_in_one_line_that_names_no_folder(name: str, text: str, reason: str) -> None:
    for address in ("/explain/file", "/report"):
        told = refusal(upload(name, text, address=address))
        assert reason in told
        assert "/tmp" not in told
        assert "--skip" not in told


def test_a_report_holds_the_graphs_of_the_request() -> None:
    response = client().post("/report", data={"smiles": "CCO ethanol\n\nCC ethane"})
    assert response.headers["content-type"].startswith("text/html")
    assert '"name":["ethanol","ethane"]' in response.text
    assert "2 graphs" in response.text or '"graphs":2' in response.text
    table = upload("m.csv", "smiles,name\nCCO,one\n", address="/report")
    assert '"name":["one"]' in table.text
    assert '"data":"m.csv"' in table.text


def test_a_giant_molecule_is_explained_and_reported_in_time_but_not_drawn() -> None:
    giant = "C" * 1500
    assert ask(f"{giant} polymer")[0]["svg"] is None
    response = client(seconds=25).post("/report", data={"smiles": f"{giant} polymer"})
    assert response.status_code == 200, response.text
    assert '"name":["polymer"' in response.text


@pytest.mark.parametrize("said", [{}, {"smiles": "\n \n"}, {"smiles": "C\n" * (MOST_GRAPHS + 1)}])
def test_a_report_on_nothing_or_on_too_much_is_refused(said: dict[str, str]) -> None:
    assert "a report takes 1 to 200" in refusal(client().post("/report", data=said))


def test_the_model_tells_what_it_is_but_not_where_it_lies() -> None:
    told = client().get("/model").json()
    assert told["data"] == "molecules.csv"
    assert told["classes"] == ["alcohol", "other"]
    assert told["reads_smiles"]
    assert "private" not in json.dumps(told)
    assert client(regressor()).get("/model").json()["task"] == "regression"
    assert client().get("/health").json() == {"status": "ok"}


def test_a_defect_is_told_in_one_line_and_nothing_of_it_leaks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("egocnn.show.serve.model.explain", fail)
    assert "secret" not in refusal(client().post("/explain", json={"smiles": "C"}), 500)
    assert "secret" in caplog.text
