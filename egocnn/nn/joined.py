"""R networks of one shape -> one network that reads the batches that they share for all of them, in evaluation. What
its layers hold are the columns of all networks side by side (N, R D), so that whatever is looked up or added up is so
once; what the head returns has a leading axis R. Bit for bit, each computes what it computes alone."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from egocnn.nn.batch import Batch
from egocnn.nn.embed import Attributes, PatchySan
from egocnn.nn.model import EgoCNN, Output


class JoinedNetworks(EgoCNN):
    """Copies of the weights of all networks; see :func:`joined`."""

    def __init__(self, networks: Sequence[EgoCNN]) -> None:
        nn.Module.__init__(self)
        first, self.number = networks[0], len(networks)
        self.kept: dict[Any, Any] = {}  # what others have worked out from the weights, which never change
        for name in ("config", "custom_embedding", "counted", "widths", "readout", "dropout", "pool_dropout"):
            setattr(self, name, getattr(first, name))
        self.embeds = nn.ModuleList(network.embed for network in networks)
        self.embed = _embedding(self.embeds)
        layers = zip(*(network.convs for network in networks), strict=True)
        self.convs = nn.ModuleList(_like(layer, weight=1) for layer in layers)
        self.hidden, self.out = (
            _like([getattr(network, name) for network in networks], weight=0, bias=0) for name in ("hidden", "out")
        )
        self.pool_norm, self.norm = (
            _Norms([getattr(network, name) for network in networks]) for name in ("pool_norm", "norm")
        )
        self._find_columns(self.hidden.weight.shape[2])
        self.eval()

    def _find_columns(self, read: int) -> None:
        """(R, ...) of what is read out, what each network reads; the inputs are mostly the same for all of them"""
        first, R = self.config.jump, self.number
        widths = [*(conv.weight.shape[2] for conv in self.convs), self.config.width][0 if first else -1 :]
        rows, columns = read // (sum(widths) + self.counted), list[Tensor]()
        for width in widths:
            block = torch.arange(rows * R * width).view(rows, R, width).transpose(0, 1).flatten(1)
            columns.append(block + sum(each.numel() for each in columns))
        at, inputs = sum(each.numel() for each in columns), torch.arange(rows * self.counted)
        several = inputs.expand(R, -1), inputs * R + torch.arange(R)[:, None]
        self.width, place = at + len(inputs), self.hidden.weight.device
        self.columns = [torch.cat([*columns, at + each], 1).to(place) for each in several]

    def forward(self, batch: Batch, presence: Tensor | None = None, *, embedded: Tensor | None = None) -> Output:
        """As every network does it; ``presence`` may be that in each of them (N, R), nowhere 0."""
        if presence is None or presence.dim() == 1:
            return super().forward(batch, presence, embedded=embedded)
        several = [batch.at_presence(own) for own in presence.unbind(1)]
        h = torch.cat([embed(own) for embed, own in zip(self.embeds, several, strict=True)], 1)
        batch = replace(batch, presence=presence)
        if self.counted:
            inputs = [replace(own, presence=None).inputs_of(self.counted) for own in several]
            batch = replace(batch, inputs=torch.cat(inputs, 1))
        return self._onwards(h, batch, presence)

    def head(self, pooled: Tensor, batch: Batch | None = None) -> Tensor:
        """The dense layers of all networks: (B, ...) as :meth:`read_out` gives it -> (R, B, C)"""
        columns = self.columns[pooled.shape[1] > self.width]
        own = pooled.index_select(1, columns.flatten()).unflatten(1, columns.shape)
        return super().head(own.transpose(0, 1), batch)


KNOWN: WeakKeyDictionary[EgoCNN, tuple[Any, JoinedNetworks]] = WeakKeyDictionary()


@torch.no_grad()
def joined(networks: Sequence[EgoCNN]) -> JoinedNetworks:
    """The networks as one, which is kept for the next time until the weights change."""
    modules = [module for network in networks for module in network.modules()]
    tensors = [t for m in modules for t in (*m._parameters.values(), *m._buffers.values()) if t is not None]
    state = [(t.data_ptr(), t.dtype, 0 if t.is_inference() else t._version) for t in tensors]
    known = KNOWN.get(networks[0])
    if known is None or known[0] != state:
        KNOWN[networks[0]] = known = state, JoinedNetworks(networks)
    return known[1]


def _embedding(embeds: nn.ModuleList) -> nn.Module:
    if isinstance(embeds[0], PatchySan):
        return _like(embeds)
    return (_Repeated if isinstance(embeds[0], Attributes) else _SideBySide)(embeds)


def _like(several: Sequence[Any], **axes: int) -> Any:
    """Modules of one kind as one, whose weights are stacked along these axes, or end to end; so are their norms."""
    own = copy(several[0])
    of_each = {name: [module._parameters[name].detach() for module in several] for name in own._parameters}
    own._parameters = {
        name: nn.Parameter(torch.stack(each, axes[name]) if name in axes else torch.cat(each, -1), requires_grad=False)
        for name, each in of_each.items()
    }
    own._modules = {name: _norm([module._modules[name] for module in several]) for name in own._modules}
    return own


def _norm(several: Sequence[Any]) -> Any:
    """Norms as one of as many more columns."""
    if not isinstance(several[0], nn.BatchNorm1d):
        return nn.Identity()
    own = _like(several)
    own._buffers = {name: torch.cat([n._buffers[name].view(-1) for n in several]) for name in several[0]._buffers}
    return own


class _Norms(nn.Module):
    """The norm of every network, for rows (R, B, D)."""

    def __init__(self, several: Sequence[nn.Module]) -> None:
        super().__init__()
        self.norm = _norm(several)

    def forward(self, x: Tensor) -> Tensor:
        flat: Tensor = self.norm(x.transpose(0, 1).flatten(1))
        return flat.unflatten(1, (len(x), -1)).transpose(0, 1)


class _SideBySide(nn.Module):
    """Embedding modules of the user's own."""

    def __init__(self, embeds: nn.ModuleList) -> None:
        super().__init__()
        self.embeds = embeds

    def forward(self, batch: Batch) -> Tensor:
        return torch.cat([embed(batch) for embed in self.embeds], dim=1)


class _Repeated(_SideBySide, Attributes):
    """The attributes, once for every network."""
