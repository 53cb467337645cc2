r"""The paper's attention: a layer and a linear head trained on frozen ego layers (section 3.2; supplement, section 2).

.. math:: a_n = \mathrm{softmax}_n\big(h^{(L)}_n \cdot u\big), \qquad z = V \sum_n a_n h^{(L)}_n + c

The softmax runs over the nodes of a graph. Every network has a head of its own; only u, V and c are trained, in
seconds. Being linear, it ties attention to importance. It attends to the deepest embeddings alone."""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from egocnn.data.graphs import Graphs
from egocnn.errors import ConfigError, RunError, rule
from egocnn.files import digest_of_file, regular, replacing
from egocnn.model import MODEL, Model
from egocnn.nn import EgoCNN, Output
from egocnn.nn.batch import Batch, Batchable
from egocnn.nn.device import choose_device
from egocnn.nn.predict import portions
from egocnn.train.checkpoint import check_seal, sealed
from egocnn.train.metrics import loss_of

FILE = "attention.safetensors"
GRAPHS_AT_ONCE = 64  # Graphs per step.


class AttentionHead(nn.Module):
    """Node embeddings (N, D) -> attention (N), logits (B, C)"""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.attend = nn.Parameter(torch.zeros(width))
        self.out = nn.Linear(width, outputs)

    def scores(self, h: Tensor, batch: Batch) -> Tensor:
        """(N) the attention of every node; 1 over the nodes of a graph"""
        score = h @ self.attend
        largest = score.new_full((len(batch),), -torch.inf).scatter_reduce(0, batch.graph_of, score, "amax")
        weight = torch.exp(score - largest[batch.graph_of])
        return weight / weight.new_zeros(len(batch)).index_add(0, batch.graph_of, weight)[batch.graph_of]

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """(B, C) logits"""
        logits: Tensor = self.out(batch.pool(h * self.scores(h, batch)[:, None], "sum"))
        return logits


def fit_attention(
    predictor: Model, graphs: Graphs, *, epochs: int = 60, learning_rate: float = 0.01, seed: int = 0,
    device: str = "auto",
) -> tuple[AttentionHead, ...]:  # fmt: skip
    """A head for every network, trained on graphs, their classes or values where known, else what it predicts."""
    if epochs < 1 or not learning_rate > 0:
        raise ConfigError(f"epochs and learning_rate must be above 0, got {epochs} and {learning_rate}")
    rule(graphs.n_nodes, "these graphs have no nodes; there is nothing to attend to")
    place = choose_device(device)
    data, is_class = predictor.encode(graphs).to(place), bool(predictor.class_names)
    several = (_examples(network.to(place).eval(), data, is_class=is_class) for network in predictor.networks)
    return tuple(_fit(examples, predictor.n_outputs, epochs, learning_rate, seed) for examples in several)


Examples = list[tuple[Tensor, Batch, Tensor]]  # The deepest embeddings of a network, their batch and its targets.


def _fit(examples: Examples, outputs: int, epochs: int, learning_rate: float, seed: int) -> AttentionHead:
    (first, _, _), *_ = examples
    with torch.random.fork_rng(), torch.enable_grad():
        torch.manual_seed(seed)
        head = AttentionHead(first.shape[1], outputs).to(first.device)
        optimiser = torch.optim.Adam(head.parameters(), lr=learning_rate)
        for _ in range(epochs):
            for number in torch.randperm(len(examples)).tolist():
                h, batch, target = examples[number]
                optimiser.zero_grad()
                torch.autograd.backward(loss_of(head(h, batch), target))
                optimiser.step()
    return head.requires_grad_(False)


@torch.no_grad()
def _examples(network: EgoCNN, data: Batchable, *, is_class: bool) -> Examples:
    """Computed once, since the ego layers do not change."""
    examples = []
    for chosen in portions(data):
        for some in torch.split(chosen, GRAPHS_AT_ONCE):
            batch = data.batch(some)
            if len(batch.place) == 0:
                continue
            output: Output = network(batch)
            predicted = output.output.argmax(dim=1) if is_class else output.output[:, 0]
            target = predicted if batch.target is None else batch.target
            is_known = target >= 0 if is_class else torch.isfinite(target)
            examples.append((output.layers[-1], batch, torch.where(is_known, target, predicted)))
    return examples


def save_attention(heads: Sequence[AttentionHead], folder: Path) -> None:
    """Write them beside the model, with a checksum of their own and that of the model they were trained on."""
    state = nn.ModuleList(heads).state_dict()
    tensors = {name: value.cpu().contiguous() for name, value in state.items()}
    tensors["model"] = torch.frombuffer(bytearray(digest_of_file(folder / MODEL).encode()), dtype=torch.uint8)
    with replacing(folder / FILE) as temporary:
        temporary.write_bytes(save(sealed(tensors)))


def load_attention(folder: Path, predictor: Model) -> tuple[AttentionHead, ...] | None:
    """The attention layers saved in a run folder; None where there are none, or they belong to another model."""
    if not (folder / FILE).exists():
        return None
    width = predictor.config.width
    heads = tuple(AttentionHead(width, predictor.n_outputs).requires_grad_(False) for _ in predictor.networks)
    try:
        state = load_file(regular(folder / FILE))
        if "digest" in state:  # older versions wrote none
            check_seal(state)
            if state.pop("model").numpy().tobytes().decode() != digest_of_file(folder / MODEL):
                return None
        if not all(bool(torch.isfinite(value).all()) for value in state.values()):
            raise RunError(f"{folder / FILE}: has numbers that are not finite")
        nn.ModuleList(heads).load_state_dict(state)
    except (SafetensorError, OSError, RuntimeError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise RunError(f"{folder / FILE}: does not fit the model beside it ({reason}); delete it") from None
    return heads
