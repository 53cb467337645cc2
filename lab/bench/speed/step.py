"""A whole training step of a network of five layers: ours beside networks of PyTorch Geometric's layers.

Forward, loss, backward, clipping and AdamW on both sides, in the same arithmetic, over the same batches of real graphs.
Once with the batch built beforehand, once with the building inside the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.encoder import Encoder
from egocnn.model import Model
from egocnn.nn import EgoCNN
from egocnn.nn.engines import Neighbours
from egocnn.train.engines.common import STEEPEST, Member, Progress
from egocnn.train.engines.recorded.engine import RecordedEngine
from lab.bench.tools.ceilings import Precision
from lab.bench.tools.datasets import read_each
from lab.bench.tools.peers import GAT, GIN, GIN_TWO, PNA, Peer, PeerNetwork
from lab.bench.tools.problems import degree_histogram, with_loops
from lab.bench.tools.systems import OURS, BenchSettings, TimedCase, TimedSystem, measure_systems
from lab.bench.tools.timing import Work
from lab.rivals.gine import Inputs, make_inputs

DENSE = "egocnn on gather + matrix product"
EAGER = "egocnn, not recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSizes:
    data: Sequence[str] = ("NCI1", "REDDIT-BINARY", "COLLAB")
    batch_sizes: Sequence[int] = (32,)
    batches: int = 8  # different ones, taken in turn
    precisions: Sequence[Precision] = ("float32",)
    model: ModelConfig = field(default_factory=lambda: ModelConfig(depth=5))


GPU = StepSizes(precisions=("bfloat16",))
CPU = StepSizes(batches=4)
QUICK = StepSizes(batch_sizes=(4,), batches=1)


def bench_step(setting: BenchSettings, sizes: StepSizes | None = None) -> dict[str, Any]:
    sizes = sizes or (QUICK if setting.quick else GPU if setting.device.type == "cuda" else CPU)
    cases: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for name, graphs in read_each(sizes.data, setting, missing):
        for batch_size in sizes.batch_sizes:
            material = Material.choose(graphs, sizes, batch_size, setting)
            for precision in sizes.precisions:
                cases += [case.to_plain() for case in _cases(name, material, precision)]
    return {"cases": cases, "missing": missing}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """Some graphs of one data set, cut into batches."""

    graphs: Graphs  # those of all batches, in order
    batch_size: int
    model: ModelConfig
    predictor: Model
    setting: BenchSettings

    @staticmethod
    def choose(graphs: Graphs, sizes: StepSizes, batch_size: int, setting: BenchSettings) -> Material:
        batch_size = min(batch_size, len(graphs))
        wanted = min(len(graphs) // batch_size, sizes.batches) * batch_size
        chosen = graphs[np.random.default_rng(setting.seed).choice(len(graphs), wanted, replace=False)]
        torch.manual_seed(setting.seed)
        predictor = Model.build(sizes.model, Encoder.fit(chosen, sizes.model))
        return Material(graphs=chosen, batch_size=batch_size, model=sizes.model, predictor=predictor, setting=setting)

    @property
    def batches(self) -> list[Graphs]:
        first = range(0, len(self.graphs), self.batch_size)
        return [self.graphs[np.arange(f, f + self.batch_size)] for f in first]

    @property
    def targets(self) -> list[Tensor]:
        assert self.graphs.target is not None
        target = torch.from_numpy(self.graphs.target.astype(np.int64)).to(self.setting.device)
        return list(torch.split(target, self.batch_size))

    def ours(self) -> tuple[EgoCNN, EncodedGraphs, list[Tensor]]:
        """The network, the prepared graphs and the numbers of the graphs in every batch, all on the device."""
        device = self.setting.device
        prepared = self.predictor.encode(self.graphs).to(device)
        numbers = torch.split(torch.arange(len(self.graphs), device=device), self.batch_size)
        return self.predictor.networks[0].to(device), prepared, list(numbers)

    def peer(self, peer: Peer) -> PeerNetwork:
        sample = make_inputs(self.graphs, torch.device("cpu"))
        torch.manual_seed(self.setting.seed)
        network = PeerNetwork(
            peer,
            self.model,
            columns=sample.x.shape[1],
            degrees=degree_histogram(sample.edge_index, len(sample.x)),
            outputs=len(self.graphs.class_names),
        )
        return network.to(self.setting.device)


def _cases(name: str, material: Material, precision: Precision) -> Iterator[TimedCase]:
    setting, graphs = material.setting, material.graphs
    shape = {
        "data": name,
        "batch_size": material.batch_size,
        "batches": len(material.batches),
        "nodes_per_graph": round(graphs.n_nodes / len(graphs), 1),
        "edges_per_graph": round(len(graphs.edges) / len(graphs), 1),
        "depth": material.model.depth,
        "width": material.model.width,
        "k": material.model.k,
        "precision": precision,
    }
    title = f"{name}, {material.batch_size} graphs, {precision}"
    for building in (False, True):
        words = ", batch built in the step" if building else ""
        peers = (GIN,) if building else (GIN, GIN_TWO, GAT, PNA)  # building is the same work for all of them
        setting.say(title + words)
        systems = [TimedSystem(name=OURS, build=our_builder(material, precision, building))]
        if building and setting.device.type == "cuda":  # the way that networks are trained there
            systems = [
                TimedSystem(name=OURS, build=recorded_builder(material, precision)),
                TimedSystem(name=EAGER, build=our_builder(material, precision, building)),
            ]
        if not building:
            systems.append(TimedSystem(name=DENSE, build=our_builder(material, precision, building, dense=True)))
        systems += [
            TimedSystem(name=peer.name, build=peer_builder(material, precision, building, peer), same_function=False)
            for peer in peers
        ]
        yield TimedCase(
            name=title + words,
            shape=shape | {"batch_built_in_step": building},
            measurements=measure_systems(systems, setting),
        )


def our_builder(
    material: Material, precision: Precision, building: bool, *, dense: bool = False
) -> Callable[[], list[Work]]:
    """``dense``: a neighbour table without any plan is gathered whole, absent neighbours and all."""

    def build() -> list[Work]:
        network, prepared, numbers = material.ours()

        def forward(chosen: Tensor) -> Callable[[], Tensor]:
            if building:
                return lambda: network(prepared.batch(chosen)).output
            batch = prepared.batch(chosen)
            if dense:
                batch = replace(batch, neighbours=Neighbours(batch.neighbours.table))
            return lambda: network(batch).output

        return training_steps(network, [forward(chosen) for chosen in numbers], material.targets, precision)

    return build


def recorded_builder(material: Material, precision: Precision) -> Callable[[], list[Work]]:
    """The step that ``egocnn train`` takes on a GPU: batch, forward, backward and update replayed as one CUDA graph."""

    def build() -> list[Work]:
        network, prepared, _ = material.ours()
        config = TrainConfig(batch_size=material.batch_size, device="cuda", precision=precision_name(precision))
        on_host = prepared.to(torch.device("cpu"))
        member = Member(network, on_host, on_host, material.setting.seed)
        engine = RecordedEngine([member], [Progress.begin(network, config)], config)
        plan, step = engine._schedule.epoch(1, np.ones(1, bool)), engine._train
        step.begin(plan)

        def restart() -> None:
            step.number.zero_()
            step(plan.shapes[0])

        return [restart, *(partial(step, shape) for shape in plan.shapes[1:])]

    return build


def precision_name(precision: Precision) -> Literal["float32", "bfloat16"]:
    return "bfloat16" if precision == "bfloat16" else "float32"


def peer_builder(material: Material, precision: Precision, building: bool, peer: Peer) -> Callable[[], list[Work]]:
    def build() -> list[Work]:
        network = material.peer(peer)
        device = material.setting.device

        def forward(graphs: Graphs) -> Callable[[], Tensor]:
            if building:
                collate = collating(graphs, peer, device)
                return lambda: network(collate())
            inputs = peer_inputs(graphs, peer, device)
            return lambda: network(inputs)

        return training_steps(network, [forward(graphs) for graphs in material.batches], material.targets, precision)

    return build


def peer_inputs(graphs: Graphs, peer: Peer, device: torch.device) -> Inputs:
    inputs = make_inputs(graphs, device)
    if peer.reads_itself:
        return inputs
    edges = with_loops(inputs.edge_index, len(inputs.x))
    return Inputs(inputs.x, edges, inputs.edge_attr, inputs.graph_of, inputs.n_graphs)


def collating(graphs: Graphs, peer: Peer, device: torch.device) -> Callable[[], Inputs]:
    """The usual way of PyTorch Geometric's loader: join graphs on the host, then move the batch."""
    from torch_geometric.data import Batch, Data

    singles = [peer_inputs(graphs[[g]], peer, torch.device("cpu")) for g in range(len(graphs))]
    data = [Data(x=single.x, edge_index=single.edge_index) for single in singles]

    def collate() -> Inputs:
        batch = Batch.from_data_list(data).to(device)
        return Inputs(batch.x, batch.edge_index, batch.x, batch.batch, len(data))

    return collate


def training_steps(
    network: nn.Module, forwards: Sequence[Callable[[], Tensor]], targets: Sequence[Tensor], precision: Precision
) -> list[Work]:
    """One call for every batch; they train one and the same network."""
    config = TrainConfig()
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    network.train()

    def step(forward: Callable[[], Tensor], target: Tensor) -> Work:
        def work() -> None:
            half = precision == "bfloat16"
            with torch.autocast(target.device.type, torch.bfloat16) if half else nullcontext():
                logits = forward()
            loss = F.cross_entropy(logits.float(), target)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(network.parameters(), STEEPEST)
            optimizer.step()

        return work

    return [step(forward, target) for forward, target in zip(forwards, targets, strict=True)]
