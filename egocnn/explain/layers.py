"""What every layer of a trained network holds for a batch of graphs, with its batch norm folded into the filters."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from egocnn.nn import EgoCNN, EgoConv, Output, PatchySan
from egocnn.nn.batch import Batch
from egocnn.nn.conv import fold
from egocnn.nn.engines.cpu import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Filters:
    """One ego-convolution as it acts after training: h' = relu(b + sum over k of h[nbr(n, k)] W[k]).

    What is gathered of the neighbours beyond K goes through ``rest`` and is added.
    """

    weight: Tensor
    """(K + 1, D, D')"""
    bias: Tensor
    """(D')"""
    rest: Tensor | None
    """(D, D'); None where the neighbours beyond K are not read"""

    @staticmethod
    def of(conv: EgoConv) -> Filters:
        weight, bias = fold(conv.norm, conv.weight, conv.bias)
        return Filters(weight, bias, None if conv.rest is None else fold(conv.norm, conv.rest, conv.bias)[0])


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """A batch on its way through the network: embeddings ``h[0]`` (after the embedding) to ``h[L]``."""

    network: EgoCNN
    batch: Batch
    output: Output
    filters: tuple[Filters, ...]
    """(L)"""
    plans: tuple[Plan, ...]
    """(L) who is gathered with whom; layers that read equally many neighbours share one"""

    @property
    def h(self) -> tuple[Tensor, ...]:
        return self.output.layers

    @property
    def logits(self) -> Tensor:
        """(B, C)"""
        return self.output.output

    @property
    def read(self) -> tuple[Tensor, ...]:
        """What the readout reads: all of ``h`` with jumping knowledge, else the deepest alone."""
        return self.h if self.network.config.jump else self.h[-1:]


@torch.no_grad()
def run_layers(network: EgoCNN, batch: Batch) -> Layers:
    output: Output = network(batch)
    convs = [conv for conv in network.convs if isinstance(conv, EgoConv)]
    plans: dict[int, Plan] = {}
    for conv in convs:
        if conv.k not in plans:
            ranked = batch.ranked(conv.k)
            plan = ranked.plan or Plan.of(ranked.table)
            assert plan is not None, "ranked neighbours have no gaps"
            plans[conv.k] = plan
    return Layers(
        network,
        batch,
        output,
        tuple(Filters.of(conv) for conv in convs),
        tuple(plans[conv.k] for conv in convs),
    )


@torch.no_grad()
def fold_embedding(embed: PatchySan) -> tuple[Tensor, Tensor, Tensor]:
    """Patchy-San's table (rows, D), filters of the attributes (P, A, D) and bias (D), the norm folded in."""
    table, bias = fold(embed.norm, embed.table, embed.bias)
    attributes, _ = fold(embed.norm, embed.attributes, embed.bias)
    return table, attributes, bias
