from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.model import Model
from egocnn.show.streaming import Prediction, predictions, write_csv
from egocnn.train.recipe import learn
from tests.support.tiny import MODEL, TRAIN, alcohols, names_in, oxygens

SHORT = replace(TRAIN, epochs=1)


@pytest.fixture(scope="module")
def classifier() -> Model:
    return learn(alcohols(), MODEL, SHORT)[0]


def read_back(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_every_graph_has_its_likeliest_class_with_its_probability_in_order(classifier: Model) -> None:
    rows = list(predictions(classifier, alcohols()))
    probability = classifier.probabilities(alcohols())
    assert [row.name for row in rows] == list(alcohols().names)
    assert [row.predicted for row in rows] == [classifier.class_names[i] for i in probability.argmax(axis=1)]
    assert [row.probability for row in rows] == probability.max(axis=1).tolist()
    assert [row.true for row in rows] == [graph.target for graph in alcohols()]


def test_a_regressor_predicts_values_without_a_probability() -> None:
    regressor, _ = learn(oxygens(), MODEL, SHORT)
    rows = list(predictions(regressor, oxygens()[:5]))
    assert [row.predicted for row in rows] == regressor.values(oxygens()[:5]).tolist()
    assert {row.probability for row in rows} == {None}
    assert [row.true for row in rows] == [graph.target for graph in oxygens()[:5]]


@pytest.mark.parametrize("graphs", [alcohols(), oxygens()], ids=["classes", "values"])
def test_several_networks_have_a_column_for_their_spread_and_one_has_none(graphs: Graphs, tmp_path: Path) -> None:
    several, _ = learn(graphs, MODEL, replace(SHORT, networks=2))
    rows = list(predictions(several, graphs[:4]))
    spread = several.spread(graphs[:4])
    assert spread is not None
    assert [row.spread for row in rows] == spread.tolist()
    write_csv(rows, tmp_path / "two.csv")
    head, *lines = read_back(tmp_path / "two.csv")
    assert head == ["name", "predicted", "probability", "spread", "true"]
    assert [float(line[3]) for line in lines] == spread.tolist()
    write_csv(list(predictions(replace(several, networks=several.networks[:1]), graphs[:4])), tmp_path / "one.csv")
    assert read_back(tmp_path / "one.csv")[0] == ["name", "predicted", "probability", "true"]


def test_what_is_not_known_stays_empty(classifier: Model, tmp_path: Path) -> None:
    some = alcohols()[:2].replace(target=np.array([-1, 1]))
    write_csv(list(predictions(classifier, some)), tmp_path / "some.csv")
    assert [line[3] for line in read_back(tmp_path / "some.csv")] == ["true", "", "alcohol"]
    bare = alcohols()[:2].replace(target=None, class_names=())
    write_csv(list(predictions(classifier, bare)), tmp_path / "bare.csv")
    assert [line[3] for line in read_back(tmp_path / "bare.csv")] == ["true", "", ""]


def test_a_class_that_the_model_does_not_know_is_still_named_as_the_truth(classifier: Model) -> None:
    odd = alcohols()[:2].replace(target=np.array([0, 1]), class_names=("ether", "alcohol"))
    assert [row.true for row in predictions(classifier, odd)] == ["ether", "alcohol"]


def test_the_file_has_the_promised_columns_and_is_plain_where_names_are(tmp_path: Path) -> None:
    path = tmp_path / "new" / "predictions.csv"
    write_csv([Prediction("a", "alcohol", 0.75, None), Prediction("b", 1.5, None, 2.0)], path)
    assert path.read_text() == "name,predicted,probability,true\na,alcohol,0.75,\nb,1.5,,2.0\n"
    assert names_in(path.parent) == ["predictions.csv"]


ODD = ["=1+1", "a,b", 'say "so"', "two\nlines", "2\r\nlines", "a\rb", "\r", "", " padded ", "\t", "é☠", "'", "@x", "\0"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.builds(Prediction, TEXT, TEXT, st.floats(0, 1), TEXT), max_size=4))
@example([Prediction(name, name, 0.5, name) for name in ODD])
def test_any_names_and_numbers_survive(tmp_path: Path, rows: list[Prediction]) -> None:
    write_csv(rows, tmp_path / "p.csv")
    header, *lines = read_back(tmp_path / "p.csv")
    assert header == ["name", "predicted", "probability", "true"]
    back = [Prediction(name, predicted, float(probability), true) for name, predicted, probability, true in lines]
    assert back == rows


ROW = Prediction("a", "alcohol", 0.75, None)
WRITTEN = "name,predicted,probability,true\na,alcohol,0.75,\n"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """As -o /dev/stdout or -o /dev/null would be: never replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_csv([ROW], pipe)
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
    write_csv([ROW], link)
    assert link.is_symlink()
    assert target.read_text() == WRITTEN
    assert names_in(tmp_path) == ["far", "link.csv"]
    assert names_in(target.parent) == ["target.csv"]
