import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from egocnn.data.graphs import Graphs
from egocnn.explain.structure import read_structures
from lab.families import read
from lab.figures import patterns
from lab.figures.structures import FIGURES, Figure, Panel, write_figure
from tests.support.tiny import ALCOHOLS, SIZES, plain_model, plain_train


def test_a_figure_is_drawn_in_three_formats_with_a_record_of_what_it_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("rdkit")

    def first_two(_: Graphs) -> list[int]:
        return [0, 1]

    panel = Panel(data=ALCOHOLS, choose=first_two, network=plain_model(**SIZES), train=plain_train(epochs=2))
    monkeypatch.setitem(FIGURES, "figure5", Figure(title="two molecules", panels=[panel]))
    result = write_figure("figure5", folder=tmp_path, say=lambda _: None)
    assert len(result["files"]) == 2
    for file in result["files"]:
        ElementTree.parse(tmp_path / file)
        assert (tmp_path / file).with_suffix(".png").stat().st_size > 1000
    assert json.loads((tmp_path / "figure5.json").read_text()) == result
    drawn = list(read_structures(tmp_path / "figure5" / "structures.jsonl"))
    assert [s.name for s in drawn] == [row["name"] for row in result["rows"]]


def test_figure_5_shows_alcohols_of_the_papers_sizes_or_the_nearest_held_out_and_one_isomer_of_each_kind() -> None:
    of_alcohols, of_isomers = FIGURES["figure5"].panels
    alcohols, isomers = (read(f"compounds:{name}").select("test") for name in ("alcohols", "isomers"))
    sizes = [(alcohols[g].node_label or ()).count("C") for g in of_alcohols.choose(alcohols)]
    assert abs(sizes[0] - 14) <= 2
    assert sizes[1] == 82
    assert [isomers[g].target for g in of_isomers.choose(isomers)] == ["symmetric", "asymmetric"]


def test_the_patterns_of_every_class_are_written_in_order_with_their_sentences(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("rdkit")
    monkeypatch.setattr(patterns, "DATA", (ALCOHOLS,))
    monkeypatch.setattr(patterns, "ModelConfig", lambda: plain_model(**SIZES))
    monkeypatch.setattr(patterns, "TrainConfig", lambda seed: plain_train(seed=seed, parts=0.5, learning_rate=1e-2))
    result = patterns.write_recurring(folder=tmp_path, say=lambda _: None)
    assert json.loads((tmp_path / "patterns.json").read_text()) == result
    alcohols = [row for row in result["rows"] if row["class"] == "alcohol"]
    assert [row["rank"] for row in alcohols] == list(range(1, len(alcohols) + 1))
    assert "hydroxyl" in alcohols[0]["name"]
