"""Replicas are prepared in this process or in others: what comes back is the same."""

from dataclasses import fields
from typing import Any

import pytest
import torch
from joblib import Parallel
from torch import Tensor

from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.errors import ConfigError
from egocnn.study.crossval import Protocol
from egocnn.study.crossval.folds import make_tasks
from egocnn.train import recipe
from egocnn.train.recipe import Replica, prepare_replicas
from tests.support.tiny import SIZES, alcohols, plain_model, plain_train, same, state

MODEL = plain_model(**SIZES, degrees=True, jump=True)
TRAIN = plain_train(epochs=1, device="cpu")
SEEDS = [[1, 2], [3, 4], [5, 6]]


def collections() -> list[Graphs]:
    graphs = alcohols().replace(part=None)
    return [task.without_tested(graphs) for task in make_tasks(graphs, Protocol(folds=3), TRAIN)]


def tensors(prepared: EncodedGraphs) -> dict[str, Tensor]:
    found: dict[str, Any] = {field.name: getattr(prepared, field.name) for field in fields(prepared)}
    return {name: value for name, value in found.items() if value is not None}


def assert_same(one: Replica, other: Replica) -> None:
    assert one.seeds == other.seeds
    assert one.predictor.config == other.predictor.config
    assert same(state(one.predictor.networks[0]), state(other.predictor.networks[0]))
    assert one.predictor.encoder.texts() == other.predictor.encoder.texts()
    for mine, theirs in zip(one.parts, other.parts, strict=True):
        left, right = tensors(mine.in_memory()), tensors(theirs.in_memory())
        assert left.keys() == right.keys()
        assert all(torch.equal(left[name], right[name]) for name in left)


def test_large_collections_are_prepared_in_other_processes_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = prepare_replicas(collections(), MODEL, TRAIN, SEEDS)
    asked: list[int] = []

    def spy(**settings: Any) -> Any:
        asked.append(settings["n_jobs"])
        return Parallel(**settings)

    monkeypatch.setattr(recipe, "Parallel", spy)
    monkeypatch.setattr(recipe, "cpu_count", lambda: 2)
    again = prepare_replicas(collections(), MODEL, TRAIN, SEEDS)
    monkeypatch.setattr(recipe, "WORTH_WORKERS", 0)
    there = prepare_replicas(collections(), MODEL, TRAIN, SEEDS)
    assert asked == [1, 2]
    for several in (again, there):
        for one, other in zip(here, several, strict=True):
            assert [each.seeds for each in one] == [each.seeds for each in other]
            for mine, theirs in zip(one, other, strict=True):
                assert_same(mine, theirs)


def test_restarts_share_what_was_prepared_have_weights_of_their_own_and_need_seeds() -> None:
    for own in prepare_replicas(collections(), MODEL, TRAIN, SEEDS):
        first, second = own
        assert first.parts[0] is second.parts[0]
        assert first.predictor.encoder is second.predictor.encoder
        assert not same(state(first.predictor.networks[0]), state(second.predictor.networks[0]))
    with pytest.raises(ConfigError, match="3 collections of graphs, and seeds for 2"):
        prepare_replicas(collections(), MODEL, TRAIN, SEEDS[:2])
