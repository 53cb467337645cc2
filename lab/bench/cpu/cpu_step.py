"""How long is a training step on a CPU, beside the dense ego-convolution and PyG's GIN? One run, one machine -> JSON.

    EGOCNN_DATA=... python -m lab measure cpu_step -o results/cpu_step.json

A step is forward, backward and AdamW (fused, for everybody) on the same molecules with the same threads. The peers:

- dense: our network, every ego network gathered in full and multiplied at once (``ego_conv_reference``);
- gin: GINConv with two-layer MLPs, batch norm and ReLU after each, maximum over the nodes, the same two-layer head;
- gin_model: the same with PyG's own ``GIN(norm="batch_norm")`` as body, which also normalises inside the MLPs.

Ours reads patches of one hop before its ego-convolutions, so it sees one hop further than a GIN of equal depth; the
network of ``ego_equal_reach`` has one ego-convolution less and sees exactly as far. Rounds of all are interleaved
and the quickest of each counts, as what else runs on the machine can only add to the time. Steps "with batch" also put
the batch together, from a prepared collection here and with ``Batch.from_data_list`` there.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.data.read import read
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.encoder import Encoder
from egocnn.model import Model
from egocnn.nn import EgoCNN
from egocnn.nn.batch import Batch
from egocnn.nn.engines import Neighbours
from lab.bench.tools.timing import Work
from lab.record import arguments, write_measured
from lab.rivals.gine import make_inputs

GOALS = (("dense", "ego", 4.0), ("gin", "ego", 1.0), ("gin_with_batch", "ego_with_batch", 1.0))
"""peer, ours, how many times faster ours must be"""


@dataclass(frozen=True, slots=True)
class Size:
    graphs: int = 128
    depth: int = 5
    width: int = 128


class PygGIN(nn.Module):
    """L layers h' = ReLU(norm(MLP(h + sum of neighbours))), the maximum over nodes, two dense layers."""

    def __init__(self, n_features: int, n_classes: int, size: Size, *, model: bool) -> None:
        super().__init__()
        import torch_geometric.nn as pyg

        D, widths = size.width, (n_features, *[size.width] * size.depth)
        self.body: nn.Module | None = pyg.GIN(n_features, D, size.depth, norm="batch_norm") if model else None
        mlps = [nn.Sequential(nn.Linear(i, D), nn.ReLU(), nn.Linear(D, D)) for i in widths[:-1]]
        self.convs = nn.ModuleList(() if model else map(pyg.GINConv, mlps))
        self.norms = nn.ModuleList(nn.BatchNorm1d(D) for _ in self.convs)
        self.hidden, self.out = nn.Linear(D, D), nn.Linear(D, n_classes)

    def forward(self, x: Tensor, edge_index: Tensor, graph_of: Tensor, n_graphs: int) -> Tensor:
        from torch_geometric.nn import global_max_pool

        h = x if self.body is None else self.body(x, edge_index)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = F.relu(norm(conv(h, edge_index)))
        logits: Tensor = self.out(F.relu(self.hidden(global_max_pool(h, graph_of, n_graphs))))
        return logits


def stepper(network: nn.Module, logits: Callable[[], Tensor], target: Tensor) -> Work:
    # so slow that all rounds compute with much the same numbers, and none with those of a batch learned by heart
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-6, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(F.cross_entropy(logits(), target))
        optimizer.step()

    return step


def build(graphs: Graphs, size: Size, depth: int) -> tuple[EgoCNN, EncodedGraphs]:
    config = ModelConfig(depth=depth, width=size.width, hidden=size.width, dropout=0.0)
    encoder = Encoder.fit(graphs, config)
    network = Model.build(config, encoder).networks[0]
    return network.train(), encoder.apply(graphs, config)


