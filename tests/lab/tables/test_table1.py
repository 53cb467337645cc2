"""Table 1 of the paper: how time grows, and what was claimed, measured and refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("torch_geometric.nn", reason="torch-geometric is not installed")
pytest.importorskip("igraph", reason="igraph is not installed")
pytest.importorskip("gensim", reason="gensim is not installed")

from egocnn.errors import ConfigError, DataError
from lab.tables.cells import TableOptions
from lab.tables.growth.claims import CLAIMS
from lab.tables.growth.curve import CurveSizes, Work
from lab.tables.growth.subjects import SUBJECTS, GrowthProblem, GrowthSubject
from lab.tables.growth.table1 import markdown, write_growth
from tests.support.commands import rows

TINY = CurveSizes(nodes=(16, 32, 64), layers=(1, 2), fixed_nodes=32, fixed_layers=2, budget=0.0, patience=30.0)
HOW = TableOptions(quick=True, device="cpu")


def subject(name: str) -> GrowthSubject:
    return next(each for each in SUBJECTS if each.name == name)


def problem(nodes: int = 32, layers: int = 2, seed: int = 0) -> GrowthProblem:
    return GrowthProblem(nodes=nodes, layers=layers, seed=seed, device=torch.device("cpu"))


def test_every_system_of_the_papers_table_is_a_row() -> None:
    assert sorted(each.name for each in SUBJECTS) == sorted([*CLAIMS, "GIN"])
    assert all((each.claim is None) == (each.name == "GIN") for each in SUBJECTS)
    ticks = {
        name: (claim.task_specific, claim.precise, claim.scale_efficient, claim.large_graphs)
        for name, claim in CLAIMS.items()
    }
    assert [name for name, each in ticks.items() if all(each)] == ["Ego-CNN"]
    assert ticks["Patchy-San"] == (True, True, False, True)
    assert ticks["MLG"] == (False, False, True, False)


@pytest.mark.parametrize("each", SUBJECTS, ids=lambda each: each.name)
def test_every_system_takes_a_step_at_every_depth(each: GrowthSubject) -> None:
    for layers in (1, 2):
        (each.deepen or each.build)(problem(layers=layers))()
    each.build(problem(nodes=20))()


def _refuse(_: GrowthProblem) -> Work:
    raise DataError("will not run")


def test_the_table_holds_claims_and_measured_powers_and_says_what_could_not_run(tmp_path: Path) -> None:
    chosen = [subject("WL kernel"), subject("GIN"), replace(subject("Ego-CNN"), build=_refuse)]
    said: list[str] = []
    sizes = replace(TINY, nodes=(16, 32, 64, 1 << 50))
    returned = write_growth(HOW, folder=tmp_path, say=said.append, sizes=sizes, subjects=chosen)
    record = json.loads((tmp_path / "table1.json").read_text(encoding="utf-8"))
    kernel, gin, ego = record["rows"]
    assert {"command", "date", "machine", "versions", "sizes", "title"} <= record.keys()
    assert record["command"] == "egocnn reproduce table1 --quick --seed 0"
    assert kernel["complexity"] == CLAIMS["WL kernel"].complexity
    assert gin["complexity"] is None
    for row in (kernel, gin):
        assert [point["size"] for point in row["nodes"]["points"]] == [16, 32, 64]
        assert [point["size"] for point in row["layers"]["points"]] == [1, 2]
        assert all(isinstance(row[curve]["exponent"], float) for curve in ("nodes", "layers"))
        assert row["nodes"]["reason"].startswith("N = 1,125,899,906,842,624 was expected to take more than")
        assert row["layers"]["reason"] is None
    assert [ego["nodes"][key] for key in ("exponent", "points", "reason")] == [None, [], "N = 16: will not run"]
    assert len(said) == 3
    text = (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert text == markdown(returned)
    assert "| Ego-CNN | ✓ | ✓ | ✓ | not measured | ✓ | not measured | O(K D² L N) |" in text
    assert "- Ego-CNN: L = 1: will not run" in text
    assert "(to N = 64)" in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1
    written = rows(tmp_path / "table1.csv")
    assert [row["model"] for row in written] == ["WL kernel", "GIN", "Ego-CNN"]
    assert (written[0]["nodes_power"], float(written[0]["nodes_measured"])) == ("1", kernel["nodes"]["exponent"])
    assert written[2]["layers_reason"] == "L = 1: will not run"


def test_rows_can_be_chosen_by_name(tmp_path: Path) -> None:
    how = replace(HOW, models=("DCNN",), seed=3)
    record = write_growth(how, folder=tmp_path, say=lambda _: None, sizes=TINY)
    assert [row["model"] for row in record["rows"]] == ["DCNN"]
    assert record["command"] == 'egocnn reproduce table1 --quick --seed 3 --models "DCNN"'
    none, other = replace(HOW, models=("DCN",)), replace(HOW, data=("MUTAG",))
    for wrong, rule in ((none, "has no row 'DCN'"), (other, "no data sets to choose from")):
        with pytest.raises(ConfigError, match=rule):
            write_growth(wrong, folder=tmp_path, say=lambda _: None, sizes=TINY)
