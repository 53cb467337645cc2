"""How much faster is explaining than PyG's GNNExplainer? The same molecules, one run, one machine -> JSON.

    python -m lab measure explain_speed -o results/explain_speed.json

Both networks have their default sizes and are untrained: time does not depend on what the weights are. Ours explains
all molecules in one call, as ``egocnn explain`` does, and also one at a time; GNNExplainer knows single graphs only.
Each is timed after a first round that does not count, with as many threads as torch takes by itself. The generated
compounds are used, so that no data is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from egocnn.config import ExplainConfig, ModelConfig
from egocnn.encode.encoder import Encoder
from egocnn.explain import explain
from egocnn.model import Model
from lab.families import read
from lab.record import arguments, write_measured
from lab.rivals import fit, gnn_explainer

GRAPHS, FEW = 512, 10
RELEVANCE = ExplainConfig(technique="relevance", select="threshold")


def milliseconds(work: Callable[[], Any], graphs: int, rounds: int) -> float:
    """The quickest round counts: what else runs on the machine can only add to the time."""
    work()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times) / graphs * 1000


def main(words: Sequence[str]) -> None:
    options = arguments("explain_speed", __doc__).parse_args(words)
    graphs = read("compounds:isomers")[:GRAPHS]
    few, config = graphs[:FEW], ModelConfig()
    torch.manual_seed(0)
    predictor = Model.build(config, Encoder.fit(graphs, config))
    peer = fit(graphs, epochs=0)
    together = milliseconds(lambda: explain(predictor, graphs, RELEVANCE, fidelity=False, device="cpu"), GRAPHS, 5)
    singly = milliseconds(
        lambda: [explain(predictor, few[[g]], RELEVANCE, fidelity=False, device="cpu") for g in range(FEW)], FEW, 5
    )
    theirs = milliseconds(lambda: gnn_explainer(peer, few), FEW, 2)
    measured = {
        "what": "milliseconds a graph: relevance beside GNNExplainer (100 steps, PyG's default) on generated isomers",
        "nodes_per_graph": round(graphs.n_nodes / len(graphs), 1),
        "threads": torch.get_num_threads(),
        "relevance_together": round(together, 3),
        "relevance_one_by_one": round(singly, 3),
        "gnnexplainer": round(theirs, 1),
        "times_faster_together": round(theirs / together, 1),
        "times_faster_one_by_one": round(theirs / singly, 1),
    }
    write_measured("explain_speed", words, options.out, measured, "torch_geometric")
