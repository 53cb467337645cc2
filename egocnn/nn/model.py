"""The Ego-CNN: a batch of graphs -> logits (B, C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.encode.batch import Batch
from egocnn.config import ModelConfig
from egocnn.errors import ConfigError
from egocnn.nn.conv import EgoConv
from egocnn.nn.embed import AdjacencyVector, Attributes, PatchySan
from egocnn.nn.readout import BINS, Pool, SortPool, counted, turned
from egocnn.encode.patches import PatchShape


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """What the network answers for a batch of B graphs with N nodes."""

    logits: Tensor
    """(B, C)"""
    last: Tensor
    """(N, D) embeddings after the deepest layer"""


class EgoCNN(nn.Module):
    """Node embedding, L ego-convolutions, readout and a dense head of two layers (section 3.1 of the paper).

    Departures from the paper's settings: the readout is a choice (its flatten sees the order of the nodes), and the
    defaults of dropout and learning rate are those of :mod:`egocnn.config`.

    Arguments:
        config: The settings of the network.
        shape: How many slots and labels Patchy-San reads, as the training graphs have them.
        attributes: Numbers that every node brings along.
        outputs: Classes, or 1 for a value (C).
        embed: In place of the configured node embedding: any module that turns a :class:`Batch` of N nodes into
            (N, ``embed_width``).
        embed_width: The width that this module returns.

    Example:
        >>> import torch
        >>> import egocnn
        >>> from egocnn.config import ModelConfig
        >>> from egocnn.nn import EgoCNN
        >>> from egocnn.encode.encoder import Preparation
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> config = ModelConfig(width=8, depth=2)
        >>> fitted = Preparation.fit(graphs, config)
        >>> network = EgoCNN(config, shape=fitted.shape(config), attributes=0, outputs=2)
        >>> batch = fitted.apply(graphs, config).batch(torch.arange(4))  # the first four graphs
        >>> network(batch).logits.shape
        torch.Size([4, 2])
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        shape: PatchShape,
        attributes: int,
        outputs: int,
        embed: nn.Module | None = None,
        embed_width: int | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.custom_embedding = embed is not None
        widths = config.layer_width
        if embed is not None:
            if embed_width is None:
                raise ConfigError("a module in place of the node embedding needs embed_width, the width it returns")
            self.embed, in_width = embed, embed_width
        else:
            self.embed, in_width = _embedding(config, shape, attributes)
        if config.tie == "auto":
            raise ConfigError("tie must be true or false by the time a network is built; the training graphs decide it")
        if config.tie and in_width != widths[0]:
            raise ConfigError(
                f"tied layers read and return the same width; the embedding gives {in_width}, not {widths[0]}"
            )
        sizes = zip((in_width, *widths), widths, config.layer_k, strict=False)
        convs = [EgoConv(i, o, k=k, rest=config.rest != "none") for i, o, k in sizes]
        for conv in convs[1:] if config.tie else ():
            conv.share(convs[0])
        self.convs = nn.ModuleList(convs)
        self.readout = SortPool(config.sort_nodes) if config.readout == "sort" else Pool(config.readout)
        self.dropout, self.pool_dropout = nn.Dropout(config.dropout), nn.Dropout(config.pool_dropout)
        factor = config.sort_nodes if config.readout == "sort" else len(config.readout.split("+"))
        self.counted = shape.node_labels + attributes * BINS if config.count_inputs else 0
        read = (in_width + sum(widths) if config.jump else widths[-1]) + self.counted
        self.pool_norm: nn.Module = nn.BatchNorm1d(read * factor) if config.pool_norm else nn.Identity()
        self.hidden = nn.Linear(read * factor, config.hidden)
        self.norm: nn.Module = nn.BatchNorm1d(config.hidden) if config.head_norm else nn.Identity()
        self.out = nn.Linear(config.hidden, outputs)

    def forward(self, batch: Batch) -> Output:
        """Logits of every graph, and the embeddings that they were read from.

        Arguments:
            batch: B graphs with N nodes in all.

        Returns:
            Logits (B, C), and the deepest layer's embeddings (N, D).
        """
        h = self.dropout(self.embed(batch))  # (N, D)
        reached = [h]
        for conv in self.convs:
            h = self.dropout(conv(h, batch.neighbours, batch.rest))  # (N, D), one hop wider each time
            reached.append(h)
        return Output(logits=self.head(self.read_out(reached, batch)), last=h)

    def read_out(self, reached: Sequence[Tensor], batch: Batch, inputs: Tensor | None = None) -> Tensor:
        """From nodes to graphs: what the layers hold -> what the head reads.

        Where inputs are counted they come last, column by column: a network that knows fewer labels has the first of
        these.

        Arguments:
            reached: What every layer holds, (N, D) each, the embedding first.
            batch: The graphs that it comes from.
            inputs: (N, columns) in place of what :func:`egocnn.nn.readout.counted` makes of labels and attributes.

        Returns:
            One row per graph (B, ...).
        """
        read = [self.readout(h, batch) for h in (reached if self.config.jump else reached[-1:])]
        if self.counted:
            inputs = counted(batch.node_label, batch.attributes, self.counted) if inputs is None else inputs
            read.append(turned(self.readout(inputs.to(read[0]), batch), self.counted))
        return torch.cat(read, dim=1)

    def head(self, graph: Tensor) -> Tensor:
        """The dense layers.

        Arguments:
            graph: (B, D) one row per graph, as :meth:`read_out` gives them.

        Returns:
            Logits (B, C).
        """
        graph = self.pool_dropout(self.pool_norm(graph))
        logits: Tensor = self.out(self.dropout(F.relu(self.norm(self.hidden(graph)))))
        return logits

    @property
    def n_parameters(self) -> int:
        """Numbers that training can change; a tied filter bank counts once."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)


def _embedding(config: ModelConfig, shape: PatchShape, attributes: int) -> tuple[nn.Module, int]:
    """The configured node embedding and the width it returns."""
    if config.embedding == "patchy-san":
        width = config.layer_width[0]
        return PatchySan(shape, attributes=attributes, width=width, k=max(config.layer_k)), width
    if config.embedding == "adjacency":
        return AdjacencyVector(), max(config.layer_k)
    if attributes == 0:
        raise ConfigError("embedding 'attributes' needs graphs whose nodes have attributes")
    return Attributes(), attributes
