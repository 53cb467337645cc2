"""Tables with broken rows and gaps: what is trained on, what is predicted, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import SHORT, Run, check_refused, printed, rows, runner
from tests.support.tiny import ALCOHOLS

pytest.importorskip("rdkit")
BROKEN = "not_a_molecule(("


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


def lines(n: int = 40) -> list[str]:
    return [f"{'C' * (size % 7 + 1)}{'O' * (size % 2)},{'alcohol' if size % 2 else 'alkane'}" for size in range(n)]


def table(folder: Path, *body: str, name: str = "m.csv", head: str = "smiles,label") -> Path:
    (folder / name).write_text("\n".join([head, *body, ""]))
    return folder / name


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from egocnn.cli import main

    folder = tmp_path_factory.mktemp("rows")
    assert main(["train", str(table(folder, *lines())), "-o", str(folder / "run"), *SHORT]) == 0
    return folder / "run"


def test_a_few_broken_rows_are_counted_in_one_line_and_listed_in_the_run_folder(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = table(tmp_path, *lines()[:39], f"{BROKEN},alkane")
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
    data = table(tmp_path, *lines(), "CCN,NA", "CCCN,")
    code, out, _ = run("train", data, "-o", tmp_path / "run", *SHORT[:-1], "--json")
    assert code == 0
    assert json.loads(out)["graphs"] == 40
    assert "2 of 42 graphs have no target and are left out of the training" in caplog.messages
    printed(run, "predict", tmp_path / "run", data, "-o", tmp_path / "p.csv")
    assert [row["true"] for row in rows(tmp_path / "p.csv")][-3:] == ["alcohol", "", ""]
    assert all(row["predicted"] for row in rows(tmp_path / "p.csv"))


def test_a_target_that_names_every_row_or_is_the_smiles_is_refused(run: Run, tmp_path: Path) -> None:
    data = table(tmp_path, *(f"{'C' * (n + 1)},x{n}" for n in range(12)))
    check_refused(run, "12 classes for 12 graphs", "train", data, "-o", tmp_path / "run", *SHORT)
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
