r"""What is asked of all networks of a model together, as a function of which nodes are there.

The output that is explained is the calibrated log-odds of a class against the rest,

.. math:: y(\pi) = \frac{z_c}{T} - \log \sum_{c' \ne c} e^{z_{c'} / T}, \qquad z = \frac1R \sum_r z^{(r)}(\pi)

with the logits z at presence :math:`\pi` (N) and the temperature T, or the predicted value in the unit of the target.
:math:`y(1)` is the output, :math:`y(0)`, with no node present, the base."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from egocnn.explain.evidence import margins
from egocnn.model import Model
from egocnn.nn import EgoCNN, Output
from egocnn.nn.batch import Batch


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Networks, the graphs that they are asked about, and the class of each graph that is explained."""

    networks: Sequence[EgoCNN]  # in evaluation mode, their weights asking for no gradient
    batch: Batch
    classes: Tensor  # (B) class numbers; of no meaning for a regressor
    model: Model
    presence: Tensor | None = None  # (N) unless asked for another one; None: all nodes are there

    def answer(self, presence: Tensor | None = None) -> Tensor:
        """(B) the output that is explained, with nodes present to this degree (N); by default all are there"""
        return self.of_outputs(self.outputs(presence))

    def outputs(self, presence: Tensor | None = None) -> Tensor:
        """(B, C) the mean of the networks' logits, or standardised values"""
        there = self.presence if presence is None else presence
        passes: list[Output] = [network(self.batch, there) for network in self.networks]
        return torch.stack([each.output for each in passes]).mean(dim=0)

    def of_outputs(self, outputs: Tensor) -> Tensor:
        """(B, C) -> (B) the output that is explained"""
        if self.model.class_names:
            return margins(outputs / self.model.temperature, self.classes.to(outputs.device))
        return self.model.encoder.to_value(outputs[:, 0])

    def slope(self, presence: Tensor) -> Tensor:
        """(N) how much the output of a graph rises with the presence of each of its nodes"""
        with torch.enable_grad():
            presence = presence.detach().requires_grad_()
            (found,) = torch.autograd.grad(self.answer(presence).sum(), presence)
        return found
