"""Cross-validations that are killed or stopped, and what the same call makes of what they leave."""

import json
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from egocnn.config import TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.errors import RunError
from egocnn.study.crossval import CrossValidation, cross_validate, read_record
from tests.study.majority import most
from tests.support.commands import Run, check_refused, kill_once, printed
from tests.support.tiny import ALCOHOLS, FLAGS, SIZES, alcohols, contents, names_in, plain_model, plain_train

MODEL = plain_model(**SIZES)
TRAIN = plain_train(epochs=2, device="cpu")


def scores(record: CrossValidation) -> list[Any]:
    return [(fold.fold, fold.runs) for fold in record.folds]


def test_finished_folds_are_kept_and_used_again(tmp_path: Path) -> None:
    graphs, out, tried = alcohols(), tmp_path / "out" / "record.json", tmp_path / "tried"
    kept = r"stopped; 3 of 5 folds are kept in .*record.json.partial, and the same"
    with pytest.raises(KeyboardInterrupt, match=kept):
        cross_validate(graphs, most(tried, "stopped at 4"), TRAIN, folds=5, out=out)
    assert names_in(out.parent) == ["record.json.partial"]
    record = cross_validate(graphs, most(tried), TRAIN, folds=5, out=out)
    assert names_in(out.parent) == ["record.json"]
    assert scores(record) == scores(cross_validate(graphs, most(tmp_path / "unbroken"), TRAIN, folds=5))
    assert cross_validate(graphs, most(tried), TRAIN, folds=5, out=out) == record == read_record(out)
    assert len(names_in(tried)) == 5 + 1  # each fold once, and the one that was stopped twice


def test_folds_of_other_settings_or_data_are_refused_unless_given_up(tmp_path: Path) -> None:
    graphs, out, tried = alcohols(), tmp_path / "out" / "record.json", tmp_path / "tried"
    other = graphs.replace(names=tuple(f"other {name}" for name in graphs.names))
    changes: list[tuple[Graphs, TrainConfig, dict[str, Any], str]] = [
        (graphs, replace(TRAIN, seed=7), {"folds": 5}, "seed 0, now it is 7"),
        (graphs, TRAIN, {"folds": 4}, "folds 5, now it is 4"),
        (graphs, TRAIN, {"folds": 5, "restarts": 2}, "restarts 1, now it is 2"),
        (other, TRAIN, {"folds": 5}, "other data or folds"),
    ]
    for fate in ("stopped at 3", ""):  # what is half done, then what is done
        with pytest.raises(KeyboardInterrupt) if fate else nullcontext():
            cross_validate(graphs, most(tried, fate), TRAIN, folds=5, out=out)
        before = contents(out.parent)
        for changed, train, counts, reason in changes:
            with pytest.raises(RunError, match=f"was made with {reason}; --overwrite replaces it"):
                cross_validate(changed, most(tried), train, out=out, **counts)
        with pytest.raises(RunError, match="was made with model most, now it is ego-cnn"):
            cross_validate(graphs, MODEL, TRAIN, folds=5, out=out)
        assert contents(out.parent) == before
    whole = out.read_bytes()
    for fate in ("stopped at 3", ""):  # the same call goes on, and the earlier record stays until there is a new one
        again = most(tmp_path / "again", fate)
        with pytest.raises(KeyboardInterrupt) if fate else nullcontext():
            cross_validate(graphs, again, replace(TRAIN, seed=7), folds=4, out=out, overwrite=True)
        assert (out.read_bytes() == whole) == bool(fate)
    record = read_record(out)
    assert record is not None
    assert (record.seed, len(names_in(tmp_path / "again"))) == (7, 4 + 1)
    assert names_in(out.parent) == ["record.json"]
    cross_validate(graphs, most(tmp_path / "once"), TRAIN, folds=4, out=out, overwrite=True)
    assert len(names_in(tmp_path / "once")) == 4  # of a whole record nothing is used again


