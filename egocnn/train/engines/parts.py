r"""A batch that the memory does not suffice for -> the gradients of its loss, computed over parts of its graphs.

Graphs meet in the batch norms: mean and variance are those of all graphs, and gradients flow through both. With s_i the
sums that norm i takes its mean and variance from, the loss is

.. math:: L(\theta, s_1 \ldots s_M), \qquad s_i = \sum_{\text{parts}} S_i(\theta, s_1 \ldots s_{i-1})

Forward, the sums are found one norm after the other, by running every part up to that norm. Backward, every part is run
with all sums given, which yields the slope of L in each of them; then norm by norm, the last one first, the parts are
run up to it once more, and what it adds to the slope is handed down. No more than one part is ever in memory; the price
is M + 1 times as many passes, on average half as long."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from egocnn.nn.device import attempt, warn
from egocnn.nn.engines.padded import statistics, sums_of, update_running
from egocnn.train.engines.common import reseeding


@dataclass(slots=True, eq=False)
class GradientStep:
    """The numbers of graphs -> the gradients of their loss; once the memory does not suffice, computed in parts."""

    network: nn.Module
    forward: Callable[[Tensor], tuple[Tensor, Tensor]]  # graphs -> outputs and targets
    loss: Callable[[Tensor, Tensor], Tensor]  # the mean over graphs, each with its weight
    weight: Callable[[Tensor], Tensor | float]  # targets -> what their graphs weigh together
    parts: int = 1
    random: torch.Generator | None = None  # what dropout draws from; by default torch's own generator

    def compute(self, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Leave the gradients of the chosen graphs' loss in the network; their outputs, targets and loss."""
        while self.parts < len(chosen):
            before = [buffer.clone() for buffer in self.network.buffers()]
            if (found := attempt(lambda: self._compute(chosen))) is not None:
                return found
            warn("out of memory: batches are computed in parts from here on, with the same result")
            _put(self.network, before)
            self.parts *= 2
        return self._compute(chosen)

    def _compute(self, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.network.zero_grad(set_to_none=True)
        if self.parts > 1:
            return self._compute_in_parts(torch.tensor_split(chosen, min(self.parts, len(chosen))))
        outputs, target = self.forward(chosen)
        loss = self.loss(outputs, target)
        torch.autograd.backward(loss)
        return outputs.detach(), target, loss.detach()

    def _compute_in_parts(self, several: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        found: dict[int, tuple[Tensor, Tensor]] = {}
        seeds = torch.randint(1 << 62, (len(several),), generator=self.random).tolist()

        def run(part: int) -> Tensor:
            seed(seeds[part])  # dropout must drop the same whenever the part is run
            outputs, target = self.forward(several[part])
            found[part] = outputs.detach(), target
            return self.loss(outputs, target) * self.weight(target)

        with reseeding(self.random, several[0].device) as seed:
            add_gradients(self.network, len(several), run)
        outputs, target = (torch.cat(each) for each in zip(*(found[part] for part in range(len(several))), strict=True))
        weight = self.weight(target)
        for parameter in self.network.parameters():
            if parameter.grad is not None:
                parameter.grad /= weight
        return outputs, target, self.loss(outputs, target)


def add_gradients(network: nn.Module, parts: int, run: Callable[[int], Tensor]) -> None:
    """Add to the gradients of all parameters that of the sum of ``run(0)`` to ``run(parts - 1)``. ``run`` sends its
    part through the network and returns what it adds to the loss; called often, with the buffers as they were, it must
    do the same every time, and is left once it has got far enough. Buffers end as after one pass of all together."""
    before = [buffer.clone() for buffer in network.buffers()]

    def run_part(part: int, norms: Sequence[_Norm]) -> Tensor | _Norm:
        """What it adds to the loss, or the first norm that is not among these, and what it adds to its sums."""
        _put(network, before)
        try:
            with _Norms(norms):
                return run(part)
        except _Met as met:
            found: _Norm = met.args[0]
            return found

    norms: list[_Norm] = []
    with torch.no_grad():
        while isinstance(norm := run_part(0, norms), _Norm):
            for part in range(1, parts):
                further = run_part(part, norms)
                assert isinstance(further, _Norm), "every part meets the same norms"
                norm.sums, norm.rows = norm.sums + further.sums, norm.rows + further.rows
            norms.append(norm)
    for norm in norms:
        norm.sums.requires_grad_()

    for part in range(parts):
        loss = run_part(part, norms)
        assert isinstance(loss, Tensor)
        torch.autograd.backward(loss)
    after = [buffer.clone() for buffer in network.buffers()]  # all but what the norms have learned

    for number in reversed(range(len(norms))):
        slope = norms[number].sums.grad
        for part in range(parts if slope is not None else 0):
            met = run_part(part, norms[:number])
            assert isinstance(met, _Norm)
            if met.sums.requires_grad:  # not where a norm reads the data as they are
                torch.autograd.backward(met.sums, slope)
    _put(network, after)
    for norm in norms:
        if norm.running is not None:
            update_running(norm.running, *statistics(norm.sums, norm.rows), norm.rows, norm.momentum)


@torch.no_grad()
def _put(network: nn.Module, values: Sequence[Tensor]) -> None:
    for buffer, value in zip(network.buffers(), values, strict=True):
        buffer.copy_(value)


@dataclass(slots=True)
class _Norm:
    """A batch norm in training: what it has seen so far, and what it remembers."""

    sums: Tensor  # (2, D) of its inputs and of their squares, in double precision
    rows: int
    running: tuple[Tensor, Tensor] | None
    momentum: float


class _Met(Exception):  # noqa: N818 — no error: a pass has got as far as it should
    """The pass has come to a norm whose statistics are not known yet, which it is raised with."""


class _Norms(TorchFunctionMode):
    """Batch norms of this pass use the given statistics, in the order in which they come; the next one ends it."""

    def __init__(self, known: Sequence[_Norm]) -> None:
        super().__init__()
        self._known = iter(known)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return (self._norm if func is F.batch_norm else func)(*args, **(kwargs or {}))

    def _norm(
        self, x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
        bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
    ) -> Tensor:  # fmt: skip
        if not training:
            return F.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
        known = next(self._known, None)
        if known is None:
            running = None if running_mean is None or running_var is None else (running_mean, running_var)
            raise _Met(_Norm(*sums_of(x), running, momentum))
        mean, variance = statistics(known.sums, known.rows)
        scale = torch.rsqrt(variance + eps) if weight is None else torch.rsqrt(variance + eps) * weight
        shape, wide = (-1, *[1] * (x.ndim - 2)), torch.promote_types(x.dtype, torch.float32)
        mean, scale = (each.to(wide).view(shape) for each in (mean, scale))
        centred = x.to(wide) - mean  # all of the size of x that is kept for the way back
        y = centred * scale if bias is None else torch.addcmul(bias.to(wide).view(shape), centred, scale)
        return y.to(x.dtype)
