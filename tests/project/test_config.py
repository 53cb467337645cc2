import json
from dataclasses import FrozenInstanceError, asdict, fields
from typing import Any

import numpy as np
import pytest

from egocnn.config import ExplainConfig, ModelConfig, ReadConfig, TrainConfig, field_help
from egocnn.errors import ConfigError

NAN = float("nan")
INFINITE = float("inf")


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        (ModelConfig, {"readout": "median"}, r"readout must be one of max, .*mean\+log\+max, sort, got 'median'"),
        (ModelConfig, {"embedding": "node2vec"}, "one of patchy-san, attributes, got 'node2vec'"),
        (ModelConfig, {"readout": "max+log"}, r"readout must be one of .*, got 'max\+log'"),
        (ModelConfig, {"jump": "yes"}, "jump must be true or false, got 'yes'"),
        (ModelConfig, {"readout": ["max"]}, "readout must be one of"),
        (ModelConfig, {"slots": 0}, "slots must be at least 1, got 0"),
        (ModelConfig, {"slots": 10**20}, "slots must be at most 1000000, got 1"),
        (ModelConfig, {"sort_nodes": 2**62, "readout": "sort"}, "sort_nodes must be at most 1000000"),
        (ModelConfig, {"width": 2**63}, r"width must be below 2\^63"),
        (ModelConfig, {"pool_limit": 1e308}, r"pool_limit must be at most 1e\+30, got 1e\+308"),
        (ExplainConfig, {"steps": 10**20}, r"steps must be below 2\^63"),
        (ModelConfig, {"hidden": -3}, "hidden must be at least 1, got -3"),
        (ModelConfig, {"k": 2.5}, "k must be a whole number, got 2.5"),
        (ModelConfig, {"width": (4, 4, 4)}, "width must be a whole number, got"),
        (ModelConfig, {"tie": "no"}, "tie must be true, false or auto, got 'no'"),
        (ModelConfig, {"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        (ModelConfig, {"dropout": NAN}, "dropout must be at least 0 and below 1"),
        (ModelConfig, {"dropout": "0.5"}, "dropout must be a number"),
        (ModelConfig, {"pool_dropout": 1.0}, "pool_dropout must be at least 0 and below 1, got 1.0"),
        (TrainConfig, {"epochs": 0}, "epochs must be at least 1"),
        (TrainConfig, {"seed": -1}, "seed must be at least 0"),
        (TrainConfig, {"seed": 0.5}, "seed must be a whole number"),
        (TrainConfig, {"seed": 2**63}, r"seed must be below 2\^63"),
        (TrainConfig, {"weight_decay": INFINITE}, r"weight_decay must be at most 1e\+30, got inf"),
        (TrainConfig, {"weight_decay": -1e-9}, "weight_decay must be at least 0"),
        (TrainConfig, {"learning_rate": 0}, "learning_rate must be above 0"),
        (TrainConfig, {"learning_rate": INFINITE}, "learning_rate must be above 0"),
        (TrainConfig, {"validation": 0.0}, "validation must be between 0 and 1"),
        (TrainConfig, {"schedule": "linear"}, "schedule must be one of cosine, constant"),
        (TrainConfig, {"device": "tpu"}, "device must be one of auto, cpu, cuda"),
        (ReadConfig, {"task": "ranking"}, "task must be one of auto, classification, regression"),
        (ReadConfig, {"task": np.array(["auto", "auto"])}, "task must be one of auto"),
        (ReadConfig, {"smiles": 3}, "smiles must be a name, got 3"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(
    config: type[Any], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        config(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("config", [ReadConfig(), ModelConfig(), TrainConfig()])
def test_settings_are_plain_data_with_one_line_of_meaning_each_and_cannot_be_changed(config: Any) -> None:
    meaning = field_help(type(config))
    assert list(meaning) == [field.name for field in fields(config)]
    assert [line for line in meaning.values() if "\n" in line or not line.endswith(".")] == []
    assert json.loads(json.dumps(asdict(config))) == asdict(config)
    with pytest.raises(FrozenInstanceError):
        setattr(config, fields(config)[0].name, None)
