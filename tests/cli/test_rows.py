"""Tables with broken rows and gaps: what is trained on, what is predicted, and what is refused."""

import json
import re
from pathlib import Path

import pytest

import egocnn
from egocnn.model import Model
from tests.support.commands import SHORT, Run, answer, check_refused, printed, rows, told
from tests.support.tiny import ALCOHOLS, FLAGS, molecule_lines

pytest.importorskip("rdkit")
BROKEN = "not_a_molecule(("


def table(folder: Path, *body: str, name: str = "m.csv", head: str = "smiles,label") -> Path:
    (folder / name).write_text("\n".join([head, *body, ""]))
    return folder / name


def test_a_few_broken_rows_are_counted_in_one_line_and_listed_in_the_run_folder(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = table(tmp_path, *molecule_lines()[:39], f"{BROKEN},alkane")
    assert run("train", data, "-o", tmp_path / "run", *SHORT[:-1])[0] == 0
    assert [line for line in caplog.messages if "left out" in line] == [
        f"m.csv: 1 of 40 rows left out; the first is m.csv, row 40: SMILES {BROKEN!r} does not parse "
        "(syntax error at position 3)"
    ]
    (invalid,) = rows(tmp_path / "run" / "invalid.csv")
    assert (invalid["row"], invalid["smiles"]) == ("40", BROKEN)
    caplog.clear()
    assert run("train", data, "-o", tmp_path / "quiet", *SHORT)[2] == ""
    assert caplog.messages == []
    check_refused(run, "m.csv, row 40: SMILES", "train", data, "-o", tmp_path / "strict", "--strict", *SHORT)
    assert not (tmp_path / "strict").exists()


def test_a_table_that_is_mostly_broken_is_refused(run: Run, tmp_path: Path) -> None:
    data = table(tmp_path, "CCO,alcohol", f"{BROKEN},alkane")
    check_refused(run, "--skip-invalid leaves such rows out", "train", data, "-o", tmp_path / "run", *SHORT)


def test_rows_without_a_target_are_left_out_of_the_training_and_predicted(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = table(tmp_path, *molecule_lines(), "CCN,NA", "CCCN,")
    assert answer(run, "train", data, "-o", tmp_path / "run", *SHORT[:-1])["graphs"] == 40
    assert "2 of 42 molecules have no target and are left out of the training" in caplog.messages
    printed(run, "predict", tmp_path / "run", data, "-o", tmp_path / "p.csv")
    assert [row["true"] for row in rows(tmp_path / "p.csv")][-3:] == ["alcohol", "", ""]
    assert all(row["predicted"] for row in rows(tmp_path / "p.csv"))


def test_a_target_that_names_every_row_or_is_the_smiles_is_refused(run: Run, tmp_path: Path) -> None:
    data = table(tmp_path, *(f"{'C' * (n + 1)},x{n}" for n in range(12)))
    check_refused(run, "12 classes for 12 molecules", "train", data, "-o", tmp_path / "run", *SHORT)
    check_refused(run, "is the column of SMILES", "train", data, "--target", "smiles", "-o", tmp_path / "run", *SHORT)


def test_every_row_keeps_its_place_with_its_columns_or_the_reason(run: Run, model: Path, tmp_path: Path) -> None:
    data = table(tmp_path, "7,CCO,,alcohol", f"8,{BROKEN},=1+1,", "9,CCC,x,none", head="id,smiles,note,label")
    assert "2 predictions in" in printed(run, "predict", model, data, "-o", tmp_path / "p.csv")
    found = rows(tmp_path / "p.csv")
    assert [row["name"] for row in found] == [row["id"] for row in found] == ["7", "8", "9"]
    assert [bool(row["predicted"]) for row in found] == [True, False, True]
    assert [row["error"].split(" ")[0] for row in found] == ["", "SMILES", ""]
    assert [row["note"] for row in found] == ["", "'=1+1", "x"]
    assert [row["true"] for row in found] == ["alcohol", "", ""]
    check_refused(run, "m.csv, row 2: SMILES", "predict", model, data, "-o", tmp_path / "q.csv", "--strict")
    for name in ("q.jsonl", "q.parquet"):
        printed(run, "predict", model, data, "-o", tmp_path / name)
        printed(run, "predict", model, tmp_path / name, "-o", tmp_path / "again.csv")
        assert [row["predicted"] for row in rows(tmp_path / "again.csv")] == [row["predicted"] for row in found]


def test_nothing_is_written_where_no_row_can_be_predicted(run: Run, model: Path, tmp_path: Path) -> None:
    data = table(tmp_path, f"{BROKEN},a", "x,b")
    check_refused(
        run, "none of 2 rows can be predicted; row 1: SMILES", "predict", model, data, "-o", tmp_path / "p.csv"
    )
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("out", "message"),
    [("run/p.csv", "is a run folder"), ("nowhere/p.csv", "nowhere: no such folder"), ("p.txt", "must end in .csv")],
)
def test_a_table_is_not_written_where_it_has_no_place(run: Run, model: Path, out: str, message: str) -> None:
    check_refused(run, message, "predict", model, ALCOHOLS, "-o", model.parent / out)


def test_info_lists_the_columns_of_a_table_without_a_target(run: Run, tmp_path: Path) -> None:
    data = table(tmp_path, "7,CCO,1", "8,CCC,0", "9,CC,1", head="id,smi,toxic")
    text = printed(run, "info", data)
    assert "column          smi: SMILES\ncolumn          toxic: classes (1: 2, 0: 1)\n" in text
    assert "note            to train, toxic is the target unless --target names another\n" in text
    facts = json.loads(printed(run, "info", data, "--json"))
    assert (facts["graphs"], facts["columns"]["toxic"]["counts"]) == (3, {"1": 2, "0": 1})
    assert "column" not in printed(run, "info", data, "--target", "toxic")
    check_refused(run, "no column or field is called 'fold'", "info", data, "--split", "fold")
    named = table(tmp_path, "7,x", head="id,formula")  # what was an error
    assert "note            m.csv: no column is called smiles" in printed(run, "info", named)
    check_refused(run, "no column is called smiles", "info", named, "--strict")


def test_an_sdf_is_trained_on_predicted_and_explained_as_a_table_is(run: Run, tmp_path: Path) -> None:
    from rdkit import Chem

    def block(number: int, line: str) -> str:
        smiles, label = line.split(",")
        text = Chem.MolToMolBlock(Chem.MolFromSmiles(smiles))
        return f"m{number}{text}> <kind>\n{label}\n\n$$$$\n"

    blocks = [block(number, line) for number, line in enumerate(molecule_lines())]
    (tmp_path / "m.sdf").write_text("".join(blocks))
    assert run("train", tmp_path / "m.sdf", "--target", "kind", "-o", tmp_path / "run", *SHORT)[0] == 0
    broken = blocks[3].replace(" C ", " Xx")
    (tmp_path / "new.sdf").write_text(broken + "".join(blocks[:2]))
    shown = printed(run, "predict", tmp_path / "run", tmp_path / "new.sdf", "-o", tmp_path / "p.csv")
    assert "2 predictions" in shown
    found = rows(tmp_path / "p.csv")
    assert [(row["name"], row["kind"], row["true"]) for row in found[1:]] == [
        *(("m0", "alkane", "alkane"), ("m1", "alcohol", "alcohol"))
    ]
    assert found[0]["name"] == "m3"
    assert found[0]["error"].startswith("the molecule does not parse (Post-condition Violation: Element 'Xx' not found")
    data = tmp_path / "m.sdf"
    shown = told(run, "explain", tmp_path / "run", data, "-o", tmp_path / "report", "--limit", 2)
    assert "2 molecules explained" in shown
    (tmp_path / "shards").mkdir()
    (tmp_path / "new.sdf").rename(tmp_path / "shards" / "a.sdf")
    shown = told(run, "predict", tmp_path / "run", tmp_path / "shards", "-o", tmp_path / "out", "--jobs", 1)
    assert "3 rows, 1 without a graph" in shown


def test_a_model_that_was_trained_without_salts_reads_and_draws_without_them(run: Run, tmp_path: Path) -> None:
    data = table(tmp_path, *(f"[Na+].{line}" for line in molecule_lines()))
    assert run("train", data, "--salts", "largest", "-o", tmp_path / "run", *SHORT)[0] == 0
    new = table(tmp_path, "Cl.OCC,alcohol", "CC.O,alkane", name="new.csv")
    printed(run, "explain", tmp_path / "run", new, "-o", tmp_path / "report", "--quiet")
    found = [json.loads(line) for line in (tmp_path / "report" / "structures.jsonl").read_text().splitlines()]
    assert [one["smiles"] for one in found] == ["OCC", "CC"]
    assert [len(one["node_importance"]) for one in found] == [3, 2]
    printed(run, "explain", tmp_path / "run", new, "--salts", "keep", "-o", tmp_path / "whole", "--quiet")
    assert '"smiles": "Cl.OCC"' in (tmp_path / "whole" / "structures.jsonl").read_text()


def test_the_only_column_that_could_be_a_target_is_taken_for_it_and_of_several_none(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, both, named = tmp_path / "m.csv", tmp_path / "both.csv", tmp_path / "named.csv"
    values = [(number, "C" * (number + 1) + "O", -0.31 * number) for number in range(24)]
    data.write_text("Compound ID,SMILES,pIC50\n" + "".join(f"X{n},{smiles},{y}\n" for n, smiles, y in values))
    told(run, "train", data, "-o", tmp_path / "run", *FLAGS, "--epochs", 1)
    assert caplog.messages[0] == "m.csv: pIC50 is taken for the target, the only column that could be one"
    assert Model.load(tmp_path / "run").about["read"]["target"] == "pIC50"
    predicted = egocnn.EgoCNNRegressor(width=8, depth=1, epochs=1, networks=1).fit(str(data)).predict(str(data))
    assert len(predicted) == 24
    frame = pytest.importorskip("pandas").read_csv(data)
    assert egocnn.EgoCNNRegressor(width=8, depth=1, epochs=1, networks=1).fit(frame).score(frame) < 1
    both.write_text("smiles,pIC50,logD\n" + "".join(f"{smiles},{y},{y + 0.5}\n" for _, smiles, y in values))
    wanted = "both.csv: pIC50, logD could be the target; name it with --target (all: all of them)"
    check_refused(run, wanted, "train", both, "-o", tmp_path / "none", *SHORT)
    named.write_text("smiles,y,logD\n" + "".join(f"{smiles},{n % 2},{y}\n" for n, smiles, y in values))
    told(run, "train", named, "-o", tmp_path / "y", *SHORT)
    assert Model.load(tmp_path / "y").class_names == ("0", "1")


def test_what_is_predicted_of_one_molecule_is_said_at_once(run: Run, tmp_path: Path) -> None:
    data = table(tmp_path, *molecule_lines())
    small = ["--width", 8, "--depth", 1, "--epochs", 1, "--networks", 2, "--device", "cpu"]
    told(run, "train", data, "-o", tmp_path / "run", *small)
    words = ("predict", tmp_path / "run", "CCCCO", "-o", tmp_path / "p.csv")
    assert re.match(r"(alcohol|alkane) \(\d\d\.\d% ± \d+\.\d%\)\n1 prediction in ", told(run, *words))
    found = answer(run, *words)["prediction"]
    assert found["predicted"] in ("alcohol", "alkane")
    assert found["p_alcohol"] + found["p_alkane"] == pytest.approx(1)
    assert "prediction" not in answer(run, "predict", tmp_path / "run", data, "-o", tmp_path / "p.csv")
