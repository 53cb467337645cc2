"""Several targets on the command line and in tables: named with commas, columns of each after its name."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import egocnn
from egocnn.cli import main
from egocnn.errors import DataError, MissingColumnError
from egocnn.explain.structure import read_structures
from egocnn.study.crossval import read_record
from tests.support.commands import Run, answer, check_refused, printed, rows, told
from tests.support.samples import sure

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
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("several") / "molecules.csv", MOLECULES)


@pytest.fixture(scope="module")
def model(table: Path) -> Path:
    """A run on this table."""
    folder = table.with_name("run")
    assert main(["train", str(table), "--target", "polar,length", "-o", str(folder), *SMALL]) == 0
    return folder


def test_the_scores_of_every_target_are_printed_after_their_mean(run: Run, table: Path, tmp_path: Path) -> None:
    small = [word for word in SMALL if word != "--quiet"]
    lines = told(run, "train", table, "--target", "polar,length", "-o", tmp_path / "run", *small).splitlines()
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    polar = ", ".join(
        f"{word} {metrics[f'polar.test_{name}']:.4f}"
        for name, word in (("roc_auc", "ROC AUC"), ("average_precision", "average precision"))
    )
    assert f"  polar: {polar}" in lines
    assert f"  length: RMSE {metrics['length.test_rmse']:.4f}, R² {metrics['length.test_r2']:.4f}" in lines


def test_predictions_have_the_columns_of_every_target_after_its_name(run: Run, model: Path, tmp_path: Path) -> None:
    new, few = write_table(tmp_path / "new.csv", MOLECULES[:5]), tmp_path / "few.csv"
    few.write_text("smiles,length\nCCO,4\nCCC,5\n")
    found = []
    for data in (new, few):
        printed(run, "predict", model, data, "-o", tmp_path / "p.csv", "--quiet")
        found.append(rows(tmp_path / "p.csv"))
    polar = ["predicted", "probability", "p_no", "p_yes", "spread", "true"]
    expected = [*(f"polar {column}" for column in polar), "length predicted", "length spread", "length true"]
    assert [name for name in found[0][0] if name.startswith(("polar ", "length "))] == expected
    assert [row["polar true"] for row in found[0]] == ["no", "yes", "", "no", "no"]
    assert [row["length true"] for row in found[0]] == ["1.5", "3.0", "3.0", "4.5", ""]
    assert float(found[0][0]["polar p_no"]) + float(found[0][0]["polar p_yes"]) == pytest.approx(1)
    tested = rows(model / "test_predictions.csv")
    assert list(tested[0]) == ["name", "smiles", *expected]
    assert {row["smiles"] for row in tested} <= set(MOLECULES)
    # new data need not have all of the targets
    assert [(row["length true"], row["polar true"]) for row in found[1]] == [("4.0", ""), ("5.0", "")]


def test_the_target_to_explain_is_named(run: Run, model: Path, tmp_path: Path) -> None:
    new = write_table(tmp_path / "new.csv", MOLECULES[:2])
    asked = ["explain", model, new, "--quiet", "--figures", 0, "-o"]
    printed(run, *asked, tmp_path / "value", "--explain-target", "length")
    found = list(read_structures(tmp_path / "value" / "structures.jsonl"))
    assert [one.graph.target for one in found] == [1.5, 3.0]
    for one in found:
        assert one.base + one.node_importance.sum() == pytest.approx(one.output, abs=1e-4)
    printed(run, *asked, tmp_path / "first")
    assert next(read_structures(tmp_path / "first" / "structures.jsonl")).graph.target == "no"
    printed(run, "explain", model, new, "--quiet", "--figures", 1, "-o", tmp_path / "pictures")
    (picture,) = (tmp_path / "pictures" / "figures").glob("*.svg")
    assert "<title>polar, " in picture.read_text()
    wanted = "the model knows no target 'size'; it knows polar, length"
    check_refused(run, wanted, *asked, tmp_path / "none", "--explain-target", "size")


def test_shards_are_predicted_for_all_targets_and_explained_for_one(run: Run, model: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "shards").mkdir()
    write_table(tmp_path / "shards" / "a.csv", MOLECULES[:6])
    write_table(tmp_path / "shards" / "b.csv", MOLECULES[6:12])
    words = [model, tmp_path / "shards", "--jobs", 1, "--quiet", "--device", "cpu", "-o"]
    printed(run, "predict", *words, tmp_path / "predicted")
    predicted = parquet.read_table(tmp_path / "predicted" / "a.parquet").to_pylist()
    assert [row["polar true"] for row in predicted] == ["no", "yes", None, "no", "no", "yes"]
    for target, of_class in ({"polar": True, "length": False}).items():
        printed(run, "explain", *words, tmp_path / target, "--explain-target", target)
        found = parquet.read_table(tmp_path / target / "a.parquet").to_pylist()
        same = [row[f"{target} predicted"] for row in predicted]
        assert [row["predicted"] for row in found] == (same if of_class else pytest.approx(same))
        assert ("explained" in found[0]) is of_class
        for row in found:
            assert row["base"] + sum(row["contributions"]) == pytest.approx(row["output"], abs=1e-4)
    printed(run, "explain", *words, tmp_path / "highest", "--explain-target", "length", "--highest", 3)
    best = parquet.read_table(tmp_path / "highest" / "highest.parquet").to_pylist()
    every = [
        row["length predicted"]
        for name in "ab"
        for row in parquet.read_table(tmp_path / "predicted" / f"{name}.parquet").to_pylist()
    ]
    assert sorted(row["length predicted"] for row in best) == pytest.approx(sorted(every)[-3:])
    wanted = "knows no target 'width'"
    check_refused(run, wanted, "explain", *words, tmp_path / "none", "--explain-target", "width")


def test_info_tells_every_target(run: Run, table: Path) -> None:
    facts = answer(run, "info", table, "--target", "polar,length")
    assert facts["target"] == "several"
    assert facts["targets"]["polar"] == {"kind": "classes", "counts": {"no": 14, "yes": 13}, "missing": 5}
    assert facts["targets"]["length"] == {"kind": "values", "least": 1.5, "most": 15.0, "missing": 4}
    assert "polar: 5 graphs have no class" in facts["problems"]
    uneven = write_table(table.parent / "uneven.csv", MOLECULES)
    lines = ["smiles,a,b,c", *(f"{smiles},{int(n < 1)},{int(n < 2)},{n % 2}" for n, smiles in enumerate(MOLECULES))]
    uneven.write_text("\n".join(lines))
    far = "classes are far from equal in size; accuracy misleads, consider --class-weights"
    assert [text for text in answer(run, "info", uneven, "--target", "all")["problems"] if far in text] == [
        f"a, b: {far}"
    ]
    shown = printed(run, "info", table, "--target", "polar,length")
    assert "target          polar: classes (no: 14, yes: 13), missing 5\n" in shown


def test_all_stands_for_the_columns_that_could_be_targets(run: Run, tmp_path: Path) -> None:
    lines = ["number,smiles,polar,length,constant,part,mol_id"]
    for n, smiles in enumerate(MOLECULES):
        part = "test" if n % 5 == 0 else "train"
        lines.append(f"{n},{smiles},{'yes' if smiles[-1] in 'ON' else 'no'},{len(smiles) + 0.5},1,{part},M{n}")
    table = tmp_path / "molecules.csv"
    table.write_text("\n".join(lines))
    assert egocnn.read(table, target="all").target_names == ("polar", "length")
    frame = pytest.importorskip("pandas").read_csv(table)
    assert egocnn.read(frame, target="all").target_names == ("polar", "length")
    fitted = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=1, networks=1, device="cpu").fit(frame, target="all")
    assert list(fitted.predict(frame[:2])) == ["polar", "length"]
    metrics = answer(run, "train", table, "--target", "all", "-o", tmp_path / "run", *SMALL)
    assert metrics["targets"] == ["polar", "length"]
    assert json.loads((tmp_path / "run" / "config.json").read_text())["read"]["target"] == "polar,length"
    # one alone is a target like any other, and a column of that name is meant itself
    single, own = tmp_path / "single.csv", tmp_path / "own.csv"
    single.write_text("\n".join(",".join(line.split(",")[1:3]) for line in lines))
    assert egocnn.read(single, target="all").class_names == ("no", "yes")
    own.write_text(
        "\n".join(["smiles,all,other", *(f"{smiles},{len(smiles)}.5,{n % 2}" for n, smiles in enumerate(MOLECULES))])
    )
    assert egocnn.read(own, target="all").target_names == ()
    unclear = tmp_path / "unclear.csv"
    unclear.write_text(
        "\n".join([f"{line},{'remark' if n == 0 else f'note {n // 2} on it'}" for n, line in enumerate(lines)])
    )
    check_refused(run, "remark could be a target or not", "info", unclear, "--target", "all")
    check_refused(run, "name the target itself", "info", "compounds:alcohols", "--target", "all")


def test_patterns_are_of_the_target_that_is_named(run: Run, model: Path, table: Path, tmp_path: Path) -> None:
    asked = ["patterns", model, table, "--quiet", "--min-support", 2, "--select", "top", "-o"]
    found = answer(run, *asked, tmp_path / "first")
    assert found["target"] == "polar"
    assert {pattern["class"] for pattern in found["patterns"]} <= {"yes", "no"}
    assert found["patterns"]
    assert answer(run, *asked, tmp_path / "value", "--explain-target", "length")["target"] == "length"
    assert "molecules.csv, length" in (tmp_path / "value" / "index.html").read_text()
    check_refused(run, "the model knows no target 'size'", *asked, tmp_path / "none", "--explain-target", "size")


def test_a_name_that_is_no_column_is_refused_with_those_that_are(table: Path) -> None:
    with pytest.raises(MissingColumnError, match="called 'size'; there are smiles, polar, length"):
        egocnn.read(table, target=["polar", "size"])
    with pytest.raises(DataError, match="polar, polar name a column twice"):
        egocnn.read(table, target="polar,polar")


def test_a_column_with_a_comma_in_its_name_is_one_target(tmp_path: Path) -> None:
    table = tmp_path / "molecules.csv"
    table.write_text('smiles,"a,b",a,b\nC,x,1,2\nCC,y,2,3\n')
    assert egocnn.read(table, target="a,b").class_names == ("x", "y")


@pytest.mark.parametrize("twice", [["--target", "polar", "--target", "length"], ["-o", "a", "--out=b"]])
def test_an_option_that_is_given_twice_is_refused(twice: list[str], run: Run) -> None:
    check_refused(run, "is given twice", "train", "molecules.csv", *twice)


def test_crossval_scores_every_target_where_it_is_known_and_their_mean_counts(
    run: Run, table: Path, tmp_path: Path
) -> None:
    asked = ["crossval", table, "--folds", 2, "-o", tmp_path / "cv.json", *SMALL, "--target"]
    found = answer(run, *asked, "polar,length")
    assert found["settings"]["targets"] == {"targets": ["polar", "length"]}
    assert found["score"] == "accuracy_and_r2"
    for fold in found["folds"]:
        assert fold["score"] == pytest.approx((fold["targets"]["polar"] + fold["targets"]["length"]) / 2)
    assert found["targets"]["length"]["mean"] == pytest.approx(
        np.mean([f["targets"]["length"] for f in found["folds"]])
    )
    assert sure(read_record(tmp_path / "cv.json")).targets.keys() == {"polar", "length"}
    check_refused(run, "targets ['polar', 'length'], now it is none", *asked, "length")
    check_refused(run, "leave out --metric rmse", *asked, "polar,length", "--overwrite", "--metric", "rmse")
    stacked = answer(run, *asked, "polar,length", "--overwrite", "--stack")
    assert stacked["targets"].keys() == {"polar", "length"}
    assert [fold["test_graphs"] for fold in stacked["folds"]] == [fold["test_graphs"] for fold in found["folds"]]


def test_a_sweep_chooses_by_the_mean_over_targets(run: Run, table: Path, tmp_path: Path) -> None:
    small = [word for word in SMALL if word not in ("--width", "8")]
    asked = ["--target", "polar,length", "--folds", 2, "--over", "width=4,8", "--test-chosen"]
    found = answer(run, "sweep", table, *asked, "-o", tmp_path / "sweep", *small)
    for row, written in zip(found["rows"], rows(tmp_path / "sweep" / "sweep.csv"), strict=True):
        assert row["mean"] == pytest.approx((row["targets"]["polar"] + row["targets"]["length"]) / 2)
        assert float(written["polar mean"]) == row["targets"]["polar"]
    assert found["rows"][0]["mean"] >= found["rows"][1]["mean"]
    assert "--target polar,length" in found["flags"]
    assert found["test"]["targets"].keys() == {"polar", "length"}


def test_the_estimator_predicts_every_target_by_its_name(table: Path, tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas").read_csv(table)
    model = egocnn.EgoCNNClassifier(epochs=1, width=8, depth=1, networks=1, device="cpu")
    model.fit(frame, target=["polar", "length"])
    found = model.predict(frame)
    assert set(found["polar"].tolist()) <= set(model.classes_["polar"].tolist()) == {"no", "yes"}
    assert found["length"].shape == (len(frame),)
    assert model.predict_proba(frame)["polar"].shape == (len(frame), 2)
    model.save(tmp_path / "run")
    again = egocnn.load(tmp_path / "run").predict(frame["smiles"])
    for name, values in found.items():
        np.testing.assert_array_equal(again[name], values)
    (structure,) = model.explain(frame[:1], target="length")
    assert structure.graph.target == 1.5
    assert structure.base + structure.node_importance.sum() == pytest.approx(structure.output)
