"""Several targets on the command line and in tables: named with commas, columns of each after its name."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import egocnn
from egocnn.cli.main import main
from egocnn.errors import DataError, MissingColumnError
from egocnn.study.crossval import read_record
from tests.support.commands import rows

MOLECULES = ["C" * n + end for n in range(1, 9) for end in ("", "O", "N", "Cl")]
SMALL = ["--epochs", "1", "--depth", "1", "--width", "8", "--networks", "2", "--quiet", "--device", "cpu"]


def write_table(path: Path, molecules: list[str]) -> Path:
    """polar: a class, length: a value; every seventh of either is not known"""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", "polar", "length"])
        for n, smiles in enumerate(molecules):
            polar, length = "yes" if smiles[-1] in "ON" else "no", 1.5 * len(smiles)
            writer.writerow([smiles, "" if n % 7 == 2 else polar, "NA" if n % 7 == 4 else length])
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    table = write_table(folder / "molecules.csv", MOLECULES)
    assert main(["train", str(table), "--target", "polar,length", "-o", str(folder / "run"), *SMALL]) == 0
    return folder / "run"


def test_predictions_have_the_columns_of_every_target_after_its_name(run: Path, tmp_path: Path) -> None:
    table, few = write_table(tmp_path / "new.csv", MOLECULES[:5]), tmp_path / "few.csv"
    few.write_text("smiles,length\nCCO,4\nCCC,5\n")
    found = []
    for data in (table, few):
        assert main(["predict", str(run), str(data), "-o", str(tmp_path / "p.csv"), "--quiet"]) == 0
        found.append(rows(tmp_path / "p.csv"))
    polar = ["predicted", "probability", "p_no", "p_yes", "spread", "true"]
    expected = [*(f"polar {column}" for column in polar), "length predicted", "length spread", "length true"]
    assert [name for name in found[0][0] if name.startswith(("polar ", "length "))] == expected
    assert [row["polar true"] for row in found[0]] == ["no", "yes", "", "no", "no"]
    assert [row["length true"] for row in found[0]] == ["1.5", "3.0", "3.0", "4.5", ""]
    assert float(found[0][0]["polar p_no"]) + float(found[0][0]["polar p_yes"]) == pytest.approx(1)
    # new data need not have all of the targets
    assert [(row["length true"], row["polar true"]) for row in found[1]] == [("4.0", ""), ("5.0", "")]


def test_metrics_are_those_of_every_target(run: Path) -> None:
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["targets"] == ["polar", "length"]
    assert {"polar.test_accuracy", "test_accuracy", "length.test_r2"} <= metrics.keys()


def test_the_target_to_explain_is_named(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_table(tmp_path / "new.csv", MOLECULES[:2])
    asked = ["explain", str(run), str(table), "--quiet", "--figures", "0", "-o"]
    assert main([*asked, str(tmp_path / "value"), "--explain-target", "length"]) == 0
    found = [json.loads(line) for line in (tmp_path / "value" / "structures.jsonl").read_text().splitlines()]
    assert [one["true"] for one in found] == [1.5, 3.0]
    for one in found:
        assert one["base"] + sum(one["node_importance"]) == pytest.approx(one["output"], abs=1e-4)
    assert main([*asked, str(tmp_path / "first")]) == 0
    first = (tmp_path / "first" / "structures.jsonl").read_text().splitlines()[0]
    assert json.loads(first)["true"] == "no"
    assert main([*asked, str(tmp_path / "none"), "--explain-target", "size"]) == 2
    assert "the model knows no target 'size'; it knows polar, length" in capsys.readouterr().err


def test_patterns_are_of_the_target_that_is_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["patterns", str(run), str(run.parent / "molecules.csv"), "--quiet", "--min-support", "2", "-o"]
    assert main([*asked, str(tmp_path / "first"), "--select", "top", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["target"] == "polar"
    assert {pattern["class"] for pattern in found["patterns"]} <= {"yes", "no"}
    assert found["patterns"]
    assert main([*asked, str(tmp_path / "value"), "--explain-target", "length", "--select", "top", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == "length"
    assert "molecules.csv, length" in (tmp_path / "value" / "index.html").read_text()
    assert main([*asked, str(tmp_path / "none"), "--explain-target", "size"]) == 2
    assert "the model knows no target 'size'" in capsys.readouterr().err


def test_a_name_that_is_no_column_is_refused_with_those_that_are(tmp_path: Path) -> None:
    table = write_table(tmp_path / "molecules.csv", MOLECULES)
    with pytest.raises(MissingColumnError, match="called 'size'; there are smiles, polar, length"):
        egocnn.read(table, target=["polar", "size"])
    with pytest.raises(DataError, match="polar, polar name a column twice"):
        egocnn.read(table, target="polar,polar")


def test_a_column_with_a_comma_in_its_name_is_one_target(tmp_path: Path) -> None:
    table = tmp_path / "molecules.csv"
    table.write_text('smiles,"a,b",a,b\nC,x,1,2\nCC,y,2,3\n')
    assert egocnn.read(table, target="a,b").class_names == ("x", "y")


@pytest.mark.parametrize("twice", [["--target", "polar", "--target", "length"], ["-o", "a", "--out=b"]])
def test_an_option_that_is_given_twice_is_refused(twice: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["train", "molecules.csv", *twice])
    assert stop.value.code == 2
    assert "is given twice" in capsys.readouterr().err


def test_crossval_scores_every_target_where_it_is_known_and_their_mean_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = write_table(tmp_path / "molecules.csv", MOLECULES), tmp_path / "cv.json"
    asked = ["crossval", str(table), "--target", "polar,length", "--folds", "2", "-o", str(out), *SMALL]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["targets"] == {"targets": ["polar", "length"]}
    assert found["score"] == "accuracy_and_r2"
    for fold in found["folds"]:
        assert fold["score"] == pytest.approx((fold["targets"]["polar"] + fold["targets"]["length"]) / 2)
    assert found["targets"]["length"]["mean"] == pytest.approx(
        np.mean([f["targets"]["length"] for f in found["folds"]])
    )
    record = read_record(out)
    assert record is not None
    assert record.targets.keys() == {"polar", "length"}
    assert main([*asked[:3], "length", *asked[4:]]) == 2
    assert "targets ['polar', 'length'], now it is none" in capsys.readouterr().err
    for more, reason in ((["--metric", "rmse"], "leave out --metric rmse"), (["--stack"], "leave out --stack")):
        assert main([*asked, "--overwrite", *more]) == 2
        assert reason in capsys.readouterr().err


def test_a_sweep_chooses_by_the_mean_over_targets(tmp_path: Path) -> None:
    table, out = write_table(tmp_path / "molecules.csv", MOLECULES), tmp_path / "sweep"
    small = [word for word in SMALL if word not in ("--width", "8")]
    asked = ["sweep", str(table), "--target", "polar,length", "--folds", "2", "--over", "width=4,8", "--test-chosen"]
    assert main([*asked, "-o", str(out), *small]) == 0
    found, table_rows = json.loads((out / "sweep.json").read_text()), rows(out / "sweep.csv")
    for row, written in zip(found["rows"], table_rows, strict=True):
        assert row["mean"] == pytest.approx((row["targets"]["polar"] + row["targets"]["length"]) / 2)
        assert float(written["polar mean"]) == row["targets"]["polar"]
    assert found["rows"][0]["mean"] >= found["rows"][1]["mean"]
    assert "--target polar,length" in found["flags"]
    assert found["test"]["targets"].keys() == {"polar", "length"}


@pytest.mark.parametrize("command", ["info"])
def test_commands_for_one_target_say_so(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_table(tmp_path / "molecules.csv", MOLECULES)
    out = [] if command == "info" else ["-o", str(tmp_path / "out")]
    assert main([command, str(table), "--target", "polar,length", *out, "--quiet"]) == 2
    message = capsys.readouterr().err
    assert "target" in message
    assert len(message.splitlines()) == 1


def test_the_estimator_predicts_every_target_by_its_name(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(write_table(tmp_path / "molecules.csv", MOLECULES))
    model = egocnn.EgoCNNClassifier(epochs=1, width=8, depth=1, networks=1, device="cpu")
    model.fit(frame, target=["polar", "length"])
    found = model.predict(frame)
    assert set(found["polar"].tolist()) <= {"no", "yes"}
    assert found["length"].shape == (len(frame),)
    assert model.predict_proba(frame)["polar"].shape == (len(frame), 2)
    model.save(tmp_path / "run")
    again = egocnn.load(tmp_path / "run").predict(frame["smiles"])
    for name, values in found.items():
        np.testing.assert_array_equal(again[name], values)
    (structure,) = model.explain(frame[:1], target="length")
    assert structure.graph.target == 1.5
    assert structure.base + structure.node_importance.sum() == pytest.approx(structure.output)
