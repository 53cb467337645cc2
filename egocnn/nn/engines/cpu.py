"""The ego-convolution without work for absent neighbours: a neighbour table -> what to multiply, and what to add up. A
node that several others have at the same rank is multiplied with that rank's filters once: an atom with two neighbours
costs at most three small products and not K + 1, and a hub at the head of a thousand lists costs one. Products are then
added up node by node. The scatters of the forward and the backward pass become gathers: which rows flow together is
sorted out once per batch, in :class:`Plan`, for all layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from egocnn.errors import ConfigError
from egocnn.nn.engines.operator import differentiable, factor_type
from egocnn.nn.engines.reference import ego_conv_reference

BLOCK = 1024  # rows that oneDNN multiplies at once: they fit the processor's cache
HAS_ONEDNN = torch.backends.cpu.get_cpu_capability() == "AVX512" and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class Products(NamedTuple):
    """Which rows are multiplied, and which products are added up: the first N are those of every node with the filters
    of rank 0; the other V follow rank by rank, those of the nodes that somebody has at this rank, each once."""

    sources: Tensor  # (V) the node that is multiplied
    counts: Tensor  # (ranks in use) how many of the V belong to each rank from 1 on; always on the CPU
    received: Tensor  # the products that each node receives, its own first, end to end
    received_from: Tensor  # (N) where the products of each node start in ``received``
    readers: Tensor  # the nodes that receive each of the V products, end to end
    readers_from: Tensor  # (V) where the readers of each product start in ``readers``
    made: Tensor  # the products that each node is multiplied for, its own first, end to end
    made_from: Tensor  # (N) where the products of each node start in ``made``


@dataclass(frozen=True, eq=False)  # without slots, so that what only explanations ask for is worked out on demand
class Plan:
    """Who is multiplied and added up with whom, for one neighbour table."""

    table: Tensor  # (N, K)
    products: Products

    @staticmethod
    def of(neighbours: Tensor) -> "Plan":
        present = neighbours >= 0
        ranks = int(present.any(dim=0).nonzero().flatten()[-1:].sum()) + 1 if present.any() else 0
        node, rank = torch.nonzero(present[:, :ranks], as_tuple=True)
        own, near = torch.arange(len(present), device=node.device), neighbours[node, rank].long()
        return Plan(neighbours, products_of(node, rank, near, own, ranks, len(own)))

    @cached_property
    def pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        """(n) for each neighbour of each node, node after node: the node, the neighbour, its place in ``received``"""
        N, received = len(self.products.made_from), self.products.received
        ends = torch.diff(self.products.received_from, append=received.new_tensor([len(received)]))
        node = torch.repeat_interleave(torch.arange(len(ends), device=ends.device), ends)
        sent = torch.nonzero(received >= N).flatten()
        return node[sent], self.products.sources[received[sent] - N], sent


def products_of(node: Tensor, rank: Tensor, neighbour: Tensor, own: Tensor, ranks: int, N: int) -> Products:
    """From the pairs of a node and its neighbour at a rank, node after node; ``own`` (n): each among the N rows."""
    count = torch.bincount(node, minlength=len(own))
    wanted = neighbour + rank * N
    used = torch.zeros(ranks * N, dtype=torch.bool, device=node.device)
    used[wanted] = True
    product = used.cumsum(0) + (N - 1)  # which product a node at a rank is, after the N own ones
    received = product.index_select(0, wanted)
    used, product = used.view(ranks, N), product.view(ranks, N)
    source, at = torch.nonzero(used.t(), as_tuple=True)
    readers = torch.bincount(received - N, minlength=len(source))
    return Products(
        sources=torch.nonzero(used)[:, 1], counts=used.sum(dim=1).cpu(),
        received=_own_first(own, count, node, received), received_from=_starts(count + 1),
        readers=node[torch.argsort(received, stable=True)], readers_from=_starts(readers),
        made=_own_first(torch.arange(N, device=node.device), used.sum(dim=0), source, product[at, source]),
        made_from=_starts(used.sum(dim=0) + 1),
    )  # fmt: skip


def _starts(counts: Tensor) -> Tensor:
    return counts.cumsum(0) - counts


def _own_first(own: Tensor, counts: Tensor, node: Tensor, product: Tensor) -> Tensor:
    """The product of each node itself before its other products, which stand node after node already"""
    result = product.new_empty(len(own) + len(product))
    result[torch.arange(len(own), device=own.device) + _starts(counts)] = own
    result[torch.arange(len(product), device=own.device) + node + 1] = product
    return result


def ego_conv_ragged(x: Tensor, plan: Plan | Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The same function as :func:`~egocnn.nn.engines.reference.ego_conv_reference`, absent neighbours skipped. From a
    table in place of its plan, the plan is worked out in each pass."""
    table = plan if isinstance(plan, Tensor) else plan.table
    rows = table.shape[0] if isinstance(plan, Tensor) else plan.products.made_from.shape[0]
    if x.shape[0] != rows or weight.shape[0] != table.shape[1] + 1:
        (N, K), given = table.shape, f"{len(x)} nodes nor {len(weight)} filters"
        raise ConfigError(f"a table of {N} nodes and {K} ranks fits neither {given}")
    kind = factor_type(x)
    if kind in (torch.bfloat16, torch.float16) and x.dtype != torch.float64:
        # rounded once, after all products are added up: a CPU gains nothing from less
        with torch.autocast("cpu", enabled=False):
            return ego_conv_ragged(x.float(), plan, weight.float(), bias.float()).to(kind)
    return _ragged(x, weight, bias, [table] if isinstance(plan, Tensor) else [table, *plan.products])


