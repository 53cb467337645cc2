"""docs/interchange.md: every block of it runs, from top to bottom, and what it says of inputs is so."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from egocnn.interop.onnx import inputs_of
from tests.interop.test_onnx import FULL, SMALL, fitted_graphs, predictor_for
from tests.support.pages import blocks, run
from tests.support.tiny import plain_model

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "interchange.md").read_text(encoding="utf-8")
CHECK = """
```python
assert scores.shape == (3,)
assert ((scores >= 0) & (scores <= 1)).all(), "a fold that could not be trained scores nan"
assert len(explained) == 1
```
"""


@pytest.mark.usefixtures("libraries")
def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    assert len(blocks(PAGE)) * 2 == PAGE.count("```"), "a block is neither Python nor a command"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnxscript uses what torch has deprecated
        printed = "".join(shown.printed for shown in run(PAGE + CHECK, tmp_path))
    assert "onnxruntime and the model differ by" in printed
    assert (tmp_path / "alcohols.onnx").exists()


def test_the_page_lists_every_input_that_a_model_can_ask_for() -> None:
    listed = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    config = plain_model(**SMALL, readout="sort", count_inputs=True)
    asked = {each.name for each in inputs_of(predictor_for(fitted_graphs(FULL), config))}
    assert listed == asked
