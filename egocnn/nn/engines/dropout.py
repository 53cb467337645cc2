"""Which activations are dropped: a hash of (seed, step, layer, node, column), the same however many replicas there are.
A generator's numbers would depend on the shape of the batch, and so on the other replicas and on padding."""

from dataclasses import dataclass

import torch
from torch import Tensor

MULTIPLIERS = (-4658895280553007687, -7723592293110705685)  # of the mixing of 64 bits, by Stafford's thirteenth variant
GOLDEN = -7046029254386353131  # 2^64 divided by the golden ratio, odd, as a signed number


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """The choices for one layer: an activation is kept where the product of its row's and its column's number, wrapped
    around at 32 bits, reaches the threshold. One product an activation is all that they cost."""

    rows: Tensor  # (R, rows), 32 bits at random
    columns: Tensor  # (columns), 32 bits at random, odd
    share: float  # of activations that are dropped

    @property
    def threshold(self) -> int:
        return min(round(self.share * 2**32), 2**32 - 1) - 2**31

    @property
    def amplify(self) -> float:
        """What makes up for those dropped."""
        return 1 / (1 - self.share)

    @property
    def kept(self) -> Tensor:
        """(R, rows, columns)"""
        return self.rows[..., None] * self.columns >= self.threshold


@dataclass(frozen=True, slots=True, eq=False)
class Dropout:
    """The choices of one step, for all layers."""

    _rows: Tensor  # (layers, R, rows)
    _columns: Tensor

    @staticmethod
    def of(seeds: Tensor, steps: Tensor, *, layers: int, rows: int, columns: int) -> "Dropout":
        """seeds (R), steps done (R); as many rows and columns as the largest layer has"""
        key = mix(mix(seeds) + steps * GOLDEN)
        key = mix(key + torch.arange(1, layers + 1, device=seeds.device)[:, None])  # (layers, R)
        drawn = mix(key[..., None] + torch.arange(rows, device=seeds.device) * GOLDEN) >> 32
        odd = mix(torch.arange(1, columns + 1, device=seeds.device) * GOLDEN) >> 32 | 1
        return Dropout(drawn.to(torch.int32), odd.to(torch.int32))

    def layer(self, number: int, rows: int, columns: int, share: float) -> Draws:
        return Draws(self._rows[number, :, :rows], self._columns[:columns], share)


def mix(bits: Tensor) -> Tensor:
    """Every bit of the 64 changes about half of the result's; products wrap around."""
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        bits = (bits ^ _shifted(bits, shift)) * multiplier
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, places: int) -> Tensor:
    """To the right, zeros moving in: torch's own shift repeats the sign."""
    return (bits >> places) & ((1 << (64 - places)) - 1)
