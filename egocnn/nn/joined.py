"""R networks of one shape -> one network that reads the batches that they share for all of them, in evaluation. What
its layers hold are the columns of all networks side by side (N, R D), so that whatever is looked up or added up is so
once; what the head returns has a leading axis R. Up to rounding, each computes what it computes alone."""

from collections.abc import Sequence
from copy import copy
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from egocnn.nn.batch import Batch
from egocnn.nn.embed import PatchySan
from egocnn.nn.model import EgoCNN


class JoinedNetworks(EgoCNN):
    """The networks by copies of their weights; see :func:`joined`."""

    def __init__(self, networks: Sequence[EgoCNN]) -> None:
        nn.Module.__init__(self)
        self.__dict__.update({**networks[0].__dict__, "_modules": {**networks[0]._modules}, "training": False})
        self.each = tuple(map(copy, networks))  # not the networks themselves: they would never be gone
        self.kept: dict[Any, Any] = {}  # what others have worked out from the weights, which never change
        if isinstance(networks[0].embed, PatchySan):
            self.embed = _side_by_side([network.embed for network in networks])
        layers = zip(*(network.convs for network in networks), strict=True)
        convs = [_side_by_side(layer, weight=1) for layer in layers]
        self.convs = nn.ModuleList(convs)
        widths = [*(conv.weight.shape[2] for conv in convs), self.config.width][0 if self.config.jump else -1 :]
        rows, R = self.hidden.in_features // (sum(widths) + self.counted), len(networks)
        starts = [rows * R * sum(widths[:number]) for number in range(len(widths) + 1)]
        inputs, columns = torch.arange(rows * self.counted).expand(R, -1) + starts.pop(), list[Tensor]()
        for start, width in zip(starts, widths, strict=True):
            block = torch.arange(rows * R * width).view(rows, R, width)
            columns.append(start + block.transpose(0, 1).flatten(1))
        # (R, ...) of what is read out, what each network reads: of inputs all the same
        self.columns = torch.cat([*columns, inputs], 1).to(self.hidden.weight.device)

    def _embed(self, batch: Batch) -> Tensor:
        if isinstance(self.embed, PatchySan):
            return super()._embed(batch)
        return torch.cat([network._embed(batch) for network in self.each], dim=1)

    def head(self, pooled: Tensor, batch: Batch | None = None) -> Tensor:
        """The dense layers of each network: (B, ...) as :meth:`read_out` gives it -> (R, B, C)"""
        parts = pooled.index_select(1, self.columns.flatten()).chunk(len(self.each), dim=1)
        return torch.stack([network.head(part, batch) for network, part in zip(self.each, parts, strict=True)])


KNOWN: WeakKeyDictionary[EgoCNN, tuple[Any, JoinedNetworks]] = WeakKeyDictionary()


@torch.no_grad()
def joined(networks: Sequence[EgoCNN]) -> JoinedNetworks:
    """The networks as one, which is kept for the next time until their weights change."""
    modules = [module for network in networks for module in network.modules()]
    tensors = [t for m in modules for t in (*m._parameters.values(), *m._buffers.values()) if t is not None]
    state = [(t.data_ptr(), t.dtype, 0 if t.is_inference() else t._version) for t in tensors]
    known = KNOWN.get(networks[0])
    if known is None or known[0] != state:
        KNOWN[networks[0]] = known = state, JoinedNetworks(networks)
    return known[1]


def _side_by_side(several: Sequence[Any], **axes: int) -> Any:
    """Modules of one kind, and their norms, as one: their tensors are stacked along these axes, or end to end."""
    own = copy(several[0])
    for kind in ("_parameters", "_buffers"):
        of_each = {name: [getattr(module, kind)[name].detach() for module in several] for name in getattr(own, kind)}
        own.__dict__[kind] = {
            name: torch.stack(each, axes[name])
            if name in axes
            else torch.cat([t.reshape(t.shape or (1,)) for t in each], -1)
            for name, each in of_each.items()
        }
    own._modules = {name: _side_by_side([module._modules[name] for module in several]) for name in own._modules}
    return own
