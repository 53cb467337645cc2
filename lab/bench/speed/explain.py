"""Explaining molecules: ours beside PyTorch Geometric's GNNExplainer, on the same graphs and device.

Both networks have their default sizes and are untrained: time does not depend on what the weights are. Ours explains
many graphs in one call, and also one at a time; GNNExplainer learns its masks for one graph after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.explain import explain
from egocnn.model import Model
from lab.bench.tools.systems import OURS, BenchSettings, TimedCase, TimedSystem, measure_systems
from lab.bench.tools.timing import Work
from lab.families import read
from lab.rivals import fit, gnn_explainer

DATA = "compounds:isomers"
PEER = "PyG GNNExplainer (100 steps)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainSizes:
    graphs: int = 512  # explained in one call
    few: int = 5  # explained one after the other
    data: str = DATA


QUICK = ExplainSizes(graphs=128, few=2)


def bench_explain(setting: BenchSettings, sizes: ExplainSizes | None = None) -> dict[str, Any]:
    sizes = sizes or (QUICK if setting.quick else ExplainSizes())
    graphs = read(sizes.data)[: sizes.graphs]
    few = graphs[: sizes.few]
    shape = {"data": sizes.data, "nodes_per_graph": round(graphs.n_nodes / len(graphs), 1)}
    peer = TimedSystem(name=PEER, build=partial(_peer, few, graphs, setting), same_function=False, wall=True)
    cases = []
    for pieces in ([graphs], [few[[g]] for g in range(len(few))]):
        at_once = len(pieces[0])
        name = f"a graph, {at_once} in one call" if at_once > 1 else "a graph, one at a time"
        setting.say(name)
        ours = TimedSystem(name=OURS, build=_our_builder(pieces, setting), wall=True, per_call=at_once)
        # the peer is timed again beside either: a machine that others use too changes its pace
        found = measure_systems([ours, peer], setting)
        cases.append(TimedCase(name=name, shape=shape | {"graphs_in_one_call": at_once}, measurements=found).to_plain())
    return {"cases": cases}


def _our_builder(pieces: Sequence[Graphs], setting: BenchSettings) -> Callable[[], list[Work]]:
    def build() -> list[Work]:
        config = ModelConfig()
        torch.manual_seed(setting.seed)
        predictor = Model.build(config, Encoder.fit(pieces[0], config))
        device = setting.device.type
        return [partial(explain, predictor, piece, fidelity=False, device=device) for piece in pieces]

    return build


def _peer(few: Graphs, graphs: Graphs, setting: BenchSettings) -> list[Work]:
    model = fit(graphs, seed=setting.seed, epochs=0, device=setting.device.type)
    return [partial(gnn_explainer, model, few[[g]], seed=setting.seed) for g in range(len(few))]
