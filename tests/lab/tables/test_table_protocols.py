"""How a cell of a table is computed: protocol, restarts together or alone, and how long it may take."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from egocnn.config import ModelConfig
from egocnn.errors import DataError
from egocnn.study.crossval import Protocol, cross_validate, read_record
from lab.tables import cells as run
from lab.tables import published
from lab.tables.cells import LARGE, LARGEST, WITHOUT_SPLITS, TableOptions, _protocol, write_table
from lab.tables.limit import TooLongError, time_limit
from lab.tables.scores import OURS, OURS_TIED, TABLES, TOGETHER, Contestant, ScoreTable
from tests.support.tiny import names_in, plain_model, plain_train

DATA = "compounds:alcohols:sizes=2-9"
QUICK = TableOptions(quick=True, device="cpu")
PLAIN, AVERAGED = Contestant(name="plain"), Contestant(name="averaged", together=TOGETHER)
RIVAL = Contestant(name="a rival", rival="gin")
SMALL: dict[str, Any] = {"model": plain_model(width=8, depth=1), "train": plain_train(epochs=2)}
TABLE = ScoreTable(
    title="The same trainings in two lights",
    data=(DATA,),
    contestants=(
        Contestant(name="Alone", kept_as="shared", together=4, alone=True, **SMALL),
        Contestant(name="Together", kept_as="shared", together=4, **SMALL),
    ),
    figures={},
)


def write(
    folder: Path, how: TableOptions, monkeypatch: pytest.MonkeyPatch, table: ScoreTable = TABLE
) -> list[dict[str, Any]]:
    monkeypatch.setitem(TABLES, "small", table)
    record = write_table("small", how, folder=folder / "results", kept=folder / "kept", say=lambda _: None)
    rows: list[dict[str, Any]] = record["rows"]
    return rows


# ── protocols ─────────────────────────────────────────────────────────────────────────────────────


def test_a_quick_cell_has_three_folds_and_two_restarts_at_most() -> None:
    for data in ("MUTAG", "COLLAB", DATA):
        assert _protocol(PLAIN, data, QUICK) == Protocol(folds=3)
        assert _protocol(AVERAGED, data, QUICK) == Protocol(folds=3, restarts=2, combine="average")


@pytest.mark.parametrize("data", WITHOUT_SPLITS)
@pytest.mark.parametrize("asked", ["fair", "paper"])
def test_sets_without_published_splits_follow_the_papers_protocol(data: str, asked: Any) -> None:
    for contestant in (PLAIN, RIVAL):
        found = _protocol(contestant, data, TableOptions(protocol=asked))
        assert (found.name, found.folds, found.runs, found.restarts, found.combine) == ("paper", 10, 1, 5, "best")
    found = _protocol(AVERAGED, data, TableOptions(protocol=asked))
    assert (found.name, found.runs, found.restarts, found.combine) == ("paper", 1, TOGETHER, "average")


@pytest.mark.parametrize("data", [*published.MOLECULES[2:], *published.NETWORKS])
def test_the_other_sets_follow_the_fair_protocol_the_large_ones_with_one_run(data: str, data_folder: Path) -> None:
    assert data_folder.joinpath("splits", f"{data}.json").is_file()
    is_large = data in LARGE
    asked = _protocol(PLAIN, data, TableOptions(protocol="paper"))
    assert (asked.name, asked.runs) == ("paper", 1)
    one, all_together, rival = (
        _protocol(each, data, TableOptions(protocol="fair")) for each in (PLAIN, AVERAGED, RIVAL)
    )
    assert one.name == all_together.name == "fair"
    assert (one.folds, one.runs, one.restarts, one.combine) == (10, 1 if is_large else 3, 1, "best")
    assert (all_together.runs, all_together.combine) == (one.runs, "average")
    assert all_together.restarts == (3 if data == LARGEST else TOGETHER)
    assert (rival.runs, rival.restarts, rival.combine) == (one.runs, 1, "best")


# ── one training in two lights ────────────────────────────────────────────────────────────────────


def test_restarts_are_trained_once_and_shown_alone_and_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, together = write(tmp_path, QUICK, monkeypatch)
    (file,) = names_in(tmp_path / "kept")
    record = read_record(tmp_path / "kept" / file)
    assert record is not None
    assert "shared" in file
    for row, scores in (
        (alone, [np.mean([each.alone for each in fold.runs]) for fold in record.folds]),
        (together, [fold.score for fold in record.folds]),
    ):
        assert row["folds"] == pytest.approx([100 * float(score) for score in scores], abs=0.01)
        assert row["mean"] == pytest.approx(100 * float(np.mean(scores)), abs=0.01)
    assert record.parameters is not None
    assert together["parameters"] == record.parameters
    assert alone["parameters"] == record.parameters // 2  # each of the two restarts by itself


def test_rows_of_one_name_in_different_tables_share_their_trainings_only_with_equal_settings() -> None:
    """Cells of all tables are kept in one folder."""
    kept: dict[str, Contestant] = {}
    for table in TABLES.values():
        for row in table.contestants:
            first = kept.setdefault(run._file_name(row.kept_as or row.name), row)
            asked = (row.model, row.train, row.together, row.rival)
            assert (first.model, first.train, first.together, first.rival) == asked
    assert [row.alone for row in OURS] == [False, True, False]
    assert OURS_TIED.model == replace(OURS[1].model, tie=True)


# ── time ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_done_in_time_leaves_nothing_behind(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGALRM)
    for minutes in (None, 1.0):
        with time_limit(minutes, tmp_path / "cell.json"):
            pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == before
    assert names_in(tmp_path) == []


def test_what_takes_too_long_is_stopped_and_not_tried_again_for_the_same_time(tmp_path: Path) -> None:
    out, before = tmp_path / "cell.json", signal.getsignal(signal.SIGALRM)
    tried: list[float | None] = []
    with pytest.raises(TooLongError, match=r"not done after 0\.001 minutes"), time_limit(0.001, out):
        time.sleep(30)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == before
    assert json.loads((tmp_path / "cell.json.late").read_text(encoding="utf-8")) == {"minutes": 0.001}
    for minutes in (0.001, 0.0005):
        with pytest.raises(TooLongError, match=r"not done after 0\.001 minutes"), time_limit(minutes, out):
            tried.append(minutes)
    for longer in (1.0, None):
        with time_limit(longer, out):
            tried.append(longer)
    assert tried == [1.0, None]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"minutes": null}', '{"minutes": "x"}', "[" * 100_000])
def test_neither_a_damaged_note_of_what_was_tried_nor_one_beside_a_finished_cell_is_a_reason_to_stop(
    text: str, tmp_path: Path
) -> None:
    damaged, finished, done = tmp_path / "cell.json", tmp_path / "finished.json", []
    (tmp_path / "cell.json.late").write_text(text)
    finished.write_text("{}")
    (tmp_path / "finished.json.late").write_text('{"minutes": 9}')
    for each in (damaged, finished):
        with time_limit(1, each):
            done.append(each)
    assert done == [damaged, finished]


def test_another_error_is_passed_on_and_ends_the_limit(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="of another kind"), time_limit(1, tmp_path / "cell.json"):
        raise DataError("of another kind")
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert names_in(tmp_path) == []


def test_a_cell_out_of_time_says_so_and_the_others_are_there_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(TABLE, contestants=(Contestant(name="Counts", rival="label-counts"), TABLE.contestants[1]))

    def slow(graphs: Any, model: Any, *words: Any, **settings: Any) -> Any:
        if isinstance(model, ModelConfig):
            time.sleep(30)
        return cross_validate(graphs, model, *words, **settings)

    monkeypatch.setattr(run, "cross_validate", slow)
    counts, ours = write(tmp_path, replace(QUICK, minutes=0.05), monkeypatch, table)
    assert counts["mean"] is not None
    assert (ours["mean"], ours["reason"]) == (None, "not done after 0.05 minutes")
    text = (tmp_path / "results" / "small.md").read_text(encoding="utf-8")
    assert "- Together on compounds:alcohols:sizes=2-9: not done after 0.05 minutes" in text
    monkeypatch.setattr(run, "cross_validate", cross_validate)
    kept = write(tmp_path, replace(QUICK, kept_only=True), monkeypatch, table)
    assert kept[1]["reason"] == "not done after 0.05 minutes"
    assert write(tmp_path, QUICK, monkeypatch, table)[1]["mean"] is not None


def test_a_table_of_kept_cells_runs_nothing_and_says_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = write(tmp_path, replace(QUICK, kept_only=True), monkeypatch)
    assert [row["reason"] for row in rows] == ["not run yet", "not run yet"]
    first = write(tmp_path, QUICK, monkeypatch)
    assert write(tmp_path, replace(QUICK, kept_only=True), monkeypatch) == first
