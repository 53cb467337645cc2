from __future__ import annotations

import json
from pathlib import Path

import pytest

from egocnn.config import ModelConfig
from lab.figures import patterns
from tests.support.tiny import ALCOHOLS, SIZES


def test_the_patterns_of_every_class_are_written_in_order_with_their_sentences(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("rdkit")
    monkeypatch.setattr(patterns, "DATA", (ALCOHOLS,))
    monkeypatch.setattr(patterns, "ModelConfig", lambda: ModelConfig(**SIZES))
    result = patterns.write_recurring(folder=tmp_path, say=lambda _: None)
    assert json.loads((tmp_path / "patterns.json").read_text()) == result
    alcohols = [row for row in result["rows"] if row["class"] == "alcohol"]
    assert [row["rank"] for row in alcohols] == list(range(1, len(alcohols) + 1))
    assert "hydroxyl" in alcohols[0]["name"]
