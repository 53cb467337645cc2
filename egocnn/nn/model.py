"""The Ego-CNN: a batch of graphs -> logits (B, C)."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from egocnn.config import ModelConfig
from egocnn.errors import ConfigError
from egocnn.nn.batch import Batch
from egocnn.nn.conv import EgoConv
from egocnn.nn.embed import Attributes, PatchShape, PatchySan
from egocnn.nn.readout import BINS, Pool, SortPool, by_column
from egocnn.nn.rows import PACKED, Activation, Dense, SeededDropout


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """What the network computes: its outputs and every layer's activations. Of R networks, with a leading axis R."""

    output: Tensor  #: (B, C) logits, or (B, 1) standardised values
    layers: tuple[Tensor, ...]
    """(N, D) the activations of every layer, the embedding first; of a huge graph, what the readout takes of them"""
    pooled: Tensor  #: (B, ...) what the head reads


class EgoCNN(nn.Module):
    """Node embedding, L ego-convolutions, readout and a dense head of two layers (section 3.1 of the paper).

    Departures from the paper's settings: the readout is a choice (its flatten sees the order of the nodes), and the
    defaults of dropout and learning rate are those of :mod:`egocnn.config`.

    Arguments:
        config: The settings of the network.
        shape: How many slots and labels Patchy-San reads, as the training graphs have them.
        attributes: Numbers that every node brings along.
        outputs: Classes, or 1 for a value (C); of several targets these numbers, whose columns stand side by side.
        embed: In place of the configured node embedding: any module that turns a :class:`Batch` of N nodes into
            (N, ``embed_width``).
        embed_width: The width that this module returns.

    Example:
        >>> import torch
        >>> import egocnn
        >>> from egocnn.config import ModelConfig
        >>> from egocnn.nn import EgoCNN
        >>> from egocnn.encode.encoder import Encoder
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> config = ModelConfig(width=8, depth=2)
        >>> fitted = Encoder.fit(graphs, config)
        >>> network = EgoCNN(config, shape=fitted.shape(config), attributes=0, outputs=2)
        >>> batch = fitted.apply(graphs, config).batch(torch.arange(4))  # the first four graphs
        >>> network(batch).output.shape
        torch.Size([4, 2])"""

    def __init__(
        self,
        config: ModelConfig,
        *,
        shape: PatchShape,
        attributes: int,
        outputs: int | Sequence[int],
        embed: nn.Module | None = None,
        embed_width: int | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.custom_embedding = embed is not None
        if embed is not None:
            if embed_width is None:
                raise ConfigError("a module in place of the node embedding needs embed_width, the width it returns")
            self.embed, in_width = embed, embed_width
        elif config.embedding == "patchy-san":
            patchy_san = PatchySan(shape, attributes=attributes, width=config.width, k=config.k)
            self.embed, in_width = patchy_san, config.width
        elif attributes:
            self.embed, in_width = Attributes(), attributes
        else:
            raise ConfigError("embedding 'attributes' needs graphs whose nodes have attributes")
        if config.tie == "auto":
            raise ConfigError("tie must be true or false by the time a network is built; the training graphs decide it")
        if config.tie and in_width != config.width:
            rule = "tied layers read and return the same width"
            raise ConfigError(f"{rule}; the embedding gives {in_width}, not {config.width}")
        widths = (in_width, *[config.width] * (config.depth - 1))
        convs = [EgoConv(width, config.width, k=config.k) for width in widths]
        for conv in convs[1:] if config.tie else ():
            conv.share(convs[0])
        self.convs = nn.ModuleList(convs)
        self.readout = SortPool(config.sort_nodes) if config.readout == "sort" else Pool(config.readout)
        self.dropout, self.pool_dropout = SeededDropout(config.dropout), SeededDropout(config.pool_dropout)
        factor = config.sort_nodes if config.readout == "sort" else len(config.readout.split("+"))
        self.counted = shape.node_labels - shape.node_words + attributes * BINS if config.count_inputs else 0
        read = (in_width + config.depth * config.width if config.jump else config.width) + self.counted
        self.pool_norm: nn.Module = nn.BatchNorm1d(read * factor) if config.pool_norm else nn.Identity()
        self.hidden = Dense(read * factor, config.hidden)
        self.norm: nn.Module = nn.BatchNorm1d(config.hidden) if config.head_norm else nn.Identity()
        self.widths: tuple[int, ...] = () if isinstance(outputs, int) else tuple(outputs)  # of several targets
        self.out = Dense(config.hidden, outputs if isinstance(outputs, int) else sum(outputs))

    def forward(self, batch: Batch, presence: Tensor | None = None, *, embedded: Tensor | None = None) -> Output:
        """Predict: embedding, ego-convolutions, readout, head.

        Arguments:
            batch: B graphs with N nodes in all.
            presence: (N) how far each node is there, from 0 to 1. It multiplies what is read of a node at every level:
                entries of Patchy-San by the presence of the nodes they describe, attributes, and the activations of
                every layer. 1 everywhere changes nothing; in evaluation 0 equals cutting the node out, but for the
                ranks of the others.
            embedded: (N, D) in place of what the node embedding returns.

        Returns:
            Outputs (B, C), the activations of every layer (N, D), and what the head reads (B, ...)."""
        if presence is not None:
            batch = batch.at_presence(presence)
        h = self._embed(batch) if embedded is None else embedded
        h = self._present(h, presence)  # (N, D)
        layers = [self._output_of(h, batch, 0)]
        for layer, conv in enumerate(self.convs, 1):
            h = conv(h, batch.ranked(self.config.k, layer), self._after(layer, batch))
            h = self._present(h, presence)  # (N, D), one hop wider each time
            layers.append(self._output_of(h, batch, layer))
        pooled = self.read_out(layers, batch)  # (B, ...)
        return Output(self.head(pooled, batch), tuple(layers), pooled)

    def _embed(self, batch: Batch) -> Tensor:
        if not isinstance(self.embed, PatchySan):
            return batch.nodes.drop(self.embed(batch), self.dropout, 0)
        h: Tensor = self.embed(batch, self._after(0, batch))
        return h

    def _after(self, layer: int, batch: Batch) -> Activation:
        """What follows the sums of a layer: norm, rectifier, dropout."""
        return partial(batch.nodes.activate, dropout=self.dropout, layer=layer)

    def _present(self, h: Tensor, presence: Tensor | None) -> Tensor:
        return h if presence is None else h * presence[..., None].to(h.dtype)

    def _output_of(self, h: Tensor, batch: Batch, layer: int) -> Tensor:
        """What the output holds of a layer; of a graph too large to hold them all, what the readout takes of it."""
        h = h.index_select(0, batch.kinds[layer]) if batch.kinds else h
        return h if batch.keeps_layers else self.readout(h, batch)

    def read_out(self, layers: Sequence[Tensor], batch: Batch) -> Tensor:
        """From nodes to graphs: activations of the layers -> what the head reads.

        Where inputs are counted they come last, column by column: a network that knows fewer labels has the first of
        these.

        Arguments:
            layers: The activations of every layer, (N, D) each, the embedding first.
            batch: The graphs that they come from.

        Returns:
            One row per graph (B, ...)."""
        read = list(layers if self.config.jump else layers[-1:])
        pooled = [self.readout(h, batch) for h in read] if batch.keeps_layers else read
        if self.counted:
            inputs = self.readout(batch.inputs_of(self.counted).to(layers[-1].dtype), batch)
            pooled.append(by_column(inputs, self.counted))
        return torch.cat(pooled, dim=-1)

    def head(self, pooled: Tensor, batch: Batch | None = None) -> Tensor:
        """The dense layers.

        Arguments:
            pooled: (B, ...) one row per graph, as :meth:`read_out` gives them.
            batch: Says which rows are graphs; by default all.

        Returns:
            Logits (B, C)."""
        rows, layer = PACKED if batch is None else batch.graphs, self.config.depth + 1
        graph = rows.norm(pooled, self.pool_norm)
        if limit := self.config.pool_limit:
            graph = graph.clamp(-limit, limit)
        graph = rows.drop(graph, self.pool_dropout, layer + 1)
        logits: Tensor = self.out(rows.activate(self.hidden(graph), self.norm, self.dropout, layer))
        return logits

    @property
    def reads_absent(self) -> bool:
        """Whether a node of presence 0 still counts, as a place of the readout or to a module of the user's own; of all
        other networks a batch may leave it out."""
        return self.custom_embedding or not isinstance(self.readout, Pool)

    @property
    def n_parameters(self) -> int:
        """Numbers that training can change; a tied filter bank counts once."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)


def alone(network: EgoCNN, number: int) -> EgoCNN:
    """The network that predicts this one of several targets alone; all but the last layer is shared with it."""
    first, width = sum(network.widths[:number]), network.widths[number]
    one, out = copy(network), Dense(network.config.hidden, width, device=network.out.weight.device)
    out.load_state_dict({name: value[first : first + width] for name, value in network.out.state_dict().items()})
    one._modules, one.widths = {**network._modules, "out": out}, ()
    return one
