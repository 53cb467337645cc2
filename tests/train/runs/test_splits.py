"""``--split random`` and ``--split scaffold``: what is drawn, what a column of that name does, what is refused."""

import json
from pathlib import Path

import pytest

from egocnn.errors import RunError
from egocnn.files import csv_text, digest_of_file
from egocnn.train.run import read_parts
from tests.support.commands import SHORT, Run, check_refused, printed, rows
from tests.support.tiny import write_table

pytest.importorskip("rdkit")

CHAINS = [f"c1ccc({'C' * n})cc1,{n % 2}" for n in range(1, 13)]
OTHERS = ["C1CC1C,0", "C1CC1CC,1", "C1CCC1,0", "C1CCCC1,1", "C1CCCCC1,0", "C1CCCCCC1,1"]
TABLE = "\n".join(["smiles,y", *OTHERS, *CHAINS])


@pytest.mark.parametrize("by", ["random", "scaffold"])
def test_a_drawn_split_is_kept_in_the_run_folder(by: str, run: Run, tmp_path: Path) -> None:
    table = write_table(tmp_path, TABLE)
    metrics = json.loads(printed(run, "train", table, "-o", tmp_path / "run", *SHORT, "--split", by, "--json"))
    split = {row["name"]: row["part"] for row in rows(tmp_path / "run" / "split.csv")}
    tested = [name for name, part in split.items() if part == "test"]
    assert metrics["test_graphs"] == len(tested) == len(rows(tmp_path / "run" / "test_predictions.csv"))
    assert list(split.values()).count("validation") in (1, 2)
    if by == "scaffold":
        names = list(split)
        assert {split[name] for name in names[len(OTHERS) :]} == {"train"}
        assert split[names[0]] == split[names[1]]
    wanted = f"--split {by}=test: {by} parts are drawn when a model is trained; split.csv in the run folder says"
    check_refused(run, wanted, "predict", tmp_path / "run", table, "--split", f"{by}=test", "-o", tmp_path / "p.csv")


def test_a_column_of_that_name_wins(run: Run, tmp_path: Path) -> None:
    lines = [f"{line},{'test' if number < 4 else 'train'}" for number, line in enumerate(TABLE.split()[1:])]
    table = write_table(tmp_path, "\n".join(["smiles,y,scaffold", *lines]))
    words = ("train", table, "-o", tmp_path / "run", *SHORT, "--split", "scaffold", "--json")
    assert json.loads(printed(run, *words))["test_graphs"] == 4
    words = ("predict", tmp_path / "run", table, "--split", "scaffold=test", "-o", tmp_path / "p.csv", "--json")
    assert json.loads(printed(run, *words))["graphs"] == 4


def test_folds_by_scaffold_never_tear_one_apart(run: Run, tmp_path: Path) -> None:
    table = write_table(tmp_path, TABLE)
    how = ("--split", "scaffold", "--folds", "2", "--metric", "log_loss")
    record = json.loads(printed(run, "crossval", table, *SHORT, *how, "--json"))
    assert record["score"] == "log_loss"
    sizes = [fold["test_graphs"] for fold in record["folds"]]
    assert sum(sizes) == 18
    assert max(sizes) >= len(CHAINS)  # of one scaffold


def test_the_parts_of_a_run_are_known_for_its_own_data_and_where_a_name_says_one(tmp_path: Path) -> None:
    rows = [("1", "train"), ("=2", "test"), ("twice", "train"), ("twice", "test"), ("3", "validation")]
    (tmp_path / "split.csv").write_text(csv_text([("name", "part"), *rows]), encoding="utf-8")
    about = {"data": str(tmp_path / "m.csv"), "split": digest_of_file(tmp_path / "split.csv")}
    found = read_parts(tmp_path, about, f"{tmp_path}/folder/../m.csv")
    assert [found.get(name) for name in ("1", "=2", "3")] == ["train", "test", "validation"]
    assert not found.keys() & {"twice", "name"}
    assert read_parts(tmp_path, about, "other.csv") == read_parts(tmp_path, {}, "m.csv") == {}
    with pytest.raises(RunError, match=r"split.csv: is damaged"):
        read_parts(tmp_path, {**about, "split": "0" * 64}, about["data"])
