"""docs/interchange.md: every block of it runs, from top to bottom, and what it says of inputs is so."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest

from egocnn.config import ModelConfig
from egocnn.interop.onnx import inputs_of
from tests.interop.test_onnx import BARE, FULL, SMALL, fitted_graphs, predictor_for
from tests.support.commands import runner

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "interchange.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


def test_every_block_is_python_or_a_command() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "console"}
    assert len(BLOCKS) * 2 == PAGE.count("```")


def test_the_page_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for library in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnxscript uses what torch has deprecated
        for kind, block in BLOCKS:
            if kind == "python":
                exec(block, names)
                continue
            for line in block.splitlines():
                program, *words = shlex.split(line)
                code, out, err = runner(capsys)(*words)
                assert (program, code) == ("egocnn", 0), err
                assert "onnxruntime and the model differ by" in out
    assert (tmp_path / "alcohols.onnx").exists()
    assert names["scores"].shape == (3,)
    assert ((names["scores"] >= 0) & (names["scores"] <= 1)).all(), "a fold that could not be trained scores nan"
    assert len(names["explained"]) == 1


def test_the_page_lists_every_input_that_a_model_can_ask_for() -> None:
    listed = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    settings = [
        (FULL, {"rest": "mean", "readout": "sort"}),
        (BARE, {"embedding": "adjacency"}),
    ]
    asked = {
        each.name
        for columns, changes in settings
        for each in inputs_of(predictor_for(fitted_graphs(columns), ModelConfig(**SMALL | changes)))
    }
    assert listed == asked
