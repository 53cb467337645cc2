"""Small networks with random weights and batches explained by them, in double precision where equations are checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from egocnn.config import PLAIN, ExplainConfig, ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.explain.backtrack import EdgeNumbers
from egocnn.explain.question import Question
from egocnn.explain.techniques import ExplainedBatch
from egocnn.explain.techniques.attention import AttentionHead
from egocnn.model import Model
from tests.support.networks import OwnVectors, doubled, untrained, whole_batch
from tests.support.tiny import plain_model

SMALL: dict[str, Any] = {"slots": 4, "k": 3, "width": 8, "depth": 2, "hidden": 12, "sort_nodes": 5}
USUAL: dict[str, Any] = {name: getattr(ModelConfig(), name) for name in ("readout", *PLAIN)}
"""what makes it a network of the default settings"""


def small(**changes: Any) -> ModelConfig:
    return plain_model(**(SMALL | changes))


def predictor_for(
    graphs: Graphs, *, outputs: int = 0, seed: int = 0, own: bool = False, networks: int = 1, **changes: Any
) -> Model:
    """Networks with random weights that fit the graphs; with ``own``, over the user's own embedding."""
    embed: dict[str, Any] = {"embed": OwnVectors(4), "embed_width": 4} if own else {}
    return untrained(graphs, small(**changes), networks=networks, outputs=outputs, seed=seed, **embed)


def question_for(predictor: Model, graphs: Graphs, classes: Sequence[int] | None = None) -> Question:
    """What the model is asked about the graphs, in double precision; class 0 unless others are given."""
    batch = doubled(predictor.encode(graphs).batch(torch.arange(len(graphs))))
    networks = [network.double().eval().requires_grad_(False) for network in predictor.networks]
    wanted = torch.tensor([0] * len(graphs) if classes is None else list(classes))
    return Question(networks, batch, wanted, predictor)


def forward_pass(
    predictor: Model,
    graphs: Graphs,
    classes: Sequence[int] | None = None,
    *,
    attention: AttentionHead | None = None,
    **settings: Any,
) -> ExplainedBatch:
    """In double precision; class 0 unless others are given. The network itself is changed to double."""
    config, encoder = predictor.config, predictor.encoder
    batch = doubled(whole_batch(graphs, encoder, config))
    network = predictor.networks[0].double().eval()
    with torch.no_grad():
        output = network(batch)
    return ExplainedBatch(
        network=network,
        batch=batch,
        output=output,
        classes=torch.tensor([0] * len(graphs) if classes is None else list(classes)),
        places=batch.places(encoder.shape(config)),
        edges=EdgeNumbers.of(graphs, torch.device("cpu")),
        attention=attention,
        settings=ExplainConfig(**settings),
    )


def head_for(width: int, outputs: int = 2, *, seed: int = 0) -> AttentionHead:
    """An attention layer with random weights, in double precision."""
    head = AttentionHead(width, outputs).double()
    with torch.no_grad():
        head.attend.copy_(torch.randn(width, generator=torch.Generator().manual_seed(seed)))
    return head.requires_grad_(False)


def assert_close(one: Any, other: Any, *, tolerance: float = 1e-6) -> None:
    """Equal up to rounding, relative to the largest number in sight: small ones are differences of large ones."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    size = max(1.0, float(np.abs(other).max(initial=0)))
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * size)
