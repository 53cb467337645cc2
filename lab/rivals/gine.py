"""A graph isomorphism network that sees bonds (GINE): graphs -> a trained network, on the same parts as ours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.config import TrainConfig
from egocnn.data.arrays import Floats, Ints, starts
from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, DataError, MissingExtraError
from egocnn.nn.device import choose_device
from egocnn.train.metrics import accuracy, r2
from egocnn.train.validation import part_numbers
from lab.rivals.rival import with_own_labels

NODES_AT_ONCE = 1 << 13  # Nodes per portion where nothing is learned: bounds the memory.


@dataclass(frozen=True, slots=True, kw_only=True)
class GINEConfig:
    """The network."""

    layers: int = 3
    width: int = 128
    readout: Literal["mean", "max", "sum"] = "mean"  # From node embeddings to one vector per graph.
    hidden: int = 128  # Neurons of the dense layer before the output; 0: a linear head, for which CAM is exact.

    def __post_init__(self) -> None:
        if self.layers < 1 or self.width < 1 or self.hidden < 0:
            raise ConfigError(f"layers and width must be at least 1 and hidden at least 0, got {self}")
        if self.readout not in ("mean", "max", "sum"):
            raise ConfigError(f"readout must be mean, max or sum, got {self.readout!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """Graphs as PyTorch Geometric reads them, all in one disconnected graph."""

    x: Tensor  # (N, F) node labels one-hot, then attributes; ones where there are neither
    edge_index: Tensor  # (2, M) every edge in both directions
    edge_attr: Tensor  # (M, A) edge labels one-hot, then the weight; ones where there are neither
    graph_of: Tensor  # (N)
    n_graphs: int


class GINE(nn.Module):
    r"""Sum over neighbours, bonds added to what they send (Hu et al., ICLR 2020).

    .. math:: h'_n = \mathrm{ReLU}\Big(\mathrm{norm}\Big(\mathrm{MLP}\big((1 + \epsilon) h_n +
              \sum_{m \in N(n)} \mathrm{ReLU}(h_m + W e_{mn})\big)\Big)\Big)

    Shapes: x (N, F), edge_index (2, M), edge_attr (M, A) -> logits (B, C)
    """

    def __init__(self, n_node: int, n_edge: int, n_classes: int, config: GINEConfig) -> None:
        super().__init__()
        try:
            from torch_geometric.nn import GINEConv
        except ImportError:
            raise MissingExtraError("torch-geometric", "pyg") from None
        width = config.width
        self.columns = n_node, n_edge
        self.readout = config.readout
        self.embed = nn.Linear(n_node, width, bias=False)  # of one-hot rows: a table of embeddings
        self.convs = nn.ModuleList(
            GINEConv(
                nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)),
                train_eps=True,
                edge_dim=n_edge,
            )
            for _ in range(config.layers)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(config.layers))
        self.head: nn.Module = nn.Linear(width, n_classes)
        if config.hidden:
            self.head = nn.Sequential(nn.Linear(width, config.hidden), nn.ReLU(), nn.Linear(config.hidden, n_classes))

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor, n_graphs: int | None = None
    ) -> Tensor:
        """The order and names of the arguments are those that PyTorch Geometric's explainers call with."""
        size = int(batch.max()) + 1 if n_graphs is None else n_graphs
        return self.classify(self.encode(x, edge_index, edge_attr), batch, size)

    def encode(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """The last embeddings (N, D)."""
        h: Tensor = self.embed(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = F.relu(norm(conv(h, edge_index, edge_attr)))
        return h

    def classify(self, h: Tensor, batch: Tensor, n_graphs: int) -> Tensor:
        empty = h.new_zeros(n_graphs, h.shape[1])
        if self.readout == "max":
            # embeddings are rectified, so a graph without nodes reads as one in which nothing is lit
            pooled = empty.scatter_reduce(0, batch[:, None].expand_as(h), h, "amax")
        else:
            pooled = empty.index_add(0, batch, h)
        if self.readout == "mean":
            pooled = pooled / torch.bincount(batch, minlength=n_graphs).clamp(min=1)[:, None]
        logits: Tensor = self.head(pooled)
        return logits


@dataclass(frozen=True, slots=True, eq=False)
class FittedGINE:
    """A trained network and the names that its inputs and outputs are counted by."""

    network: GINE
    node_label_names: tuple[str, ...]
    edge_label_names: tuple[str, ...]
    class_names: tuple[str, ...]
    epochs: int  # passes over the training part
    validation_accuracy: float  # or R² where a value is predicted
    shift: float = 0.0
    scale: float = 1.0  # value = shift + scale * output, where a value is predicted

    def prepare(self, graphs: Graphs) -> Graphs:
        """The graphs with labels and classes counted as in training."""
        return graphs.with_names(nodes=self.node_label_names, edges=self.edge_label_names, classes=self.class_names)

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def inputs(self, prepared: Graphs) -> Inputs:
        return _inputs(self.network, prepared)

    @torch.no_grad()
    def probabilities(self, graphs: Graphs) -> Floats:
        """(G, C)"""
        logits = _predict(self.network, self.prepare(graphs))
        probability: Floats = logits.softmax(1).cpu().numpy()
        return probability

    @torch.no_grad()
    def values(self, graphs: Graphs) -> Floats:
        """(G) where a value is predicted"""
        outputs = _predict(self.network, self.prepare(graphs))[:, 0]
        value: Floats = self.shift + self.scale * outputs.double().cpu().numpy()
        return value

    def predict(self, graphs: Graphs) -> Ints:
        """(G) positions in ``class_names``"""
        predicted: Ints = self.probabilities(graphs).argmax(axis=1)
        return predicted

    def accuracy(self, graphs: Graphs) -> float:
        return float(np.mean(self.predict(graphs) == self.prepare(graphs).target))


def fit(
    graphs: Graphs,
    *,
    config: GINEConfig | None = None,
    seed: int = 0,
    epochs: int = 60,
    patience: int = 20,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    validation: float = 0.1,
    device: str = "cpu",
) -> FittedGINE:
    """Train with Adam until epochs or patience run out; the epoch that did best on the validation part is kept.

    Graphs that the data marks as its test part are never looked at. ``epochs=0`` gives the untrained network.
    """
    split = TrainConfig(seed=seed, validation=validation)
    learned, chosen_by = (graphs[numbers] for numbers in part_numbers(graphs.outline, split))
    learned = with_own_labels(learned)
    chosen_by = chosen_by.with_names(
        nodes=learned.node_label_names, edges=learned.edge_label_names, classes=learned.class_names
    )
    shift, scale = _unit(learned)
    learned, chosen_by = (_in_unit(part, shift, scale) for part in (learned, chosen_by))
    sample = make_inputs(learned[:1], torch.device("cpu"))
    sizes = sample.x.shape[1], sample.edge_attr.shape[1], len(learned.class_names) or 1
    place = choose_device(device)
    with seeded(seed, place):
        network = GINE(*sizes, config or GINEConfig()).to(place)
        optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
        best, kept, epoch, best_epoch = _judge(network, chosen_by), _copy(network), 0, 0
        while epoch < epochs and epoch - best_epoch < patience:
            epoch += 1
            _train_epoch(network, optimizer, learned, batch_size)
            judged = _judge(network, chosen_by)
            if epoch == 1 or judged > best:
                best, kept, best_epoch = judged, _copy(network), epoch
    network.load_state_dict(kept)
    network.zero_grad()
    network.eval()
    names = learned.node_label_names, learned.edge_label_names, learned.class_names
    return FittedGINE(network, *names, epoch, best[0], shift, scale)


def make_inputs(graphs: Graphs, device: torch.device) -> Inputs:
    def one_hot(codes: Ints | None, size: int) -> list[Floats]:
        return [] if codes is None else [(codes[:, None] == np.arange(size)).astype(np.float32)]  # -1: a row of zeros

    x = one_hot(graphs.node_label, len(graphs.node_label_names))
    x += [] if graphs.node_attr is None else [graphs.node_attr.astype(np.float32)]
    edge_attr = one_hot(graphs.edge_label, len(graphs.edge_label_names))
    edge_attr += [] if graphs.edge_weight is None else [graphs.edge_weight.astype(np.float32)[:, None]]
    x = x or [np.ones((graphs.n_nodes, 1), np.float32)]
    edge_attr = edge_attr or [np.ones((graphs.n_entries, 1), np.float32)]
    return Inputs(
        x=torch.from_numpy(np.concatenate(x, axis=1)).to(device),
        edge_index=torch.from_numpy(np.stack([graphs.entry_node, graphs.indices]).astype(np.int64)).to(device),
        edge_attr=torch.from_numpy(np.concatenate(edge_attr, axis=1)).to(device),
        graph_of=torch.from_numpy(graphs.graph_of.astype(np.int64)).to(device),
        n_graphs=len(graphs),
    )


def _inputs(network: GINE, graphs: Graphs) -> Inputs:
    inputs = make_inputs(graphs, next(network.parameters()).device)
    there = inputs.x.shape[1], inputs.edge_attr.shape[1]
    if there != network.columns:
        wanted = "{} columns per node and {} per edge".format(*network.columns)
        raise DataError(f"the network was trained with {wanted}; these graphs have {there[0]} and {there[1]}")
    return inputs


def logits_of(network: GINE, inputs: Inputs) -> Tensor:
    logits: Tensor = network(inputs.x, inputs.edge_index, inputs.edge_attr, inputs.graph_of, inputs.n_graphs)
    return logits


def portions(graphs: Graphs) -> Iterator[Graphs]:
    """All graphs in order, cut so that no portion has many more than ``NODES_AT_ONCE`` nodes."""
    cuts = starts(graphs.node_ptr[1:] // NODES_AT_ONCE)[1:]
    for chosen in np.split(np.arange(len(graphs)), cuts):
        yield graphs[chosen]


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Random numbers from the seed, and one thread; both are afterwards as they were before.

    Small tensors gain nothing from more threads, and with one of them sums come out the same every time.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def _train_epoch(network: GINE, optimizer: torch.optim.Optimizer, learned: Graphs, batch_size: int) -> None:
    order = torch.randperm(len(learned))
    for chosen in torch.tensor_split(order, math.ceil(len(learned) / batch_size)):  # equal sizes: no batch of one
        batch = learned[chosen.numpy()]
        network.train(batch.n_nodes > 1)  # a single node has no spread for the norms to learn
        logits = logits_of(network, _inputs(network, batch))
        loss = _loss(logits, _targets(batch).to(logits.device))
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimizer.step()


@torch.no_grad()
def _judge(network: GINE, graphs: Graphs) -> tuple[float, float]:
    """Accuracy or R², then the likelihood: more is better."""
    logits, target = _predict(network, graphs).cpu(), _targets(graphs)
    loss = float(_loss(logits, target))
    score = r2(logits[:, 0], target) if target.is_floating_point() else accuracy(logits, target)
    return score, -loss if math.isfinite(loss) else -math.inf


def _predict(network: GINE, graphs: Graphs) -> Tensor:
    network.eval()
    return torch.cat([logits_of(network, _inputs(network, portion)) for portion in portions(graphs)])


def _loss(outputs: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(outputs[:, 0], target) if target.is_floating_point() else F.cross_entropy(outputs, target)


def _targets(graphs: Graphs) -> Tensor:
    assert graphs.target is not None
    return torch.from_numpy(graphs.target.astype(np.int64 if graphs.is_classification else np.float32))


def _unit(learned: Graphs) -> tuple[float, float]:
    """Mean and standard deviation of the values to be learned; classes have no unit."""
    assert learned.target is not None
    return (0.0, 1.0) if learned.is_classification else (float(learned.target.mean()), float(learned.target.std()))


def _in_unit(graphs: Graphs, shift: float, scale: float) -> Graphs:
    assert graphs.target is not None
    return graphs if graphs.is_classification else graphs.replace(target=(graphs.target - shift) / scale)


def _copy(network: GINE) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
