"""AdamW for R replicas: each with its own learning rate, its own clipped gradient and its own number of steps. The same
as ``torch.optim.AdamW`` after ``clip_grad_norm_`` for each alone; one without a batch, or stopped, stays untouched."""

from collections.abc import Sequence
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from egocnn.train.engines.common import STEEPEST

BLOCK = 1024  # Numbers that a program on the GPU takes at once.
BETAS, EPSILON = (0.9, 0.999), 1e-8
MOMENTS = ("exp_avg", "exp_avg_sq")  # What ``torch.optim.AdamW`` calls them.


class StackedAdamW:
    """``torch.optim.AdamW`` over parameters (R, ...)."""

    def __init__(self, parameters: Sequence[Tensor], *, weight_decay: float) -> None:
        self._parameters = parameters
        self._weight_decay = weight_decay
        is_fused = parameters[0].is_cuda and find_spec("triton") is not None
        self._update = update_fused if is_fused else update_plain
        self._first, self._second = ([torch.zeros_like(p, requires_grad=False) for p in parameters] for _ in MOMENTS)
        self.steps = torch.zeros(len(parameters[0]), dtype=torch.int64, device=parameters[0].device)  # (R) done so far

    def keep_only(self, numbers: Tensor, parameters: Sequence[Tensor]) -> None:
        """Go on with these replicas alone, whose parameters these now are."""
        self._parameters = parameters
        self._first, self._second = ([moment[numbers] for moment in m] for m in (self._first, self._second))
        self.steps = self.steps[numbers]

    @torch.no_grad()
    def load(self, optimizers: Sequence[torch.optim.AdamW], parameters: Sequence[Sequence[nn.Parameter]]) -> None:
        """Go on from where the ordinary optimisers of all replicas are; ``parameters``: of each, in our order."""
        for r, (optimizer, several) in enumerate(zip(optimizers, parameters, strict=True)):
            for parameter, *moments in zip(several, self._first, self._second, strict=True):
                if known := optimizer.state.get(parameter):
                    for moment, name in zip(moments, MOMENTS, strict=True):
                        _own(moment[r], parameter).copy_(known[name])
                    self.steps[r] = int(known["step"])

    def store(self, optimizers: Sequence[torch.optim.AdamW], parameters: Sequence[Sequence[nn.Parameter]]) -> None:
        """Set the ordinary optimisers of all replicas to the state of this one."""
        for r, (optimizer, several, done) in enumerate(zip(optimizers, parameters, self.steps.tolist(), strict=True)):
            for parameter, *moments in zip(several, self._first, self._second, strict=True):
                state = {n: _own(moment[r], parameter).clone() for moment, n in zip(moments, MOMENTS, strict=True)}
                optimizer.state[parameter] = {"step": torch.tensor(float(done)), **state}

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: Tensor, active: Tensor) -> None:
        """learning_rate (R), active (R)"""
        self.steps.add_(active)
        done = self.steps.clamp(min=1).double()
        first, second = (1 - beta**done for beta in BETAS)
        shorten = (STEEPEST / (lengths(gradients) + 1e-6)).clamp(max=1)
        keep = 1 - learning_rate.double() * self._weight_decay
        settings = torch.stack([shorten.double(), keep, learning_rate / first, second.sqrt()]).to(gradients[0].dtype)
        for each in zip(self._parameters, gradients, self._first, self._second, strict=True):
            self._update(*each, settings, active)


def _own(moment: Tensor, parameter: Tensor) -> Tensor:
    """A replica's moment, without what was filled up"""
    return moment[tuple(slice(0, size) for size in parameter.shape)]


def lengths(gradients: Sequence[Tensor]) -> Tensor:
    """(R) the length of every replica's whole gradient"""
    each = torch.stack([torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients])
    whole: Tensor = torch.linalg.vector_norm(each, dim=0)
    return whole


def update_plain(
    parameter: Tensor, gradient: Tensor, first: Tensor, second: Tensor, settings: Tensor, active: Tensor
) -> None:
    """Change parameter and moments (R, ...) in place; settings (4, R): shorten, keep, step size, root of correction"""
    shape = (-1, *[1] * (parameter.ndim - 1))
    shorten, keep, size, root = (s.view(shape) for s in settings)
    here = active.view(shape)
    gradient = gradient * shorten
    new_first = first.lerp(gradient, 1 - BETAS[0])
    new_second = (second * BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
    changed = parameter * keep - size * new_first / (new_second.sqrt() / root + EPSILON)
    for old, new in ((parameter, changed), (first, new_first), (second, new_second)):
        old.copy_(torch.where(here, new, old))


def update_fused(
    parameter: Tensor, gradient: Tensor, first: Tensor, second: Tensor, settings: Tensor, active: Tensor
) -> None:
    """The same in one pass over memory."""
    from egocnn.nn.engines.gpu.row_kernels import adamw

    replicas, numbers = len(parameter), parameter[0].numel()
    own = (parameter, gradient.contiguous(), first, second, settings, active, numbers, replicas)
    constants = {"BETA_1": BETAS[0], "BETA_2": BETAS[1], "EPSILON": EPSILON, "BLOCK": BLOCK}
    adamw[(-(-numbers // BLOCK), replicas)](*own, **constants)
