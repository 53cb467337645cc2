"""Table 1 of the paper: how time grows, and what was claimed, measured and refused."""

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch_geometric.nn", reason="torch-geometric is not installed")
pytest.importorskip("igraph", reason="igraph is not installed")
pytest.importorskip("gensim", reason="gensim is not installed")

from egocnn.errors import ConfigError, DataError
from lab.rivals.networks.encoding import Shape
from lab.tables.cells import TableOptions
from lab.tables.growth.claims import CLAIMS
from lab.tables.growth.curve import CurveSizes, Point, Work, expected, grow, one_line, quicker, slope, time_calls
from lab.tables.growth.spatial import SpatialConstruction
from lab.tables.growth.subjects import SUBJECTS, GrowthProblem, GrowthSubject, field_size
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


def test_the_graphs_are_connected_and_have_four_neighbours_a_node() -> None:
    graphs, again, other = (problem(nodes=200, seed=seed).graphs() for seed in (0, 0, 1))
    assert graphs.node_counts.tolist() == [200, 200]
    assert graphs.degree.max() == 4
    assert graphs.degree.mean() > 3.9
    assert np.array_equal(graphs.indices, again.indices)
    assert not np.array_equal(graphs.indices, other.indices)
    assert [field_size(hops) for hops in (1, 2, 3, 4)] == [5, 17, 53, 161]  # of nodes with four neighbours


def test_fields_larger_than_the_graph_and_matrices_larger_than_the_memory_are_refused() -> None:
    deepen = subject("Patchy-San").deepen
    assert deepen is not None
    with pytest.raises(DataError, match="fields of 53 nodes would be larger than the graph of 32"):
        deepen(problem(nodes=32, layers=3))
    shape = Shape.of(problem().graphs())
    with pytest.raises(DataError, match="matrices between all 100000 nodes"):
        SpatialConstruction(replace(shape, most_nodes=100_000), layers=3)


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


def nothing() -> None:
    """A call that takes no time to speak of."""


@given(st.floats(-1, 5), st.floats(1e-6, 1e3), st.lists(st.integers(1, 10**6), min_size=2, unique=True))
def test_the_slope_of_a_power_is_its_exponent(power: float, factor: float, sizes: list[int]) -> None:
    found = slope([(size, factor * size**power) for size in sorted(sizes)])
    assert found == pytest.approx(power, abs=1e-6)
    flat, steep = [(2**i, 1.0) for i in range(4)], [(2**i, 4.0**i) for i in range(4, 8)]
    assert slope([*flat, *steep]) == pytest.approx(2)  # the larger half counts
    assert slope([*flat[:2], (8, 3.0)]) == pytest.approx(np.log(3) / np.log(4))
    assert slope([(8, 1.0)]) is slope([]) is None


def test_a_curve_ends_before_a_call_that_would_take_too_long() -> None:
    points = [Point(size=2, seconds=1.0, calls=1), Point(size=4, seconds=4.0, calls=1)]
    assert expected(points, 8) == pytest.approx(16)
    assert expected(points[:1], 8) == pytest.approx(4)
    assert expected([], 8) == 0
    curve = grow([4, 8, 1 << 40], lambda _: nothing, TINY, letter="N", clock=time.perf_counter)
    assert [point.size for point in curve.points] == [4, 8]
    assert curve.reason is not None
    assert curve.reason.startswith("N = 1,099,511,627,776 was expected to take more than the 30 s")


def test_a_curve_ends_where_the_system_refuses_and_says_why() -> None:
    def build(size: int) -> Work:
        if size > 8:
            raise KeyError("a defect of ours is no limit of the system")
        if size > 2:
            raise DataError("no more than\n 2")
        return nothing

    with pytest.raises(KeyError):
        grow([9], build, TINY, letter="L", clock=time.perf_counter)
    curve = grow([1, 2, 3, 4], build, TINY, letter="L", clock=time.perf_counter)
    assert [point.size for point in curve.points] == [1, 2]
    assert curve.reason == "L = 3: no more than 2"
    for error in (MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")):
        assert one_line(error) == "out of memory"
    assert len(one_line(RuntimeError("long " * 1000))) < 250


def test_every_size_has_its_turn_in_every_pass_and_the_quickest_counts() -> None:
    built: list[int] = []

    def build(size: int) -> Work:
        built.append(size)
        if len(built) == 4:
            raise DataError("this time not")
        return nothing

    curve = grow([1, 2], build, replace(TINY, passes=2), letter="L", clock=time.perf_counter)
    assert built == [1, 2, 1, 2]
    assert [point.calls for point in curve.points] == [4, 2]
    assert curve.reason is None
    slow, fast = Point(size=1, seconds=2.0, calls=3), Point(size=1, seconds=1.0, calls=4)
    assert quicker(slow, fast) == quicker(fast, slow) == Point(size=1, seconds=1.0, calls=7)
    calls: list[int] = []
    for patience, repeated in ((30.0, 2), (0.0, 1)):  # a call is repeated unless it is long
        calls.clear()
        how = replace(TINY, patience=patience)
        assert time_calls(lambda: calls.append(1), how, time.perf_counter)[1] == repeated == len(calls) - 1
