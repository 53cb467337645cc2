"""The benchmark of one huge graph, with a small one: through prepare and predict, in blocks, to the same prediction."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.model import Model
from egocnn.show.streaming import predictions
from lab.bench.limits.large_store import make, predict, prepare, train
from tests.support.commands import rows


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
    for stage in (make, train, prepare, predict):
        stage(options, tmp_path)
    assert '"graphs": 1' in capsys.readouterr().out
    assert blocks == [3000]
    monkeypatch.setattr("egocnn.model.HUGE", 10_000)
    (row,) = rows(tmp_path / "it.csv")
    graphs = read(tmp_path / "store")
    assert (len(graphs), graphs.n_nodes, graphs.n_edges) == (1, 3000, 20_000)
    (expected,) = predictions(Model.load(tmp_path / "run"), graphs)
    assert (row["name"], row["predicted"]) == ("random", expected.predicted)
    assert float(row["probability"]) == pytest.approx(expected.probability, rel=1e-4)
