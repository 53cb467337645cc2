"""A prepared collection in flat tensors, and any choice of its graphs -> one batch."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from egocnn.nn.batch import Bags, Batch
from egocnn.nn.embed import PatchShape
from egocnn.nn.engines import Neighbours


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedGraphs:
    """A whole collection as flat tensors; :meth:`batch` cuts graphs out of it."""

    node_ptr: Tensor
    steps: Tensor  # (N, W) from every node to its ranked neighbours, as a difference of node ids; 0: absent
    bag_ptr: Tensor
    bag_rows: Tensor
    bag_weight: Tensor | None
    node_label: Tensor
    attributes: Tensor
    place: Tensor  # (N) where each node stands in the ranking of its own graph
    target: Tensor | None

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @staticmethod
    def concat(several: "Sequence[EncodedGraphs]") -> "EncodedGraphs":
        """The graphs of all collections, one after the other."""
        names = [field.name for field in fields(EncodedGraphs)]
        return EncodedGraphs(**{name: _concat(name, [getattr(each, name) for each in several]) for name in names})

    @property
    def megabytes(self) -> float:
        """What the tensors take together."""
        return sum(t.nbytes for t in self._parts().values() if t is not None) / 1e6

    def in_memory(self) -> "EncodedGraphs":
        """Itself."""
        return self

    def to(self, device: torch.device) -> "EncodedGraphs":
        """A copy on the device."""
        moved: dict[str, Any] = {name: None if t is None else t.to(device) for name, t in self._parts().items()}
        return EncodedGraphs(**moved)

    def _parts(self) -> dict[str, Tensor | None]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def batch(self, chosen: Tensor, there: Tensor | None = None, shape: PatchShape | None = None) -> Batch:
        """The graphs with these numbers, in this order; ``there`` (N): with these of their nodes alone, ranked as they
        are. The network sees what it sees at presence 0 of the others; ``shape`` says which entries these leave."""
        counts = self.node_ptr[chosen + 1] - self.node_ptr[chosen]
        nodes = ranges(self.node_ptr[chosen], counts)
        graph_of = torch.repeat_interleave(torch.arange(len(chosen), device=nodes.device), counts)
        position = torch.arange(len(nodes), device=nodes.device)
        place = self.place[nodes]
        if there is not None:
            position, nodes, graph_of, place = position[there], nodes[there], graph_of[there], place[there]
            counts = torch.bincount(graph_of, minlength=len(chosen))
            # those that are there close ranks
            order = torch.argsort(graph_of * len(self.place) + place)
            place[order] = torch.arange(len(order), device=place.device) - (counts.cumsum(0) - counts)[graph_of]
        steps = self.steps[nodes]
        table = torch.where(steps == 0, -1, position[:, None] + steps)
        if there is not None:  # the last serves -1
            table = F.pad(torch.where(there, there.cumsum(0) - 1, -1), (0, 1), value=-1)[table]
        bag_counts = self.bag_ptr[nodes + 1] - self.bag_ptr[nodes]
        entries = ranges(self.bag_ptr[nodes], bag_counts)
        offsets = (bag_counts.cumsum(0) - bag_counts).to(self.bag_rows.dtype)
        weight = None if self.bag_weight is None else self.bag_weight[entries]
        batch = Batch(
            neighbours=Neighbours.of(table), bags=Bags(rows=self.bag_rows[entries], offsets=offsets, weight=weight),
            node_label=self.node_label[nodes], attributes=self.attributes[nodes], place=place,
            graph_of=graph_of, node_counts=counts, target=None if self.target is None else self.target[chosen],
        )  # fmt: skip
        return batch if there is None or shape is None else batch.without_absent(shape)


def _concat(name: str, several: Sequence[Any]) -> Any:
    """One field of several collections, end to end; None where they have none."""
    present = [each for each in several if each is not None]
    if not present:
        return None
    if name.endswith("ptr"):
        return F.pad(torch.cat([pointer.long().diff() for pointer in present]).cumsum(0), (1, 0))
    return torch.cat(present)


def ranges(first: Tensor, counts: Tensor) -> Tensor:
    """All integers of first[0]..first[0]+counts[0]-1, then of the next, end to end."""
    shift = torch.repeat_interleave(first - (counts.cumsum(0) - counts), counts)
    return torch.arange(len(shift), device=first.device) + shift
