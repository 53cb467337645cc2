"""Cross-validations that are killed or stopped, and what the same call makes of what they leave."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.arrays import Ints
from egocnn.data.graphs import Graphs
from egocnn.errors import RunError
from egocnn.study.crossval import CrossValidation, cross_validate, read_record
from lab.rivals.rival import Rival
from tests.support.commands import Run, check_refused, kill_once
from tests.support.tiny import ALCOHOLS, FLAGS, SIZES, alcohols, names_in

MODEL = ModelConfig(**SIZES)
TRAIN = TrainConfig(epochs=2, device="cpu")


@dataclass(slots=True)
class Most:
    """Says the class that most training graphs have; stops, as Ctrl-C would, once so many have been fitted."""

    fitted: list[int]
    stop_after: int | None = None
    parameters: int | None = None
    answer: int = 0

    def fit(self, graphs: Graphs, validation: Graphs) -> Self:
        if self.stop_after is not None and len(self.fitted) == self.stop_after:
            raise KeyboardInterrupt
        assert graphs.target is not None
        self.fitted.append(len(validation))
        self.answer = int(np.bincount(graphs.target).argmax())
        return self

    def predict(self, graphs: Graphs) -> Ints:
        return np.full(len(graphs), self.answer)


def most(fitted: list[int], stop_after: int | None = None) -> Rival:
    return Rival(
        name="most", source="a test", library="none", departures="none", build=lambda _: Most(fitted, stop_after)
    )


def scores(record: CrossValidation) -> list[Any]:
    return [(fold.fold, fold.runs) for fold in record.folds]


def test_finished_folds_are_kept_and_used_again(tmp_path: Path) -> None:
    graphs, out = alcohols(), tmp_path / "record.json"
    fitted: list[int] = []
    with pytest.raises(
        KeyboardInterrupt, match=r"stopped; 3 of 5 folds are kept in .*record.json.partial, and the same"
    ):
        cross_validate(graphs, most(fitted, stop_after=3), TRAIN, folds=5, out=out)
    assert names_in(tmp_path) == ["record.json.partial"]
    record = cross_validate(graphs, most(fitted), TRAIN, folds=5, out=out)
    assert len(fitted) == 5
    assert names_in(tmp_path) == ["record.json"]
    assert scores(record) == scores(cross_validate(graphs, most([]), TRAIN, folds=5))
    assert cross_validate(graphs, most(fitted), TRAIN, folds=5, out=out) == record == read_record(out)
    assert len(fitted) == 5


def test_folds_of_other_settings_or_data_are_refused_unless_given_up(tmp_path: Path) -> None:
    graphs, out = alcohols(), tmp_path / "record.json"
    assert graphs.target is not None
    other = graphs.replace(names=tuple(f"other {name}" for name in graphs.names))
    changes: list[tuple[Graphs, TrainConfig, dict[str, Any], str]] = [
        (graphs, replace(TRAIN, seed=7), {"folds": 5}, "seed 0, now it is 7"),
        (graphs, TRAIN, {"folds": 4}, "folds 5, now it is 4"),
        (graphs, TRAIN, {"folds": 5, "restarts": 2}, "restarts 1, now it is 2"),
        (other, TRAIN, {"folds": 5}, "other data or folds"),
    ]
    for stop_after in (2, None):  # what is half done, then what is done
        if stop_after:
            with pytest.raises(KeyboardInterrupt):
                cross_validate(graphs, most([], stop_after), TRAIN, folds=5, out=out)
        else:
            cross_validate(graphs, most([]), TRAIN, folds=5, out=out)
        before = {name: (tmp_path / name).read_bytes() for name in names_in(tmp_path)}
        for changed, train, counts, reason in changes:
            with pytest.raises(RunError, match=f"was made with {reason}; --overwrite replaces it"):
                cross_validate(changed, most([]), train, out=out, **counts)
        with pytest.raises(RunError, match="was made with model most, now it is ego-cnn"):
            cross_validate(graphs, MODEL, TRAIN, folds=5, out=out)
        assert {name: (tmp_path / name).read_bytes() for name in names_in(tmp_path)} == before
    fitted: list[int] = []
    record = cross_validate(graphs, most(fitted), replace(TRAIN, seed=7), folds=4, out=out, overwrite=True)
    assert (record.seed, len(fitted)) == (7, 4)
    assert names_in(tmp_path) == ["record.json"]


def test_where_it_is_computed_does_not_count(tmp_path: Path) -> None:
    graphs, out = alcohols(), tmp_path / "record.json"
    record = cross_validate(graphs, MODEL, TRAIN, folds=2, out=out)
    again = cross_validate(graphs, MODEL, replace(TRAIN, device="auto"), folds=2, out=out, jobs=2, stack=False)
    assert again == record


def test_records_from_before_a_setting_was_added_still_count(tmp_path: Path) -> None:
    graphs, out = alcohols(), tmp_path / "record.json"
    record = cross_validate(graphs, MODEL, TRAIN, folds=2, out=out)
    plain = json.loads(out.read_text())
    assert plain["settings"]["train"].pop("judgements") == 1
    assert plain["settings"]["model"].pop("pool_norm") is False
    assert plain["settings"]["model"].pop("count_inputs") is False
    out.write_text(json.dumps(plain))
    assert cross_validate(graphs, MODEL, TRAIN, folds=2, out=out).fingerprint == record.fingerprint
    with pytest.raises(RunError, match="was made with judgements none, now it is 2"):
        cross_validate(graphs, MODEL, replace(TRAIN, judgements=2), folds=2, out=out)


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
            cross_validate(alcohols(), most([]), TRAIN, folds=2, out=out)
        assert (tmp_path / name).read_text() == text
        (tmp_path / name).unlink()
    with pytest.raises(KeyboardInterrupt):
        cross_validate(alcohols(), most([], 1), TRAIN, folds=2, out=out)
    partial = tmp_path / "record.json.partial"
    partial.write_text(json.dumps({**json.loads(partial.read_text()), "folds": [{"fold": 1}]}))
    with pytest.raises(RunError, match="is damaged; --overwrite starts anew"):
        cross_validate(alcohols(), most([]), TRAIN, folds=2, out=out)


def test_a_device_in_place_of_a_file_keeps_nothing_beside_it() -> None:
    cross_validate(alcohols(), most([]), TRAIN, folds=2, out=Path(os.devnull))
    assert not Path(f"{os.devnull}.partial").exists()


def test_a_process_that_is_killed_goes_on_where_it_stopped(tmp_path: Path, run: Run) -> None:
    out, partial = tmp_path / "record.json", tmp_path / "record.json.partial"
    words = ["crossval", ALCOHOLS, *FLAGS, "--epochs", "12", "--folds", "3", "--device", "cpu", "--quiet"]
    kill_once(partial.exists, *words, "-o", out)
    assert not out.exists()
    kept = json.loads(partial.read_text())["folds"]  # never half-written
    assert 1 <= len(kept) < 3
    (tmp_path / ".record.json.partial.x1.tmp").touch()  # what a kill in the middle of writing would leave
    check_refused(run, "was made with epochs 12, now it is 13", *words, "--epochs", 13, "-o", out)
    assert run(*words, "-o", out)[0] == 0
    assert names_in(tmp_path) == ["record.json"]
    record = read_record(out)
    assert record is not None
    again = json.loads(out.read_text())["folds"][: len(kept)]
    assert again == kept  # seconds included: these were not computed anew
    assert run(*words, "-o", tmp_path / "unbroken.json")[0] == 0
    unbroken = read_record(tmp_path / "unbroken.json")
    assert unbroken is not None
    assert scores(record) == scores(unbroken)
