"""The benchmarks of one large graph, on a small one: ranked and convolved, prepared and predicted in blocks."""

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.model import Model
from egocnn.train.predictions import prediction_rows
from lab.bench.limits import large_graph as bench
from lab.bench.limits import large_store
from lab.bench.limits.large_graph import LargeGraph, Meter, memory, random_adjacency
from tests.support.commands import rows

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
    with pytest.raises(SystemExit, match="at most half of all pairs"):
        random_adjacency(LargeGraph(nodes=4, edges=4), CPU)


def test_a_wrong_result_differs_from_the_definition() -> None:
    inputs = bench.make(LargeGraph(nodes=300, edges=900, k=4, width=8), CPU)
    with torch.no_grad():
        table, output = bench.rank_and_convolve(inputs, 4, Meter(CPU))
        assert bench.difference(inputs, table, output) < 0.02
        assert bench.difference(inputs, table.flip(1), output) > 0.1
        assert bench.difference(inputs, table, output + inputs.x) > 0.1


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
    bench.main([*words, "-o", str(out)])
    result = json.loads(out.read_text())
    assert (result["nodes"], result["edges"], result["entries"]) == (1000, 8000, 16_000)
    assert result["largest_difference_from_the_definition"] < 0.02
    assert all(seconds > 0 for seconds in result["seconds"].values())
    assert result["command"] == f"python -m lab measure large_graph {' '.join(words)} -o {out}"
    assert {"what", "date", "machine", "versions"} <= result.keys()


def test_a_graph_goes_through_prepare_and_predict_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = Namespace(nodes=3000, edges=20_000, width=8, seed=0)
    blocks: list[int] = []
    in_blocks = Model.outputs_in_blocks

    def recorded(self: Model, graph: Graphs, device: torch.device) -> NDArray[np.float32]:
        blocks.append(graph.n_nodes)
        return in_blocks(self, graph, device)

    monkeypatch.setattr(Model, "outputs_in_blocks", recorded)
    monkeypatch.setattr("egocnn.model.HUGE", 1000)
    monkeypatch.setattr("egocnn.encode.blocks.NODES_AT_ONCE", 1024)
    monkeypatch.setattr("egocnn.encode.patches.NODES_AT_ONCE", 1024)
    for stage in (large_store.make, large_store.train, large_store.prepare, large_store.predict):
        stage(options, tmp_path)
    assert '"graphs": 1' in capsys.readouterr().out
    assert blocks == [3000]
    monkeypatch.setattr("egocnn.model.HUGE", 10_000)
    (row,) = rows(tmp_path / "it.csv")
    graphs = read(tmp_path / "store")
    assert (len(graphs), graphs.n_nodes, graphs.n_edges) == (1, 3000, 20_000)
    (expected,) = prediction_rows(Model.load(tmp_path / "run"), graphs)
    assert (row["name"], row["predicted"]) == ("random", expected["predicted"])
    assert float(row["probability"]) == pytest.approx(expected["probability"], rel=1e-4)