def works(graphs: Graphs, chosen: Tensor, size: Size) -> tuple[dict[str, Work], Batch]:
    """Every step that is measured, and our batch."""
    from torch_geometric.data import Batch as Joined
    from torch_geometric.data import Data

    network, data = build(graphs, size, size.depth)
    nearer, _ = build(graphs, size, size.depth - 1)
    batch = data.batch(chosen)
    target = data.target[chosen] if data.target is not None else torch.zeros(len(chosen), dtype=torch.long)
    dense = replace(batch, neighbours=Neighbours(batch.neighbours.table))
    molecules = [make_inputs(graphs[[int(g)]], torch.device("cpu")) for g in chosen]
    listed = [Data(x=molecule.x, edge_index=molecule.edge_index) for molecule in molecules]
    joined: Any = Joined.from_data_list(listed)  # its fields are made on the fly: no type knows them
    features, classes = joined.x.shape[1], len(graphs.class_names)
    gin, model = (PygGIN(features, classes, size, model=model) for model in (False, True))

    def run(peer: PygGIN, batch: Any) -> Tensor:
        logits: Tensor = peer(batch.x, batch.edge_index, batch.batch, len(chosen))
        return logits

    return {
        "ego": stepper(network, lambda: network(batch).output, target),
        "ego_equal_reach": stepper(nearer, lambda: nearer(batch).output, target),
        "dense": stepper(network, lambda: network(dense).output, target),
        "gin": stepper(gin, lambda: run(gin, joined), target),
        "gin_model": stepper(model, lambda: run(model, joined), target),
        "ego_with_batch": stepper(network, lambda: network(data.batch(chosen)).output, target),
        "gin_with_batch": stepper(gin, lambda: run(gin, Joined.from_data_list(listed)), target),
        "ego_batch_alone": lambda: data.batch(chosen),
        "gin_batch_alone": lambda: Joined.from_data_list(listed),
    }, batch


def interleaved(works: dict[str, Work], rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of each, all of them in turn, after a first round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            if number:
                times[name].append((time.perf_counter() - started) * 1000)
    return {name: {"best": round(min(of), 2), "median": round(statistics.median(of), 2)} for name, of in times.items()}


def measure(graphs: Graphs, size: Size, rounds: int) -> dict[str, Any]:
    torch.manual_seed(0)
    chosen = torch.from_numpy(np.random.default_rng(0).permutation(len(graphs))[: size.graphs])
    busy = os.getloadavg()[0]
    steps, batch = works(graphs, chosen, size)
    times = interleaved(steps, rounds)
    table, plan = batch.neighbours.table, batch.neighbours.plan
    assert plan is not None, "ranked neighbours have no gaps"

    def ratio(peer: str, ours: str, kind: str = "best") -> float:
        return round(times[peer][kind] / times[ours][kind], 2)

    goals = [
        {"ours": ours, "peer": peer, "times_faster": ratio(peer, ours), "goal": goal, "met": ratio(peer, ours) >= goal}
        for peer, ours, goal in GOALS
    ]
    others = [("gin", "ego_equal_reach"), ("gin_model", "ego"), ("gin_batch_alone", "ego_batch_alone")]
    return {
        "what": "milliseconds of a training step (forward, backward, fused AdamW) on a CPU",
        "graphs": len(chosen),
        "nodes": len(table),
        "neighbours_per_node": round(float((table >= 0).sum()) / len(table), 2),
        "products_per_node": {  # node times filters, in one layer
            "dense": table.shape[1] + 1,
            "present": round(float((table >= 0).sum()) / len(table) + 1, 2),
            "ours": round(len(plan.products.sources) / len(table) + 1, 2),
        },
        "depth": size.depth,
        "width": size.width,
        "threads": torch.get_num_threads(),
        "rounds": rounds,
        "load_average": [round(busy, 2), round(os.getloadavg()[0], 2)],
        "milliseconds": times,
        "goals": goals,
        "times_faster": {f"{peer} / {ours}": ratio(peer, ours) for peer, ours in others},
        "times_faster_by_median": {f"{peer} / {ours}": ratio(peer, ours, "median") for peer, ours, _ in GOALS},
    }


def main(words: Sequence[str]) -> None:
    parser = arguments("cpu_step", __doc__)
    parser.add_argument("--data", default="NCI1", help="graphs with classes (default: NCI1)")
    parser.add_argument("--graphs", type=int, default=Size().graphs, help="molecules in a batch")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(words)
    torch.set_num_threads(options.threads)
    measured = measure(read(options.data), Size(graphs=options.graphs), options.rounds) | {"data": options.data}
    write_measured("cpu_step", words, options.out, measured, "torch_geometric")
