from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.explain.structure import read_structures
from lab.figures.structures import FIGURES, Figure, Panel, write_figure
from tests.support.tiny import ALCOHOLS, SIZES


def test_a_figure_is_drawn_in_three_formats_with_a_record_of_what_it_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("rdkit")

    def first_two(_: Graphs) -> list[int]:
        return [0, 1]

    panel = Panel(data=ALCOHOLS, choose=first_two, network=ModelConfig(**SIZES), train=TrainConfig(epochs=2))
    monkeypatch.setitem(FIGURES, "figure5", Figure(title="two molecules", panels=[panel]))
    result = write_figure("figure5", folder=tmp_path, say=lambda _: None)
    assert len(result["files"]) == 2
    for file in result["files"]:
        ElementTree.parse(tmp_path / file)
        assert (tmp_path / file).with_suffix(".png").stat().st_size > 1000
        ElementTree.parse((tmp_path / file).with_suffix(".gexf"))
    assert json.loads((tmp_path / "figure5.json").read_text()) == result
    drawn = list(read_structures(tmp_path / "figure5" / "structures.jsonl"))
    assert [s.name for s in drawn] == [row["name"] for row in result["rows"]]


def test_the_alcohols_of_figure_5_are_of_the_papers_sizes_or_the_nearest_held_out() -> None:
    graphs = read("compounds:alcohols").select("test")
    sizes = [(graphs[g].node_label or ()).count("C") for g in FIGURES["figure5"].panels[0].choose(graphs)]
    assert abs(sizes[0] - 14) <= 2
    assert sizes[1] == 82


def test_the_isomers_of_figure_5_are_one_of_each_kind() -> None:
    graphs = read("compounds:isomers").select("test")
    assert [graphs[g].target for g in FIGURES["figure5"].panels[1].choose(graphs)] == ["symmetric", "asymmetric"]
