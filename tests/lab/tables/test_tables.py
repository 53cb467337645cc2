"""Experiments and tables by name: protocol, restarts together or alone, what is written, and how long it may take."""

import json
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from egocnn.config import ModelConfig
from egocnn.errors import ConfigError, DataError
from egocnn.study.crossval import Protocol, cross_validate, read_record
from lab.rivals.names import find_rival
from lab.tables import cells as run
from lab.tables import experiments as module
from lab.tables import published
from lab.tables.cells import LARGE, LARGEST, WITHOUT_SPLITS, TableOptions, _protocol, write_table
from lab.tables.experiments import EXPERIMENTS, Experiment, TrainedSetting, run_experiment
from lab.tables.limit import TooLongError, time_limit
from lab.tables.scores import OURS, OURS_TIED, TABLES, TOGETHER, Contestant, ScoreTable
from lab.tables.words import markdown
from lab.truths.tasks import TASKS
from tests.support.commands import rows
from tests.support.tiny import names_in, plain_model, plain_train

DATA = "compounds:alcohols:sizes=2-9"
QUICK = TableOptions(quick=True, device="cpu")
COUNTS = Contestant(name="Counts", rival="label-counts", printed_as="Counts")
SMALL: dict[str, Any] = {"model": plain_model(width=8, depth=1), "train": plain_train(epochs=2)}
SHARED: dict[str, Any] = {"kept_as": "shared", "together": 4, **SMALL}
"""the same trainings in two lights"""
TABLE = ScoreTable(
    title="A small table",
    data=(DATA,),
    contestants=(
        COUNTS,
        Contestant(name="Alone", alone=True, **SHARED),
        Contestant(name="Together", **SHARED),
        Contestant(name="Nobody", rival="no-such-rival"),
    ),
    figures={"Counts": {DATA: 12.3}},
    parameters={"Counts": 1e6},
)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Writes the table with these options; its rows."""
    monkeypatch.setitem(TABLES, "small", TABLE)

    def write(**how: Any) -> list[dict[str, Any]]:
        options, said = replace(QUICK, **how), list[str]()
        folder, kept = tmp_path / "results", tmp_path / "kept"
        rows: list[dict[str, Any]] = write_table("small", options, folder=folder, kept=kept, say=said.append)["rows"]
        assert how or any("no score" in line for line in said)  # of nobody
        return rows

    return write


Write = Callable[..., list[dict[str, Any]]]


def test_a_table_holds_our_score_beside_the_printed_one_and_says_what_could_not_run(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [row["reason"] for row in write(kept_only=True)[:3]] == ["not run yet"] * 3
    counts, alone, together, nobody = found = write()
    assert json.loads((tmp_path / "results" / "small.json").read_text(encoding="utf-8"))["rows"] == found
    assert (counts["published"], counts["published_parameters"], together["published"]) == (12.3, 1e6, None)
    assert 0 <= counts["mean"] <= 100
    assert (nobody["mean"], "no-such-rival" in nobody["reason"]) == (None, True)
    text = (tmp_path / "results" / "small.md").read_text(encoding="utf-8")
    assert "[12.3]" in text
    assert "- Nobody on compounds" in text
    written = rows(tmp_path / "results" / "small.csv")
    assert [row["model"] for row in written] == ["Counts", "Alone", "Together", "Nobody"]
    (file,) = (name for name in names_in(tmp_path / "kept") if "shared" in name)  # restarts are trained once
    record = read_record(tmp_path / "kept" / file)
    assert record is not None
    for row, scores in (
        (alone, [np.mean([each.alone for each in fold.runs]) for fold in record.folds]),
        (together, [fold.score for fold in record.folds]),
    ):
        assert row["folds"] == pytest.approx([100 * float(score) for score in scores], abs=0.01)
        assert row["mean"] == pytest.approx(100 * float(np.mean(scores)), abs=0.01)
    assert (len(together["folds"]), together["parameters"]) == (3, record.parameters)
    assert alone["parameters"] == (record.parameters or 0) // 2  # each of the two restarts by itself

    def refuse(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("egocnn.study.crossval.training._finish_folds", refuse)
    assert write(models=("Counts", "Alone", "Together")) == write(kept_only=True)[:3] == found[:3]
    for wrong, name in (({"data": ("MUTAGG",)}, "MUTAGG"), ({"models": ("Ego",)}, "Ego")):
        with pytest.raises(ConfigError, match=f"has no .* '{name}'"):
            write(**wrong)


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
    for data, figure in table.figures.get("Ego-CNN", {}).items():  # the paper prints some of them twice
        assert published.TABLE_SUPPLEMENT["Ego-CNN"].get(data, figure) == figure


def test_a_quick_run_looks_at_few_graphs_chosen_by_the_seed() -> None:
    one, other, again = (run._read("compounds:alcohols", replace(QUICK, seed=seed)) for seed in (0, 1, 0))
    assert len(one) == run.QUICK_GRAPHS
    assert one.names == again.names != other.names


def test_the_markdown_has_a_line_for_every_system_and_marks_what_differs_from_ours() -> None:
    def row(model: str, mean: float | None, **more: Any) -> dict[str, Any]:
        return {"model": model, "data": "D", "mean": mean, "std": 1.0, "published": None, "protocol": "paper", **more}

    rows = [
        row("A", 50.0, ours_minus={"difference": 9.0, "p": 0.01}),
        row("B", 58.0, ours_minus={"difference": 1.0, "p": 0.4}),
        row("C", None, reason="too large"),
    ]
    about = dict.fromkeys(("title", "command", "date", "machine"), "x")
    text = markdown({"rows": rows, "compared_with": "ours", "versions": {"torch": "t"}, **about})
    for part in ("| A | 50.0 ± 1.0¹ |", "| B | 58.0 ± 1.0 |", "| C | – |", "- C on D: too large", "D: ten stratified"):
        assert part in text
    assert "differs from ours with p < 0.05" in text


@pytest.mark.parametrize("data", [*WITHOUT_SPLITS, *published.MOLECULES[2:], *published.NETWORKS])
@pytest.mark.usefixtures("data_folder")
def test_sets_follow_the_fair_protocol_where_splits_are_published_and_the_papers_where_not(data: str) -> None:
    """(name, folds, runs, restarts, how they are combined) of a single model, of an average and of a rival."""
    contestants = (Contestant(name="plain"), Contestant(name="averaged", together=TOGETHER), COUNTS)
    paper, fair = (
        [_protocol(each, data, TableOptions(protocol=asked)) for each in contestants] for asked in ("paper", "fair")
    )
    runs, together = (1 if data in LARGE else 3), (3 if data == LARGEST else TOGETHER)
    by_paper = [("paper", 10, 1, 5, "best"), ("paper", 10, 1, TOGETHER, "average"), ("paper", 10, 1, 5, "best")]
    by_splits = [("fair", 10, runs, 1, "best"), ("fair", 10, runs, together, "average"), ("fair", 10, runs, 1, "best")]
    assert [(p.name, p.folds, p.runs, p.restarts, p.combine) for p in paper][::2] == by_paper[::2]
    expected = by_paper if data in WITHOUT_SPLITS else by_splits
    assert [(p.name, p.folds, p.runs, p.restarts, p.combine) for p in fair] == expected
    quick = [_protocol(each, data, QUICK) for each in contestants[:2]]
    assert quick == [Protocol(folds=3), Protocol(folds=3, restarts=2, combine="average")]


@pytest.mark.parametrize("data", [*published.MOLECULES[2:], *published.NETWORKS])
def test_the_splits_that_the_fair_protocol_takes_are_there(data: str, data_folder: Path) -> None:
    assert data_folder.joinpath("splits", f"{data}.json").is_file()


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


def test_what_takes_too_long_is_stopped_and_not_tried_again_for_the_same_time(tmp_path: Path) -> None:
    out, before = tmp_path / "cell.json", signal.getsignal(signal.SIGALRM)
    tried: list[float | None] = []
    for minutes in (None, 1.0):
        with pytest.raises(DataError, match="of another kind"), time_limit(minutes, out):
            raise DataError("of another kind")
    assert names_in(tmp_path) == []
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


def test_a_cell_out_of_time_says_so_and_the_others_are_there_all_the_same(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(graphs: Any, model: Any, *words: Any, **settings: Any) -> Any:
        if isinstance(model, ModelConfig):
            time.sleep(30)
        return cross_validate(graphs, model, *words, **settings)

    models = ("Counts", "Together")
    monkeypatch.setattr(run, "cross_validate", slow)
    counts, ours = write(minutes=0.05, models=models)
    assert counts["mean"] is not None
    assert (ours["mean"], ours["reason"]) == (None, "not done after 0.05 minutes")
    text = (tmp_path / "results" / "small.md").read_text(encoding="utf-8")
    assert "- Together on compounds:alcohols:sizes=2-9: not done after 0.05 minutes" in text
    monkeypatch.setattr(run, "cross_validate", cross_validate)
    assert write(kept_only=True, models=models)[1]["reason"] == "not done after 0.05 minutes"
    assert write(models=models)[1]["mean"] is not None


FEW = "compounds:alcohols:sizes=3-8,per_size=4"


def test_an_experiment_writes_the_same_rows_as_json_csv_and_markdown_in_one_process_or_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, said = plain_train(epochs=2), list[str]()
    settings = [
        TrainedSetting(
            data=FEW, model=f"depth {depth}", goal=0.5, network=plain_model(depth=depth, width=8), train=train
        )
        for depth in (1, 2)
    ]
    monkeypatch.setitem(EXPERIMENTS, "tiny", Experiment(title="Tiny", seeds=2, settings=settings, note="A note."))
    table = run_experiment("tiny", folder=tmp_path, jobs=2, say=said.append)
    assert len(said) == 4
    assert json.loads((tmp_path / "tiny.json").read_text()) == table
    assert {"command", "date", "machine", "versions"} <= table.keys()
    for row in table["rows"]:
        assert row["mean"] == pytest.approx(sum(row["seeds"]) / 2, abs=1e-5)
        assert row["min"] == min(row["seeds"])
    models = [row["model"] for row in table["rows"]]
    assert models == [row["model"] for row in rows(tmp_path / "tiny.csv")] == ["depth 1", "depth 2"]
    text = (tmp_path / "tiny.md").read_text()
    assert "A note." in text
    assert f"{table['rows'][1]['mean']:.4f}" in text
    alone = run_experiment("tiny", folder=tmp_path, seeds=1, say=said.append)
    assert [row["seeds"] for row in alone["rows"]] == [row["seeds"][:1] for row in table["rows"]]


def test_isomers_are_read_by_a_network_as_deep_as_their_longest_arm_and_missing_data_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (setting,) = EXPERIMENTS["isomers"].settings
    assert setting.network.depth >= max(int(name.split()[1][1:]) for name in module._load(setting).names)
    monkeypatch.delenv("EGOCNN_DATA", raising=False)
    with pytest.raises(DataError, match=r"explain/benzene\.csv.*EGOCNN_DATA"):
        module._load(EXPERIMENTS["molecules"].settings[0])
    with pytest.raises(DataError, match="EGOCNN_DATA"):
        TASKS["benzene"].load(0)
