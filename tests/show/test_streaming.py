"""Graphs and rows of tables -> files of predictions."""

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.data.rows import RowPortion
from egocnn.errors import ConfigError, MissingExtraError
from egocnn.model import Model
from egocnn.show.streaming import Echo
from egocnn.show.tables import check_format, table_writer
from egocnn.train.predictions import prediction_kinds, prediction_rows
from egocnn.train.recipe import learn
from tests.support.tiny import MODEL, TRAIN, alcohols, names_in, oxygens

SHORT = replace(TRAIN, epochs=1)


@pytest.fixture(scope="module")
def classifier() -> Model:
    return learn(alcohols(), MODEL, SHORT)[0]


def write(rows: Sequence[dict[str, Any]], path: Path, **kinds: Any) -> None:
    with table_writer(path, kinds) as add:
        add(rows[:1])
        add(rows[1:])


def read_back(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_every_graph_has_the_probability_of_every_class_in_order(classifier: Model) -> None:
    rows = list(prediction_rows(classifier, alcohols()))
    probability = classifier.probabilities(alcohols())
    assert [row["predicted"] for row in rows] == [classifier.class_names[i] for i in probability.argmax(axis=1)]
    assert [row["probability"] for row in rows] == probability.max(axis=1).tolist()
    assert [[row["p_alkane"], row["p_alcohol"]] for row in rows] == probability.tolist()
    assert [row["true"] for row in rows] == [graph.target for graph in alcohols()]
    columns = ["predicted", "probability", "p_alkane", "p_alcohol", "true"]
    assert list(rows[0]) == list(prediction_kinds(classifier)) == columns


@pytest.mark.parametrize("graphs", [alcohols(), oxygens()], ids=["classes", "values"])
def test_several_networks_have_a_column_for_their_spread_and_one_has_none(graphs: Graphs) -> None:
    several, _ = learn(graphs, MODEL, replace(SHORT, networks=2))
    rows, spread = list(prediction_rows(several, graphs[:4])), several.spread(graphs[:4])
    assert spread is not None
    assert [row["spread"] for row in rows] == spread.tolist()
    assert list(rows[0]) == list(prediction_kinds(several))
    alone = replace(several, networks=several.networks[:1])
    assert "spread" not in next(prediction_rows(alone, graphs[:4]))
    if not graphs.is_classification:
        assert [row["predicted"] for row in rows] == several.values(graphs[:4]).tolist()
        assert list(rows[0]) == ["predicted", "spread", "true"]


def test_a_csv_has_six_digits_of_what_is_computed_and_all_of_what_came_in_and_other_formats_have_every_digit(
    tmp_path: Path,
) -> None:
    kinds = {"price": "string", "mass": "float64", "predicted": "double", "spread": "double", "logP true": "double"}
    row = {"price": 1234.56789, "mass": 180.0633881, "predicted": -3.3774879874606256, "spread": 4.3211e-07}
    row |= {"logP true": 1412537544.6}
    write([row, row | {"predicted": 12345678.9, "spread": None}], tmp_path / "p.csv", **kinds)
    assert read_back(tmp_path / "p.csv")[1:] == [
        ["1234.56789", "180.0633881", "-3.37749", "4.3211e-07", "1412537544.6"],
        ["1234.56789", "180.0633881", "12345700.0", "", "1412537544.6"],
    ]
    write([row], tmp_path / "p.jsonl", **kinds)
    assert json.loads((tmp_path / "p.jsonl").read_text()) == row


def test_what_is_not_known_is_none_and_a_class_that_the_model_does_not_know_is_still_named(classifier: Model) -> None:
    some = alcohols()[:2].replace(target=np.array([-1, 1]), class_names=("x", "ether"))
    assert [row["true"] for row in prediction_rows(classifier, some)] == [None, "ether"]
    bare = alcohols()[:2].replace(target=None, class_names=())
    assert [row["true"] for row in prediction_rows(classifier, bare)] == [None, None]


def test_columns_that_came_in_under_our_names_are_renamed_and_broken_rows_keep_their_place() -> None:
    portion = RowPortion([{"error": "a", "input_error": "b"}, {"error": "c"}], ["1", "2"], ["", "broken"], None)
    echo = Echo.of({"error": "string", "input_error": "string"}, {"predicted": "double"})
    assert list(echo.kinds) == ["name", "input_input_error", "input_error", "predicted", "error"]
    first, second = echo.rows(portion, [{"predicted": 1.5}])
    assert first == {"name": "1", "input_input_error": "a", "input_error": "b", "predicted": 1.5}
    assert (second["name"], second["error"], second["input_input_error"]) == ("2", "broken", "c")


KINDS = {"name": "string", "p": "double", "atoms": "list<int>", "error": "string"}
ROWS: list[dict[str, Any]] = [{"name": "=x", "p": 0.5, "atoms": [1, 2]}, {"name": "b", "p": None}]


def test_the_ending_of_the_file_is_its_format(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for ending in ("csv", "jsonl", "parquet"):
        write(ROWS, tmp_path / f"p.{ending}", **KINDS)
    assert (tmp_path / "p.csv").read_text() == 'name,p,atoms,error\n\'=x,0.5,"[1, 2]",\nb,,,\n'
    whole = [{**dict.fromkeys(KINDS), **row} for row in ROWS]
    assert list(map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())) == whole
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table.to_pylist() == whole
    assert str(table.schema.field("error").type) == "string"
    assert names_in(tmp_path) == ["p.csv", "p.jsonl", "p.parquet"]


def test_other_endings_are_refused_and_so_is_parquet_without_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"p\.xlsx: the file to write must end in \.csv, \.jsonl or \.parquet"):
        check_format(tmp_path / "p.xlsx")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r'pip install "egocnn\[parquet\]"'):
        check_format(tmp_path / "p.parquet")


ODD = ["a,b", 'say "so"', "two\nlines", "2\r\nlines", "a\rb", "", " padded ", "é☠", "'", "\0", "-5.5", "+1e3"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TEXT, max_size=4))
@example(ODD)
@example(["=1+1", "+x", "-x", "@x", "\t", "\r"])
def test_any_texts_survive_and_none_is_a_formula(tmp_path: Path, texts: list[str]) -> None:
    write([{"name": text, "other": ""} for text in texts], tmp_path / "p.csv", name="string", other="string")
    back = [line[0] for line in read_back(tmp_path / "p.csv")[1:]]
    assert [text.removeprefix("'") if given != text else text for text, given in zip(back, texts, strict=True)] == texts
    assert not any(text.startswith(FORMULAS) and text not in ("-5.5", "+1e3") and not is_number(text) for text in back)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


WRITTEN = "name\na\n"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """As -o /dev/stdout or -o /dev/null would be: never replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_format(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write([{"name": "a"}], pipe, name="string")
        assert os.read(reader, 1000).decode() == WRITTEN
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert names_in(tmp_path) == ["pipe"]


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_stays_a_link_and_what_it_points_to_is_replaced(dangling: bool, tmp_path: Path) -> None:
    target, link = tmp_path / "far" / "target.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    link.symlink_to(target)
    if not dangling:
        target.write_text("old")
    write([{"name": "a"}], link, name="string")
    assert link.is_symlink()
    assert target.read_text() == WRITTEN
    assert names_in(tmp_path) == ["far", "link.csv"]
    assert names_in(target.parent) == ["target.csv"]
