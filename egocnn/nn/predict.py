"""Networks + encoded graphs -> their outputs (R, G, C) for all of them, in batches of bounded size."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from egocnn.nn.batch import Batchable
from egocnn.nn.distinct import distinct
from egocnn.nn.memory import by_halves
from egocnn.nn.model import EgoCNN

NODES_AT_ONCE = 1 << 15  # Nodes per batch where nothing is learned: bounds the memory.
FITS_THE_CACHE = 1 << 12  # Nodes that a CPU explains at once.


@torch.no_grad()
def predict_each(networks: Sequence[EgoCNN], data: Batchable) -> Tensor:
    """The outputs (R, G, C) of every network for all graphs, in order, in full precision and evaluation mode; each
    batch is cut once for all of them."""
    for network in networks:
        network.eval()

    def run(chosen: Tensor) -> Tensor:
        batch = data.batch(chosen)
        if batch.place.device.type == "cpu" and not networks[0].custom_embedding:
            batch = distinct(batch, networks[0].config.k, networks[0].config.depth)
        return torch.stack([network(batch).output for network in networks])

    return torch.cat([outputs for chosen in portions(data) for outputs in by_halves(run, chosen)], dim=1)


def portions(data: Batchable, *, gradients: bool = False) -> Iterator[Tensor]:
    """All graphs in order, cut so that no portion has many more than ``NODES_AT_ONCE`` nodes; where gradients are
    wanted, and all layers kept for them, a CPU takes fewer."""
    at_once = FITS_THE_CACHE if gradients and data.node_ptr.device.type == "cpu" else NODES_AT_ONCE
    cut = torch.div(data.node_ptr[1:] - 1, at_once, rounding_mode="floor")
    _, counts = torch.unique_consecutive(cut, return_counts=True)
    yield from torch.split(torch.arange(len(data), device=data.node_ptr.device), counts.tolist())
