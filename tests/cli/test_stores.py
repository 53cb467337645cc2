"""prepare, info, train, predict and explain on a store: as on the data it was made from, in little memory."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from egocnn.data.read import read
from egocnn.data.store import Store, write_store
from egocnn.explain.structure import read_structures
from egocnn.model import Model
from egocnn.show.streaming import prediction_rows
from egocnn.train.recipe import learn
from tests.cli.limited import check_limited, wide
from tests.support.commands import Run, answer, check_refused, printed, rows
from tests.support.samples import assert_equal, sure
from tests.support.strategies import random_trees
from tests.support.tiny import ALCOHOLS, MODEL, TRAIN, alcohols, names_in


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and a model trained on the same graphs."""
    folder = tmp_path_factory.mktemp("store")
    write_store([alcohols()], folder / "store")
    learn(alcohols(), MODEL, replace(TRAIN, epochs=1))[0].save(folder / "run")
    return folder


@pytest.fixture
def in_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("egocnn.data.store.read.PORTION_BYTES", 5000)


def test_prepare_writes_what_the_source_holds(tmp_path: Path, run: Run) -> None:
    told = answer(run, "prepare", ALCOHOLS, "-o", tmp_path / "store")
    assert (told["graphs"], told["nodes"]) == (len(alcohols()), alcohols().n_nodes)
    assert told["bytes"] == sum(file.stat().st_size for file in (tmp_path / "store").glob("*.bin"))
    assert_equal(read(tmp_path / "store"), alcohols())
    assert Store.open(tmp_path / "store").manifest.source == ALCOHOLS
    check_refused(run, "holds a store already; --overwrite", "prepare", ALCOHOLS, "-o", tmp_path / "store")
    printed(run, "prepare", tmp_path / "store", "-o", tmp_path / "store", "--overwrite", "--split", "x=test")
    assert_equal(read(tmp_path / "store"), alcohols().select("test"))


@pytest.mark.usefixtures("in_small_portions")
def test_info_and_predict_say_of_a_store_what_they_say_of_its_source(folder: Path, tmp_path: Path, run: Run) -> None:
    assert len(list(Store.open(folder / "store").portions())) > 3
    assert run("info", folder / "store", "--json") == run("info", ALCOHOLS, "--json")
    answers = []
    for data in (folder / "store", ALCOHOLS):
        told = answer(run, "predict", folder / "run", data, "-o", tmp_path / "it.csv")
        answers.append((told, rows(tmp_path / "it.csv")))
    (found, streamed), (expected, whole) = answers
    scores = {"accuracy", "log_loss", "roc_auc", "mcc", "recall"}
    assert found.keys() == expected.keys() >= {"graphs", "failed", "file", *scores}
    assert (found["graphs"], found["accuracy"]) == (expected["graphs"], expected["accuracy"])
    assert found["log_loss"] == pytest.approx(expected["log_loss"], rel=1e-5)
    assert [row["name"] for row in streamed] == [row["name"] for row in whole]
    for one, other in zip(streamed, whole, strict=True):
        assert (one["predicted"], one["true"]) == (other["predicted"], other["true"])
        assert float(one["probability"]) == pytest.approx(float(other["probability"]), rel=1e-5)


@pytest.mark.usefixtures("in_small_portions")
def test_explanations_of_a_store_are_those_of_its_source(folder: Path, tmp_path: Path, run: Run) -> None:
    alcohols().select("test").save(tmp_path / "test.safetensors")
    for report, *data in (("one", folder / "store", "--split", "x=test"), ("other", tmp_path / "test.safetensors")):
        words = ("-o", tmp_path / report, "--limit", 8, "--figures", 1, "--quiet")
        assert answer(run, "explain", folder / "run", *data, *words)["graphs"] == 8
    one, other = (list(read_structures(tmp_path / name / "structures.jsonl")) for name in ("one", "other"))
    assert len(one) == 8
    for ours, theirs in zip(one, other, strict=True):
        assert (ours.name, ours.predicted) == (theirs.name, theirs.predicted)
        np.testing.assert_allclose(ours.node_importance, theirs.node_importance, atol=1e-5)
        np.testing.assert_array_equal(ours.critical_nodes, theirs.critical_nodes)
    assert names_in(tmp_path / "one") == ["figures", "index.html", "structures.jsonl"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits are counted from what /proc tells")
def test_a_store_larger_than_the_address_space_left_is_described_predicted_and_explained(tmp_path: Path) -> None:
    store, model = tmp_path / "store", tmp_path / "run"
    learn(wide(0), MODEL, replace(TRAIN, epochs=1))[0].save(model)

    def commands(name: str, *limit: str) -> list[list[str]]:
        quiet = ["--quiet", "--figures", "0", "--show", "0"]
        return [
            ["info", str(store), *limit],
            ["predict", str(model), str(store), "-o", str(tmp_path / f"{name}.csv"), *limit],
            ["explain", str(model), str(store), "-o", str(tmp_path / name), *(limit or ["--limit", "20"]), *quiet],
        ]

    check_limited(tmp_path, 30, commands("before", "--limit", "2"), commands("it"))
    streamed = rows(tmp_path / "it.csv")
    assert len(streamed) == 800
    whole = list(prediction_rows(Model.load(model), wide(7)))
    for one, other in zip(streamed[-100:], whole, strict=True):
        assert one["predicted"] == other["predicted"]
        assert float(one["probability"]) == pytest.approx(other["probability"], rel=1e-5)
    assert len(list(read_structures(tmp_path / "it" / "structures.jsonl"))) == 20


AGAIN_AND_AGAIN = """
import os, sys
import egocnn.show.streaming
from egocnn.cli import main
for _ in sys.stdin:
    if writer := os.fork():  # so that all is imported once
        os.waitpid(writer, 0)
        print("dead", flush=True)
    while not writer:
        print(os.getpid(), flush=True)
        main(sys.argv[1:])
"""


def test_a_prepare_killed_at_any_moment_leaves_the_old_store_or_the_new_one(tmp_path: Path) -> None:
    source, store = tmp_path / "graphs.safetensors", tmp_path / "stores" / "it"
    old, new = alcohols(), random_trees(200, nodes=20, seed=1)
    new.save(source)
    write_store([old], store)
    moments, met = random.Random(0), set()
    words, pipe, writer = ["prepare", source, "-o", store, "--overwrite", "--quiet"], subprocess.PIPE, 0
    command = [sys.executable, "-c", AGAIN_AND_AGAIN, *map(str, words)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as starter:
        writers = (int(line) for line in sure(starter.stdout) if line.strip().isdigit())
        for number in range(6):
            print(file=sure(starter.stdin), flush=True)
            writer = next(each for each in writers if each != writer)
            if number % 2:  # every other time once a store has been written
                next(writers)
            time.sleep(moments.uniform(0, 0.1))
            os.kill(writer, signal.SIGKILL)
            assert "dead\n" in sure(starter.stdout)  # reads on until it is
            graphs = read(store)
            met.add(len(graphs))
            assert_equal(graphs, old if len(graphs) == len(old) else new)
    assert len(new) in met
    write_store([old], store, overwrite=True)
    assert names_in(store.parent) == ["it"]
