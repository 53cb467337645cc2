from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, asdict, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.config import ModelConfig, ReadConfig, TrainConfig, field_help, per_layer
from egocnn.errors import ConfigError

NAN = float("nan")
INFINITE = float("inf")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"embedding": "node2vec"}, "embedding must be one of patchy-san, adjacency, attributes, got 'node2vec'"),
        (
            {"readout": "median"},
            r"readout must be one of max, mean, sum, log, mean\+max, log\+max, mean\+log\+max, sort, got 'median'",
        ),
        ({"readout": "max+log"}, r"readout must be one of .*, got 'max\+log'"),
        ({"rest": "max"}, "rest must be one of none, mean, sum, got 'max'"),
        ({"jump": "yes"}, "jump must be true or false, got 'yes'"),
        ({"head_norm": 1}, "head_norm must be true or false, got 1"),
        ({"pool_norm": "on"}, "pool_norm must be true or false, got 'on'"),
        ({"count_inputs": 2}, "count_inputs must be true or false, got 2"),
        ({"degrees": None}, "degrees must be true or false, got None"),
        ({"readout": ["max"]}, "readout must be one of"),
        ({"slots": 0}, "slots must be at least 1, got 0"),
        ({"depth": 0}, "depth must be at least 1, got 0"),
        ({"sort_nodes": 0}, "sort_nodes must be at least 1"),
        ({"hidden": -3}, "hidden must be at least 1, got -3"),
        ({"max_hops": 0}, "max_hops must be at least 1"),
        ({"wl_rounds": 0}, "wl_rounds must be at least 1"),
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"width": 0}, "width must be at least 1, got 0"),
        ({"k": (4, 0, 4)}, "k must be at least 1, got 0"),
        ({"k": (4, 4)}, "k has 2 values for a depth of 3; give one per layer"),
        ({"width": (4, 4, 4, 4)}, "width has 4 values for a depth of 3; give one per layer"),
        ({"k": ()}, "k has 0 values for a depth of 3"),
        ({"k": 2.5}, "k must be a whole number, or a tuple of one per layer, got 2.5"),
        ({"k": [4, 4, 4]}, "k must be a whole number, or a tuple of one per layer"),
        ({"width": (4, "8", 4)}, "width must be a whole number, or a tuple"),
        ({"depth": "3"}, "depth must be a whole number, got '3'"),
        ({"tie": "no"}, "tie must be true, false or auto, got 'no'"),
        ({"tie": True, "k": (4, 4, 5)}, "tied layers share one filter bank"),
        ({"tie": True, "width": (4, 4, 5)}, "tied layers share one filter bank"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"dropout": -0.1}, "dropout must be at least 0 and below 1"),
        ({"dropout": NAN}, "dropout must be at least 0 and below 1"),
        ({"dropout": "0.5"}, "dropout must be a number"),
        ({"pool_dropout": 1.0}, "pool_dropout must be at least 0 and below 1, got 1.0"),
        ({"pool_dropout": NAN}, "pool_dropout must be at least 0 and below 1"),
        ({"pool_dropout": "0.5"}, "pool_dropout must be a number"),
    ],
)
def test_a_network_that_cannot_be_built_is_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        ModelConfig(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"weight_decay": -1e-9}, "weight_decay must be at least 0"),
        ({"weight_decay": NAN}, "weight_decay must be at least 0"),
        ({"learning_rate": 0}, "learning_rate must be above 0"),
        ({"learning_rate": NAN}, "learning_rate must be above 0"),
        ({"learning_rate": INFINITE}, "learning_rate must be above 0"),
        ({"validation": 0.0}, "validation must be between 0 and 1"),
        ({"validation": 1.0}, "validation must be between 0 and 1"),
        ({"validation": NAN}, "validation must be between 0 and 1"),
        ({"schedule": "linear"}, "schedule must be one of cosine, constant"),
        ({"precision": "float16"}, "precision must be one of auto, float32, bfloat16"),
        ({"device": "tpu"}, "device must be one of auto, cpu, cuda"),
        ({"class_weights": 1}, "class_weights must be true or false"),
    ],
)
def test_a_training_that_cannot_run_is_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "ranking"}, "task must be one of auto, classification, regression"),
        ({"smiles": 3}, "smiles must be a name, got 3"),
        ({"hydrogens": None}, "hydrogens must be true or false, got None"),
    ],
)
def test_a_way_of_reading_that_does_not_exist_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ReadConfig(**settings)


@pytest.mark.parametrize("config", [ReadConfig, ModelConfig, TrainConfig])
def test_every_field_has_one_line_of_meaning(config: type[Any]) -> None:
    meaning = field_help(config)
    assert list(meaning) == [field.name for field in fields(config)]
    for line in meaning.values():
        assert line.endswith(".")
        assert "\n" not in line


@pytest.mark.parametrize("config", [ReadConfig(), ModelConfig(), TrainConfig()])
def test_settings_are_plain_data_and_cannot_be_changed(config: Any) -> None:
    assert json.loads(json.dumps(asdict(config))) == asdict(config)
    field = fields(config)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(config, field, None)


@given(st.integers(1, 5), st.integers(1, 9))
def test_one_number_serves_every_layer(depth: int, value: int) -> None:
    config = ModelConfig(depth=depth, k=value, width=value)
    assert config.layer_k == config.layer_width == (value,) * depth
    assert per_layer((value,) * depth, depth) == (value,) * depth


def test_layers_may_differ() -> None:
    config = ModelConfig(depth=2, k=(3, 5), width=(8, 16))
    assert (config.layer_k, config.layer_width) == ((3, 5), (8, 16))


def test_equal_values_for_every_layer_may_be_tied() -> None:
    assert ModelConfig(depth=2, k=(3, 3), width=(8, 8), tie=True).tie
