"""Table 1 of the paper: every system takes its step, and the table says what was claimed, measured and refused."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("torch_geometric.nn", reason="torch-geometric is not installed")
pytest.importorskip("igraph", reason="igraph is not installed")
pytest.importorskip("gensim", reason="gensim is not installed")

from egocnn.errors import ConfigError, DataError
from lab.rivals.networks.encoding import Shape
from lab.tables.cells import TableOptions
from lab.tables.growth.claims import CLAIMS
from lab.tables.growth.curve import CurveSizes, Work
from lab.tables.growth.spatial import SpatialConstruction
from lab.tables.growth.subjects import SUBJECTS, GrowthProblem, GrowthSubject, field_size
from lab.tables.growth.table1 import markdown, write_growth

TINY = CurveSizes(nodes=(16, 32, 64), layers=(1, 2), fixed_nodes=32, fixed_layers=2, budget=0.0, patience=30.0)
HOW = TableOptions(quick=True, device="cpu")


def subject(name: str) -> GrowthSubject:
    return next(each for each in SUBJECTS if each.name == name)


def problem(nodes: int = 32, layers: int = 2, seed: int = 0) -> GrowthProblem:
    return GrowthProblem(nodes=nodes, layers=layers, seed=seed, device=torch.device("cpu"))


# ── the systems ───────────────────────────────────────────────────────────────────────────────────


def test_every_system_of_the_papers_table_is_a_row() -> None:
    names = [each.name for each in SUBJECTS]
    assert len(set(names)) == len(names)
    assert set(names) == {*CLAIMS, "GIN"}
    assert all((each.claim is None) == (each.name == "GIN") for each in SUBJECTS)


@pytest.mark.parametrize("each", SUBJECTS, ids=lambda each: each.name)
def test_every_system_takes_a_step_at_every_depth(each: GrowthSubject) -> None:
    for layers in (1, 2):
        (each.deepen or each.build)(problem(layers=layers))()
    each.build(problem(nodes=20))()


def test_the_graphs_are_connected_and_have_four_neighbours_a_node() -> None:
    graphs = problem(nodes=200).graphs()
    assert graphs.node_counts.tolist() == [200, 200]
    assert graphs.degree.max() == 4
    assert graphs.degree.mean() > 3.9
    assert graphs.class_names == ("one", "other")
    again, other = problem(nodes=200).graphs(), problem(nodes=200, seed=1).graphs()
    assert np.array_equal(graphs.indices, again.indices)
    assert not np.array_equal(graphs.indices, other.indices)


def test_a_wide_field_holds_all_nodes_within_its_hops() -> None:
    assert [field_size(hops) for hops in (1, 2, 3, 4)] == [5, 17, 53, 161]
    graphs = problem(nodes=400).graphs()
    reached = {0}
    for _ in range(3):
        reached |= {int(m) for n in reached for m in graphs.indices[graphs.indptr[n] : graphs.indptr[n + 1]]}
    assert 40 < len(reached) <= field_size(3)


def test_fields_larger_than_the_graph_and_matrices_larger_than_the_memory_are_refused() -> None:
    deepen = subject("Patchy-San").deepen
    assert deepen is not None
    with pytest.raises(DataError, match="fields of 53 nodes would be larger than the graph of 32"):
        deepen(problem(nodes=32, layers=3))
    shape = Shape.of(problem().graphs())
    with pytest.raises(DataError, match="matrices between all 100000 nodes"):
        SpatialConstruction(replace(shape, most_nodes=100_000), layers=3)


# ── the table ─────────────────────────────────────────────────────────────────────────────────────


def _refuse(_: GrowthProblem) -> Work:
    raise DataError("will not run")


def test_the_table_holds_claims_and_measured_powers_and_says_what_could_not_run(tmp_path: Path) -> None:
    chosen = [subject("WL kernel"), subject("GIN"), replace(subject("Ego-CNN"), build=_refuse)]
    said: list[str] = []
    returned = write_growth(HOW, folder=tmp_path, say=said.append, sizes=TINY, subjects=chosen)
    record = json.loads((tmp_path / "table1.json").read_text(encoding="utf-8"))
    kernel, gin, ego = record["rows"]
    assert {"command", "date", "machine", "versions", "sizes", "title"} <= record.keys()
    assert record["command"] == "egocnn reproduce table1 --quick --seed 0"
    assert kernel["complexity"] == CLAIMS["WL kernel"].complexity
    assert gin["complexity"] is None
    for row in (kernel, gin):
        assert [point["size"] for point in row["nodes"]["points"]] == [16, 32, 64]
        assert [point["size"] for point in row["layers"]["points"]] == [1, 2]
        for curve in (row["nodes"], row["layers"]):
            assert isinstance(curve["exponent"], float)
            assert curve["reason"] is None
    assert ego["nodes"]["exponent"] is None
    assert ego["nodes"]["points"] == []
    assert ego["nodes"]["reason"] == "N = 16: will not run"
    assert len(said) == 3
    text = (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert text == markdown(returned)
    assert "| Ego-CNN | ✓ | ✓ | ✓ | not measured | ✓ | not measured | O(K D² L N) |" in text
    assert "- Ego-CNN: L = 1: will not run" in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1
    with (tmp_path / "table1.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == ["WL kernel", "GIN", "Ego-CNN"]
    assert rows[0]["nodes_power"] == "1"
    assert float(rows[0]["nodes_measured"]) == kernel["nodes"]["exponent"]
    assert rows[2]["layers_reason"] == "L = 1: will not run"


def test_a_cell_says_how_far_its_curve_got(tmp_path: Path) -> None:
    sizes = replace(TINY, nodes=(16, 32, 1 << 50))
    record = write_growth(HOW, folder=tmp_path, say=lambda _: None, sizes=sizes, subjects=[subject("WL kernel")])
    assert "(to N = 32)" in markdown(record)
    assert "- WL kernel: N = 1,125,899,906,842,624 was expected to take more than" in markdown(record)


def test_rows_can_be_chosen_by_name(tmp_path: Path) -> None:
    how = replace(HOW, models=("DCNN",), seed=3)
    record = write_growth(how, folder=tmp_path, say=lambda _: None, sizes=TINY)
    assert [row["model"] for row in record["rows"]] == ["DCNN"]
    assert record["command"] == 'egocnn reproduce table1 --quick --seed 3 --models "DCNN"'
    with pytest.raises(ConfigError, match="has no row 'DCN'"):
        write_growth(replace(HOW, models=("DCN",)), folder=tmp_path, say=lambda _: None, sizes=TINY)
    with pytest.raises(ConfigError, match="no data sets to choose from"):
        write_growth(replace(HOW, data=("MUTAG",)), folder=tmp_path, say=lambda _: None, sizes=TINY)