def _products(plan: Sequence[Tensor]) -> Products:
    return Products(*plan[1:]) if len(plan) > 1 else Plan.of(plan[0]).products


def _forward(x: Tensor, weight: Tensor, bias: Tensor, plan: Sequence[Tensor], relu: bool) -> Tensor:  # noqa: ARG001
    products = _products(plan)
    return _add_up(multiplied(x, weight, bias, products), products.received, products.received_from)


def multiplied(x: Tensor, weight: Tensor, bias: Tensor, products: Products) -> Tensor:
    """(N + V, D') the products, to which the own ones add the bias"""
    N = len(x)
    rows = x.new_empty(N + len(products.sources), weight.shape[2])
    _multiply(x, weight[0], rows[:N], bias=bias)
    sizes = products.counts.tolist()
    parts = zip(torch.split(products.sources, sizes), torch.split(rows[N:], sizes), weight[1:].unbind(), strict=False)
    for sources, part, filters in parts:
        _multiply(x, filters, part, chosen=sources)
    return rows


def backward(
    gradient: Tensor, x: Tensor, weight: Tensor, plan: Sequence[Tensor], for_x: bool, for_weight: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of x and weight; empty where not wanted"""
    N, products = len(x), _products(plan)
    sizes = products.counts.tolist()
    arriving = (gradient, *torch.split(_add_up(gradient, products.readers, products.readers_from), sizes))
    of_x, of_weight = x.new_empty(0), weight.new_empty(weight.shape if for_weight else 0)
    if for_weight:
        of_weight[len(arriving) :].zero_()
        torch.mm(x.t(), gradient, out=of_weight[0])
        parts = zip(torch.split(products.sources, sizes), arriving[1:], of_weight[1:].unbind(), strict=False)
        for sources, part, filters in parts:
            # gathered again rather than kept: little time, and memory for the largest graphs
            torch.mm(x.index_select(0, sources).t(), part, out=filters)
    if for_x:
        rows = x.new_empty(N + len(products.sources), x.shape[1])
        for part, row, filters in zip(arriving, torch.split(rows, [N, *sizes]), weight.unbind(), strict=False):
            _multiply(part, filters.t(), row)
        of_x = _add_up(rows, products.made, products.made_from)
    return of_x, of_weight


def _backward_again(
    gradient: Tensor, x: Tensor, weight: Tensor, plan: Sequence[Tensor], *_: bool
) -> tuple[Tensor, Tensor]:
    """:func:`backward` in operations that torch can differentiate once more: those of the reference."""

    def conv(x: Tensor, weight: Tensor) -> Tensor:
        return ego_conv_reference(x, plan[0], weight, weight.new_zeros(()))

    found: tuple[Tensor, Tensor] = torch.func.vjp(conv, x, weight)[1](gradient)
    return found


def _multiply(
    x: Tensor, filters: Tensor, out: Tensor, *, bias: Tensor | None = None, chosen: Tensor | None = None
) -> None:
    """The rows of x, or those chosen, times filters, plus the bias. On AMD torch's library for products, MKL, leaves
    half of AVX-512 idle; oneDNN, which torch brings along, does not, to the same bits. It compiles and keeps a program
    for every number of rows, so it gets blocks of one size; what the last two share comes out alike."""
    n = len(out)
    if HAS_ONEDNN and x.dtype == torch.float32 and n >= BLOCK:
        for first in (*range(0, n - BLOCK, BLOCK), n - BLOCK):
            here = slice(first, first + BLOCK)
            rows = x[here] if chosen is None else x.index_select(0, chosen[here])
            out[here] = torch.ops.mkldnn._linear_pointwise(rows, filters.t(), bias, "none", [], "")
        return
    x = x if chosen is None else x.index_select(0, chosen)
    torch.mm(x, filters, out=out) if bias is None else torch.addmm(bias, x, filters, out=out)


def _add_up(rows: Tensor, chosen: Tensor, starts: Tensor) -> Tensor:
    return torch.embedding_bag(rows, chosen, starts)[0]


_ragged = differentiable("ragged", _forward, backward, _backward_again)
