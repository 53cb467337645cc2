"""Training graphs -> several copies of each, neighbours that the first WL round cannot tell apart in random order.

The ranking settles such ties by further rounds, always the same way. Whether it is better to see several orders while
learning is for the search to tell; graphs that are tested keep the ranking's own order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import starts
from egocnn.data.graphs import Graphs
from egocnn.encode.batch import EncodedGraphs
from egocnn.encode.colours import wl_rounds
from egocnn.encode.encoder import Encoder
from egocnn.encode.ranking import Order, Ranking
from egocnn.train.recipe import Replica


@dataclass(frozen=True, slots=True, eq=False)
class ShuffledRanking(Ranking):
    """As fitted, but nodes with the same colour after one round stand in random order."""

    seed: int

    def order(self, graphs: Graphs) -> Order:
        known = Ranking(self.colours, self.counts).order(graphs)
        (colour,) = wl_rounds(graphs, 1)
        ordered = colour[known.nodes]  # equal colours stand together: rarity and colour of this round come first
        first = starts(ordered)
        tier = np.repeat(first, np.diff(first, append=len(ordered)))
        chance = np.random.default_rng(self.seed).random(len(ordered))
        nodes = known.nodes[np.lexsort((chance, tier))]
        place, tiers = np.empty_like(nodes), np.empty_like(nodes)
        place[nodes], tiers[nodes] = np.arange(len(nodes)), tier
        return Order(nodes, place, tiers)


def with_copies(replica: Replica, learned: Graphs, copies: int) -> Replica:
    """The same replica, learning from so many shuffled copies of the graphs."""
    known, model = replica.predictor.encoder, replica.predictor.config
    several = [_shuffled(known, seed).apply(learned, model) for seed in range(copies)]
    return replace(replica, parts=(joined(several), replica.parts[1]))


def _shuffled(encoder: Encoder, seed: int) -> Encoder:
    ranking = encoder.ranking
    return replace(encoder, ranking=ShuffledRanking(ranking.colours, ranking.counts, seed))


def joined(several: Sequence[EncodedGraphs]) -> EncodedGraphs:
    """All collections as one."""
    found: dict[str, Any] = {}
    for field in fields(EncodedGraphs):
        tensors: list[Tensor] = [t for each in several if (t := getattr(each, field.name)) is not None]
        if field.name in ("node_ptr", "bag_ptr"):
            counts = torch.cat([t.diff() for t in tensors])
            found[field.name] = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        elif field.name == "place":
            before = np.cumsum([0, *map(len, tensors)])
            found[field.name] = torch.cat([t + int(b) for t, b in zip(tensors, before, strict=False)])
        else:
            found[field.name] = torch.cat(tensors) if tensors else None
    return EncodedGraphs(**found)
