"""Ego-convolution: node embeddings (N, D) -> node embeddings (N, D'), one hop wider."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from egocnn.errors import ConfigError
from egocnn.nn.engines import Neighbours, ego_conv
from egocnn.nn.rows import Activation


class EgoConv(nn.Module):
    r"""Read one filter bank over every ego network.

    .. math:: h'_n = \sigma\Big(\mathrm{norm}\big(b + \sum_{k=0}^{K} h_{\nu(n,k)} W_k\big)\Big)

    where :math:`\nu(n,0)=n` and :math:`\nu(n,k)` is the k-th ranked neighbour of n (equation 3 of the paper).
    Absent neighbours contribute nothing. There are no padding nodes, so the batch norm sees real nodes alone; in
    evaluation it uses its running statistics, where the authors' code used the test batch's own.

    Shapes: x (N, D), neighbours (N, at least K; -1 where absent) -> (N, D')

    Arguments:
        in_width: Columns of x (D).
        out_width: Filters, the columns of what comes out (D').
        k: Ranked neighbours read per node, the node itself not counted (K).
        norm: Batch normalisation after the filters.
        activation: A rectifier at the end.

    Example:
        >>> import torch
        >>> from egocnn.nn import EgoConv
        >>> path = torch.tensor([[1, -1], [0, 2], [1, -1]])  # three nodes in a row
        >>> EgoConv(4, 8, k=2)(torch.randn(3, 4), path).shape
        torch.Size([3, 8])"""

    def __init__(self, in_width: int, out_width: int, *, k: int, norm: bool = True, activation: bool = True) -> None:
        super().__init__()
        if k < 0:
            raise ConfigError(f"k must be at least 0, got {k}")
        self.k = k
        self.weight = nn.Parameter(torch.empty(k + 1, in_width, out_width))
        self.bias = nn.Parameter(torch.zeros(out_width))
        self.norm: nn.Module = nn.BatchNorm1d(out_width) if norm else nn.Identity()
        self.activation = activation
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the filters anew, all neighbours alike."""
        # most graphs fill few ranks: scaled for K + 1 of them, the signal would die out from layer to layer
        bound = math.sqrt(6 / (self.weight.shape[1] * min(self.k + 1, 4)))
        nn.init.uniform_(self.weight, -bound, bound)
        with torch.no_grad():
            # all neighbours alike at first: what the ranks mean is learned, not unlearned
            self.weight[2:] = self.weight[1:2]
        nn.init.zeros_(self.bias)

    def share(self, other: "EgoConv") -> None:
        """Use the other layer's filters, bias, scale and shift as one's own; only the norm's statistics stay apart.

        Layers see differently distributed embeddings, so one running mean for all of them would fit none.

        Arguments:
            other: A layer of the same widths and k."""
        self.weight, self.bias = other.weight, other.bias
        if isinstance(self.norm, nn.BatchNorm1d) and isinstance(other.norm, nn.BatchNorm1d):
            self.norm.weight, self.norm.bias = other.norm.weight, other.norm.bias

    def forward(self, x: Tensor, neighbours: Tensor | Neighbours, after: Activation | None = None) -> Tensor:
        """Embeddings one hop wider.

        Arguments:
            x: (N, D) node embeddings.
            neighbours: (N, at least K) node numbers in the order of their ranks, -1 where absent.
            after: What follows the sums, given the norm; by default the norm and a rectifier.

        Returns:
            (N, D') node embeddings."""
        table = neighbours.table if isinstance(neighbours, Neighbours) else neighbours
        if table.shape[-1] < self.k:
            raise ConfigError(f"the layer reads k={self.k} neighbours, the table has {table.shape[-1]}")
        neighbours = neighbours.first(self.k) if isinstance(neighbours, Neighbours) else table[..., : self.k]
        fuses = isinstance(neighbours, Neighbours) and neighbours.tiles is not None
        if fuses and not self.training and self.weight.dim() == 3:
            # one pass over the nodes instead of three
            return ego_conv(x, neighbours, *fold(self.norm, self.weight, self.bias), relu=self.activation)
        y = ego_conv(x, neighbours, self.weight, self.bias)
        if after is not None:
            return after(y, self.norm)
        y = self.norm(y)
        return F.relu(y) if self.activation else y

    def extra_repr(self) -> str:
        """What ``print`` shows of the layer between the brackets.

        Returns:
            Both widths and k."""
        return f"{self.weight.shape[-2]}, {self.weight.shape[-1]}, k={self.k}"


def fold(norm: nn.Module, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Filters (..., D') and bias (D') that do in one step what they and the norm after them do in evaluation."""
    if not isinstance(norm, nn.BatchNorm1d):
        return weight, bias
    mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
    scale = norm.weight / torch.sqrt(variance + norm.eps)
    return weight * scale, (bias - mean) * scale + norm.bias
