from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from egocnn.errors import ConfigError
from lab.rivals.names import find_rival
from lab.tables import cells as run
from lab.tables import published
from lab.tables.cells import TableOptions, write_table
from lab.tables.scores import TABLES, Contestant, ScoreTable
from lab.tables.words import markdown
from tests.support.tiny import plain_model, plain_train

DATA = "compounds:alcohols:sizes=2-9"
SMALL = ScoreTable(
    title="A small table",
    data=(DATA,),
    contestants=(
        Contestant(name="Counts", rival="label-counts", printed_as="Counts"),
        Contestant(name="Ego-CNN", model=plain_model(width=8, depth=1), train=plain_train(epochs=2)),
        Contestant(name="Nobody", rival="no-such-rival"),
    ),
    figures={"Counts": {DATA: 12.3}},
    parameters={"Counts": 1e6},
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLES, "small", SMALL)


def write(folder: Path, how: TableOptions, said: list[str] | None = None) -> dict[str, object]:
    heard = [] if said is None else said
    return write_table("small", how, folder=folder / "results", kept=folder / "kept", say=heard.append)


@pytest.mark.usefixtures("small")
def test_a_table_holds_our_score_beside_the_printed_one_and_says_what_could_not_run(tmp_path: Path) -> None:
    said: list[str] = []
    write(tmp_path, TableOptions(quick=True, device="cpu"), said)
    record = json.loads((tmp_path / "results" / "small.json").read_text(encoding="utf-8"))
    counts, ours, nobody = record["rows"]
    assert counts["published"] == 12.3
    assert counts["published_parameters"] == 1e6
    assert 0 <= counts["mean"] <= 100
    assert len(ours["folds"]) == 3
    assert ours["published"] is None
    assert ours["parameters"] > 0
    assert nobody["mean"] is None
    assert "no-such-rival" in nobody["reason"]
    assert any("no score" in line for line in said)
    text = (tmp_path / "results" / "small.md").read_text(encoding="utf-8")
    assert "[12.3]" in text
    assert "- Nobody on compounds" in text
    with (tmp_path / "results" / "small.csv").open(encoding="utf-8") as file:
        assert [row["model"] for row in csv.DictReader(file)] == ["Counts", "Ego-CNN", "Nobody"]


@pytest.mark.usefixtures("small")
def test_cells_that_are_finished_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how = TableOptions(quick=True, device="cpu", models=("Counts", "Ego-CNN"))
    first = write(tmp_path, how)

    def refuse(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("egocnn.study.crossval.training._finish_folds", refuse)
    assert write(tmp_path, how)["rows"] == first["rows"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("how", "words"), [(TableOptions(data=("MUTAGG",)), "MUTAGG"), (TableOptions(models=("Ego",)), "Ego")]
)
def test_a_set_or_row_that_the_table_lacks_is_refused(how: TableOptions, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"has no .* '{words}'"):
        write(tmp_path, replace(how, quick=True, device="cpu"))


@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_the_paper_is_there_and_every_rival_exists(name: str) -> None:
    table = TABLES[name]
    assert set(table.figures) <= {contestant.printed_as for contestant in table.contestants}
    for contestant in table.contestants:
        assert contestant.printed_as is None or contestant.printed_as in table.figures
        if contestant.rival is not None:
            find_rival(contestant.rival)
    for row in table.figures.values():
        assert set(row) <= set(table.data)


def test_printed_figures_agree_where_the_paper_prints_them_twice() -> None:
    for table in (published.TABLE_2, published.TABLE_3):
        for data, figure in table["Ego-CNN"].items():
            if data in published.TABLE_SUPPLEMENT["Ego-CNN"]:
                assert published.TABLE_SUPPLEMENT["Ego-CNN"][data] == figure


def test_a_quick_run_looks_at_few_graphs_chosen_by_the_seed() -> None:
    one, other, again = (run._read("compounds:alcohols", TableOptions(quick=True, seed=seed)) for seed in (0, 1, 0))
    assert len(one) == run.QUICK_GRAPHS
    assert one.names == again.names != other.names


def test_the_markdown_has_a_line_for_every_system_and_marks_what_differs_from_ours() -> None:
    def row(model: str, mean: float | None, **more: Any) -> dict[str, Any]:
        return {"model": model, "data": "D", "mean": mean, "std": 1.0, "published": None, "protocol": "paper", **more}

    record = {
        "title": "T",
        "rows": [
            row("A", 50.0, ours_minus={"difference": 9.0, "p": 0.01}),
            row("B", 58.0, ours_minus={"difference": 1.0, "p": 0.4}),
            row("C", None, reason="too large"),
        ],
        "compared_with": "ours",
        "command": "c",
        "date": "d",
        "machine": "m",
        "versions": {"torch": "t"},
    }
    text = markdown(record)
    assert "| A | 50.0 ± 1.0¹ |" in text
    assert "| B | 58.0 ± 1.0 |" in text
    assert "| C | – |" in text
    assert "- C on D: too large" in text
    assert "D: ten stratified folds" in text
    assert "differs from ours with p < 0.05" in text
