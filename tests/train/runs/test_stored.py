"""Training on graphs that stay in their store: the same bits as from memory, in memory that does not grow with it."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from safetensors.torch import load_file

from egocnn.config import ModelConfig
from egocnn.data.collection import Collection
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.data.store import Store, Stored, write_store
from egocnn.errors import ConfigError, DataError
from egocnn.study.crossval import Protocol, cross_validate
from egocnn.study.crossval.folds import Combine, Split
from egocnn.study.sweep.grid import draw_settings, parse_axis
from egocnn.study.sweep.search import sweep
from egocnn.train.recipe import learn
from egocnn.train.run import train_run
from tests.cli.limited import check_limited
from tests.support.commands import SHORT, Run, answer, check_refused, rows
from tests.support.samples import sure
from tests.support.strategies import dressed, random_connected, random_trees
from tests.support.tiny import (
    ALCOHOLS,
    COMPLETE,
    FLAGS,
    SIZES,
    alcohols,
    both_targets,
    names_in,
    plain_model,
    plain_train,
    same,
    stop_after,
    write_table,
)

TRAIN = plain_train(epochs=2, learning_rate=1e-2, device="cpu", batch_size=8)


def valued() -> Graphs:
    """Attributes, edge weights and values to predict."""
    trees = dressed(random_trees(40, nodes=10, seed=1), attributes=3)
    return trees.replace(target=np.random.default_rng(0).normal(100, 20, 40))


def unlabelled() -> Graphs:
    graphs = random_connected(40, nodes=12, extra=6, seed=0)
    classes = np.arange(40) % 2
    unnamed: dict[str, Any] = {f"{of}_label": None for of in ("node", "edge")}
    unnamed |= {f"{of}_label_names": () for of in ("node", "edge")}
    return graphs.replace(**unnamed, target=classes, class_names=("a", "b"))


CASES: dict[str, tuple[Graphs, dict[str, Any]]] = {
    "molecules with a split of their own": (alcohols(), {}),
    "a split of ours, groups": (alcohols().replace(part=None), {"readout": "sort", "sort_nodes": 3}),
    "values, attributes and weights": (valued(), {"jump": True}),
    "degrees for labels": (unlabelled(), {"degrees": True, "tie": "auto"}),
}


@pytest.fixture(autouse=True)
def in_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("egocnn.data.store.read.PORTION_BYTES", 2000)
    monkeypatch.setattr("egocnn.train.recipe.WHOLE_BYTES", 0)


def stored(graphs: Graphs, folder: Path) -> Stored:
    write_store([graphs], folder)
    found = Stored.of(Store.open(folder))
    assert len(list(found.portions())) > 2
    return found


def assert_same_run(one: Path, other: Path) -> None:
    assert same(load_file(one / "model.safetensors"), load_file(other / "model.safetensors"))
    metrics = [json.loads((folder / "metrics.json").read_text()) | {"seconds": 0} for folder in (one, other)]
    assert metrics[0] == metrics[1]
    plain = [json.loads((folder / "config.json").read_text()) for folder in (one, other)]
    for name in ("model", "encoder", "temperature"):
        assert plain[0][name] == plain[1][name]


def test_several_targets_with_gaps_are_learned_from_a_store_as_from_memory_bit_for_bit(tmp_path: Path) -> None:
    model, graphs = plain_model(**SIZES), both_targets()
    on_disk = stored(graphs, tmp_path / "store")
    train_run(on_disk, tmp_path / "disk", model, TRAIN)
    train_run(read(tmp_path / "store"), tmp_path / "memory", model, TRAIN)
    assert_same_run(tmp_path / "disk", tmp_path / "memory")
    found, usual = (cross_validate(each, model, TRAIN, folds=2).folds for each in (on_disk, graphs))
    assert [fold.targets for fold in found] == [fold.targets for fold in usual]


@pytest.mark.parametrize("case", CASES)
def test_a_run_from_a_store_is_that_from_memory_bit_for_bit_also_where_its_cache_is_loaded_and_steps_recorded(
    case: str, tmp_path: Path
) -> None:
    """As on a GPU, where what is encoded is loaded if it fits."""
    graphs, settings = CASES[case]
    model, on_disk = plain_model(**SIZES | {"k": 2} | settings), stored(graphs, tmp_path / "store")
    disk, other = (learn(each, model, TRAIN, stack=True) for each in (on_disk, graphs))
    assert same(disk[0].networks[0].state_dict(), other[0].networks[0].state_dict())
    assert [replace(e, seconds=0) for e in disk[1].epochs] == [replace(e, seconds=0) for e in other[1].epochs]
    told = train_run(on_disk, tmp_path / "disk", model, TRAIN)
    train_run(read(tmp_path / "store"), tmp_path / "memory", model, TRAIN)
    assert_same_run(tmp_path / "disk", tmp_path / "memory")
    assert told["test_graphs"] > 0
    assert names_in(tmp_path / "disk") == COMPLETE


def test_a_run_that_was_stopped_goes_on_to_the_same_end(tmp_path: Path) -> None:
    graphs = stored(alcohols(), tmp_path / "store")
    model, train = plain_model(**SIZES), replace(TRAIN, epochs=4)
    train_run(graphs, tmp_path / "unbroken", model, train)

    assert train_run(graphs, tmp_path / "it", model, train, report=stop_after(2))["interrupted"]
    assert train_run(graphs, tmp_path / "it", model, train, resume=True)["epochs"] == 4
    assert_same_run(tmp_path / "it", tmp_path / "unbroken")


def test_a_collection_answers_alike_from_memory_and_from_disk(tmp_path: Path) -> None:
    graphs = alcohols()
    several: list[Collection] = [graphs, stored(graphs, tmp_path / "store")]
    for which in (np.arange(len(graphs)), np.array([1, 4, 30])):
        one, other = (each.choose(which) for each in several)
        assert len(one) == len(other) == len(which)
        assert np.array_equal(one.node_counts, other.node_counts)
        for name in ("target", "group", "part"):
            assert np.array_equal(getattr(one.outline, name), getattr(other.outline, name)), name
        assert one.outline.n_nodes == other.outline.n_nodes == 0
        assert one.whole().digest == other.whole().digest
        assert Graphs.concat([*other.portions()]).names == Graphs.concat([*one.portions()]).names
    for each in several:
        marked = each.with_parts(np.zeros(len(graphs), np.int8))
        assert not sure(marked.outline.part).any()
        assert len({each.digest, marked.digest, each.with_parts(None).digest, each.choose(np.arange(3)).digest}) == 4
        assert each.with_parts(None).whole().part is None
    assert [each.bytes_on_disk > 0 for each in several] == [False, True]


def test_graphs_without_a_target_are_left_out(tmp_path: Path) -> None:
    graphs = alcohols()
    target = sure(graphs.target).copy()
    target[[4, 9]] = -1
    store = stored(graphs.replace(target=target), tmp_path / "store")
    assert train_run(store, tmp_path / "it", plain_model(), TRAIN)["graphs"] == len(graphs) - 2
    unknown = graphs.replace(target=np.full(len(graphs), -1))
    with pytest.raises(DataError, match=rf"^{len(graphs)} graphs have no target, '{graphs.names[0]}' the first; "):
        train_run(unknown, tmp_path / "none", plain_model(), TRAIN)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("case", ["a split of ours, groups", "values, attributes and weights", "degrees for labels"])
def test_folds_from_a_store_have_the_scores_of_those_from_memory(case: str, tmp_path: Path) -> None:
    graphs, settings = CASES[case]
    found = stored(graphs, tmp_path / "store")
    model = plain_model(**SIZES | {"k": 2} | settings)
    for combine in get_args(Combine):
        protocol = Protocol(folds=2, restarts=2, combine=combine)
        memory = cross_validate(graphs, model, TRAIN, protocol=protocol)
        disk = cross_validate(found, model, TRAIN, protocol=protocol, out=tmp_path / f"{combine}.json")
        assert [fold.runs for fold in disk.folds] == [fold.runs for fold in memory.folds]
        assert (disk.parameters, disk.split, disk.score) == (memory.parameters, memory.split, memory.score)
        assert cross_validate(found, model, TRAIN, protocol=protocol, out=tmp_path / f"{combine}.json") == disk
    with pytest.raises(ConfigError, match="graphs that stay in their store train alone, not stacked"):
        cross_validate(found, model, TRAIN, folds=2, stack=True)


def test_given_splits_and_a_sweep_are_as_from_memory_also_where_graphs_are_sent_to_other_processes(
    tmp_path: Path,
) -> None:
    graphs = alcohols().replace(part=None)
    found = pickle.loads(pickle.dumps(stored(alcohols(), tmp_path / "store")))
    numbers = np.random.default_rng(0).permutation(24)  # not all of them, in no order
    splits = [Split(*(np.sort(part) for part in np.split(np.roll(numbers, 8 * n), [12, 16]))) for n in range(2)]
    given = Protocol(name="fair", folds=2, splits=tuple(splits))
    axes = [parse_axis("width=4,8")]
    settings = draw_settings(axes, plain_model(**SIZES), TRAIN)
    disk = sweep(found, settings, axes, given, tmp_path / "disk", test_chosen=True)
    memory = sweep(graphs, settings, axes, given, tmp_path / "memory", test_chosen=True)
    assert [replace(row, seconds=0) for row in disk.rows] == [replace(row, seconds=0) for row in memory.rows]
    assert disk.test == memory.test


# ── the command ───────────────────────────────────────────────────────────────────────────────────


def test_the_command_trains_on_a_store_and_says_what_it_says_of_its_source(tmp_path: Path, run: Run) -> None:
    table = write_table(tmp_path)
    read_as = ["--target", "label", "--hydrogens", "--split", "split"]
    assert run("prepare", table, "-o", tmp_path / "store", *read_as)[0] == 0
    words = [*SHORT, "--device", "cpu"]
    disk = answer(run, "train", tmp_path / "store", "-o", tmp_path / "disk", *words)
    memory = answer(run, "train", table, "-o", tmp_path / "memory", *read_as, *words)
    assert disk | {"seconds": 0} == memory | {"seconds": 0}
    # the model says how it wants graphs to be read, though it has never seen the file
    how = [json.loads((tmp_path / name / "config.json").read_text())["read"] for name in ("disk", "memory")]
    assert how[0] == how[1]
    some = ["-o", tmp_path / "some", "--limit", 8, "--split", "x"]
    assert answer(run, "train", tmp_path / "store", *words, *some)["graphs"] == 8


def test_a_part_that_a_store_does_not_have_is_refused(tmp_path: Path, run: Run) -> None:
    assert run("prepare", ALCOHOLS, "-o", tmp_path / "store")[0] == 0
    words = ["train", tmp_path / "store", "-o", tmp_path / "it"]
    check_refused(run, "no part is called 'tset'", *words, "--split", "x=tset")
    assert run("prepare", tmp_path / "store", "-o", tmp_path / "store", "--overwrite", "--split", "x=train")[0] == 0
    check_refused(run, "no graph is in the part 'test'", *words, "--split", "x=test")


def test_what_a_store_would_not_heed_is_refused(tmp_path: Path, run: Run) -> None:
    table, store, out = write_table(tmp_path), tmp_path / "store", tmp_path / "it"
    assert run("prepare", table, "-o", store, "--target", "label", "--hydrogens")[0] == 0
    said = "is said to egocnn prepare"
    for command in (["train", store, "-o", out], ["crossval", store], ["info", store], ["scale-free", store]):
        check_refused(run, f"read with --target label; --target {said}", *command, "--target", "name")
        check_refused(run, f"read without --group; --group {said}", *command, "--group", "label")
        check_refused(run, f"read without --split; --split {said}", *command, "--split", "split")
    assert run("train", store, "-o", out, "--target", "label", "--hydrogens", *SHORT)[0] == 0
    assert run("predict", out, store, "-o", tmp_path / "it.csv", "--hydrogens")[0] == 0
    words = ["predict", out, store, "-o", tmp_path / "it.csv", "--no-hydrogens"]
    check_refused(run, f"read with --hydrogens; --hydrogens {said}", *words)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits are counted from what /proc tells")
def test_a_store_larger_than_the_address_space_left_is_trained_on(tmp_path: Path) -> None:
    own = ["--no-count-inputs", "--epochs", "1"]  # a histogram of every attribute is larger than the attributes
    words = ["train", str(tmp_path / "store"), *FLAGS, *own, "--quiet", "--device", "cpu"]
    folds = ["crossval", *words[1:], "--folds", "2"]

    def commands(name: str, *limit: str) -> list[list[str]]:
        return [[*words, "-o", str(tmp_path / name), *limit], [*folds, "-o", str(tmp_path / f"{name}.json"), *limit]]

    check_limited(tmp_path, 34, commands("before", "--limit", "20"), commands("it"))
    assert json.loads((tmp_path / "it" / "metrics.json").read_text())["graphs"] == 800
    assert sum(fold["test_graphs"] for fold in json.loads((tmp_path / "it.json").read_text())["folds"]) == 800


# ── several processes ─────────────────────────────────────────────────────────────────────────────


def test_two_processes_prepare_and_read_each_its_share(tmp_path: Path) -> None:
    graphs = random_trees(64, nodes=10, seed=0).replace(target=np.arange(64) % 2, class_names=("a", "b"))
    found = stored(graphs, tmp_path / "store")
    epochs = 2
    still = ["--dropout", "0", "--pool-dropout", "0", "--parts", "0"]  # what is dropped differs between processes
    words = [*FLAGS, *still, "--epochs", str(epochs), "--batch-size", "8", "--quiet", "--device", "cpu"]
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    run = ["-m", "tests.train.runs.ranks", str(tmp_path), "train", str(tmp_path / "store"), "-o", str(tmp_path / "two")]
    done = subprocess.run([*launch, *run, *words], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert names_in(tmp_path / "two") == COMPLETE
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first["prepared"] + second["prepared"] == 64
    assert abs(first["prepared"] - second["prepared"]) <= 8
    model = ModelConfig(**SIZES, pool_dropout=0)
    metrics = train_run(found, tmp_path / "one", model, replace(TRAIN, epochs=epochs, learning_rate=1e-3))
    validation = round(0.1 * (64 - metrics["test_graphs"]))
    learned = 64 - metrics["test_graphs"] - validation
    # both calibrate on the validation part, and rank 0 tests
    assert first["read"] + second["read"] == epochs * (learned + validation) + 2 * validation + metrics["test_graphs"]
    assert second["read"] <= epochs * (learned + validation) / 2 + epochs * 8 + validation
    one, two = (rows(tmp_path / name / "history.csv") for name in ("one", "two"))
    assert len(one) == len(two) == epochs
    for epoch, other in zip(one, two, strict=True):
        for name in ("train_loss", "validation_loss", "train_score", "validation_score"):
            assert float(epoch[name]) == pytest.approx(float(other[name]), rel=1e-3), name
