"""The benchmark of one large graph, on a small one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from egocnn.data.graphs import Graphs
from lab.bench.limits.large_graph import (
    LargeGraph,
    Meter,
    difference,
    main,
    make,
    memory,
    random_adjacency,
    rank_and_convolve,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize(("nodes", "edges"), [(4, 3), (50, 600), (2000, 5000)])
def test_the_random_graph_has_as_many_different_edges_as_asked_for_and_no_loops(nodes: int, edges: int) -> None:
    problem = LargeGraph(nodes=nodes, edges=edges, seed=1)
    indptr, indices = random_adjacency(problem, CPU)
    graphs = Graphs(node_ptr=np.array([0, nodes]), indptr=indptr.numpy(), indices=indices.numpy(), names=("random",))
    graphs.validate()
    assert graphs.n_edges == edges
    assert (graphs.edges[:, 0] < graphs.edges[:, 1]).all()
    again = random_adjacency(problem, CPU)
    assert torch.equal(again[1], indices)
    assert not torch.equal(random_adjacency(LargeGraph(nodes=nodes, edges=edges, seed=2), CPU)[1], indices)


def test_more_edges_than_half_of_all_pairs_are_refused() -> None:
    with pytest.raises(SystemExit, match="at most half of all pairs"):
        random_adjacency(LargeGraph(nodes=4, edges=4), CPU)


def test_a_wrong_result_differs_from_the_definition() -> None:
    inputs = make(LargeGraph(nodes=300, edges=900, k=4, width=8), CPU)
    with torch.no_grad():
        table, output = rank_and_convolve(inputs, 4, Meter(CPU))
        assert difference(inputs, table, output) < 0.02
        assert difference(inputs, table.flip(1), output) > 0.1
        assert difference(inputs, table, output + inputs.x) > 0.1


def test_the_ratio_compares_the_worst_moment_with_what_goes_in_and_comes_out() -> None:
    meter = Meter(CPU)
    assert "ratio" not in memory(meter, 600, 100, 300)
    meter.peak = {"rank neighbours": 1200, "convolve": 1600}
    found = memory(meter, 600, 100, 300)
    assert (found["ratio"], found["met"]) == (1.6, False)
    assert found["ratio_without_the_table"] == pytest.approx(16 / 9, abs=1e-3)
    meter.peak["convolve"] = 1400
    assert memory(meter, 600, 100, 300)["met"]


def test_the_benchmark_writes_what_it_measured(tmp_path: Path) -> None:
    out = tmp_path / "large.json"
    words = ["--device", "cpu", "--nodes", "1000", "--edges", "8000", "--width", "16"]
    main([*words, "-o", str(out)])
    result = json.loads(out.read_text())
    assert (result["nodes"], result["edges"], result["entries"]) == (1000, 8000, 16_000)
    assert result["table_equals_that_of_the_cpu"] is True
    assert result["largest_difference_from_the_definition"] < 0.02
    assert all(seconds > 0 for seconds in result["seconds"].values())
    assert result["command"] == f"python -m lab measure large_graph {' '.join(words)} -o {out}"
    assert {"what", "date", "machine", "versions"} <= result.keys()
