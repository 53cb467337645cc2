"""What is typed after --over, and the settings that it means."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egocnn.config import ModelConfig, TrainConfig
from egocnn.errors import ConfigError
from egocnn.study.sweep.grid import Axis, changed, draw_settings, flags, in_words, parse_axis, shown


@pytest.mark.parametrize(
    ("typed", "name", "values"),
    [
        ("width=32,64", "width", (32, 64)),
        ("learning-rate=1e-3,3e-4", "learning_rate", (1e-3, 3e-4)),
        ("readout=max,mean+max", "readout", ("max", "mean+max")),
        ("jump=yes,no", "jump", (True, False)),
        ("tie=auto,no", "tie", ("auto", False)),
        ("dropout=0", "dropout", (0.0,)),
    ],
)
def test_an_axis_is_read_by_the_type_of_its_field(typed: str, name: str, values: tuple[Any, ...]) -> None:
    axis = parse_axis(typed)
    assert axis == Axis(name, values)
    assert [type(value) for value in axis.values] == [type(value) for value in values]
    assert parse_axis(f"{name}={','.join(map(shown, axis.values))}") == axis


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("width", r"^--over takes a field and its values, width=32,64 say, got 'width'$"),
        ("widht=3", r"^--over: no setting is called 'widht'; did you mean width\? there are batch_size, "),
        ("zzz=3", r"^--over: no setting is called 'zzz'; there are batch_size, .*weight_decay, width$"),
        ("width=a", r"^--over width: 'a' is not a whole number$"),
        ("width=", r"^--over width: '' is not a whole number"),
        ("depth=2x2", r"^--over depth: '2x2' is not a whole number$"),
        ("dropout=much", r"^--over dropout: 'much' is not a number$"),
        ("jump=maybe", r"^--over jump: 'maybe' is not yes or no$"),
        ("tie=auot", r"^--over tie: 'auot' is not yes or no or auto; did you mean auto\?$"),
        ("readout=maxx", r"^--over readout: 'maxx' is not one of max, .*; did you mean max\?$"),
        ("width=3,4,3", r"^--over width: 3 is given twice$"),
        ("seed=1,2", r"^--over seed: the best of several seeds says nothing of a setting; "),
        ("validation=0.1", r"^--over validation: all settings must be judged by the same graphs; "),
    ],
)
def test_what_is_no_axis_is_refused_with_what_there_is(typed: str, line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        parse_axis(typed)


def test_values_that_the_settings_refuse_are_refused_with_the_setting_they_belong_to() -> None:
    axes = [parse_axis("depth=2,3"), parse_axis("width=8,0")]
    with pytest.raises(ConfigError, match=r"^--over, depth 2, width 0: width must be at least 1, got 0$"):
        draw_settings(axes, ModelConfig(), TrainConfig())
    with pytest.raises(ConfigError, match=r"^a sweep needs something to go over"):
        draw_settings([], ModelConfig(), TrainConfig())
    with pytest.raises(ConfigError, match=r"^--over depth is given twice; name all its values in one"):
        draw_settings([axes[0], axes[0]], ModelConfig(), TrainConfig())


def test_a_grid_changes_what_is_swept_and_nothing_else() -> None:
    axes = [parse_axis("width=8,16"), parse_axis("learning_rate=1e-2,1e-3,1e-4")]
    found = draw_settings(axes, ModelConfig(depth=2), TrainConfig(epochs=7))
    assert [(each.model.width, each.train.learning_rate) for each in found] == [
        (width, rate) for width in (8, 16) for rate in (1e-2, 1e-3, 1e-4)
    ]
    assert {each.model.depth for each in found} == {2}
    assert {each.train.epochs for each in found} == {7}
    assert in_words(found[0].values) == "width 8, learning_rate 0.01"
    assert flags(changed(found[1].model, found[1].train)) == "--width 8 --depth 2 --epochs 7"
    assert flags({"width": 4, "jump": True, "tie": False}) == "--width 4 --jump --no-tie"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 300), st.integers(0, 5))
def test_draws_are_points_of_the_grid_no_two_alike_and_follow_from_the_seed(
    sizes: list[int], sample: int, seed: int
) -> None:
    names = ("hidden", "depth", "slots", "epochs")
    axes = [Axis(name, tuple(range(1, size + 1))) for name, size in zip(names, sizes, strict=False)]
    every = draw_settings(axes, ModelConfig(), TrainConfig())
    assert len(every) == len({each.values for each in every}) == math.prod(sizes)
    drawn = draw_settings(axes, ModelConfig(), TrainConfig(), sample=sample, seed=seed)
    assert len(drawn) == len(set(drawn)) == min(sample, len(every))
    assert set(drawn) <= set(every)
    assert drawn == draw_settings(axes, ModelConfig(), TrainConfig(), sample=sample, seed=seed)