def test_where_it_is_computed_does_not_count_and_a_device_keeps_nothing_beside_it(tmp_path: Path) -> None:
    graphs, out = alcohols(), tmp_path / "record.json"
    record = cross_validate(graphs, MODEL, TRAIN, folds=2, out=out)
    again = cross_validate(graphs, MODEL, replace(TRAIN, device="auto"), folds=2, out=out, jobs=2, stack=False)
    assert again == record
    cross_validate(alcohols(), most(tmp_path), TRAIN, folds=2, out=Path(os.devnull))
    assert not Path(f"{os.devnull}.partial").exists()


def test_records_of_another_version_are_refused(tmp_path: Path) -> None:
    graphs, out = alcohols(), tmp_path / "record.json"
    cross_validate(graphs, MODEL, TRAIN, folds=2, out=out)
    plain = json.loads(out.read_text())
    fewer = {name: value for name, value in plain.items() if name != "targets"}
    for changed in (fewer, plain | {"something": 1}):
        out.write_text(json.dumps(changed))
        with pytest.raises(RunError, match="was made by another version of egocnn; run it again; --overwrite replaces"):
            cross_validate(graphs, MODEL, TRAIN, folds=2, out=out)
    del plain["settings"]["train"]["monitor"]
    out.write_text(json.dumps(plain | {"fingerprint": "another"}))
    with pytest.raises(RunError, match="was made with monitor none, now it is auto"):
        cross_validate(graphs, MODEL, TRAIN, folds=2, out=out)


def test_stacks_of_a_few_folds_are_kept_as_they_finish(tmp_path: Path) -> None:
    graphs, kept = alcohols(), []
    out = tmp_path / "record.json"

    def log(text: str) -> None:
        if text.startswith("epoch 1/2: "):
            partial = out.with_name("record.json.partial")
            kept.append(len(json.loads(partial.read_text())["folds"]) if partial.exists() else 0)

    record = cross_validate(graphs, MODEL, TRAIN, folds=3, stack=True, jobs=2, out=out, log=log)
    assert kept == [0, 2]
    assert [fold.fold for fold in record.folds] == [1, 2, 3]


def test_files_that_are_none_of_ours_stay_as_they_are(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    for name, text, reason in (
        ("record.json", "my notes", "is not the record of a cross-validation"),
        ("record.json", '{"mean": 1}', "is not the record of a cross-validation"),
        ("record.json.partial", "[]", "is not what an interrupted cross-validation leaves"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(RunError, match=f"{reason}; --overwrite replaces it"):
            cross_validate(alcohols(), most(tmp_path / "tried"), TRAIN, folds=2, out=out)
        assert (tmp_path / name).read_text() == text
        (tmp_path / name).unlink()
    with pytest.raises(KeyboardInterrupt):
        cross_validate(alcohols(), most(tmp_path / "tried", "stopped at 2"), TRAIN, folds=2, out=out)
    partial = tmp_path / "record.json.partial"
    partial.write_text(json.dumps({**json.loads(partial.read_text()), "folds": [{"fold": 1}]}))
    with pytest.raises(RunError, match="is damaged; --overwrite starts anew"):
        cross_validate(alcohols(), most(tmp_path / "tried"), TRAIN, folds=2, out=out)


def test_a_process_that_is_killed_goes_on_where_it_stopped(tmp_path: Path, run: Run) -> None:
    out, partial = tmp_path / "record.json", tmp_path / "record.json.partial"
    unchanged = ["crossval", ALCOHOLS, *FLAGS, "--folds", "3", "--device", "cpu", "--quiet"]
    words = [*unchanged, "--epochs", "12"]
    kill_once(partial.exists, *words, "-o", out)
    assert not out.exists()
    kept = json.loads(partial.read_text())["folds"]  # never half-written
    assert 1 <= len(kept) < 3
    (tmp_path / ".record.json.partial.x1.tmp").touch()  # what a kill in the middle of writing would leave
    check_refused(run, "was made with epochs 12, now it is 13", *unchanged, "--epochs", 13, "-o", out)
    printed(run, *words, "-o", out)
    assert names_in(tmp_path) == ["record.json"]
    printed(run, *words, "-o", tmp_path / "unbroken.json")
    record, unbroken = (json.loads(path.read_text())["folds"] for path in (out, tmp_path / "unbroken.json"))
    assert record[: len(kept)] == kept  # seconds included: these were not computed anew
    assert [fold["runs"] for fold in record] == [fold["runs"] for fold in unbroken]
