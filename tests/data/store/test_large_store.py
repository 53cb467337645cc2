"""The benchmark of one huge graph, with a small one: through prepare and predict, in blocks, to the same prediction."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from lab.measure.large_store import make, predict, prepare, train
from egocnn.show.predictions import predictions
from egocnn.model import Predictor
from egocnn.data.read import read
from tests.support.commands import rows


def test_a_graph_goes_through_prepare_and_predict_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = Namespace(nodes=3000, edges=20_000, width=8, seed=0)
    blocks: list[int] = []

    def counted(n_nodes: int) -> list[slice]:
        blocks.append(n_nodes)
        return [slice(first, min(first + 1024, n_nodes)) for first in range(0, n_nodes, 1024)]

    monkeypatch.setattr("egocnn.train.blockwise.BlockwisePredictor.of", _small_is_huge)
    monkeypatch.setattr("egocnn.train.blockwise._blocks", counted)
    monkeypatch.setattr("egocnn.encode.patches.NODES_AT_ONCE", 1024)
    for stage in (make, train, prepare, predict):
        stage(options, tmp_path)
    assert '"graphs": 1' in capsys.readouterr().out
    assert set(blocks) == {3000}
    (row,) = rows(tmp_path / "it.csv")
    graphs = read(tmp_path / "store")
    assert (len(graphs), graphs.n_nodes, graphs.n_edges) == (1, 3000, 20_000)
    (expected,) = predictions(Predictor.load(tmp_path / "run"), graphs)
    assert (row["name"], row["predicted"]) == ("random", expected.predicted)
    assert float(row["probability"]) == pytest.approx(expected.probability, rel=1e-4)


def _small_is_huge(predictor: Predictor) -> Predictor:
    from dataclasses import fields

    from egocnn.train.blockwise import BlockwisePredictor

    return BlockwisePredictor(**{f.name: getattr(predictor, f.name) for f in fields(Predictor)}, huge=1000)
