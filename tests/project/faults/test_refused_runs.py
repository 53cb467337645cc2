"""Run folders with words that nobody should see in full: a refusal is one short line that can be printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from egocnn.errors import RunError
from egocnn.model import Model
from tests.show.serve.models import classifier
from tests.support.sealing import reseal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    classifier().predictor.save(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("format", ["\x1b[31m" + "9" * 5000, 10**400, ["a\nb"] * 900])
def test_a_refusal_of_a_config_is_one_short_line_that_can_be_printed(format: Any, folder: Path) -> None:
    plain = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(plain | {"format": format}), encoding="utf-8")
    with pytest.raises(RunError) as refused:
        Model.load(folder)
    told = str(refused.value).removeprefix(str(folder))
    assert told.isprintable()
    assert len(told) < 300


def test_a_refusal_of_a_header_is_short_where_it_has_a_word_of_thousands_of_letters(folder: Path) -> None:
    header = json.dumps({"weights": {"dtype": "I" + "9" * 5000, "shape": [1], "data_offsets": [0, 1]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    reseal(folder)
    with pytest.raises(RunError) as refused:
        Model.load(folder)
    assert len(str(refused.value).removeprefix(str(folder))) < 400
